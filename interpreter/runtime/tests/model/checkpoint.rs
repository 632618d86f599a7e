//! Checkpoints: what is wrong with one is said by name, and saving replaces a file whole or not at all.

use std::fs;
use std::path::Path;

use rlhf_runtime::model::{Config, Dtype, Model, parameter_count};
use tch::{Kind, Tensor};

use super::{FIXTURES, Outcome, apart, fixture, folder};

/// A copy of a fixture to break.
pub(super) fn copied(name: &str) -> Result<tempfile::TempDir, std::io::Error> {
    let dir = tempfile::tempdir()?;
    for entry in fs::read_dir(folder(name))? {
        let entry = entry?;
        fs::copy(entry.path(), dir.path().join(entry.file_name()))?;
    }
    Ok(dir)
}

/// The message and the help with which loading fails.
fn refusal(dir: &Path) -> Result<String, String> {
    match Model::load(dir, Dtype::F32) {
        Ok(_) => Err(format!("{} should not load", dir.display())),
        Err(fault) => {
            let help = fault.diagnostic.help.clone().unwrap_or_default();
            Ok(format!("{fault} [{help}]").replace(&format!("{}", dir.display()), "DIR"))
        }
    }
}

/// Replaces text in config.json.
pub(super) fn edit_config(dir: &Path, from: &str, to: &str) -> std::io::Result<()> {
    let path = dir.join("config.json");
    let text = fs::read_to_string(&path)?;
    assert!(text.contains(from), "{from}");
    fs::write(path, text.replace(from, to))
}

/// Rewrites the weights after a change.
pub(super) fn edit_weights(dir: &Path, change: impl Fn(&mut Vec<(String, Tensor)>)) -> Outcome {
    let path = dir.join("model.safetensors");
    let mut tensors = Tensor::read_safetensors(&path)?;
    change(&mut tensors);
    Ok(Tensor::write_safetensors(&tensors, path)?)
}

#[test]
fn a_directory_that_is_not_a_checkpoint_is_refused() -> Outcome {
    assert_eq!(
        refusal(Path::new("no/such/place"))?,
        "no checkpoint directory `DIR` []"
    );
    let dir = tempfile::tempdir()?;
    let message = refusal(dir.path())?;
    assert!(
        message.starts_with("cannot read `DIR/config.json`: No such file"),
        "{message}"
    );
    fs::copy(
        folder("qwen2").join("config.json"),
        dir.path().join("config.json"),
    )?;
    let message = refusal(dir.path())?;
    assert!(
        message.starts_with("no weights in `DIR` [expected model.safetensors"),
        "{message}"
    );
    Ok(())
}

#[test]
fn what_config_json_asks_for_and_is_not_there_is_said() -> Outcome {
    let cases = [
        (
            "LlamaForCausalLM",
            "MambaForCausalLM",
            "`DIR/config.json`: architecture `MambaForCausalLM` is not supported [supported: LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM, Qwen3ForCausalLM, GemmaForCausalLM, Gemma2ForCausalLM, Phi3ForCausalLM, GPT2LMHeadModel, GPTNeoXForCausalLM, MixtralForCausalLM, Qwen3MoeForCausalLM]",
        ),
        (
            "\"silu\"",
            "\"relu\"",
            "`DIR/config.json`: `hidden_act`: activation `relu` is not supported [supported: silu, gelu, gelu_new, gelu_pytorch_tanh]",
        ),
        (
            "\"hidden_size\": 24",
            "\"hidden_size\": \"wide\"",
            "`DIR/config.json`: `hidden_size` should be a positive number; it is \"wide\" []",
        ),
        (
            "\"vocab_size\"",
            "\"vocabulary\"",
            "`DIR/config.json`: no `vocab_size` []",
        ),
        (
            "\"num_key_value_heads\": 2",
            "\"num_key_value_heads\": 3",
            "`DIR/config.json`: 4 attention heads are not a multiple of 3 key-value heads []",
        ),
        (
            "\"default\"",
            "\"spiral\"",
            "`DIR/config.json`: rotary scaling `spiral` is not supported [supported: default, linear, dynamic, llama3, yarn, longrope]",
        ),
    ];
    for (from, to, expected) in cases {
        let dir = copied("llama-tied-gqa")?;
        edit_config(dir.path(), from, to)?;
        assert_eq!(refusal(dir.path())?, expected);
    }
    Ok(())
}

#[test]
fn options_whose_mathematics_is_not_written_are_named_with_their_value() -> Outcome {
    let cases = [
        (
            "gpt2",
            "\"scale_attn_by_inverse_layer_idx\": false",
            "\"scale_attn_by_inverse_layer_idx\": true",
            "`scale_attn_by_inverse_layer_idx` is true, which is not supported",
        ),
        (
            "mistral",
            "\"sliding_window\": 64",
            "\"sliding_window\": 64, \"attention_bias\": true",
            "`attention_bias` is true, which is not supported",
        ),
        (
            "mistral",
            "\"sliding_window\": 64",
            "\"sliding_window\": \"wide\"",
            "`sliding_window` should be a positive number; it is \"wide\"",
        ),
        (
            "qwen2",
            "\"use_cache\"",
            "\"quantization_config\": {\"bits\": 4}, \"use_cache\"",
            "`quantization_config` is there, which is not supported",
        ),
        (
            "gemma2",
            "\"full_attention\"",
            "\"chunked_attention\"",
            "`layer_types`: \"chunked_attention\" is not supported",
        ),
        (
            "gemma2",
            "\"attn_logit_softcapping\": 2.0",
            "\"attn_logit_softcapping\": -2.0",
            "`attn_logit_softcapping` should be a positive number; it is -2.0",
        ),
        (
            "llama-linear",
            "\"rope_theta\"",
            "\"partial_rotary_factor\": 0.5, \"rope_theta\"",
            "`partial_rotary_factor` is 0.5; LlamaForCausalLM turns heads whole",
        ),
        (
            "llama-linear",
            "\"factor\": 3.0",
            "\"factor\": null",
            "rotary scaling `linear` needs a number `factor`",
        ),
        (
            "phi3-longrope",
            "1.3",
            "1.3, 1.4",
            "rotary scaling `longrope` needs 1 numbers in `short_factor`; it has 2",
        ),
        (
            "mixtral",
            "\"num_experts_per_tok\": 2",
            "\"num_experts_per_tok\": 9",
            "`num_experts_per_tok` is 9; a layer has 4 experts",
        ),
    ];
    for (name, from, to, expected) in cases {
        let dir = copied(name)?;
        edit_config(dir.path(), from, to)?;
        let message = refusal(dir.path())?;
        let said = message.strip_prefix("`DIR/config.json`: ");
        let said = said.ok_or("config.json is named")?;
        assert!(said.starts_with(expected), "{said}");
    }
    Ok(())
}

#[test]
fn a_body_stored_without_its_prefix_loads_with_what_old_files_hold_beside() -> Outcome {
    let dir = copied("gpt2")?;
    edit_weights(dir.path(), |tensors| {
        for (name, _) in tensors.iter_mut() {
            *name = name.replace("transformer.", "");
        }
        let mask = Tensor::ones([1, 1, 4, 4], tch::kind::FLOAT_CPU);
        tensors.push(("h.0.attn.bias".into(), mask));
    })?;
    let bare = Model::load(dir.path(), Dtype::F32)?;
    let full = Model::load(&folder("gpt2"), Dtype::F32)?;
    assert_eq!(apart(bare.flat(), full.flat()), 0.0);
    Ok(())
}

#[test]
fn sequences_stay_where_frequencies_do_not_change() -> Outcome {
    assert_eq!(Config::load(&folder("llama-dynamic"))?.positions, 128);
    assert_eq!(Config::load(&folder("phi3-longrope"))?.positions, 64);
    assert_eq!(Config::load(&folder("mistral-window"))?.positions, 128);
    Ok(())
}

#[test]
fn a_tensor_that_does_not_fit_is_named() -> Outcome {
    let dir = copied("llama-tied-gqa")?;
    edit_weights(dir.path(), |t| t.retain(|(n, _)| n != "model.norm.weight"))?;
    assert_eq!(
        refusal(dir.path())?,
        "`DIR` has no tensor `model.norm.weight` []"
    );

    let dir = copied("llama-tied-gqa")?;
    let extra = Tensor::zeros([2], tch::kind::FLOAT_CPU);
    edit_weights(dir.path(), |t| {
        t.push(("model.extra.weight".into(), extra.copy()))
    })?;
    assert_eq!(
        refusal(dir.path())?,
        "`DIR` holds a tensor `model.extra.weight` that LlamaForCausalLM does not have []"
    );

    let dir = copied("llama-tied-gqa")?;
    edit_config(
        dir.path(),
        "\"intermediate_size\": 40",
        "\"intermediate_size\": 41",
    )?;
    assert_eq!(
        refusal(dir.path())?,
        "tensor `model.layers.0.mlp.gate_proj.weight` in `DIR/model.safetensors` has shape [40, 24]; config.json asks for [41, 24] []"
    );

    let dir = copied("llama-tied-gqa")?;
    edit_weights(dir.path(), |t| t[3].1 = t[3].1.to_kind(Kind::Double))?;
    let message = refusal(dir.path())?;
    assert!(
        message.ends_with("is stored as F64 [supported: F32, BF16, F16]"),
        "{message}"
    );

    let dir = copied("llama-tied-gqa")?;
    edit_config(
        dir.path(),
        "\"tie_word_embeddings\": true",
        "\"tie_word_embeddings\": false",
    )?;
    let message = refusal(dir.path())?;
    assert!(
        message.starts_with("`DIR` has no tensor `lm_head.weight` [`tie_word"),
        "{message}"
    );
    Ok(())
}

#[test]
fn a_file_that_is_cut_off_is_refused() -> Outcome {
    for keep in [3, 100, 30_000] {
        let dir = copied("llama-tied-gqa")?;
        let path = dir.path().join("model.safetensors");
        fs::OpenOptions::new()
            .write(true)
            .open(&path)?
            .set_len(keep)?;
        let message = refusal(dir.path())?;
        assert!(
            message.starts_with("`DIR/model.safetensors` is cut off: "),
            "{message}"
        );
    }
    let dir = copied("llama3-scaled-sharded")?;
    fs::remove_file(dir.path().join("model-00002-of-00003.safetensors"))?;
    assert_eq!(
        refusal(dir.path())?,
        "`DIR/model.safetensors.index.json` names `model-00002-of-00003.safetensors`, which is missing []"
    );
    let dir = copied("llama-tied-gqa")?;
    fs::write(
        dir.path().join("model.safetensors"),
        [b"\x10\0\0\0\0\0\0\0".as_slice(), &[b'x'; 64]].concat(),
    )?;
    let message = refusal(dir.path())?;
    assert!(
        message.starts_with("`DIR/model.safetensors` is not a safetensors file"),
        "{message}"
    );
    Ok(())
}

#[test]
fn a_saved_model_loads_as_it_was() -> Outcome {
    for name in FIXTURES {
        for dtype in [Dtype::F32, Dtype::Bf16] {
            let model = Model::load(&folder(name), dtype)?;
            let dir = tempfile::tempdir()?;
            fs::copy(
                folder(name).join("config.json"),
                dir.path().join("config.json"),
            )?;
            model.save(dir.path())?;
            let again = Model::load(dir.path(), dtype)?;
            assert_eq!(apart(model.flat(), again.flat()), 0.0);
            let stored = Tensor::read_safetensors(dir.path().join("model.safetensors"))?;
            assert!(stored.iter().all(|(_, t)| t.kind() == dtype.kind()));
            assert_eq!(stored.len(), model.layout().parameters.len());
            assert_eq!(
                fs::read_dir(dir.path())?.count(),
                2,
                "nothing else is left behind"
            );
        }
    }
    Ok(())
}

#[test]
fn a_failed_save_leaves_the_earlier_file() -> Outcome {
    let f = fixture("qwen2")?;
    // A directory in the file's place makes the rename fail after everything was written.
    let dir = tempfile::tempdir()?;
    let blocked = dir.path().join("model.safetensors");
    fs::create_dir_all(blocked.join("inside"))?;
    let fault = f.model.save(dir.path()).err().ok_or("the place is taken")?;
    assert!(fault.to_string().starts_with("cannot write `"), "{fault}");
    assert!(blocked.join("inside").is_dir());
    assert_eq!(
        fs::read_dir(dir.path())?.count(),
        1,
        "nothing else is left behind"
    );

    let fault = f
        .model
        .save(Path::new("/dev/null/x"))
        .err()
        .ok_or("not a directory")?;
    assert!(
        fault.to_string().starts_with("cannot write `/dev/null/x`"),
        "{fault}"
    );
    Ok(())
}

#[test]
fn a_full_disk_is_said_and_the_earlier_file_survives() -> Outcome {
    // /dev/full answers every write as a full disk does.
    if !Path::new("/dev/full").exists() {
        return Ok(());
    }
    let f = fixture("qwen2")?;
    let dir = copied("qwen2")?;
    let before = fs::read(dir.path().join("model.safetensors"))?;
    let partial = format!(".model.safetensors.{}", std::process::id());
    std::os::unix::fs::symlink("/dev/full", dir.path().join(&partial))?;
    let fault = f.model.save(dir.path()).err().ok_or("the disk is full")?;
    assert!(fault.to_string().contains("No space left"), "{fault}");
    assert!(fault.diagnostic.help.is_some());
    assert_eq!(fs::read(dir.path().join("model.safetensors"))?, before);
    assert!(!dir.path().join(&partial).exists());
    Ok(())
}

#[test]
fn parameters_are_counted_without_weights() -> Outcome {
    for name in FIXTURES {
        let config = Config::load(&folder(name))?;
        let model = Model::load(&folder(name), Dtype::F32)?;
        assert_eq!(parameter_count(&config), model.flat().numel() as u64);
    }
    Ok(())
}

#[test]
fn a_snapshot_does_not_follow_the_model() -> Outcome {
    let f = fixture("qwen2")?;
    let frozen = f.model.snapshot();
    let before = frozen.forward_logits(&f.sequence);
    let mut flat = f.model.flat().shallow_clone();
    flat *= 1.5;
    assert_eq!(apart(&frozen.forward_logits(&f.sequence), &before), 0.0);
    assert!(apart(&f.model.forward_logits(&f.sequence), &before) > 1e-3);
    Ok(())
}
