"""Makes the fixtures that hold low-rank adapters to PyTorch's numbers.

    python tests/reference/lora_steps.py interpreter/runtime/tests/fixtures

For two tiny checkpoints that are fixtures already, a language model and a sequence classifier, linear
layers become x W' + alpha/rank (x A') B' with A drawn as PEFT does (uniform within 1/sqrt(in), here from
the interpreter's counter-based generator, written out below) and B zero. `lora.safetensors` in each
folder gets the weights of A, of B and of the classifier's head after three clipped AdamW steps, under
the names PEFT stores them by, and the gradient norm before each step.
"""

import json
import math
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

SEED, MODEL = 3, "policy"
RANK, ALPHA = 4, 6.0
STEPS = 3
ADAMW = dict(lr=1e-2, betas=(0.9, 0.95), eps=1e-4, weight_decay=0.1)
MAX_NORM = 1.0
GROUP = 3
CASES = {
    "llama-tied-gqa": (AutoModelForCausalLM, None),
    "llama-classifier": (AutoModelForSequenceClassification, ["q_proj", "mlp.down_proj"]),
}
MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


def philox(counter, key):
    """Philox 4x32-10 (Salmon et al., 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [p1 >> 32 ^ c[1] ^ k[0], p1 & MASK32, p0 >> 32 ^ c[3] ^ k[1], p0 & MASK32]
        k = [(k[0] + 0x9E3779B9) & MASK32, (k[1] + 0xBB67AE85) & MASK32]
    return c


def fnv(text):
    h = 0xCBF29CE484222325
    for byte in text.encode():
        h = (h ^ byte) * 0x100000001B3 & MASK64
    return h


def uniforms(name, count):
    call = fnv(f"init {MODEL} {name}")
    a, b, c, d = philox([call & MASK32, call >> 32, 0, 0], [SEED & MASK32, SEED >> 32])
    key = [a ^ c, b ^ d]
    for i in range(count):
        high, low, *_ = philox([i & MASK32, i >> 32, 0, 0], key)
        yield ((high << 32 | low) >> 11) / (1 << 53)


class Adapted(torch.nn.Module):
    def __init__(self, name, base):
        super().__init__()
        self.base = base
        wide, narrow = base.weight.shape[1], base.weight.shape[0]
        bound = 1 / math.sqrt(wide)
        drawn = [bound * (2 * u - 1) for u in uniforms(f"{name}.lora_A", RANK * wide)]
        self.a = torch.nn.Parameter(torch.tensor(drawn, dtype=torch.float32).double().view(RANK, wide))
        self.b = torch.nn.Parameter(torch.zeros(narrow, RANK, dtype=torch.float64))

    def forward(self, x):
        return self.base(x) + ALPHA / RANK * (x @ self.a.T) @ self.b.T


def adapt(model, targets):
    for name, module in list(model.named_modules()):
        inside = ".layers." in name and isinstance(module, torch.nn.Linear)
        if inside and (targets is None or any(name.endswith("." + t) for t in targets)):
            parent, _, leaf = name.rpartition(".")
            setattr(model.get_submodule(parent), leaf, Adapted(name, module))


def language_loss(model, rows, expected):
    """The weighted sum of llama_parity.py, at temperature 1."""
    logps = []
    for row, response in enumerate(rows["responses"]):
        if response:
            prompt = rows["prompts"][row // GROUP]
            logits = model(torch.tensor([prompt + response])).logits[0, len(prompt) - 1 : -1]
            logps.append(torch.log_softmax(logits, -1).gather(1, torch.tensor(response)[:, None])[:, 0])
    return (expected["weight"] * torch.cat(logps)).sum()


def classifier_loss(model, rows, expected):
    scores = []
    for row, response in enumerate(rows["responses"]):
        ids = rows["prompts"][row // GROUP] + response
        scores.append(model(torch.tensor([ids])).logits[0, 0])
    return (expected["weight_after"] * torch.stack(scores)).sum()


def make(folder, kind, targets):
    model = kind.from_pretrained(folder, dtype=torch.float64, attn_implementation="eager")
    rows = json.loads((folder / "rows.json").read_text())
    expected = load_file(folder / "expected.safetensors")
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    adapt(model, targets)
    head = kind is AutoModelForSequenceClassification
    if head:
        model.score.weight.requires_grad_(True)
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, **ADAMW)
    loss = classifier_loss if head else language_loss
    norms = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss(model, rows, expected).backward()
        norms.append(torch.nn.utils.clip_grad_norm_(trained, MAX_NORM))
        optimizer.step()
    out = {"norms": torch.stack(norms)}
    for name, module in model.named_modules():
        if isinstance(module, Adapted):
            out[f"base_model.model.{name}.lora_A.weight"] = module.a.detach()
            out[f"base_model.model.{name}.lora_B.weight"] = module.b.detach()
    if head:
        out["base_model.model.score.weight"] = model.score.weight.detach()
    save_file({n: t.float().contiguous() for n, t in out.items()}, folder / "lora.safetensors")


for name, (kind, targets) in CASES.items():
    make(Path(sys.argv[1]) / name, kind, targets)
