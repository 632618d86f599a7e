//! The shipped programs: all of them are there, short, and told of in the documents.

use std::path::Path;

fn algorithms() -> Vec<(String, usize)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../algorithms");
    let entries = std::fs::read_dir(folder).expect("the folder of programs");
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|e| e == "rlhf"))
        .map(|path| {
            let name = path.file_stem().unwrap_or_default().to_string_lossy();
            let text = std::fs::read_to_string(&path).expect("programs are text");
            (name.into_owned(), text.lines().count())
        })
        .collect();
    found.sort();
    found
}

#[test]
fn every_program_of_the_folder_is_shipped() {
    let mut shipped: Vec<_> = rlhf_stdlib::algorithms().iter().map(|(n, _)| *n).collect();
    shipped.sort_unstable();
    let names: Vec<_> = algorithms().into_iter().map(|(name, _)| name).collect();
    assert_eq!(shipped, names);
}

#[test]
fn a_program_has_fewer_than_60_lines() {
    let long: Vec<_> = algorithms().into_iter().filter(|(_, n)| *n >= 60).collect();
    assert!(long.is_empty(), "{long:?}");
}

#[test]
fn the_table_of_programs_tells_their_lines() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/algorithms.md");
    let page = std::fs::read_to_string(page).expect("the page is text");
    let untold = algorithms()
        .into_iter()
        .filter(|(name, lines)| !page.contains(&format!("\n| {name} | {lines} |")));
    let untold: Vec<_> = untold.collect();
    assert!(untold.is_empty(), "{untold:?}");
}
