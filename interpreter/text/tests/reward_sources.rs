//! Rewards that are called as TRL and verl call them, programs, and web services.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use rlhf_lang::diag::Diagnostic;
use rlhf_lang::graph::{Elem, Reward, RewardSource};
use rlhf_lang::source::Span;
use rlhf_text::reward::{Pool, Python, START};
use serde_json::{Value as Json, json};

fn reward(params: &[(&str, Elem)], source: RewardSource) -> Reward {
    let params = params.iter().map(|(name, elem)| ((*name).into(), *elem));
    Reward {
        name: "exact".into(),
        params: params.collect(),
        result: Elem::Float,
        source,
        timeout: Some(20.0),
        otherwise: None,
        workers: Some(2),
        span: Span::default(),
    }
}

const TEXTS: [(&str, Elem); 2] = [("response", Elem::Text), ("answer", Elem::Text)];

fn python(params: &[(&str, Elem)]) -> Reward {
    let source = RewardSource::Python {
        file: "rules.py".into(),
        function: "score".into(),
        span: Span::default(),
    };
    reward(params, source)
}

fn command(words: &str) -> Reward {
    let (command, span) = (words.into(), Span::default());
    reward(&TEXTS, RewardSource::Command { command, span })
}

fn http(url: String) -> Reward {
    let span = Span::default();
    reward(&TEXTS, RewardSource::Http { url, span })
}

fn start(reward: &Reward, folder: &Path) -> rlhf_text::Result<Pool> {
    let python = Python {
        executable: std::env::var_os("RLHF_PYTHON").map_or("python3".into(), PathBuf::from),
        log: Some(folder.join("log")),
        start: START,
    };
    Pool::start(reward, folder, &python)
}

/// A folder with this script.
fn script(name: &str, text: &str) -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

fn place(call: usize) -> String {
    format!("row {}", call + 1)
}

fn calls(rows: &[(&str, &str)]) -> Vec<Vec<Json>> {
    rows.iter().map(|(r, a)| vec![json!(r), json!(a)]).collect()
}

fn scores(reward: &Reward, folder: &Path, rows: &[(&str, &str)]) -> Vec<f64> {
    let pool = start(reward, folder).unwrap();
    pool.score(&calls(rows), &place).unwrap().values
}

fn refused(reward: &Reward, folder: &Path, rows: &[(&str, &str)]) -> Diagnostic {
    let scored = start(reward, folder).and_then(|pool| pool.score(&calls(rows), &place));
    *scored.unwrap_err()
}

const ROWS: [(&str, &str); 3] = [("4", "4"), ("5", "6"), ("7", "7")];

#[test]
fn a_function_with_trls_signature_gets_lists_once_a_batch() {
    let folder = script(
        "rules.py",
        "batches = 0\n\
         def score(prompts, completions, **kwargs):\n\
         \x20   global batches\n\
         \x20   batches += 1\n\
         \x20   assert len(prompts) == len(completions) == 2 and batches == 1\n\
         \x20   texts = [c[0]['content'] for c in completions]\n\
         \x20   assert completions[0][0]['role'] == 'assistant'\n\
         \x20   return [len(p) + 10.0 * (t == a) for p, t, a in zip(prompts, texts, kwargs['answer'])]\n",
    );
    let params = [
        ("completion", Elem::Chat),
        ("prompt", Elem::Text),
        ("answer", Elem::Text),
    ];
    let said = |text: &str| json!([{"role": "assistant", "content": text}]);
    let pool = start(&python(&params), folder.path()).unwrap();
    let calls = [
        vec![said("4"), json!("2 + 2"), json!("4")],
        vec![said("5"), json!("1"), json!("6")],
    ];
    assert_eq!(pool.score(&calls, &place).unwrap().values, [15.0, 1.0]);
}

#[test]
fn none_of_a_trl_function_is_a_failure_of_its_row_unless_otherwise_says_more() {
    let folder = script(
        "rules.py",
        "def score(completions, answer, **kwargs):\n\
         \x20   return [None if c == '5' else 1.0 for c in completions]\n",
    );
    let mut reward = python(&TEXTS);
    let d = refused(&reward, folder.path(), &ROWS);
    assert_eq!(
        (d.code.as_str(), d.message.as_str()),
        ("R403", "`exact` failed on row 2: returned none, not float")
    );
    assert!(d.help.unwrap().contains("`otherwise: 0`"));
    reward.otherwise = Some(0.0);
    assert_eq!(scores(&reward, folder.path(), &ROWS), [1.0, 0.0, 1.0]);
}

#[test]
fn a_trl_function_that_gives_another_number_of_values_is_told() {
    let folder = script(
        "rules.py",
        "def score(completions, **kwargs):\n    return [1.0]\n",
    );
    assert_eq!(
        refused(&python(&TEXTS), folder.path(), &ROWS).message,
        "`exact` failed on row 1: returned 1 values for 3 completions"
    );
}

#[test]
fn a_function_with_verls_signature_gets_its_arguments_by_name() {
    let folder = script(
        "rules.py",
        "def score(data_source, solution_str, ground_truth, extra_info=None):\n\
         \x20   assert data_source == 'sums' and extra_info is None\n\
         \x20   return {'score': float(solution_str == ground_truth), 'format': 1}\n",
    );
    let params = [
        ("response", Elem::Text),
        ("answer", Elem::Text),
        ("data_source", Elem::Text),
    ];
    let pool = start(&python(&params), folder.path()).unwrap();
    let calls = [
        vec![json!("4"), json!("4"), json!("sums")],
        vec![json!("4"), json!("5"), json!("sums")],
    ];
    assert_eq!(pool.score(&calls, &place).unwrap().values, [1.0, 0.0]);
    let d = start(&python(&TEXTS), folder.path()).err().unwrap();
    assert_eq!(d.code, "D312");
    assert_eq!(
        d.message,
        "`score` of `rules.py` takes `data_source`, which the reward does not declare"
    );
    assert!(d.help.unwrap().contains("(response, answer)"));
}

#[test]
fn a_program_reads_an_object_a_line_and_writes_a_number_a_line() {
    // Its answers come at the end of its input, as a program that buffers them gives them.
    let folder = script(
        "score.py",
        "import json, sys\n\
         rows = [json.loads(line) for line in sys.stdin]\n\
         print(*[1.5 if r['response'] == r['answer'] else -1 for r in rows], sep='\\n')\n",
    );
    let mut reward = command("python3 score.py");
    assert_eq!(scores(&reward, folder.path(), &ROWS), [1.5, -1.0, 1.5]);
    reward.workers = None;
    assert_eq!(scores(&reward, folder.path(), &ROWS), [1.5, -1.0, 1.5]);
}

#[test]
fn a_script_of_the_programs_folder_runs_with_its_words() {
    let folder = script(
        "run tests.sh",
        "#!/bin/sh\nwhile read -r line; do echo \"$1\"; done\n",
    );
    let reward = command("'./run tests.sh' 0.25");
    assert_eq!(scores(&reward, folder.path(), &ROWS), [0.25; 3]);
}

#[test]
fn a_program_that_fails_is_told_with_its_row_and_its_words() {
    let folder = script(
        "fails.sh",
        "#!/bin/sh\nread -r line; echo 1\nread -r line; echo 'no memory left' >&2; exit 3\n",
    );
    let mut reward = command("./fails.sh");
    reward.workers = None;
    let d = refused(&reward, folder.path(), &ROWS);
    assert_eq!(
        d.message,
        "`exact` failed on row 2: the program ended with exit status 3 after 1 line for 3 calls"
    );
    assert!(d.help.unwrap().contains("no memory left"));
    for (line, said) in [
        ("high", "wrote \"high\", not a number"),
        ("NaN", "returned none, not float"),
        ("\"1\"", "returned \"1\", not float"),
    ] {
        let text = format!("#!/bin/sh\nwhile read -r l; do echo '{line}'; done\n");
        let folder = script("odd.sh", &text);
        assert_eq!(
            refused(&command("./odd.sh"), folder.path(), &ROWS).message,
            format!("`exact` failed on row 1: {said}")
        );
    }
    let d = refused(&command("./missing.sh"), folder.path(), &ROWS);
    assert_eq!(
        (d.code.as_str(), d.message.as_str()),
        ("D312", "there is no program `./missing.sh`")
    );
    let d = refused(&command("sh 'open"), folder.path(), &ROWS);
    assert_eq!(d.message, "`sh 'open` is not a command");
    let d = refused(&command("no-such-program-here"), folder.path(), &ROWS);
    assert!(
        d.message
            .contains("`no-such-program-here` cannot be started"),
        "{}",
        d.message
    );
}

#[test]
fn a_program_that_hangs_is_ended_at_the_timeout() {
    let folder = script("hangs.sh", "#!/bin/sh\nexec sleep 1000\n");
    let mut reward = command("./hangs.sh");
    reward.timeout = Some(0.2);
    let d = refused(&reward, folder.path(), &ROWS);
    assert_eq!(d.message, "`exact` failed on row 1: no answer within 0.2 s");
}

/// A service that gives these answers, one a connection, and its requests' bodies.
fn service(
    answers: &'static [(u16, &'static str)],
) -> (String, std::thread::JoinHandle<Vec<Json>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/score", listener.local_addr().unwrap());
    let thread = std::thread::spawn(move || {
        let mut bodies = vec![];
        for (status, answer) in answers {
            let (stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream);
            let mut length = 0;
            loop {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                let line = line.trim().to_lowercase();
                if let Some(n) = line.strip_prefix("content-length:") {
                    length = n.trim().parse().unwrap();
                }
                if line.is_empty() {
                    break;
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            bodies.push(serde_json::from_slice(&body).unwrap());
            let head = format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\n");
            let head = format!(
                "{head}content-length: {}\r\nconnection: close\r\n\r\n",
                answer.len()
            );
            let mut stream = reader.into_inner();
            stream
                .write_all(format!("{head}{answer}").as_bytes())
                .unwrap();
        }
        bodies
    });
    (url, thread)
}

#[test]
fn a_service_is_asked_once_a_batch_and_again_where_it_is_busy() {
    let (url, requests) = service(&[(503, "busy"), (200, "[1, 0.5, true]")]);
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(scores(&http(url), folder.path(), &ROWS), [1.0, 0.5, 1.0]);
    let bodies = requests.join().unwrap();
    assert_eq!(bodies[0], bodies[1]);
    assert_eq!(
        bodies[0],
        json!([
            {"response": "4", "answer": "4"},
            {"response": "5", "answer": "6"},
            {"response": "7", "answer": "7"},
        ])
    );
    let (url, _requests) = service(&[(200, "{\"scores\": [3, 2, 1]}")]);
    assert_eq!(scores(&http(url), folder.path(), &ROWS), [3.0, 2.0, 1.0]);
}

#[test]
fn what_a_service_gets_wrong_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for (answers, said) in [
        (
            &[(200, "[1, null, 1]")][..],
            "row 2: returned none, not float",
        ),
        (&[(200, "[1]")], "row 1: URL gave 1 numbers for 3 calls"),
        (
            &[(200, "{\"value\": 1}")],
            "row 1: URL answered with no list of numbers, nor with one as `scores`",
        ),
        (
            &[(404, "no such path")],
            "row 1: URL answered with status 404: no such path",
        ),
        (
            &[(500, "x"), (500, "x"), (500, "down")],
            "row 1: URL answered with status 500: down (3 times)",
        ),
    ] {
        let (url, _requests) = service(answers);
        let d = refused(&http(url.clone()), folder.path(), &ROWS);
        let expected = format!("`exact` failed on {}", said.replace("URL", &url));
        assert_eq!((d.code.as_str(), d.message), ("R403", expected));
    }
    let d = refused(
        &http("http://127.0.0.1:9/score".into()),
        folder.path(),
        &ROWS,
    );
    assert!(
        d.message
            .starts_with("`exact` failed on row 1: http://127.0.0.1:9/score did not answer: "),
        "{}",
        d.message
    );
}
