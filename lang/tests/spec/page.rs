//! Pages of the manual and their fenced blocks.

use std::ops::Range;

use super::root;

/// One chapter.
pub struct Page {
    /// Its file's name.
    pub name: String,
    /// Its Markdown.
    pub text: String,
}

/// A fenced block.
pub struct Block {
    /// The words behind the fence.
    pub info: Vec<String>,
    /// Its lines.
    pub text: String,
    /// Where these lines stand in the page.
    pub range: Range<usize>,
    /// The page and the line of the fence, for messages.
    pub place: String,
}

/// Every chapter, in order.
pub fn pages() -> Vec<Page> {
    let folder = root().join("tests/spec");
    let mut names: Vec<String> = std::fs::read_dir(&folder)
        .expect("the manual has pages")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into())
        .filter(|n: &String| n.ends_with(".md"))
        .collect();
    names.sort();
    let page = |name: String| Page {
        text: std::fs::read_to_string(folder.join(&name)).expect("pages are text"),
        name,
    };
    names.into_iter().map(page).collect()
}

impl Page {
    /// Its fenced blocks, in order.
    pub fn blocks(&self) -> Vec<Block> {
        let mut blocks = vec![];
        let mut open: Option<(Vec<String>, usize, usize)> = None;
        let mut at = 0;
        for (number, line) in self.text.split_inclusive('\n').enumerate() {
            let next = at + line.len();
            if let Some(info) = line.strip_prefix("```") {
                match open.take() {
                    None => {
                        let info = info.split_whitespace().map(str::to_string).collect();
                        open = Some((info, next, number + 1));
                    }
                    Some((info, from, fence)) => blocks.push(Block {
                        info,
                        text: self.text[from..at].to_string(),
                        range: from..at,
                        place: format!("tests/spec/{}:{fence}", self.name),
                    }),
                }
            }
            at = next;
        }
        assert!(open.is_none(), "{}: a block is not closed", self.name);
        blocks
    }

    /// Writes a text over a range of the page.
    pub fn rewrite(&self, parts: &[(Range<usize>, String)]) {
        let mut text = self.text.clone();
        let mut parts: Vec<_> = parts.iter().collect();
        parts.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        for (range, new) in parts {
            text.replace_range(range.clone(), new);
        }
        let path = root().join("tests/spec").join(&self.name);
        std::fs::write(path, text).expect("pages can be written");
    }
}

impl Block {
    /// Whether a word stands behind the fence.
    pub fn is(&self, word: &str) -> bool {
        self.info.iter().any(|w| w == word)
    }

    /// The value of `key=value` behind the fence.
    pub fn option(&self, key: &str) -> Option<&str> {
        self.info
            .iter()
            .find_map(|w| w.strip_prefix(key)?.strip_prefix('='))
    }

    /// The language.
    pub fn language(&self) -> &str {
        self.info.first().map_or("", String::as_str)
    }
}
