"""Writes the losses of fifty steps of TRL's SFT, DPO and reward trainers on the tests' tiny checkpoint.

    cargo run --release -p rlhf-tests --example checkpoint -- FOLDER
    trajectories.py FOLDER OUT.json

Needs TRL 1.16. Rows are the first 200 of algorithms/data, four a step, in the order of the files; AdamW at a
constant learning rate of 1e-3 without weight decay, gradients clipped to norm 1, everything in float32.
"""

import json
import sys
from pathlib import Path

import torch
from datasets import Dataset
from torch.utils.data import SequentialSampler
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer
from trl import DPOConfig, DPOTrainer, RewardConfig, RewardTrainer, SFTConfig, SFTTrainer

STEPS = 50
BATCH = 4
DATA = Path(__file__).parent.parent.parent / "algorithms" / "data"


def recorded(trainer_class):
    """A trainer that reads rows in order and keeps every loss."""

    class Recorded(trainer_class):
        def _get_train_sampler(self, *args, **kwargs):
            return SequentialSampler(self.train_dataset)

        def compute_loss(self, *args, **kwargs):
            result = super().compute_loss(*args, **kwargs)
            loss = result[0] if isinstance(result, tuple) else result
            self.losses.append(float(loss.detach()))
            return result

    Recorded.losses = []
    return Recorded


def settings(out: Path) -> dict:
    return {
        "output_dir": str(out),
        "per_device_train_batch_size": BATCH,
        "max_steps": STEPS,
        "learning_rate": 1e-3,
        "lr_scheduler_type": "constant",
        "weight_decay": 0.0,
        "adam_beta1": 0.9,
        "adam_beta2": 0.999,
        "adam_epsilon": 1e-8,
        "max_grad_norm": 1.0,
        "bf16": False,
        "gradient_checkpointing": False,
        "use_cpu": True,
        "save_strategy": "no",
        "logging_steps": 1,
        "report_to": "none",
        "max_length": None,
        "seed": 0,
    }


def rows(name: str) -> Dataset:
    lines = (DATA / f"{name}.jsonl").read_text().splitlines()[: STEPS * BATCH]
    return Dataset.from_list([json.loads(line) for line in lines])


def main() -> int:
    if len(sys.argv) != 3:
        print("usage: trajectories.py FOLDER OUT.json", file=sys.stderr)
        return 2
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder / "model")
    # transformers scores the last token that is not padding. Where padding and EOS share an id, that is the
    # token before EOS, so padding is another token here.
    padded = AutoTokenizer.from_pretrained(folder / "judge", pad_token="<|im_start|>")

    def policy():
        return AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)

    def judge():
        return AutoModelForSequenceClassification.from_pretrained(
            folder / "judge", num_labels=1, pad_token_id=padded.pad_token_id, dtype=torch.float32
        )

    common = settings(folder / "trainer")
    runs = {
        "sft": recorded(SFTTrainer)(
            model=policy(),
            args=SFTConfig(**common, completion_only_loss=True),
            train_dataset=rows("demos"),
            processing_class=tokenizer,
        ),
        "dpo": recorded(DPOTrainer)(
            model=policy(),
            ref_model=policy(),
            args=DPOConfig(**common, beta=0.1),
            train_dataset=rows("pairs"),
            processing_class=tokenizer,
        ),
        "reward": recorded(RewardTrainer)(
            model=judge(),
            args=RewardConfig(**common),
            train_dataset=rows("pairs"),
            processing_class=padded,
        ),
    }
    losses = {}
    for name, trainer in runs.items():
        trainer.train()
        losses[name] = trainer.losses
        assert len(trainer.losses) == STEPS, name
    out.write_text(json.dumps(losses, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
