//! A page for every code: what it means, an example that has it and one that has not.
//!
//! The examples are tests. One without a `step` stands in a small program around it: items before the
//! step, statements in its body.

const PAGES: &[(&str, &str)] = &[
    ("E001", include_str!("e001.md")),
    ("E010", include_str!("e010.md")),
    ("E011", include_str!("e011.md")),
    ("E012", include_str!("e012.md")),
    ("E013", include_str!("e013.md")),
    ("E014", include_str!("e014.md")),
    ("E015", include_str!("e015.md")),
    ("E016", include_str!("e016.md")),
    ("E017", include_str!("e017.md")),
    ("E018", include_str!("e018.md")),
    ("E019", include_str!("e019.md")),
    ("E020", include_str!("e020.md")),
    ("E021", include_str!("e021.md")),
    ("E022", include_str!("e022.md")),
    ("E023", include_str!("e023.md")),
    ("E024", include_str!("e024.md")),
    ("E025", include_str!("e025.md")),
    ("E026", include_str!("e026.md")),
    ("E030", include_str!("e030.md")),
    ("E031", include_str!("e031.md")),
    ("E032", include_str!("e032.md")),
    ("E033", include_str!("e033.md")),
    ("E034", include_str!("e034.md")),
    ("E035", include_str!("e035.md")),
    ("E036", include_str!("e036.md")),
    ("E037", include_str!("e037.md")),
    ("E040", include_str!("e040.md")),
    ("E041", include_str!("e041.md")),
    ("L001", include_str!("l001.md")),
    ("L002", include_str!("l002.md")),
    ("L003", include_str!("l003.md")),
    ("L004", include_str!("l004.md")),
    ("L005", include_str!("l005.md")),
    ("L006", include_str!("l006.md")),
    ("L007", include_str!("l007.md")),
    ("L008", include_str!("l008.md")),
    ("L009", include_str!("l009.md")),
    ("L010", include_str!("l010.md")),
    ("L011", include_str!("l011.md")),
    ("L012", include_str!("l012.md")),
    ("M101", include_str!("m101.md")),
    ("M102", include_str!("m102.md")),
    ("M103", include_str!("m103.md")),
    ("M104", include_str!("m104.md")),
    ("M105", include_str!("m105.md")),
    ("M106", include_str!("m106.md")),
    ("M107", include_str!("m107.md")),
    ("M108", include_str!("m108.md")),
    ("M109", include_str!("m109.md")),
    ("M110", include_str!("m110.md")),
    ("M111", include_str!("m111.md")),
    ("M112", include_str!("m112.md")),
    ("M113", include_str!("m113.md")),
    ("M114", include_str!("m114.md")),
    ("M115", include_str!("m115.md")),
    ("M116", include_str!("m116.md")),
    ("M117", include_str!("m117.md")),
    ("M118", include_str!("m118.md")),
    ("M121", include_str!("m121.md")),
    ("M122", include_str!("m122.md")),
    ("M123", include_str!("m123.md")),
    ("M124", include_str!("m124.md")),
    ("M125", include_str!("m125.md")),
    ("M126", include_str!("m126.md")),
    ("P205", include_str!("p205.md")),
    ("P206", include_str!("p206.md")),
    ("P207", include_str!("p207.md")),
    ("P210", include_str!("p210.md")),
    ("P214", include_str!("p214.md")),
    ("P215", include_str!("p215.md")),
    ("P217", include_str!("p217.md")),
];

/// The page of a code, as Markdown.
pub fn explain(code: &str) -> Option<&'static str> {
    let found = PAGES.iter().find(|(c, _)| c.eq_ignore_ascii_case(code));
    found.map(|(_, text)| *text)
}

/// Every code that has a page.
pub fn codes() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(code, _)| *code)
}
