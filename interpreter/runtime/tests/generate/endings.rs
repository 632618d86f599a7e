//! How responses end, and what is refused.

use super::*;
use rlhf_runtime::generate::Progress;

fn plain() -> Sampling {
    Sampling {
        max_tokens: 40,
        ..Sampling::default()
    }
}

#[test]
fn an_end_of_sequence_token_ends_a_response_and_belongs_to_it() -> Outcome {
    let model = load("qwen2", Dtype::F32)?;
    let generated = run(&model, &prompts(&[&[5, 9], &[7]]), 20, &plain())?;
    let mut ended = 0;
    for (response, finished) in generated.responses.iter().zip(&generated.finished) {
        assert_eq!(*finished, response.last() == Some(&2));
        assert!(*finished || response.len() == 40);
        assert!(!response[..response.len() - 1].contains(&2));
        ended += usize::from(*finished);
    }
    assert!(ended > 0, "some response ends early");
    let tokens: usize = generated.responses.iter().map(Vec::len).sum();
    assert_eq!(generated.logp.len(), tokens);
    assert!(generated.complete);
    Ok(())
}

#[test]
fn min_tokens_puts_the_end_off() -> Outcome {
    let model = load("qwen2", Dtype::F32)?;
    let sampling = Sampling {
        min_tokens: 25,
        stop: vec!["a".into()],
        ..plain()
    };
    let generated = run(&model, &prompts(&[&[5, 9], &[7]]), 20, &sampling)?;
    for response in &generated.responses {
        assert!(response.len() >= 25);
        assert!(!response[..25].contains(&2));
    }
    Ok(())
}

#[test]
fn ignore_eos_forces_the_length() -> Outcome {
    let model = load("qwen2", Dtype::F32)?;
    let sampling = Sampling {
        ignore_eos: true,
        ..plain()
    };
    let generated = run(&model, &prompts(&[&[5, 9], &[7]]), 20, &sampling)?;
    assert!(generated.responses.iter().all(|r| r.len() == 40));
    assert!(generated.responses.iter().any(|r| r.contains(&2)));
    assert!(generated.finished.iter().all(|f| !f));
    Ok(())
}

#[test]
fn a_stop_string_ends_a_response_with_the_token_that_completes_it() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    let free = Sampling {
        ignore_eos: true,
        ..plain()
    };
    let unstopped = run(&model, &prompts(&[&[5, 9], &[7]]), 8, &free)?;
    // Two letters in a row that some response has.
    let stop = letters(&unstopped.responses[3][6..8]);
    let sampling = Sampling {
        stop: vec!["never".into(), stop.clone()],
        ..free
    };
    let stopped = run(&model, &prompts(&[&[5, 9], &[7]]), 8, &sampling)?;
    for (i, response) in stopped.responses.iter().enumerate() {
        let text = letters(&unstopped.responses[i]);
        let expected = text.find(&stop).map_or(text.len(), |at| at + stop.len());
        assert_eq!(letters(response), text[..expected]);
        assert_eq!(stopped.finished[i], text.contains(&stop));
    }
    assert!(stopped.finished[3]);
    Ok(())
}

#[test]
fn a_poll_that_says_no_ends_the_call_with_what_there_is() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    let prompts = prompts(&[&[5, 9], &[7], &[1, 2, 3]]);
    let sampling = Sampling {
        ignore_eos: true,
        ..plain()
    };
    let request = Request {
        prompts: &prompts,
        rows: &[0, 1, 2],
        group: 2,
        sampling: &sampling,
        key: KEY,
        max_rows: 2,
    };
    let ending = Ending {
        eos: &[2],
        decode: &letters,
    };
    let mut seen = Vec::new();
    let generated = generate(&model, ending, &request, &mut |now| {
        seen.push(now);
        now.tokens < 90
    })?;
    assert!(!generated.complete);
    let lengths: Vec<usize> = generated.responses.iter().map(Vec::len).collect();
    assert_eq!(lengths, [40, 40, 5, 5, 0, 0]);
    let last = Progress {
        rows: 6,
        done: 2,
        tokens: 90,
    };
    assert_eq!(seen.last(), Some(&last));
    Ok(())
}

#[test]
fn requests_without_a_meaning_are_refused_in_words() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    let refused = |ids: &[&[u32]], group: usize, sampling: Sampling| {
        let result = run(&model, &prompts(ids), group, &sampling);
        result
            .err()
            .map(|fault| fault.to_string())
            .unwrap_or_default()
    };
    let with = |change: fn(&mut Sampling)| {
        let mut sampling = plain();
        change(&mut sampling);
        sampling
    };
    let long = vec![1; 230];
    let cases = [
        (
            refused(&[&[5], &[]], 1, plain()),
            "the prompt of row 1 is empty",
        ),
        (refused(&[&[5]], 0, plain()), "a group of 0 responses"),
        (
            refused(&[&[48]], 1, plain()),
            "the prompt of row 0 has token 48; the model has 48",
        ),
        (
            refused(&[&long], 1, plain()),
            "the prompt of row 0 has 230 tokens and its response up to 40: more than the model's 256 positions",
        ),
        (
            refused(&[&[5]], 1, with(|s| s.temperature = f64::NAN)),
            "temperature NaN is outside `0..`",
        ),
        (
            refused(&[&[5]], 1, with(|s| s.top_p = Some(0.0))),
            "top_p 0 is outside `0..1`",
        ),
        (
            refused(&[&[5]], 1, with(|s| s.top_k = Some(0))),
            "top_k 0 leaves no token",
        ),
    ];
    for (message, expected) in cases {
        assert_eq!(message, expected);
    }
    Ok(())
}

#[test]
fn weights_that_are_not_numbers_are_an_error_that_says_where() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    let _ = model.weights.norm.weight.shallow_clone().fill_(f64::NAN);
    let fault = run(&model, &prompts(&[&[5, 9]]), 2, &plain());
    let message = fault.err().map(|fault| fault.to_string());
    let expected = "the logit of token 0 is not finite at token 0 of response 0 to row 0";
    assert_eq!(message.as_deref(), Some(expected));
    Ok(())
}

#[test]
fn no_prompts_and_no_tokens_are_fine() -> Outcome {
    let model = load("llama-tied-gqa", Dtype::F32)?;
    assert_eq!(run(&model, &[], 4, &plain())?.responses.len(), 0);
    let none = Sampling {
        max_tokens: 0,
        ..plain()
    };
    let generated = run(&model, &prompts(&[&[5]]), 4, &none)?;
    assert_eq!(generated.responses, vec![Vec::<u32>::new(); 4]);
    assert!(generated.complete);
    Ok(())
}
