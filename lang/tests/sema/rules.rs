//! Messages: what they say, where they point, and that one cause gives one message.

use rlhf_lang::diag::Level;

use super::{check, messages, program};

/// The only message of a text, as `code line message | help`.
fn only(text: &str) -> String {
    let compiled = check(text, &[]);
    let serious: Vec<_> = compiled
        .diagnostics
        .iter()
        .filter(|d| d.level == Level::Error || d.code.starts_with('M'))
        .collect();
    let [d] = serious[..] else {
        panic!("not one message:\n{}\n{text}", messages(&compiled));
    };
    let quoted = d
        .span()
        .map(|s| compiled.sources.get(s.file).slice(s).to_string());
    let mut line = format!("{} `{}` {}", d.code, quoted.unwrap_or_default(), d.message);
    if let Some(help) = &d.help {
        line += &format!(" | {help}");
    }
    line
}

fn body(text: &str) -> String {
    only(&program(text))
}

#[test]
fn unknown_names_offer_the_nearest() {
    assert_eq!(
        body("advantage = mean(r)\nlog a: advantge"),
        "E010 `advantge` no `advantge` in this step | a similar name is in scope: `advantage`"
    );
    assert_eq!(
        body("log a: mean(number(anser))"),
        "E010 `anser` no `anser` in this step | a similar name is in scope: `answer`"
    );
    assert_eq!(
        body("log a: mean(roll.txt)"),
        "E010 `txt` a rollout has no member `txt` | a similar one: `text`"
    );
    assert_eq!(
        body("log a: mean(number(zzzzzz))"),
        "E010 `zzzzzz` no `zzzzzz` in this step | `d` has the columns `question`, `answer`"
    );
    assert_eq!(
        body("log a: mean(k3(r, r))"),
        "E010 `k3` no function `k3` in this file | import it: `use std.kl { k3 }`"
    );
}

#[test]
fn a_binding_used_above_its_line_is_named() {
    assert_eq!(
        body("a = mean(later)\nlater = r + 1\nlog a: a, b: mean(later)"),
        "E010 `later` `later` is used before it is bound | a binding can be read only below it"
    );
}

#[test]
fn one_error_does_not_spread() {
    assert_eq!(
        body("a = mean(nothing_of_that)\nb = a + 1\nc = exp(b) * a\nlog c: c"),
        "E010 `nothing_of_that` no `nothing_of_that` in this step | `d` has the columns `question`, `answer`"
    );
}

#[test]
fn reductions_name_the_axes_found() {
    assert_eq!(
        body("log a: mean(mean(r, T))"),
        "E030 `T` `r` has axes `[B, G]`, so it cannot be reduced over `T` | it can be reduced over `B` or `G`"
    );
    assert_eq!(
        body("log a: mean(mean(r, Q))"),
        "E030 `Q` `r` has axes `[B, G]`, so it cannot be reduced over `Q` | it can be reduced over `B` or `G`"
    );
    assert_eq!(
        body("log a: mean(mean(roll.logp, [B, G]))"),
        "E035 `mean(roll.logp, [B, G])` `roll.logp` cannot be reduced over `B` while `T` remains: responses differ in length | reduce over `T` first, or over both: `[B, T]`"
    );
}

#[test]
fn losses_name_the_axes_left() {
    assert_eq!(
        body("train policy { minimize -logp(policy, roll) }"),
        "E032 `-logp(policy, roll)` `minimize` needs one number; this still has axes `[B, G, T]` | per token: `mean(-logp(policy, roll), [B, G, T])`; per response: `mean(mean(-logp(policy, roll), T), [B, G])`"
    );
}

#[test]
fn two_response_axes_do_not_meet() {
    assert_eq!(
        body(
            "w = answer(question, answer)[W: ..8]\nl = answer(question, question)[L: ..8]\na = logp(policy, w)\nb = logp(policy, l)\nlog m: mean(a - b)"
        ),
        "E031 `a - b` `W` and `L` are different response axes and cannot be combined element by element | reduce each first: `sum(a, W)`, `sum(b, L)`"
    );
}

#[test]
fn a_ratio_over_the_reference_is_found_through_functions() {
    assert_eq!(
        only(&program("ref = logp(anchor, roll)\ntrain policy {\n  lp = logp(policy, roll)\n  minimize -mean(clipped(exp(lp - ref), r))\n}").replace("param base", "use std.ppo { clipped }\nparam base")),
        "M102 `exp(lp - ref)` this ratio divides `policy` by `anchor`; it needs the version that sampled `roll` | an importance ratio divides by the sampling policy: `roll.logp`"
    );
}

#[test]
fn the_reference_inside_a_kl_is_fine() {
    let text = program("ref = logp(anchor, roll)\ntrain policy {\n  lp = logp(policy, roll)\n  minimize mean(0.1 * k3(lp, ref) - lp * r)\n}")
        .replace("param base", "use std.kl { k3 }\nparam base");
    assert_eq!(messages(&check(&text, &[])), "");
}

#[test]
fn versions_are_explicit() {
    assert_eq!(
        body(
            "train policy { minimize -mean(logp(policy, roll)) }\nnow = logp(policy, roll)\nlog now: mean(now)"
        ),
        "E023 `policy` `policy` is read after its training on line 11: before or after the update? | above `train` the step reads the version it started with; the next iteration reads the new one"
    );
}

#[test]
fn group_statistics_of_live_values_are_free_and_row_statistics_are_linear() {
    let clean = program(
        "train policy {\n  lp = logp(policy, roll)\n  s = sum(lp, T)\n  minimize mean(std(s, G) / (1 + exp(-mean(s, G))), B)\n}",
    );
    assert_eq!(messages(&check(&clean, &[])), "");
    assert_eq!(
        body("train policy {\n  lp = logp(policy, roll)\n  minimize std(sum(lp, T))\n}"),
        "E024 `std(sum(lp, T))` `std(sum(lp, T))` is not linear in a live value that is reduced over `B` | a live sum or mean over `B` may be added and scaled; anything else is computed above `train`"
    );
}

#[test]
fn recursion_shows_its_path() {
    assert_eq!(
        only(
            "fn f(x: float) -> float = g(x)\nfn g(x: float) -> float = f(x)\nparam n: float = f(1)"
        ),
        "E014 `f` `f` calls itself: `f` → `g` → `f` | functions are put in where they are called, so none may reach itself"
    );
}

#[test]
fn params_on_the_command_line_are_checked() {
    let text = "param group: int in 2.. = 8\nparam kind: \"a\" | \"b\" = \"a\"";
    for (name, value, wanted) in [
        ("groups", "4", "E012 `test.rlhf` has no parameter `groups`"),
        ("group", "1", "E013 `group=1` is outside `2..`"),
        ("group", "x", "E013 `group=x` is not a whole number"),
        ("kind", "c", "E013 `kind` cannot be \"c\""),
    ] {
        let compiled = check(text, &[(name, value)]);
        let [d] = &compiled.diagnostics[..] else {
            panic!("{name}: {}", messages(&compiled));
        };
        assert_eq!(format!("{} {}", d.code, d.message), wanted);
    }
    let compiled = check(text, &[("groups", "4")]);
    assert_eq!(
        compiled.diagnostics[0].help.as_deref(),
        Some("similar: `group: int in 2.. = 8`")
    );
}

#[test]
fn functions_that_nothing_calls_are_still_read() {
    assert_eq!(
        only("fn f(x: float[..]) -> float[..] = x + yy"),
        "E010 `yy` no `yy` in this function"
    );
    let clean = "fn f(x: float[.., T]) -> float[..] {\n  a = mean(x, T)\n  return a + 1\n}";
    assert_eq!(messages(&check(clean, &[])), "");
}

#[test]
fn libraries_are_imported_by_path() {
    use rlhf_lang::compile::{Request, compile};
    let text = program("x = twice(mean(r))\nlog x: x")
        .replace("param base", "use \"mine.rlhf\" { twice }\nparam base");
    let with = |library: &'static str| {
        let compiled = compile(&Request {
            name: "main.rlhf",
            text: &text,
            overrides: &[],
            load: &move |path| (path == "mine.rlhf").then(|| library.to_string()),
        });
        messages(&compiled)
    };
    assert_eq!(with("fn twice(x: float[..]) -> float[..] = 2 * x\n"), "");
    assert!(with("fn thrice(x: float[..]) -> float[..] = 3 * x\n").contains("E040"));
    assert!(with("use \"mine.rlhf\" { twice }\nfn twice(x: float[..]) = x\n").contains("E014"));
    let missing = text.replace("mine.rlhf", "other.rlhf");
    assert!(messages(&check(&missing, &[])).contains("E040"));
}

#[test]
fn a_chat_column_is_a_prompt() {
    let text = "param base: checkpoint = \"m\"\ndata d = jsonl(\"d.jsonl\") { turns: chat from \"messages\" }\nmodel policy = causal(base, optim: adamw(cosine(1e-5, 3)))\nstep over d[B: 4], epochs: 2 {\n  roll = generate(policy, turns, top_p: 0.9, stop: [\"\\n\", \"END\"])[T: ..16]\n  train policy, minibatch: 2, epochs: 2 { minimize -mean(logp(policy, roll)) }\n}\n";
    let compiled = check(text, &[]);
    assert_eq!(messages(&compiled), "");
    let text = rlhf_lang::graph::show::text(&compiled.graph.expect("a graph"));
    assert!(
        text.contains("from turns, temperature 1, top_p 0.9, stop \"\\n\" \"END\""),
        "{text}"
    );
}

#[test]
fn preferences_lower() {
    let text = "use std.dpo { margin, dpo }\nparam base: checkpoint = \"m\"\ndata d = jsonl(\"d.jsonl\") { prompt: text, chosen: text, rejected: text }\nmodel policy = causal(base, optim: adamw(1e-6))\nmodel anchor = frozen(policy)\nstep over d[B: 4], iterations: 2 {\n  win = answer(chat(prompt), chosen)[W: ..64]\n  lose = answer(chat(prompt), rejected)[L: ..64]\n  ref_w = logp(anchor, win)\n  ref_l = logp(anchor, lose)\n  train policy {\n    w = logp(policy, win)\n    l = logp(policy, lose)\n    m = margin(sum(w, W), sum(l, L), sum(ref_w, W), sum(ref_l, L))\n    minimize mean(dpo(m, 0.1))\n    log accuracy: mean(m > 0)\n  }\n}\n";
    let compiled = check(text, &[]);
    assert_eq!(messages(&compiled), "");
    let graph = compiled.graph.expect("a graph");
    let passes = graph
        .dag
        .order()
        .filter_map(|id| match &graph.dag.node(id).kind {
            rlhf_lang::graph::NodeKind::Train(t) => Some(t.forwards.len()),
            _ => None,
        });
    assert_eq!(passes.collect::<Vec<_>>(), [2]);
}

#[test]
fn metrics_do_not_overwrite_each_other() {
    let help =
        "the metrics of `step` and of its `train` blocks stand side by side; take another name";
    assert_eq!(
        body("train policy {\n  minimize -mean(logp(policy, roll) * r)\n  log reward: mean(r)\n}"),
        format!("E011 `reward` `reward` is already logged on line 10 | {help}")
    );
    let eval = "eval every 2 over h[E: 2] {\n  best = generate(policy, question, temperature: 0)[S: ..8]\n  log NAME: mean(if best.text == answer then 1 else 0)\n}\n";
    let two = |a: &str, b: &str| {
        let evals = eval.replace("NAME", a) + &eval.replace("NAME", b);
        program("log b: mean(r)")
            + "data h = jsonl(\"h.jsonl\") { question: text, answer: text }\n"
            + &evals
    };
    assert_eq!(messages(&check(&two("reward", "other"), &[])), "");
    assert!(only(&two("exact", "exact")).starts_with("E011 `exact` `exact` is already logged"));
}

#[test]
fn counts_and_options_have_limits() {
    let optim = |options: &str| only(&program("log a: mean(r)").replace("lr: 1e-5", options));
    for (options, said) in [
        (
            "1e-5, beta1: 1",
            "`beta1` cannot be 1 | it is at least 0 and below 1",
        ),
        (
            "1e-5, betas: [0.9, -1]",
            "`betas` cannot be -1 | it is at least 0 and below 1",
        ),
        (
            "1e-5, eps: 0",
            "`eps` cannot be 0 | it is above 0 and at most 1",
        ),
        ("1e-5, clip: -1", "`clip` cannot be -1 | it is at least 0"),
        (
            "1e-5, weight_decay: -0.1",
            "`weight_decay` cannot be -0.1 | it is at least 0",
        ),
        ("-1", "`lr` cannot be `-1` | it is at least 0"),
        ("lr: -1e-5", "`lr` cannot be `-1e-5` | it is at least 0"),
    ] {
        let found = optim(options);
        assert!(
            found.starts_with("E018") && found.ends_with(said),
            "{options}: {found}"
        );
    }
    let other = |call: &str, axes: &str| {
        body(&format!(
            "other = generate(policy, question{call})[{axes}]\nlog a: mean(len(other, U))"
        ))
    };
    assert_eq!(
        other(", stop: \"\"", "U: ..8"),
        "E018 `\"\"` `stop` has an empty text | every response contains it; leave it out"
    );
    assert_eq!(
        other("", "U: ..10000001"),
        "E018 `10000001` `U: 10000001` is outside `1..10000000`"
    );
    assert!(other("", "K: 1000000, U: ..10000000").contains("too many for one call"));
    let rows = program("log a: mean(r)").replace("B: 4", "B: 735134400");
    let rows = rows.replace("train policy", "train policy, minibatch: 11111");
    assert!(messages(&check(&rows, &[])).contains("M110"));
}

#[test]
fn broken_text_is_one_message() {
    let broken = |from: &str, to: &str| {
        let text = program("a = mean(r, G)\nlog a: mean(a), length: mean(len(roll, T))");
        assert!(text.contains(from), "{text}");
        only(&text.replace(from, to))
    };
    assert!(broken("T: ..32]", "T: ..32").starts_with("E001"));
    assert!(broken("generate(policy", "generate(polcy").starts_with("E010 `polcy`"));
    assert!(broken("a = mean(r, G)", "a = = mean(r, G)").starts_with("E001"));
    assert!(broken("model policy =", "model policy").starts_with("E001"));
    assert!(broken("param base:", "param base").starts_with("E001"));
}
