//! Recipes: changed lines of a shipped program.

/// The base with every hunk put in. A hunk is lines that stay (` `), go (`-`) and come (`+`); hunks are
/// parted by a line `@@`. What stays and goes must stand in the base in exactly one place.
pub fn apply(base: &str, diff: &str) -> Result<String, String> {
    let mut lines: Vec<String> = base.lines().map(str::to_string).collect();
    for hunk in diff.split("@@\n") {
        let (mut old, mut new) = (vec![], vec![]);
        for line in hunk.lines() {
            let (sign, rest) = line.split_at(line.len().min(1));
            match sign {
                " " | "" => {
                    old.push(rest);
                    new.push(rest.to_string());
                }
                "-" => old.push(rest),
                "+" => new.push(rest.to_string()),
                _ => return Err(format!("`{line}` begins with none of ` `, `-` and `+`")),
            }
        }
        if old.is_empty() {
            return Err(format!("a hunk names no line of the base:\n{hunk}"));
        }
        let found: Vec<usize> = (0..lines.len())
            .filter(|i| {
                let here = lines.iter().skip(*i).map(String::as_str);
                here.take(old.len()).eq(old.iter().copied())
            })
            .collect();
        let [at] = found[..] else {
            let places = found.len();
            return Err(format!(
                "{places} places of the base have these lines:\n{}",
                old.join("\n")
            ));
        };
        lines.splice(at..at + old.len(), new);
    }
    Ok(lines.join("\n") + "\n")
}

#[test]
fn a_hunk_replaces_the_one_place_it_names() {
    let base = "a\nb\nc\n";
    assert_eq!(apply(base, " a\n-b\n+d\n").as_deref(), Ok("a\nd\nc\n"));
    assert_eq!(apply(base, "-a\n@@\n c\n+d\n").as_deref(), Ok("b\nc\nd\n"));
    assert!(apply(base, "-x\n").is_err());
    assert!(apply("a\na\n", "-a\n").is_err());
    assert!(apply(base, "+x\n").is_err());
}
