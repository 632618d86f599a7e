"""Makes the fixtures that hold scalar heads to transformers' numbers.

Each fixture is a tiny random sequence classifier with one label, as transformers saves it, and what
PyTorch computes from it: the number of the state before each response token; the score of each
sequence, as the class itself pools it; the gradient of a weighted sum of both. Run it with torch and
transformers installed:

    python tests/reference/scalar_parity.py interpreter/runtime/tests/fixtures
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForSequenceClassification, LlamaConfig, Qwen2Config

SMALL = dict(
    vocab_size=48,
    hidden_size=24,
    intermediate_size=40,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
    max_position_embeddings=64,
    initializer_range=0.25,
    num_labels=1,
    pad_token_id=None,
)
CONFIGS = {
    "llama-classifier": LlamaConfig(**SMALL),
    "qwen2-classifier": Qwen2Config(**SMALL, tie_word_embeddings=True),
}
GROUP = 3


def draw(length, generator):
    return torch.randint(0, SMALL["vocab_size"], (length,), generator=generator).tolist()


def values(model, prompts, responses):
    """The head's number before each response token and after each response, one sequence at a time."""
    before, after = [], []
    for row, response in enumerate(responses):
        prompt = prompts[row // GROUP]
        ids = torch.tensor([prompt + response])
        hidden = model.model(ids).last_hidden_state[0]
        before.append(model.score(hidden[len(prompt) - 1 : -1])[:, 0] if response else hidden.new_zeros(0))
        after.append(model(ids).logits[0, 0])
    return torch.cat(before), torch.stack(after)


def make(name, config, root):
    generator = torch.Generator().manual_seed(sum(name.encode()))
    torch.manual_seed(sum(name.encode()))
    model = AutoModelForSequenceClassification.from_config(config, attn_implementation="eager").float()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    model.save_pretrained(folder)

    prompts = [draw(5, generator), draw(1, generator)]
    responses = [draw(n, generator) for n in (4, 1, 0, 6, 3, 5)]
    before, after = values(model, prompts, responses)
    weights = [torch.randn(x.shape, generator=generator) for x in (before, after)]
    ((weights[0] * before).sum() + (weights[1] * after).sum()).backward()
    out = dict(before=before.detach(), after=after.detach())
    out |= dict(weight_before=weights[0], weight_after=weights[1])
    out |= {f"grad.{n}": p.grad.clone() for n, p in model.named_parameters()}
    save_file(out, folder / "expected.safetensors")
    rows = dict(sequence=prompts[0], prompts=prompts, group=GROUP, responses=responses)
    (folder / "rows.json").write_text(json.dumps(rows))


for name, config in CONFIGS.items():
    make(name, config, Path(sys.argv[1]))
