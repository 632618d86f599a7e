//! A page for every code that the language alone cannot give: data, memory, ranks. The language has its
//! own.

const PAGES: &[(&str, &str)] = &[
    ("D301", include_str!("d301.md")),
    ("D302", include_str!("d302.md")),
    ("D303", include_str!("d303.md")),
    ("D310", include_str!("d310.md")),
    ("D312", include_str!("d312.md")),
    ("D314", include_str!("d314.md")),
    ("E090", include_str!("e090.md")),
    ("M119", include_str!("m119.md")),
    ("M120", include_str!("m120.md")),
    ("P201", include_str!("p201.md")),
    ("R401", include_str!("r401.md")),
    ("R402", include_str!("r402.md")),
    ("R403", include_str!("r403.md")),
    ("R404", include_str!("r404.md")),
];

/// The page of a code, as Markdown.
pub fn explain(code: &str) -> Option<&'static str> {
    let own = PAGES.iter().find(|(c, _)| c.eq_ignore_ascii_case(code));
    let own = own.map(|(_, text)| *text);
    own.or_else(|| rlhf_lang::lint::explain(code))
}

/// Every code that has a page, in order.
pub fn codes() -> Vec<&'static str> {
    let own = PAGES.iter().map(|(code, _)| *code);
    let mut codes: Vec<&str> = own.chain(rlhf_lang::lint::codes()).collect();
    codes.sort_unstable();
    codes
}

/// The name of a code: `ragged-mismatch`, from its page's first line.
pub fn title(code: &str) -> Option<&'static str> {
    let line = explain(code)?.lines().next()?;
    Some(line.split_once(": ")?.1.trim())
}
