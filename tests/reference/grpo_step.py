"""One GRPO training step in plain PyTorch: the numbers that the interpreter's own step is held to.

    grpo_step.py write DEST    writes the fixture
    grpo_step.py check DEST    computes it again and compares

The fixture is a tiny random Llama checkpoint (grouped-query attention, untied head), a given rollout
(ragged responses, the sampler's log-probabilities, a reference model's log-probabilities, rewards) and
what two updates over that rollout do: loss, gradient norm before clipping, and the weights after each.
In the second update the importance ratios differ from 1 and some are clipped.

Formulas: advantage A = (r - mean_g) / (std_g + 1e-4), std with n - 1. Per token, with
rho = exp(lp - logp) and x = lp - ref: beta * (exp(-x) + x - 1) - min(rho * A, clip(rho, 1 - c, 1 + c) * A).
Mean over the tokens of a response, then mean over all responses. AdamW as torch.optim.AdamW, the
gradient first clipped to a global norm as torch.nn.utils.clip_grad_norm_ does.

Everything is computed in f64 from f32 weights, so the numbers carry no rounding of their own. Each
response is run through the model alone: no padding, no mask, nothing shared between rows.
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

SEED = 20240211
GROUP = 4
TEMPERATURE = 0.8
BETA, CLIP, EPS = 0.04, 0.2, 1e-4
OPTIMIZER = {"lr": 5e-4, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.0}
MAX_NORM = 1.0
UPDATES = 2
PROMPT_LENGTHS = [5, 3, 7]
RESPONSE_LENGTHS = [1, 6, 4, 9, 3, 3, 8, 2, 5, 7, 1, 6]
# The second group scores alike: its advantage is 0 and only the KL term reaches the loss.
REWARDS = [0.0, 1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.0, 0.25, -1.5, 2.0, 0.5]


def main() -> int:
    match sys.argv[1:]:
        case ["write", destination]:
            write(Path(destination))
            return 0
        case ["check", destination]:
            return check(Path(destination))
    print("usage: grpo_step.py write|check DEST", file=sys.stderr)
    return 2


def initial_model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64,
        rms_norm_eps=1e-5, initializer_range=0.25, tie_word_embeddings=False,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        bos_token_id=1, eos_token_id=2, pad_token_id=None,
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():  # norm weights start at 1 everywhere; an error in them must show
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight += 0.2 * torch.randn_like(weight)
    return model


def rollout(generator: torch.Generator) -> tuple[list[list[int]], list[list[int]]]:
    def tokens(length: int) -> list[int]:
        return torch.randint(3, 64, (length,), generator=generator).tolist()

    return [tokens(n) for n in PROMPT_LENGTHS], [tokens(n) for n in RESPONSE_LENGTHS]


def logp(model: LlamaForCausalLM, prompts: list, responses: list) -> list[torch.Tensor]:
    """Log-probability of each response token at TEMPERATURE, one vector a response."""
    rows = []
    for row, response in enumerate(responses):
        prompt = prompts[row // GROUP]
        ids = torch.tensor([prompt + response])
        scaled = model(ids, use_cache=False).logits[0, len(prompt) - 1 : -1] / TEMPERATURE
        rows.append(scaled.log_softmax(-1).gather(-1, torch.tensor(response)[:, None])[:, 0])
    return rows


def group_relative(rewards: torch.Tensor) -> torch.Tensor:
    groups = rewards.view(-1, GROUP)
    centred = groups - groups.mean(1, keepdim=True)
    return (centred / (groups.std(1, keepdim=True) + EPS)).view(-1)


def compute() -> tuple[dict, LlamaForCausalLM, dict, list[dict]]:
    torch.manual_seed(SEED)
    saved = initial_model()
    initial = {name: value.clone() for name, value in saved.state_dict().items()}
    prompts, responses = rollout(torch.Generator().manual_seed(SEED))
    model = LlamaForCausalLM(saved.config).double()
    model.load_state_dict(initial)
    anchor = LlamaForCausalLM(saved.config).double()
    anchor.load_state_dict({n: w + 0.02 * torch.randn_like(w) for n, w in initial.items()})

    with torch.no_grad():
        sampler = [row.float().double() for row in logp(model, prompts, responses)]
        reference = [row.float().double() for row in logp(anchor, prompts, responses)]
    advantage = group_relative(torch.tensor(REWARDS, dtype=torch.float64))

    optimizer = torch.optim.AdamW(model.parameters(), **{**OPTIMIZER, "betas": tuple(OPTIMIZER["betas"])})
    updates, weights = [], []
    for _ in range(UPDATES):
        losses, kls, ratios = [], [], []
        for lp, old, ref, adv in zip(logp(model, prompts, responses), sampler, reference, advantage):
            x, ratio = lp - ref, torch.exp(lp - old)
            k3 = torch.exp(-x) + x - 1
            surrogate = torch.minimum(ratio * adv, ratio.clamp(1 - CLIP, 1 + CLIP) * adv)
            losses.append((BETA * k3 - surrogate).mean())
            kls.append(k3.detach())
            ratios.append(ratio.detach())
        loss = torch.stack(losses).mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        optimizer.step()
        ratio = torch.cat(ratios)
        updates.append({
            "loss": loss.item(),
            "grad_norm": norm.item(),
            "kl": torch.cat(kls).mean().item(),
            "ratio_min": ratio.min().item(),
            "ratio_max": ratio.max().item(),
            "clipped_tokens": int(((ratio - 1).abs() > CLIP).sum()),
        })
        weights.append({name: value.float().clone() for name, value in model.state_dict().items()})

    step = {
        "temperature": TEMPERATURE, "beta": BETA, "clip": CLIP, "advantage_eps": EPS,
        "optimizer": {**OPTIMIZER, "max_norm": MAX_NORM},
        "group": GROUP, "prompts": prompts, "responses": responses, "rewards": REWARDS,
        "logp": [row.tolist() for row in sampler],
        "ref_logp": [row.tolist() for row in reference],
        "advantage": advantage.tolist(),
        "updates": updates,
    }
    return step, saved, initial, weights


def write(destination: Path) -> None:
    step, model, initial, weights = compute()
    destination.mkdir(parents=True, exist_ok=True)
    config = model.config.to_dict()
    kept = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
            "num_key_value_heads", "head_dim", "hidden_act", "max_position_embeddings", "rms_norm_eps",
            "tie_word_embeddings", "attention_bias", "mlp_bias", "bos_token_id", "eos_token_id"]
    dump(destination / "config.json", {
        "architectures": ["LlamaForCausalLM"], "model_type": "llama",
        **{key: config[key] for key in kept}, "rope_theta": 10000.0, "torch_dtype": "float32",
    })
    dump(destination / "step.json", step)
    save_file(initial, destination / "model.safetensors", metadata={"format": "pt"})
    for number, after in enumerate(weights, 1):
        save_file(after, destination / f"after_{number}.safetensors", metadata={"format": "pt"})


def check(destination: Path) -> int:
    step, _, initial, weights = compute()
    committed = json.loads((destination / "step.json").read_text())
    apart = [key for key in step if not close(step[key], committed.get(key))]
    files = {"model": initial, **{f"after_{n}": after for n, after in enumerate(weights, 1)}}
    for name, tensors in files.items():
        stored = load_file(destination / f"{name}.safetensors")
        same = stored.keys() == tensors.keys() and all(
            torch.allclose(stored[key], tensors[key], rtol=1e-5, atol=1e-6) for key in tensors)
        if not same:
            apart.append(f"{name}.safetensors")
    if apart:
        print(f"{destination} differs from what is computed now: {', '.join(apart)}", file=sys.stderr)
    return 1 if apart else 0


def close(a: object, b: object) -> bool:
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(close, a, b))
    return isinstance(b, (int, float)) and abs(a - b) <= 1e-6 + 1e-5 * abs(b)


def dump(path: Path, value: dict) -> None:
    lines = (f"  {json.dumps(key)}: {json.dumps(entry)}" for key, entry in value.items())
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.exit(main())
