//! The names that a Python file gives a meaning when it is imported.

use tree_sitter::{Node, Parser, Tree};

/// The names bound at the top level, branches and `try` blocks included. Nothing when the file does
/// not parse, or when it binds names in ways that only running it shows.
pub fn names(text: &str) -> Option<Vec<String>> {
    let tree = parse(text)?;
    let mut names = vec![];
    let open = tree.root_node().has_error() || !bind(tree.root_node(), text, &mut names);
    names.sort();
    names.dedup();
    // A module's own `__getattr__` may make any name.
    let open = open || names.iter().any(|n| n == "__getattr__");
    (!open).then_some(names)
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_python::LANGUAGE.into())
        .ok()?;
    parser.parse(text, None)
}

/// Takes the names of a block; false when there may be others.
fn bind(block: Node, text: &str, names: &mut Vec<String>) -> bool {
    let mut cursor = block.walk();
    let children: Vec<Node> = block.named_children(&mut cursor).collect();
    children.into_iter().all(|node| {
        let mut add = |node: Option<Node>| {
            names.extend(node.map(|n| text[n.byte_range()].to_string()));
        };
        match node.kind() {
            "function_definition" | "class_definition" => {
                add(node.child_by_field_name("name"));
                true
            }
            "decorated_definition" | "expression_statement" => bind(node, text, names),
            "assignment" => {
                if let Some(left) = node.child_by_field_name("left") {
                    targets(left, text, names);
                }
                // `a = b = 1`
                match node.child_by_field_name("right") {
                    Some(right) if right.kind() == "assignment" => bind(node, text, names),
                    _ => !dynamic(node, text),
                }
            }
            "import_statement" | "import_from_statement" => {
                let star = |n: &Node| n.kind() == "wildcard_import";
                let mut cursor = node.walk();
                if node.named_children(&mut cursor).any(|n| star(&n)) {
                    return false;
                }
                let mut cursor = node.walk();
                for name in node.children_by_field_name("name", &mut cursor) {
                    let alias = name.child_by_field_name("alias");
                    let first = name.named_child(0);
                    let dotted = (name.kind() == "dotted_name").then_some(first).flatten();
                    names.extend(alias.or(dotted).map(|n| text[n.byte_range()].to_string()));
                }
                true
            }
            "if_statement" | "elif_clause" | "else_clause" | "try_statement" | "except_clause"
            | "finally_clause" | "with_statement" | "for_statement" | "while_statement"
            | "match_statement" | "case_clause" | "block" => bind(node, text, names),
            "call" => !dynamic(node, text),
            _ => true,
        }
    })
}

/// `a`, `a, b`, `(a, *b)`; attributes and subscripts bind no name.
fn targets(node: Node, text: &str, names: &mut Vec<String>) {
    if node.kind() == "identifier" {
        names.push(text[node.byte_range()].into());
        return;
    }
    if matches!(
        node.kind(),
        "pattern_list" | "tuple_pattern" | "list_pattern" | "list_splat_pattern"
    ) {
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            targets(child, text, names);
        }
    }
}

/// Whether a statement may bind names by their text.
fn dynamic(node: Node, text: &str) -> bool {
    let text = &text[node.byte_range()];
    ["globals(", "exec(", "setattr(", "vars(", "__dict__"]
        .iter()
        .any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn every_way_to_bind_a_name_at_the_top_level_is_seen() {
        let text = "import os, json as j, numpy.linalg\n\
                    from rules import exact, close as near\n\
                    def plain(x):\n    inner = 1\n    def nested(): pass\n    return inner\n\
                    async def later(x): ...\n\
                    @cache\ndef decorated(x): pass\n\
                    class Judge:\n    def method(self): pass\n\
                    score = plain\n\
                    a, (b, *c) = 1, (2, 3)\n\
                    d = e = 4\n\
                    f: int = 5\n\
                    judge.attribute = 6\n\
                    if os.name:\n    def branch(x): pass\nelse:\n    other = 1\n\
                    try:\n    from fast import quick\nexcept ImportError:\n    quick_too = None\n\
                    with open('x') as handle:\n    inside = 1\n\
                    \"\"\"def quoted(x): pass\"\"\"\n";
        let found = names(text).expect("it parses");
        for name in [
            "os",
            "j",
            "numpy",
            "exact",
            "near",
            "plain",
            "later",
            "decorated",
            "Judge",
            "score",
            "a",
            "b",
            "c",
            "d",
            "e",
            "f",
            "branch",
            "other",
            "quick",
            "quick_too",
            "inside",
        ] {
            assert!(found.iter().any(|n| n == name), "{name}: {found:?}");
        }
        for name in [
            "inner",
            "nested",
            "method",
            "attribute",
            "quoted",
            "linalg",
            "close",
        ] {
            assert!(!found.iter().any(|n| n == name), "{name}");
        }
    }

    #[test]
    fn what_only_running_shows_is_left_open() {
        for text in [
            "from rules import *\n",
            "globals()['score'] = len\n",
            "exec('def score(x): return 1')\n",
            "def score(:\n",
            "for n in 'ab':\n    globals()[n] = 1\n",
        ] {
            assert_eq!(names(text), None, "{text}");
        }
        assert_eq!(names(""), Some(vec![]));
    }
}
