//! The one layout.

mod syntax_dump;

use rlhf_lang::fmt::format;
use syntax_dump::*;

/// Formats; checks that a second time changes nothing and that the tree is the same.
fn laid_out(text: &str) -> String {
    let once = format(text);
    assert_eq!(once.diagnostics, vec![], "{text}");
    let twice = format(&once.text);
    assert_eq!(twice.text, once.text);
    assert_eq!(items(&once.text), items(text));
    once.text
}

#[test]
fn the_sample_program_is_a_fixed_point() {
    assert_eq!(format(GRPO).text, GRPO);
}

#[test]
fn spaces_and_lines_come_back() {
    let squeezed: String = GRPO
        .lines()
        .map(|line| {
            if line.contains("//") {
                format!("{line}\n")
            } else {
                let mut line = line.trim().to_string();
                for mark in ["=", ",", ":", "(", ")", "[", "]", "{", "}", "*"] {
                    line = line
                        .replace(&format!(" {mark}"), mark)
                        .replace(&format!("{mark} "), mark);
                }
                line + "\n"
            }
        })
        .collect();
    assert_ne!(squeezed, GRPO);
    assert_eq!(laid_out(&squeezed), GRPO);
    let stretched: String = GRPO
        .lines()
        .map(|line| {
            if line.contains("//") {
                format!("{line}\n")
            } else {
                line.replace('(', " (\n   ")
                    .replace(',', "\n  , ")
                    .replace('=', "\t\t=  ")
                    .replace("=  \t\t=", "==")
                    + "\n"
            }
        })
        .collect();
    assert_eq!(laid_out(&stretched), GRPO);
}
