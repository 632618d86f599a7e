//! Rewards in Python with everything that can go wrong in them.

use std::path::PathBuf;

use rlhf_lang::diag::Level;
use rlhf_lang::graph::{Elem, Reward, RewardSource};
use rlhf_lang::source::Span;
use rlhf_text::Result;
use rlhf_text::reward::{Pool, Python, START};
use serde_json::{Value as Json, json};

struct Setup {
    dir: tempfile::TempDir,
    reward: Reward,
}

fn python() -> PathBuf {
    std::env::var_os("RLHF_PYTHON").map_or("python3".into(), PathBuf::from)
}

impl Setup {
    fn new(source: &str) -> Setup {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("rules.py"), source).unwrap();
        let reward = Reward {
            name: "exact".into(),
            params: vec![
                ("response".into(), Elem::Text),
                ("answer".into(), Elem::Text),
            ],
            result: Elem::Float,
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
        Setup { dir, reward }
    }

    fn pool(&self) -> Result<Pool> {
        let python = Python {
            executable: python(),
            log: Some(self.dir.path().join("log")),
            start: START,
        };
        Pool::start(&self.reward, self.dir.path(), &python)
    }
}

fn place(call: usize) -> String {
    format!("row {}", call + 1)
}

fn calls(args: &[&str]) -> Vec<Vec<Json>> {
    args.iter().map(|a| vec![json!(a)]).collect()
}

#[test]
fn results_come_in_the_order_of_the_calls_whatever_the_code_prints_or_reads() {
    let setup = Setup::new(
        "import os, sys, helper\n\
         def score(x):\n\
         \x20   print('noise', x)\n\
         \x20   os.write(1, b'more noise\\n')\n\
         \x20   assert sys.stdin.read() == ''\n\
         \x20   return helper.length(x)\n",
    );
    std::fs::write(setup.dir.path().join("helper.py"), "length = len\n").unwrap();
    let texts: Vec<String> = (0..100).map(|i| "é".repeat(i)).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let pool = setup.pool().unwrap();
    let scored = pool.score(&calls(&texts), &place).unwrap();
    assert_eq!(scored.values, (0..100).map(f64::from).collect::<Vec<_>>());
    assert_eq!(scored.warning, None);
    drop(pool);
    let log = std::fs::read_to_string(setup.dir.path().join("log")).unwrap();
    assert!(log.contains("more noise"));
}

#[test]
fn a_call_that_raises_stops_the_run_with_its_line_and_traceback() {
    let setup =
        Setup::new("def half(n):\n    return 1 / n\n\ndef score(x):\n    return half(len(x))\n");
    let fault = setup
        .pool()
        .unwrap()
        .score(&calls(&["ab", ""]), &place)
        .unwrap_err();
    assert_eq!(
        fault.message,
        "`exact` failed on row 2: line 2, ZeroDivisionError: division by zero"
    );
    let help = fault.help.unwrap();
    assert!(help.contains("return half(len(x))"), "{help}");
    assert!(help.contains("`otherwise: 0`"), "{help}");
    assert!(!help.contains("<string>"), "{help}");
}

#[test]
fn otherwise_takes_the_place_of_failures_and_they_are_counted() {
    let mut setup = Setup::new(
        "import os, sys\n\
         def score(x):\n\
         \x20   if x == 'raise': raise ValueError('bad ' + x)\n\
         \x20   if x == 'exit': os._exit(3)\n\
         \x20   if x == 'quit': sys.exit('leaving')\n\
         \x20   if x == 'none': return None\n\
         \x20   if x == 'text': return 'high'\n\
         \x20   if x == 'nan': return float('nan')\n\
         \x20   return 1\n",
    );
    setup.reward.otherwise = Some(-0.5);
    let pool = setup.pool().unwrap();
    let names = [
        "ok", "raise", "exit", "ok", "none", "text", "nan", "quit", "ok",
    ];
    let scored = pool.score(&calls(&names), &place).unwrap();
    let expected = names.map(|n| if n == "ok" { 1.0 } else { -0.5 });
    assert_eq!(scored.values, expected);
    let warning = scored.warning.unwrap();
    assert_eq!(warning.level, Level::Warning);
    assert_eq!(warning.code, "R403");
    assert_eq!(
        warning.message,
        "`exact` failed on 6 of 9 responses (first on row 2: line 3, ValueError: bad raise); \
         `otherwise: -0.5` used"
    );
    assert!(
        warning
            .help
            .unwrap()
            .contains("rules.py\", line 3, in score")
    );
    // The workers that died were replaced.
    assert_eq!(
        pool.score(&calls(&["ok"; 8]), &place).unwrap().values,
        [1.0; 8]
    );
}

#[test]
fn each_way_to_fail_is_told_apart() {
    for (body, expected) in [
        ("return None", "returned None, not float"),
        ("return '1.0'", "returned '1.0', not float"),
        ("return float('inf')", "returned inf, not float"),
        ("return [1.0]", "returned [1.0], not float"),
        (
            "import os; os._exit(7)",
            "the worker process ended with exit status 7",
        ),
        (
            "import os; os.kill(os.getpid(), 9)",
            "the worker process died of signal 9",
        ),
        (
            "return x.nothing",
            "line 2, AttributeError: 'str' object has no attribute 'nothing'",
        ),
        (
            "return score(x, x)",
            "line 2, TypeError: score() takes 1 positional argument but 2 were given",
        ),
    ] {
        let mut setup = Setup::new(&format!("def score(x):\n    {body}\n"));
        setup.reward.workers = Some(1);
        let fault = setup
            .pool()
            .unwrap()
            .score(&calls(&["a"]), &place)
            .unwrap_err();
        assert_eq!(
            fault.message,
            format!("`exact` failed on row 1: {expected}")
        );
    }
}

#[test]
fn results_are_of_the_declared_type() {
    for (result, body, ok) in [
        (Elem::Int, "return 3", true),
        (Elem::Int, "return 3.0", false),
        (Elem::Bool, "return True", true),
        (Elem::Bool, "return 1", false),
        (Elem::Float, "return True", true),
        (
            Elem::Float,
            "return type('S', (), {'item': lambda self: 2.5})()",
            true,
        ),
    ] {
        let mut setup = Setup::new(&format!("def score(x):\n    {body}\n"));
        setup.reward.result = result;
        setup.reward.workers = Some(1);
        let scored = setup.pool().unwrap().score(&calls(&["a"]), &place);
        assert_eq!(scored.is_ok(), ok, "{result:?}: {body}");
    }
}

#[test]
fn a_hanging_call_ends_at_its_timeout() {
    let mut setup = Setup::new(
        "import time\n\
         def score(x):\n\
         \x20   while x == 'hang': pass\n\
         \x20   return 1\n",
    );
    setup.reward.timeout = Some(0.5);
    setup.reward.otherwise = Some(0.0);
    setup.reward.workers = Some(1);
    let pool = setup.pool().unwrap();
    let scored = pool.score(&calls(&["ok", "hang", "ok"]), &place).unwrap();
    assert_eq!(scored.values, [1.0, 0.0, 1.0]);
    assert!(
        scored
            .warning
            .unwrap()
            .message
            .contains("no answer within 0.5 s")
    );
}

#[test]
fn a_missing_function_is_named_with_the_nearest_one() {
    let setup = Setup::new("def scores(x):\n    return 1\n");
    let fault = setup.pool().err().unwrap();
    assert_eq!(fault.code, "D312");
    assert_eq!(fault.message, "`rules.py` has no function `score`");
    assert_eq!(fault.help.unwrap(), "a similar one: `scores`");
}

#[test]
fn a_file_that_is_missing_or_cannot_be_imported_says_why() {
    let mut setup = Setup::new("x = 1\nimport no_such_module\n");
    let fault = setup.pool().err().unwrap();
    assert_eq!(
        fault.message,
        "`rules.py` cannot be imported: line 2, ModuleNotFoundError: No module named 'no_such_module'"
    );
    setup = Setup::new("def score(x):\n    return (\n");
    let fault = setup.pool().err().unwrap().message;
    assert!(
        fault.starts_with("`rules.py` cannot be imported: line 2, SyntaxError: "),
        "{fault}"
    );
    std::fs::remove_file(setup.dir.path().join("rules.py")).unwrap();
    let fault = setup.pool().err().unwrap();
    assert_eq!(fault.code, "D312");
    assert_eq!(fault.message, "there is no file `rules.py`");
}

#[test]
fn a_python_that_cannot_be_started_is_named() {
    let setup = Setup::new("def score(x):\n    return 1\n");
    let python = Python {
        executable: "no-such-python".into(),
        log: None,
        start: START,
    };
    let fault = Pool::start(&setup.reward, setup.dir.path(), &python)
        .err()
        .unwrap();
    assert!(
        fault
            .message
            .starts_with("`no-such-python` cannot be started: ")
    );
}
