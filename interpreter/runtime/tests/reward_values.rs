//! Rewards over values.

use std::path::PathBuf;

use rlhf_lang::graph::{AxisId, Elem, Reward, RewardSource};
use rlhf_lang::source::Span;
use rlhf_runtime::reward::score;
use rlhf_runtime::value::{Shapes, Value};
use rlhf_text::reward::{Pool, Python, START};

#[test]
fn arguments_are_broadcast_to_the_axes_of_the_result() {
    let dir = tempfile::tempdir().unwrap();
    let script = "def score(r, a):\n    return r == a and a is not None\n";
    std::fs::write(dir.path().join("rules.py"), script).unwrap();
    let reward = Reward {
        name: "exact".into(),
        params: vec![
            ("response".into(), Elem::Text),
            ("answer".into(), Elem::Text),
        ],
        result: Elem::Bool,
        source: RewardSource::Python {
            file: "rules.py".into(),
            function: "score".into(),
            span: Span::default(),
        },
        timeout: Some(20.0),
        otherwise: None,
        workers: Some(2),
        span: Span::default(),
    };
    let python = Python {
        executable: std::env::var_os("RLHF_PYTHON").map_or("python3".into(), PathBuf::from),
        log: None,
        start: START,
    };
    let (b, g) = (AxisId(0), AxisId(1));
    let mut shapes = Shapes::new();
    shapes.set(b, 2);
    shapes.set(g, 2);
    let text = |t: &str| Some(t.into());
    let response = Value::from_text(vec![b, g], vec![text("1"), text("2"), text("2"), None]);
    let answer = Value::from_text(vec![b], vec![text("1"), text("2")]);
    let pool = Pool::start(&reward, dir.path(), &python).unwrap();
    let (value, warning) = score(&pool, &[response, answer], &[b, g], &shapes, &[4, 9]).unwrap();
    assert_eq!(value.numbers().unwrap(), [1.0, 0.0, 1.0, 0.0]);
    assert_eq!(warning, None);
}
