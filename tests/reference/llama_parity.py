"""Makes the fixtures that hold the decoder to transformers' numbers.

Each fixture is a tiny random checkpoint with what PyTorch computes from it: logits of a sequence;
log-probabilities and entropies of responses at a temperature; the gradient of a weighted sum of them;
the weights after two steps of clipped AdamW. Run it with torch and transformers installed:

    python tests/reference/llama_parity.py interpreter/runtime/tests/fixtures
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen2Config

SMALL = dict(
    vocab_size=48,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=256,
    initializer_range=0.25,
)
LLAMA3 = dict(
    rope_type="llama3",
    rope_theta=10000.0,
    factor=4.0,
    low_freq_factor=1.0,
    high_freq_factor=4.0,
    original_max_position_embeddings=32,
)
CONFIGS = {
    "llama-tied-gqa": LlamaConfig(**SMALL, num_key_value_heads=2, tie_word_embeddings=True),
    "llama-untied-biases": LlamaConfig(
        **SMALL, num_key_value_heads=4, attention_bias=True, mlp_bias=True, tie_word_embeddings=False
    ),
    "llama3-scaled-sharded": LlamaConfig(
        **SMALL, num_key_value_heads=1, head_dim=8, rope_parameters=LLAMA3, tie_word_embeddings=False
    ),
    "qwen2": Qwen2Config(**SMALL, num_key_value_heads=2, tie_word_embeddings=True),
    "mistral": MistralConfig(**SMALL, num_key_value_heads=2, sliding_window=64, tie_word_embeddings=False),
}
GROUP = 3
TEMPERATURE = 0.7
ADAMW = dict(lr=1e-3, betas=(0.9, 0.95), eps=1e-4, weight_decay=0.1)
MAX_NORM = 1.0


def draw(length, generator):
    return torch.randint(0, SMALL["vocab_size"], (length,), generator=generator).tolist()


def scores(model, prompts, responses):
    """Per response token: log-probability and entropy, one sequence at a time."""
    logps, entropies = [], []
    for row, response in enumerate(responses):
        if not response:
            continue
        prompt = prompts[row // GROUP]
        logits = model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
        logp = torch.log_softmax(logits.float() / TEMPERATURE, -1)
        logps.append(logp.gather(1, torch.tensor(response)[:, None])[:, 0])
        entropies.append(-(logp.exp() * logp).sum(-1))
    return torch.cat(logps), torch.cat(entropies)


def make(name, config, root):
    generator = torch.Generator().manual_seed(sum(name.encode()))
    torch.manual_seed(sum(name.encode()))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    model.save_pretrained(folder, max_shard_size="20KB" if "sharded" in name else "5GB")
    (folder / "generation_config.json").unlink(missing_ok=True)

    # Long enough to reach past the original positions of the scaled rotary embedding.
    sequence = draw(70 if "llama3" in name else 30, generator)
    prompts = [draw(5, generator), draw(1, generator)]
    responses = [draw(n, generator) for n in (4, 1, 0, 6, 3, 5)]
    with torch.no_grad():
        out = {"logits": model(torch.tensor([sequence])).logits[0].contiguous()}
    optimizer = torch.optim.AdamW(model.parameters(), **ADAMW)
    for step in range(2):
        logp, entropy = scores(model, prompts, responses)
        if step == 0:
            weight = torch.randn(logp.shape, generator=generator)
            weight_entropy = torch.randn(logp.shape, generator=generator)
            out |= dict(logp=logp.detach(), entropy=entropy.detach())
            out |= dict(weight=weight, weight_entropy=weight_entropy)
        optimizer.zero_grad()
        ((weight * logp).sum() + (weight_entropy * entropy).sum()).backward()
        if step == 0:
            out |= {f"grad.{n}": p.grad.clone() for n, p in model.named_parameters()}
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        if step == 0:
            out["norm"] = norm.reshape(1)
        optimizer.step()
    out |= {f"after.{n}": p.detach().clone() for n, p in model.named_parameters()}
    save_file(out, folder / "expected.safetensors")
    rows = dict(sequence=sequence, prompts=prompts, group=GROUP, responses=responses)
    (folder / "rows.json").write_text(json.dumps(rows))


for name, config in CONFIGS.items():
    make(name, config, Path(sys.argv[1]))
