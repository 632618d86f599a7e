//! The names that a Python file gives a meaning when it is imported.

use tree_sitter::{Node, Parser, Tree};

/// Names with which a file may bind others by their text, or run text as a program.
const DYNAMIC: [&str; 9] = [
    "__builtins__",
    "__dict__",
    "__getattr__",
    "eval",
    "exec",
    "globals",
    "modules",
    "setattr",
    "vars",
];

/// What an assignment binds.
#[derive(Clone, Copy)]
enum Scope {
    /// A name of the module.
    Module,
    /// A name of a function or of a class.
    Inner,
}

/// The names that importing the file may bind: at the top level, branches and `try` blocks included,
/// and in functions that declare them `global`. Nothing when the file does not parse, or when it binds
/// names in ways that only running it shows.
pub fn names(text: &str) -> Option<Vec<String>> {
    let tree = parse(text)?;
    if tree.root_node().has_error() {
        return None;
    }
    let mut names = vec![];
    // Texts may be nested deeper than calls.
    let mut pending = vec![(tree.root_node(), Scope::Module)];
    while let Some((node, scope)) = pending.pop() {
        let dynamic = node.kind() == "identifier" && DYNAMIC.contains(&&text[node.byte_range()]);
        if dynamic || node.kind() == "wildcard_import" {
            return None;
        }
        match (node.kind(), scope) {
            ("global_statement", _) => targets(node, text, &mut names),
            (_, Scope::Module) => bind(node, text, &mut names),
            (_, Scope::Inner) => {}
        }
        let opens = matches!(
            node.kind(),
            "function_definition" | "class_definition" | "lambda"
        );
        let body = node.child_by_field_name("body").filter(|_| opens);
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            let inner = body.is_some_and(|b| b.id() == child.id());
            pending.push((child, if inner { Scope::Inner } else { scope }));
        }
    }
    names.sort();
    names.dedup();
    Some(names)
}

fn parse(text: &str) -> Option<Tree> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_python::LANGUAGE.into())
        .ok()?;
    parser.parse(text, None)
}

/// Takes the names that a statement or an expression of the module binds itself, without its parts.
fn bind(node: Node, text: &str, names: &mut Vec<String>) {
    let field = match node.kind() {
        "function_definition" | "class_definition" | "named_expression" => "name",
        "assignment" | "for_statement" | "type_alias_statement" => "left",
        // `with … as x`, `except … as x`, `case … as x`
        "as_pattern_target" | "case_pattern" => return targets(node, text, names),
        "import_statement" | "import_from_statement" => return imported(node, text, names),
        _ => return,
    };
    if let Some(target) = node.child_by_field_name(field) {
        targets(target, text, names);
    }
}

fn imported(node: Node, text: &str, names: &mut Vec<String>) {
    let mut cursor = node.walk();
    for name in node.children_by_field_name("name", &mut cursor) {
        let alias = name.child_by_field_name("alias");
        let first = name.named_child(0);
        let dotted = (name.kind() == "dotted_name").then_some(first).flatten();
        names.extend(alias.or(dotted).map(|n| text[n.byte_range()].to_string()));
    }
}

/// `a`, `a, b`, `(a, *b)`; attributes and subscripts bind no name.
fn targets(node: Node, text: &str, names: &mut Vec<String>) {
    let mut pending = vec![node];
    while let Some(node) = pending.pop() {
        match node.kind() {
            "identifier" => names.push(text[node.byte_range()].into()),
            "attribute" | "subscript" => {}
            _ => {
                let mut cursor = node.walk();
                pending.extend(node.named_children(&mut cursor));
            }
        }
    }
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
    fn a_name_bound_from_within_a_function_or_an_expression_is_seen() {
        for text in [
            "def make():\n    global score\n    score = len\nmake()\n",
            "class A:\n    def b(self):\n        def c():\n            global a, score\n",
            "print(score := len)\n",
            "if (score := len):\n    pass\n",
            "all([(score := n) for n in (len, max)])\n",
            "def f(x=(score := 1)): pass\n",
            "for a, score in []: pass\n",
            "with open('x') as score: pass\n",
            "match f:\n    case [1, score]: pass\n",
            "match f:\n    case 1 as score: pass\n",
        ] {
            let found = names(text).expect("it parses");
            assert!(found.iter().any(|n| n == "score"), "{text}: {found:?}");
        }
        for text in [
            "def f():\n    print(score := 1)\n",
            "f = lambda: (score := 1)\n",
            "a.score = 1\nb[score] = 2\n",
            "# score = 1\n'score'\n",
        ] {
            let found = names(text).expect("it parses");
            assert!(!found.iter().any(|n| n == "score"), "{text}: {found:?}");
        }
    }

    #[test]
    fn a_text_nested_deeper_than_calls_may_be_is_read() {
        let deep = format!("a = {}1{}\n", "(".repeat(20_000), ")".repeat(20_000));
        assert!(names(&deep).is_none_or(|found| found == ["a"]));
    }

    #[test]
    fn what_only_running_shows_is_left_open() {
        for text in [
            "from rules import *\n",
            "globals()['score'] = len\n",
            "exec('def score(x): return 1')\n",
            "def make():\n    exec('score = 1', globals())\nmake()\n",
            "if True:\n    from rules import *\n",
            "import sys\nsetattr(sys.modules[__name__], 'score', len)\n",
            "g = globals\ng()['score'] = 1\n",
            "def __getattr__(name): return len\n",
            "def score(:\n",
            "for n in 'ab':\n    globals()[n] = 1\n",
        ] {
            assert_eq!(names(text), None, "{text}");
        }
        assert_eq!(names(""), Some(vec![]));
    }
}
