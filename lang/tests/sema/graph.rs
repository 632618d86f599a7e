//! What grpo becomes.

use rlhf_lang::graph::{
    Const, Edge, ForwardOutput, Graph, Member, NodeKind, Op, Schedule, Scope, show,
};

use super::{check, messages};

fn grpo(overrides: &[(&str, &str)]) -> Graph {
    let compiled = check(include_str!("grpo.rlhf"), overrides);
    let said = messages(&compiled);
    compiled.graph.unwrap_or_else(|| panic!("{said}"))
}

fn names(graph: &Graph, scope: Scope) -> Vec<&str> {
    graph
        .order(scope)
        .into_iter()
        .map(|id| graph.dag.node(id).name.as_str())
        .collect()
}

fn node<'g>(graph: &'g Graph, name: &str) -> &'g NodeKind {
    let id = graph
        .dag
        .order()
        .find(|id| graph.dag.node(*id).name == name)
        .expect("a node of that name");
    &graph.dag.node(id).kind
}

#[test]
fn grpo_has_the_nodes_its_text_names() {
    let graph = grpo(&[]);
    let mut step = names(&graph, Scope::Step);
    step.sort();
    assert_eq!(step, ["adv", "r", "ref", "roll", "sums", "train policy"]);
    assert_eq!(names(&graph, Scope::Eval(0)), ["held", "best"]);
    assert_eq!(graph.schedule, Schedule::Iterations(60));
    assert_eq!(graph.name, "test");
    let NodeKind::Generate { members, chat, .. } = node(&graph, "roll") else {
        panic!("roll generates");
    };
    let made: Vec<Member> = members.iter().map(|(m, _)| *m).collect();
    assert_eq!((made, *chat), (vec![Member::Text, Member::Logp], true));
    let NodeKind::Train(train) = node(&graph, "train policy") else {
        panic!("train trains");
    };
    assert_eq!(train.forwards.len(), 1);
    assert_eq!(train.forwards[0].outputs.len(), 1);
    assert_eq!(train.forwards[0].outputs[0].0, ForwardOutput::Logp);
}

#[test]
fn the_shipped_programs_are_clean() {
    for (name, text) in rlhf_stdlib::algorithms() {
        let compiled = check(text, &[]);
        assert_eq!(messages(&compiled), "", "{name}");
        assert!(compiled.graph.is_some(), "{name}");
    }
}

#[test]
fn grpo_reads_as_text() {
    insta::assert_snapshot!(show::text(&grpo(&[])));
}

#[test]
fn versions_order_the_step_and_the_evaluation() {
    let graph = grpo(&[]);
    let named = |id| graph.dag.node(id).name.as_str();
    let versions: Vec<(&str, &str)> = graph
        .dag
        .edges()
        .filter(|(_, _, e)| matches!(e, Edge::Version(_)))
        .map(|(from, to, _)| (named(from), named(to)))
        .collect();
    assert_eq!(
        versions,
        [("roll", "train policy"), ("train policy", "best")]
    );
}

#[test]
fn overrides_become_constants() {
    let graph = grpo(&[("group", "4"), ("lr", "0.5"), ("base", "elsewhere")]);
    let param = |n: &str| graph.params.iter().find(|p| p.name == n).cloned();
    let group = param("group").expect("grpo has a group");
    assert_eq!((group.value, group.overridden), (Const::Int(4), true));
    let lr = param("lr").expect("grpo has a learning rate");
    assert_eq!(lr.value, Const::Float(0.5));
    assert!(graph.exprs.iter().any(|e| e.op == Op::Number(0.5)));
}

#[test]
fn a_graph_survives_serialisation() {
    let graph = grpo(&[]);
    let text = serde_json::to_string(&graph).expect("a graph serialises");
    let back: Graph = serde_json::from_str(&text).expect("and comes back");
    assert_eq!(text, serde_json::to_string(&back).expect("twice the same"));
    assert_eq!(show::text(&graph), show::text(&back));
}

#[test]
fn compiling_twice_gives_the_same() {
    let texts: Vec<String> = (0..2)
        .map(|_| serde_json::to_string(&grpo(&[])).expect("a graph serialises"))
        .collect();
    assert_eq!(texts[0], texts[1]);
}

#[test]
fn operands_precede_their_users() {
    let graph = grpo(&[]);
    for (i, e) in graph.exprs.iter().enumerate() {
        assert!(e.args.iter().all(|a| (a.0 as usize) < i));
    }
}

#[test]
fn what_nothing_reads_is_not_produced() {
    let text =
        include_str!("grpo.rlhf").replace("minimize", "_unused = logp(anchor, roll)\n    minimize");
    let text = text.replace("  adv  =", "  _h = entropy(policy, roll)\n  adv  =");
    let compiled = check(&text, &[]);
    let said = messages(&compiled);
    let graph = compiled.graph.unwrap_or_else(|| panic!("{said}"));
    let same = grpo(&[]);
    assert_eq!(names(&graph, Scope::Step), names(&same, Scope::Step));
}

#[test]
fn verbs_on_one_model_rollout_and_temperature_are_one_pass() {
    let text = include_str!("grpo.rlhf").replace(
        "  adv  =",
        "  h = entropy(anchor, roll)\n  log h: mean(h)\n  adv  =",
    );
    let compiled = check(&text, &[]);
    let said = messages(&compiled);
    let graph = compiled.graph.unwrap_or_else(|| panic!("{said}"));
    let NodeKind::Forward(f) = node(&graph, "ref") else {
        panic!("ref is a pass");
    };
    let outputs: Vec<ForwardOutput> = f.outputs.iter().map(|(o, _)| *o).collect();
    assert_eq!(outputs, [ForwardOutput::Logp, ForwardOutput::Entropy]);
}

#[test]
fn grpo_reads_as_mermaid() {
    insta::assert_snapshot!(show::mermaid(&grpo(&[])));
}

#[test]
fn what_reads_a_version_is_told_from_what_makes_the_next() {
    let text = include_str!("grpo.rlhf").replace(
        "  log reward:",
        "  next anchor = lerp(anchor, policy, 0.01)\n  log reward:",
    );
    let compiled = check(&text, &[]);
    let said = messages(&compiled);
    let graph = compiled.graph.unwrap_or_else(|| panic!("{said}"));
    let text = show::text(&graph);
    for part in [
        "score by anchor@start",
        "policy@start after roll",
        "anchor@start after ref",
        "policy@new from train policy",
    ] {
        assert!(text.contains(part), "{part} is not in:\n{text}");
    }
}

#[test]
fn the_drawing_overlaps_nowhere() {
    let svg = show::svg(&grpo(&[]));
    // Boxes and label backgrounds: the first rectangle is the page.
    let number = |tag: &str, key: &str| -> f64 {
        let from = tag.find(&format!(" {key}=\"")).expect("the attribute") + key.len() + 3;
        let text = tag[from..].split('"').next().expect("a value");
        text.parse().expect("a number")
    };
    let boxes: Vec<[f64; 4]> = svg
        .split("<rect")
        .skip(2)
        .map(|t| ["x", "y", "width", "height"].map(|k| number(t, k)))
        .collect();
    assert!(boxes.len() > 15);
    for (i, a) in boxes.iter().enumerate() {
        for b in &boxes[..i] {
            let apart = a[0] + a[2] <= b[0]
                || b[0] + b[2] <= a[0]
                || a[1] + a[3] <= b[1]
                || b[1] + b[3] <= a[1];
            assert!(apart, "{a:?} and {b:?}");
        }
    }
    assert!(show::dot(&grpo(&[])).contains("style=dashed"));
}

#[test]
fn params_are_listed_when_the_rest_has_errors() {
    let text = include_str!("grpo.rlhf").replace("mean(loss, T)", "mean(loss, Q)");
    let compiled = check(&text, &[]);
    assert!(compiled.graph.is_none());
    assert_eq!(compiled.params.len(), 6);
}
