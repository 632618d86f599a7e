"""Makes the fixtures that hold every model family to transformers' numbers.

Each fixture is a tiny random checkpoint with what PyTorch computes from it: logits of a sequence;
log-probabilities and entropies of responses at a temperature; the gradient of a weighted sum of them,
under the names that the checkpoint has. Prompts and responses are longer than the sliding windows. For
a mixture of experts there are also the load-balancing loss of the sequence and its gradient. Run it
with torch and transformers installed:

    python tests/reference/family_parity.py interpreter/runtime/tests/fixtures
"""

import copy
import json
import sys
import tempfile
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import (
    AutoModelForCausalLM,
    Gemma2Config,
    GemmaConfig,
    GPT2Config,
    GPTNeoXConfig,
    LlamaConfig,
    MistralConfig,
    MixtralConfig,
    Phi3Config,
    Qwen3Config,
    Qwen3MoeConfig,
)
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

SMALL = dict(
    vocab_size=48,
    hidden_size=16,
    intermediate_size=24,
    num_hidden_layers=2,
    num_attention_heads=4,
    max_position_embeddings=128,
    initializer_range=0.3,
    pad_token_id=None,
    bos_token_id=1,
    eos_token_id=2,
)
GROUPED = SMALL | dict(num_key_value_heads=2)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=32)
LONGROPE = dict(
    rope_type="longrope",
    rope_theta=10000.0,
    partial_rotary_factor=0.5,
    short_factor=[1.3],
    long_factor=[4.0],
    original_max_position_embeddings=64,
)
CONFIGS = {
    "llama-yarn": LlamaConfig(**GROUPED | dict(num_hidden_layers=1, head_dim=8), rope_parameters=YARN),
    "llama-linear": LlamaConfig(
        **GROUPED | dict(num_hidden_layers=1, head_dim=8),
        rope_parameters=dict(rope_type="linear", rope_theta=10000.0, factor=3.0),
    ),
    "llama-dynamic": LlamaConfig(
        **GROUPED | dict(num_hidden_layers=1),
        rope_parameters=dict(rope_type="dynamic", rope_theta=10000.0, factor=3.0),
    ),
    "mistral-window": MistralConfig(**GROUPED, sliding_window=7, tie_word_embeddings=False),
    "qwen3": Qwen3Config(
        **GROUPED, head_dim=6, use_sliding_window=True, sliding_window=7, max_window_layers=1
    ),
    "gemma": GemmaConfig(**SMALL | dict(num_key_value_heads=1), head_dim=6),
    "gemma2": Gemma2Config(
        **GROUPED | dict(num_hidden_layers=3),
        head_dim=6,
        query_pre_attn_scalar=10,
        sliding_window=7,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=3.0,
    ),
    "phi3": Phi3Config(**GROUPED, sliding_window=7),
    "phi3-longrope": Phi3Config(
        **GROUPED, original_max_position_embeddings=64, rope_parameters=LONGROPE
    ),
    "gpt2": GPT2Config(
        vocab_size=48, n_embd=16, n_layer=2, n_head=4, n_positions=128, n_inner=24, initializer_range=0.3,
        bos_token_id=1, eos_token_id=2,
    ),
    "gpt-neox": GPTNeoXConfig(**SMALL, rope_parameters=dict(rope_theta=10000.0, partial_rotary_factor=0.5)),
    "gpt-neox-sequential": GPTNeoXConfig(
        **SMALL | dict(num_hidden_layers=1),
        rope_parameters=dict(rope_theta=10000.0, partial_rotary_factor=0.5),
        use_parallel_residual=False,
    ),
    "mixtral": MixtralConfig(
        **GROUPED | dict(intermediate_size=12), num_local_experts=4, num_experts_per_tok=2, sliding_window=7
    ),
    "qwen3-moe": Qwen3MoeConfig(
        **GROUPED,
        head_dim=6,
        num_experts=5,
        num_experts_per_tok=2,
        moe_intermediate_size=12,
        decoder_sparse_step=2,
        norm_topk_prob=False,
    ),
}
GROUP = 3
TEMPERATURE = 0.7


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


def gradients(model):
    """The gradients under the checkpoint's names: those of a model whose weights they are."""
    twin = copy.deepcopy(model)
    with torch.no_grad():
        for own, parameter in zip(twin.parameters(), model.parameters()):
            own.copy_(torch.zeros_like(own) if parameter.grad is None else parameter.grad)
    with tempfile.TemporaryDirectory() as folder:
        twin.save_pretrained(folder)
        return load_file(Path(folder) / "model.safetensors")


def balance(model, sequence):
    """The load-balancing loss of the inputs of a sequence whose last token is only a target."""
    out = model(torch.tensor([sequence[:-1]]), output_router_logits=True)
    config = model.config
    routers = tuple(logits for logits in out.router_logits if logits is not None)
    return load_balancing_loss_func(routers, config.num_local_experts, config.num_experts_per_tok)


def make(name, config, root):
    generator = torch.Generator().manual_seed(sum(name.encode()))
    torch.manual_seed(sum(name.encode()))
    model = AutoModelForCausalLM.from_config(config, attn_implementation="eager").float().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
            elif parameter.abs().max() == 0:
                parameter.copy_(torch.randn(parameter.shape, generator=generator))
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    model.save_pretrained(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)

    sequence = draw(40, generator)
    prompts = [draw(9, generator), draw(1, generator)]
    responses = [draw(n, generator) for n in (4, 1, 0, 12, 3, 5)]
    with torch.no_grad():
        out = {"logits": model(torch.tensor([sequence])).logits[0].contiguous()}
    again = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        assert torch.equal(again(torch.tensor([sequence])).logits[0], out["logits"])
    logp, entropy = scores(model, prompts, responses)
    weight = torch.randn(logp.shape, generator=generator)
    weight_entropy = torch.randn(logp.shape, generator=generator)
    out |= dict(logp=logp.detach(), entropy=entropy.detach())
    out |= dict(weight=weight, weight_entropy=weight_entropy)
    ((weight * logp).sum() + (weight_entropy * entropy).sum()).backward()
    out |= {f"grad.{n}": g for n, g in gradients(model).items()}
    if hasattr(config, "num_experts_per_tok"):
        model.zero_grad()
        loss = balance(model, sequence)
        out["balance"] = loss.detach().reshape(1)
        loss.backward()
        out |= {f"balance.{n}": g for n, g in gradients(model).items() if "gate.weight" in n or "q_proj" in n}
    save_file({n: t.contiguous() for n, t in out.items()}, folder / "expected.safetensors")
    rows = dict(sequence=sequence, prompts=prompts, group=GROUP, responses=responses)
    (folder / "rows.json").write_text(json.dumps(rows))


for name, config in CONFIGS.items():
    make(name, config, Path(sys.argv[1]))
    print(name)
