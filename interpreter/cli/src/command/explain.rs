//! `rlhf explain`

use std::fmt::Write;

use crate::args::Explain;
use crate::outcome::{Outcome, Stop};
use crate::output;
use crate::pages;

/// What the letter of a code says.
const LETTERS: [(char, &str); 6] = [
    ('E', "the program has no meaning"),
    ('L', "the language"),
    ('M', "machine learning"),
    ('D', "data, tokenizer and template"),
    ('P', "placement and memory"),
    ('R', "at run time"),
];

/// Prints a code's page, or all codes.
pub fn explain(args: &Explain) -> Outcome<u8> {
    let Some(code) = &args.code else {
        output::out(&list());
        return Ok(0);
    };
    let code = code.trim();
    if let Some(page) = pages::explain(code) {
        output::out(&format!("{}\n", page.trim_end()));
        return Ok(0);
    }
    let codes = pages::codes();
    let wanted = code.to_uppercase();
    let near = crate::program::similar(&wanted, codes.iter().copied());
    let near = near.map_or(String::new(), |near| {
        format!("a similar code is `{near}`; ")
    });
    Err(Stop::usage(
        format!("no diagnostic has the code `{code}`"),
        format!("{near}`rlhf explain` lists all codes"),
    ))
}

fn list() -> String {
    let mut text = String::new();
    for (letter, meaning) in LETTERS {
        let codes = pages::codes();
        let of_letter: Vec<&&str> = codes.iter().filter(|c| c.starts_with(letter)).collect();
        if of_letter.is_empty() {
            continue;
        }
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{letter}  {meaning}");
        for code in of_letter {
            let title = pages::title(code).unwrap_or_default();
            let _ = writeln!(text, "  {code}  {title}");
        }
        text.push('\n');
    }
    text + "`rlhf explain CODE` prints a page.\n"
}
