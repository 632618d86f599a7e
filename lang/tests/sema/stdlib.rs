//! Every function of the standard library lowers, and is documented.

use rlhf_lang::compile::{Input, compile_expression};
use rlhf_lang::graph::Elem;
use rlhf_lang::source::FileId;
use rlhf_lang::syntax::ast::{FnParam, ItemKind, TypeKind};
use rlhf_lang::syntax::parse;

fn modules() -> impl Iterator<Item = &'static str> {
    rlhf_stdlib::modules()
        .iter()
        .copied()
        .chain(["std.prelude"])
}

/// An argument that fits a parameter.
fn argument(p: &FnParam) -> String {
    match (&p.ty.kind, &p.ty.axes) {
        (TypeKind::Name(n), _) if n == "axis" => "G".into(),
        (TypeKind::Name(n), _) if n == "axes" => "[B, G]".into(),
        (TypeKind::Name(n), None) if n == "int" => "3".into(),
        (_, None) => "0.5".into(),
        (_, Some(axes)) if axes.len() > 1 => "x".into(),
        _ => "r".into(),
    }
}

#[test]
fn every_function_lowers_with_all_its_arguments_and_with_none_of_its_defaults() {
    let input = |name: &str, axes: &[(&str, Option<usize>)]| Input {
        name: name.into(),
        axes: axes.iter().map(|(n, s)| (n.to_string(), *s)).collect(),
        elem: Elem::Float,
    };
    let inputs = [
        input("r", &[("B", Some(2)), ("G", Some(3))]),
        input("x", &[("B", Some(2)), ("G", Some(3)), ("T", None)]),
    ];
    let mut count = 0;
    for module in modules() {
        let text = rlhf_stdlib::module(module).expect("listed modules exist");
        let (file, diagnostics) = parse(FileId(0), text);
        assert!(diagnostics.is_empty(), "{module}: {diagnostics:?}");
        for item in &file.items {
            let ItemKind::Fn(f) = &item.kind else {
                continue;
            };
            count += 1;
            assert!(item.doc.is_some(), "{module}.{} has no doc", f.name.text);
            for defaults in [true, false] {
                let given = f.params.iter().filter(|p| defaults || p.default.is_none());
                let args: Vec<String> = given.map(argument).collect();
                let call = format!("{}({})", f.name.text, args.join(", "));
                let uses = match module {
                    "std.prelude" => vec![],
                    other => vec![other.to_string()],
                };
                let result = compile_expression(&call, &uses, &inputs, &|_| None);
                if let Err((_, found)) = result {
                    panic!("{module}: {call}: {found:?}");
                }
            }
        }
    }
    assert!(count > 25, "{count} functions");
}
