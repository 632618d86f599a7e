//! The small program that a `fragment` stands in. `tests/spec/00-reading.md` shows it.

/// A whole program, and how many of its lines come before the fragment.
pub fn wrap(fragment: &str) -> (String, usize) {
    const ITEMS: [&str; 9] = [
        "use", "param", "data", "model", "reward", "fn", "state", "place", "eval",
    ];
    let first = fragment
        .lines()
        .filter(|l| !l.starts_with("//"))
        .find_map(|l| l.split_whitespace().next())
        .unwrap_or_default();
    let head = "/// Where weights start.\n\
                param base: checkpoint = \"model\"\n\
                data sums = jsonl(\"sums.jsonl\") { question: text, answer: text }\n\
                model policy = causal(base, optim: adamw(lr: 1e-5))\n";
    let anchor = "model anchor = frozen(policy)\n";
    if fragment.contains("step over") {
        let anchor = if fragment.contains("model anchor") {
            ""
        } else {
            anchor
        };
        let head = format!("{head}{anchor}");
        let before = head.lines().count();
        return (format!("{head}{fragment}"), before);
    }
    let step = "step over sums[B: 4], iterations: 10 {\n  \
                roll = generate(policy, question)[G: 4, T: ..32]\n  \
                r = if roll.text == answer then 1 else 0\n  \
                ref = logp(anchor, roll)\n  \
                log reward: mean(r), ref: mean(ref)\n";
    let train = "  train policy {\n    \
                 minimize -mean(mean(clamp(exp(logp(policy, roll) - roll.logp), 0, 2) * r, T))\n  }\n";
    if ITEMS.contains(&first) {
        let head = format!("{head}{anchor}");
        let before = head.lines().count();
        return (format!("{head}{fragment}{step}{train}}}\n"), before);
    }
    let head = format!("{head}{anchor}{step}");
    let before = head.lines().count();
    let train = if fragment.contains("train policy") {
        ""
    } else {
        train
    };
    (format!("{head}{fragment}{train}}}\n"), before)
}
