//! The examples in the doc comments of the standard library.
//!
//! The last line of a function's comment reads ``Example: with `r[G] = [1, 0]`, `dr_grpo(r, G)` is
//! `[0.5, -0.5]`.`` Nested lists are the axes in the order named; the numbers are right to 1e-3. A
//! schedule's example gives its values ``in iterations 1 to 4 of 4``.

/// One example.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// The module: `std.kl`.
    pub module: &'static str,
    /// The function it is an example of.
    pub function: String,
    /// Names, axes and JSON values.
    pub inputs: Vec<(String, Vec<String>, String)>,
    /// The expression.
    pub expression: String,
    /// The run's iterations, for a schedule.
    pub iterations: Option<usize>,
    /// The value as JSON; a list with one entry an iteration for a schedule.
    pub value: String,
}

/// The functions of a module, each with its example if the comment has one.
pub fn examples(module: &'static str, text: &str) -> Vec<(String, Option<Example>)> {
    let mut found = vec![];
    let mut line_above = "";
    for line in text.lines() {
        if let Some((name, _)) = line.strip_prefix("fn ").and_then(|f| f.split_once('(')) {
            found.push((name.to_string(), example(module, name, line_above)));
        }
        line_above = line;
    }
    found
}

fn example(module: &'static str, function: &str, comment: &str) -> Option<Example> {
    let text = comment.strip_prefix("/// Example: ")?;
    let mut spans: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    let value = spans.pop()?.to_string();
    let expression = spans.pop()?.to_string();
    let iterations = text.split_once(" in iterations 1 to ");
    let iterations = iterations.and_then(|(_, rest)| rest.split(' ').next()?.parse().ok());
    let inputs = spans.into_iter().map(input).collect::<Option<_>>()?;
    Some(Example {
        module,
        function: function.to_string(),
        inputs,
        expression,
        iterations,
        value,
    })
}

/// `r[B, G] = [[1, 0]]`
fn input(text: &str) -> Option<(String, Vec<String>, String)> {
    let (name, value) = text.split_once(" = ")?;
    let (name, axes) = name.split_once('[').unwrap_or((name, "]"));
    let axes = axes.trim_end_matches(']').split(", ");
    let axes = axes.filter(|a| !a.is_empty()).map(str::to_string);
    Some((name.to_string(), axes.collect(), value.to_string()))
}
