//! Which class of transformers a checkpoint is of: a family, and what stands on its body.

use serde_json::Value;

use super::family::{FAMILIES, Family, family};
use crate::fault::{Fault, Result};

/// What the last hidden states go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadKind {
    /// Logits over the vocabulary.
    Language,
    /// One number: a value or a score. A linear map without bias, `score.weight` `[1, hidden]`.
    Scalar,
}

/// What transformers calls the tensor of a scalar head, whatever the family.
pub(super) const SCALAR_HEAD: &str = "score";

/// Endings of the classes with a language head.
const LANGUAGE: [&str; 2] = ["ForCausalLM", "LMHeadModel"];
/// Ending of the classes with a scalar head.
const CLASSIFICATION: &str = "ForSequenceClassification";

/// The family and the head that `architectures` in a `config.json` names.
pub(super) fn of_config(json: &Value) -> Result<(&'static Family, HeadKind)> {
    let names: Vec<&str> = match json.get("architectures").and_then(Value::as_array) {
        Some(list) => list.iter().filter_map(Value::as_str).collect(),
        None => Vec::new(),
    };
    let found = names.iter().find_map(|n| named(n)).ok_or_else(|| {
        let known: Vec<&str> = FAMILIES.iter().map(|f| f.architecture).collect();
        let message = match names.first() {
            Some(name) => format!("architecture `{name}` is not supported"),
            None => "no `architectures` says which family this is".to_string(),
        };
        Fault::new(message).help(format!("supported: {}", known.join(", ")))
    })?;
    match (found.1, labels(json)) {
        (HeadKind::Scalar, Some(n)) if n != 1 => Err(several_labels("", n)),
        _ => Ok(found),
    }
}

/// `LlamaForSequenceClassification` of the family of `LlamaForCausalLM`.
pub fn classification(family: &Family) -> String {
    format!("{}{CLASSIFICATION}", stem(family.architecture))
}

/// The failure of reading a classifier of several labels; `place` says where it is.
pub(super) fn several_labels(place: &str, labels: usize) -> Fault {
    let message =
        format!("the classifier{place} has {labels} labels; a scalar head gives 1 number");
    Fault::new(message).help("a reward model or a critic is saved with `num_labels=1`")
}

fn named(architecture: &str) -> Option<(&'static Family, HeadKind)> {
    if let Some(family) = family(architecture) {
        return Some((family, HeadKind::Language));
    }
    let wanted = architecture.strip_suffix(CLASSIFICATION)?;
    let mut families = FAMILIES.iter();
    let family = families.find(|f| stem(f.architecture) == wanted)?;
    Some((family, HeadKind::Scalar))
}

fn stem(architecture: &str) -> &str {
    let endings = LANGUAGE.iter();
    let mut stems = endings.filter_map(|end| architecture.strip_suffix(end));
    stems.next().unwrap_or(architecture)
}

/// Labels of a classifier, where the configuration says: transformers writes `id2label` for any number
/// but its default of 2.
fn labels(json: &Value) -> Option<usize> {
    let listed = json.get("id2label").and_then(Value::as_object);
    let number = json.get("num_labels").and_then(Value::as_u64);
    number
        .map(|n| n as usize)
        .or_else(|| listed.map(serde_json::Map::len))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_classifier_is_its_familys_body_with_a_scalar_head() {
        for (family, name) in [
            ("LlamaForCausalLM", "LlamaForSequenceClassification"),
            ("Qwen2ForCausalLM", "Qwen2ForSequenceClassification"),
        ] {
            let one = json!({ "architectures": [name], "id2label": { "0": "LABEL_0" } });
            let found = of_config(&one).map(|(f, h)| (f.architecture, h));
            assert_eq!(found.ok(), Some((family, HeadKind::Scalar)));
        }
        assert_eq!(stem("GPT2LMHeadModel"), "GPT2");
    }

    #[test]
    fn a_classifier_of_several_labels_is_refused_with_their_number() {
        let labels = json!({ "0": "no", "1": "maybe", "2": "yes" });
        let three =
            json!({ "architectures": ["LlamaForSequenceClassification"], "id2label": labels });
        let refused = of_config(&three).map_err(|f| f.to_string());
        assert_eq!(
            refused.err().as_deref(),
            Some("the classifier has 3 labels; a scalar head gives 1 number")
        );
    }
}
