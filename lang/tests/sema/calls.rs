//! Scalar models, carried state, parts of the rows, selections and plans.

use rlhf_lang::diag::Level;
use rlhf_lang::graph::{
    AxisSize, Edge, ForwardOutput, Graph, NodeKind, Op, Scope, Selection, Setting, show,
};

use super::{check, messages, program};

/// The graph of a program around items and statements, which must be without errors.
fn graph(items: &str, statements: &str) -> Graph {
    let text = program(statements).replace("step over", &format!("{items}\nstep over"));
    let compiled = check(&text, &[]);
    compiled.graph.unwrap_or_else(|| {
        panic!("{}\n{text}", {
            let c = check(&text, &[]);
            messages(&c)
        })
    })
}

/// The first error as `code message`.
fn error(items: &str, statements: &str) -> String {
    let text = program(statements).replace("step over", &format!("{items}\nstep over"));
    let compiled = check(&text, &[]);
    let errors: Vec<_> = compiled
        .diagnostics
        .iter()
        .filter(|d| d.level == Level::Error)
        .collect();
    let [d] = errors[..] else {
        panic!("not one error:\n{}\n{text}", messages(&compiled));
    };
    format!("{} {}", d.code, d.message)
}

fn types(graph: &Graph) -> Vec<String> {
    let show = |v: &rlhf_lang::graph::Value| format!("{}: {}", v.name, graph.show_type(&v.ty));
    graph.values.iter().map(show).collect()
}

const CRITIC: &str = "model critic = scalar(base, per: token, optim: adamw(lr: 1e-5))";
const JUDGE: &str = "model judge = scalar(\"judge\", per: response)";

#[test]
fn a_critic_gives_a_value_before_each_token_and_one_after_the_last() {
    let g = graph(
        CRITIC,
        "v = value(critic, roll)\nlog v: mean(v), end: mean(v.end)",
    );
    let all = types(&g);
    assert!(all.contains(&"v: float[B, G, T]".into()), "{all:?}");
    assert!(all.contains(&"v.end: float[B, G]".into()), "{all:?}");
    let passes = g
        .dag
        .order()
        .filter(|id| matches!(g.dag.node(*id).kind, NodeKind::Forward(_)));
    assert_eq!(passes.count(), 1, "one pass gives both");
}

#[test]
fn a_judge_gives_a_score_for_each_response() {
    let g = graph(JUDGE, "s = score(judge, roll)\nlog s: mean(s)");
    assert!(types(&g).contains(&"s: float[B, G]".into()));
}

#[test]
fn a_live_value_of_a_trained_critic_is_an_output_of_its_train() {
    let g = graph(
        CRITIC,
        "old = value(critic, roll)\ntrain critic { minimize mean((value(critic, roll) - old) ^ 2) }",
    );
    let train = g.dag.order().find_map(|id| match &g.dag.node(id).kind {
        NodeKind::Train(t) => Some(t.clone()),
        _ => None,
    });
    let train = train.expect("a train node");
    assert_eq!(train.forwards[0].outputs[0].0, ForwardOutput::Value);
}

#[test]
fn a_verb_names_the_head_that_it_reads() {
    assert_eq!(
        error(JUDGE, "v = value(judge, roll)\nlog v: mean(v)"),
        "E033 `value` reads a per-token scalar head, but `judge` is `scalar(per: response)`"
    );
    assert_eq!(
        error("", "v = score(policy, roll)\nlog v: mean(v)"),
        "E033 `score` reads a per-response scalar head, but `policy` is a language model"
    );
    assert_eq!(
        error(CRITIC, "v = logp(critic, roll)\nlog v: mean(v)"),
        "E033 `logp` reads a language model, but `critic` is `scalar(per: token)`"
    );
    assert_eq!(
        error("model c = scalar(base)", "log b: mean(r)"),
        "E016 `scalar` needs `per:`"
    );
}

#[test]
fn models_take_adapters_and_random_weights() {
    let g = graph(
        "model small = causal(init: random(config: \"tiny\"), lora: {rank: 8, alpha: 16, targets: [\"q_proj\"]}, optim: adamw(lr: 1e-4))",
        "o = logp(small, roll)\nlog o: mean(o)",
    );
    let small = g
        .models
        .iter()
        .find(|m| m.name == "small")
        .expect("declared");
    let lora = small.lora.as_ref().expect("an adapter");
    assert_eq!((lora.rank, lora.alpha, lora.targets.len()), (8, 16.0, 1));
    assert_eq!(small.init, rlhf_lang::graph::Init::Random);
}

#[test]
fn a_state_is_read_as_the_iteration_began_and_set_once() {
    let g = graph(
        "state beta: float = 0.1",
        "log beta: beta\nnext beta = if mean(r) > 0.5 then beta * 2 else beta / 2",
    );
    let next = g
        .dag
        .order()
        .find(|id| matches!(g.dag.node(*id).kind, NodeKind::Next { .. }));
    assert_eq!(g.dag.node(next.expect("a next node")).name, "next beta");
    assert!(g.exprs.iter().any(|e| matches!(e.op, Op::State(_))));
    for (items, statements, said) in [
        (
            "",
            "next beta = 1",
            "E010 no state or model `beta` in this file",
        ),
        (
            "",
            "next r = r",
            "E010 `r` is no state, so it has no next value",
        ),
        (
            "state b: int = 1",
            "log b: b\nnext b = 0.5",
            "E017 `b` is `int`, and `0.5` is `float`",
        ),
        (
            "state b: float = 1",
            "log b: b\nnext b = r",
            "E032 `next b` needs one number; this still has axes `[B, G]`",
        ),
        (
            "state b: float = 1",
            "log b: b\nnext b = b\nnext b = b",
            "E011 `b` has its next value already on line 13",
        ),
        (
            "state b: text = \"x\"",
            "log c: mean(r)",
            "E017 a state is a number, not `text`",
        ),
        (
            "state b: int = 0.5",
            "log b: b",
            "E017 `b` is `int`, and its first value `0.5` is not",
        ),
    ] {
        assert_eq!(error(items, statements), said, "{items} {statements}");
    }
}

#[test]
fn a_frozen_model_moves_towards_the_version_that_an_iteration_leaves() {
    let g = graph(
        "model ema = frozen(policy)",
        "ref = logp(ema, roll)\nlog ref: mean(ref)\nnext ema = lerp(ema, policy, 0.01)",
    );
    let named = |id| g.dag.node(id).name.as_str();
    let versions: Vec<(&str, &str)> = g
        .dag
        .edges()
        .filter(|(_, _, e)| matches!(e, Edge::Version(_)))
        .map(|(a, b, _)| (named(a), named(b)))
        .collect();
    assert!(
        versions.contains(&("train policy", "next ema")),
        "{versions:?}"
    );
    assert!(versions.contains(&("ref", "next ema")), "{versions:?}");
    for (statements, said) in [
        (
            "next policy = lerp(policy, anchor, 0.1)",
            "E021 `policy` is not frozen: its next version comes from `train`",
        ),
        (
            "next anchor = lerp(policy, anchor, 0.1)",
            "E033 the next `anchor` starts from `anchor`, not from `policy`",
        ),
        (
            "next anchor = lerp(anchor, policy, 2)",
            "E018 `rate` cannot be 2",
        ),
        (
            "next anchor = 0.5",
            "E033 `0.5` is no model that `anchor` can move to",
        ),
        ("x = lerp(r, r, 0.5)", "E025 `lerp` cannot stand here"),
    ] {
        assert_eq!(
            error(
                "",
                &format!("ref = logp(anchor, roll)\nlog ref: mean(ref)\n{statements}")
            ),
            said
        );
    }
}

#[test]
fn a_part_of_the_rows_narrows_what_meets_it() {
    let g = graph(
        "",
        "rows D = B where std(r, G) > 0, limit: 2\nhalf = sum(r, [D, G])\nlog half: half\ntrain policy {\n  lp = logp(policy, roll)\n  minimize -mean(mean(clamp(lp, -9, 0) * r, T), [D, G])\n}",
    );
    let part = g.axes.iter().find(|a| a.name == "D").expect("the part");
    assert_eq!(part.size, AxisSize::Subset(Some(2)));
    let restricted: Vec<String> = g
        .exprs
        .iter()
        .filter(|e| matches!(e.op, Op::Restrict(_)))
        .map(|e| g.show_type(&e.ty))
        .collect();
    assert!(restricted.contains(&"int[D, G]".into()), "{restricted:?}");
    for (statements, said) in [
        (
            "rows D = B where r > 0",
            "E032 `where` needs one truth value for each of `B`; this has axes `[B, G]`",
        ),
        (
            "rows D = G where mean(r, G) > 0",
            "E030 `G` is not the axis of rows",
        ),
        (
            "rows D = B where mean(r, G)",
            "E017 `where` takes a truth value, and `mean(r, G)` is a number",
        ),
        (
            "rows D = B where mean(r, G) > 0\nrows E = B where mean(r, G) < 1\na = mean(mean(r, G) + sum(r, [G]), [D])\nlog a: a, b: mean(r, [D, E])",
            "E030 `r` has axes `[D, G]`, so it cannot be reduced over `E`",
        ),
    ] {
        assert_eq!(error("", statements), said, "{statements}");
    }
}

#[test]
fn picked_and_top_responses_have_token_axes_of_their_own() {
    let g = graph(
        "",
        "best = pick(roll, G, argmax(r, G))\ntwo = top(roll, G, by: r, k: 2)\nold = pick(roll.logp, G, argmax(r, G))\ntrain policy {\n  a = logp(policy, best)\n  b = logp(policy, two)\n  minimize -mean(mean(a - old, T)) - mean(mean(b, T), [B, G])\n}",
    );
    let selections: Vec<&str> = g
        .order(Scope::Step)
        .into_iter()
        .filter_map(|id| match &g.dag.node(id).kind {
            NodeKind::Select {
                by: Selection::Pick { .. },
                ..
            } => Some("pick"),
            NodeKind::Select {
                by: Selection::Top { .. },
                ..
            } => Some("top"),
            _ => None,
        })
        .collect();
    assert_eq!(selections, ["pick", "top"]);
    for (statements, said) in [
        (
            "best = pick(roll, G, r)",
            "E030 `pick` along `G` takes one index, and `r` still has the axis `G`",
        ),
        (
            "two = top(roll, G, by: r, k: 9)",
            "E018 `k: 9` is more than the 4 entries of `G`",
        ),
        (
            "two = top(roll, G, k: 2)",
            "E016 `top` needs `by:` and `k:`",
        ),
        (
            "q = pick(policy, G, 0)",
            "E017 `pick` selects from a rollout or a value, and `policy` is a model",
        ),
        (
            "best = pick(roll, G, argmax(r, G))\na = logp(anchor, best)\nb = logp(anchor, roll)\nlog m: mean(a - b)",
            "E031 two different response axes, both named `T`, cannot be combined element by element",
        ),
    ] {
        assert_eq!(error("", statements), said, "{statements}");
    }
}

#[test]
fn a_judge_can_be_asked_about_every_response() {
    let g = graph(
        "model asked = causal(\"judge\")",
        "verdict = generate(asked, \"Is this right? \" + roll.text, temperature: 0)[V: ..4]\nok = if contains(verdict.text, \"yes\") then 1 else 0\nlog ok: mean(ok)",
    );
    assert!(
        types(&g).contains(&"ok: int[B, G]".into()),
        "{:?}",
        types(&g)
    );
    assert!(g.rollouts[1].over.is_some());
}

#[test]
fn a_plan_holds_layouts_and_nothing_that_changes_a_number() {
    let g = graph(
        "place test on cluster(nodes: 1, gpus: 4) {\n  roll on gpus(0, 4) { tp: 2 }\n  train policy on gpus(0, 4) { dp: 4, zero: 1, micro: 8, offload: host, recompute: true }\n}",
        "log b: mean(r)",
    );
    let place = g.place.expect("a plan");
    assert_eq!(
        (place.calls[0].dp, place.calls[0].tp),
        (2, 2),
        "what is left is data parallel"
    );
    assert_eq!(
        place.calls[1].settings[2],
        ("offload".into(), Setting::Word("host".into()))
    );
    let plan = |options: &str| {
        error(
            &format!("place test on cluster(gpus: 4) {{ roll on gpus(0, 4) {{ {options} }} }}"),
            "log b: mean(r)",
        )
    };
    assert_eq!(
        plan("dp: 4, dtype: bf16"),
        "P215 `dtype` changes results, so it belongs in `model …`, not in `place`"
    );
    assert_eq!(
        plan("dp: 4, recomputes: true"),
        "E016 a plan has no setting `recomputes`"
    );
    assert_eq!(plan("dp: 4, zero: 4"), "E018 `zero` cannot be 4");
    assert_eq!(
        plan("dp: 4, offload: disk"),
        "E018 `offload` cannot be `disk`"
    );
    assert_eq!(
        plan("dp: 2"),
        "P217 `roll` is split into dp 2 · tp 1 · pp 1 = 2 pieces on 4 devices"
    );
}

#[test]
fn sources_are_named_by_the_language() {
    let g = graph(
        "data e = hf(\"openai/gsm8k\", split: \"test\") { question: text }\nreward web(r: text) -> float = http(\"http://localhost:1/s\", timeout: 1, otherwise: 0)\nreward cmd(r: text) -> float = command(\"./score\", timeout: 1, otherwise: 0)",
        "a = web(roll.text)\nb = cmd(roll.text)\nlog a: mean(a), b: mean(b)",
    );
    assert_eq!(g.data[1].split.as_deref(), Some("test"));
    assert_eq!(
        error("data e = josnl(\"e\") { q: text }", "log b: mean(r)"),
        "E010 no data source `josnl`"
    );
    assert_eq!(
        error(
            "reward f(a: text) -> float = http(\"localhost\", timeout: 1, otherwise: 0)",
            "log b: mean(r)"
        ),
        "E034 `localhost` is no web address"
    );
}

#[test]
fn the_graph_of_everything_reads_as_text() {
    let g = graph(
        &format!("{CRITIC}\n{JUDGE}\nstate beta: float = 0.1\nmodel ema = frozen(policy)"),
        "ref = logp(ema, roll)\ns = score(judge, roll)\nv = value(critic, roll)\nrows D = B where std(s, G) > 0\nbest = pick(roll, G, argmax(s, G))\ntrain policy {\n  lp = logp(policy, best)\n  minimize -mean(mean(lp, T))\n}\nnext beta = beta / 2\nnext ema = lerp(ema, policy, 0.01)\nlog a: mean(s, [D, G]), v: mean(v), ref: mean(ref), beta: beta",
    );
    insta::assert_snapshot!(show::text(&g));
}
