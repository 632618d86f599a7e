//! Greedy decoding of SmolLM2-135M-Instruct against `tests/reference/generate_greedy.py`.

use super::*;

#[derive(serde::Deserialize)]
struct Expected {
    eos: Vec<u32>,
    new_tokens: usize,
    cases: Vec<Case>,
}

#[derive(serde::Deserialize)]
struct Case {
    prompt: Vec<u32>,
    response: Vec<u32>,
}

/// `RLHF_SMOLLM2`, or where the set-up puts the model.
fn smollm2() -> Result<PathBuf, String> {
    let cached = "../../.cache/models/SmolLM2-135M-Instruct";
    let dir = match std::env::var_os("RLHF_SMOLLM2") {
        Some(dir) => PathBuf::from(dir),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(cached),
    };
    match dir.join("config.json").is_file() {
        true => Ok(dir),
        false => Err(format!(
            "SmolLM2-135M-Instruct is not in {}: `./test` sets it up, or RLHF_SMOLLM2 says where it is",
            dir.display()
        )),
    }
}

#[test]
fn twenty_prompts_continue_as_in_transformers() -> Outcome {
    let expected: Expected = serde_json::from_str(include_str!("greedy.json"))?;
    let model = Model::load(&smollm2()?, Dtype::F32)?;
    let prompts: Vec<Arc<[u32]>> = expected
        .cases
        .iter()
        .map(|c| Arc::from(&c.prompt[..]))
        .collect();
    assert_eq!(prompts.len(), 20);
    let rows: Vec<u64> = (0..20).collect();
    let sampling = Sampling {
        temperature: 0.0,
        max_tokens: expected.new_tokens,
        ..Sampling::default()
    };
    let request = Request {
        prompts: &prompts,
        rows: &rows,
        group: 1,
        sampling: &sampling,
        key: KEY,
        max_rows: MAX_ROWS,
    };
    let ending = Ending {
        eos: &expected.eos,
        decode: &letters,
    };
    let generated = generate(&model, ending, &request, &mut |_| true)?;
    for (i, case) in expected.cases.iter().enumerate() {
        assert_eq!(generated.responses[i], case.response, "prompt {i}");
        let ended = case
            .response
            .last()
            .is_some_and(|t| expected.eos.contains(t));
        assert_eq!(generated.finished[i], ended, "prompt {i}");
    }
    Ok(())
}

#[test]
fn greedy_takes_the_largest_logit_of_the_whole_sequence_at_every_step() -> Outcome {
    for name in FIXTURES.into_iter().chain(FAMILIES) {
        let model = load(name, Dtype::F32)?;
        let prompts = prompts(&[&[5, 9, 31], &[17], &[40, 3, 3, 8, 22, 1, 19]]);
        let sampling = Sampling {
            temperature: 0.0,
            max_tokens: 20,
            ignore_eos: true,
            ..Sampling::default()
        };
        let generated = run(&model, &prompts, 1, &sampling)?;
        for (prompt, response) in prompts.iter().zip(&generated.responses) {
            assert_eq!(response.len(), 20);
            let whole = [&prompt[..], response].concat();
            let logits = model.forward_logits(&whole);
            for (i, &token) in response.iter().enumerate() {
                let row = logits.get((prompt.len() + i - 1) as i64);
                let best = row.max().double_value(&[]);
                let taken = row.double_value(&[i64::from(token)]);
                assert!(
                    best - taken < 1e-4,
                    "{name}, token {i}: {taken} under {best}"
                );
            }
        }
    }
    Ok(())
}
