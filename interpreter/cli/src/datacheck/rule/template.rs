//! D308 to D311: what a chat template does to the data.

use std::collections::BTreeSet;

use regex::Regex;
use rlhf_text::files::alike;
use rlhf_text::{Message, Tokens, Turn};

use crate::datacheck::case::{Case, Prompt};
use crate::datacheck::finding::{Finding, Place};

/// A text that no data has and no template changes.
const PROBE: &str = "qzjxprobeqzjx";

/// Roles that templates commonly know.
const ROLES: [&str; 5] = ["system", "user", "assistant", "tool", "developer"];

/// Everything that is wrong between one call's rows and the template.
pub fn check(case: &Case) -> Vec<Finding> {
    if !case.call.chat {
        return vec![];
    }
    if !case.tokens.has_template() {
        return vec![no_template(case)];
    }
    let mut found = vec![];
    found.extend(roles(case));
    found.extend(applied_twice(case));
    found.extend(not_a_prefix(case));
    found
}

/// D310
fn no_template(case: &Case) -> Finding {
    Finding::error(
        "D310",
        Place::Prompt(case.index),
        "`chat(…)` needs a chat template and this checkpoint has none".into(),
        format!(
            "take the instruction-tuned checkpoint for `{}`, put a chat_template.jinja beside its \
             weights, or pass the text itself as the prompt",
            case.call.model
        ),
    )
}

/// D311: a role that the template refuses, leaves out, or can only be a slip.
fn roles(case: &Case) -> Option<Finding> {
    let place = Place::Prompt(case.index);
    let known = known(case.tokens);
    let error = |row: String, role: &str, more: &str| {
        let message = format!("{row}: role `{role}` is not one this template knows");
        let help = match alike(role, known.iter().map(String::as_str)) {
            Some(near) => format!("a similar one: `{near}`{more}"),
            None => {
                let names: Vec<String> = known.iter().map(|r| format!("`{r}`")).collect();
                format!("it knows {}{more}", names.join(", "))
            }
        };
        Finding::error("D311", place, message, help)
    };
    if let Some((row, messages, why)) = &case.refused {
        let odd = messages.iter().find(|m| !known.contains(&m.role));
        return Some(match odd {
            Some(m) => error(case.place(row), &m.role, ""),
            None => {
                let message = format!("{}: {}", case.place(row), why.message);
                let help = "change the messages of such rows, or leave the rows out";
                Finding::error("D311", place, message, help)
            }
        });
    }
    let mut seen = BTreeSet::new();
    for prompt in &case.prompts {
        for (i, message) in prompt.messages.iter().enumerate() {
            if !seen.insert(&message.role) {
                continue;
            }
            let slip = !known.contains(&message.role)
                && alike(&message.role, known.iter().map(String::as_str)).is_some();
            if slip || left_out(case.tokens, &prompt.messages, i) {
                let more = match slip {
                    true => "",
                    false => "; what the message says is left out of the prompt",
                };
                return Some(error(case.place(prompt.row), &message.role, more));
            }
        }
    }
    None
}

/// The usual roles, and the words that the template compares with.
fn known(tokens: &Tokens) -> BTreeSet<String> {
    let mut known: BTreeSet<String> = ROLES.iter().map(|r| r.to_string()).collect();
    // The pattern is a constant that compiles.
    let quoted =
        Regex::new(r#"role['"\]\)]*\s*(?:==|!=)\s*['"](\w+)['"]"#).expect("a valid pattern");
    let text = tokens.template().unwrap_or_default();
    known.extend(quoted.captures_iter(text).map(|c| c[1].to_string()));
    known
}

/// Whether a message leaves no trace in the prompt.
fn left_out(tokens: &Tokens, messages: &[Message], index: usize) -> bool {
    let mut probed = messages.to_vec();
    probed[index].content = PROBE.into();
    let rendered = tokens.render(&probed, Turn::Open);
    rendered.is_ok_and(|text| !text.contains(PROBE))
}

/// D309
fn applied_twice(case: &Case) -> Option<Finding> {
    let marks = marks(case.tokens);
    let mark_in = |prompt: &Prompt| {
        let holds = |mark: &&String| prompt.messages.iter().any(|m| m.content.contains(*mark));
        marks.iter().find(holds).cloned()
    };
    let marked: Vec<(&Prompt, String)> = case
        .prompts
        .iter()
        .filter_map(|p| Some((p, mark_in(p)?)))
        .collect();
    let (first, mark) = marked.first()?;
    let message = format!(
        "{} already contains `{mark}` and is wrapped by `chat(…)` again ({} {}{} rows)",
        case.prompt_name(),
        marked.len(),
        case.of(),
        case.prompts.len()
    );
    Some(Finding::warning(
        "D309",
        Place::Prompt(case.index),
        message,
        format!(
            "the first is {}; pass the text itself as the prompt, without `chat(…)`, or take the marks \
             out of the data",
            first.row.place()
        ),
    ))
}

/// The special tokens that the template writes around a message, and its own words before one.
fn marks(tokens: &Tokens) -> Vec<String> {
    let message = Message {
        role: "user".into(),
        content: PROBE.into(),
    };
    let Ok(text) = tokens.render(&[message], Turn::Open) else {
        return vec![];
    };
    // Short ones, such as `<s>`, mean something else in other texts.
    let mut marks = tokens.special();
    marks.retain(|t| t.len() > 3 && text.contains(t.as_str()));
    let before = text.split(PROBE).next().unwrap_or_default().trim();
    if before.chars().count() > 3 {
        marks.push(before.into());
    }
    marks
}

/// D308
fn not_a_prefix(case: &Case) -> Option<Finding> {
    let whole = |prompt: &Prompt| {
        let response = case.response_of(prompt.row)?;
        let mut messages = prompt.messages.clone();
        messages.push(Message {
            role: "assistant".into(),
            content: response.text.clone(),
        });
        case.tokens.render(&messages, Turn::Closed).ok()
    };
    let broken = case
        .prompts
        .iter()
        .find(|p| whole(p).is_some_and(|whole| !whole.starts_with(&p.text)))?;
    let whole = whole(broken)?;
    let same = broken
        .text
        .char_indices()
        .zip(whole.chars())
        .find(|((_, a), b)| a != b)
        .map_or(whole.len(), |((i, _), _)| i);
    let ends: String = broken.text[same..].chars().take(20).collect();
    let message = format!(
        "through this template the prompt of row {} is not a prefix of prompt + response",
        broken.row.number
    );
    Some(Finding::error(
        "D308",
        Place::Call(case.index),
        message,
        format!(
            "the prompt alone goes on with {ends:?}, which the whole conversation has not; a model \
             trained so would answer in a form it never sees, so mend the template's generation prompt"
        ),
    ))
}
