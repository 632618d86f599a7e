"""The job of grpo_bench.rlhf on TRL: one JSON line a step, {"iteration", "seconds": {"roll"}, "length", …}.

    trl_step.py MODEL STEPS
"""

import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

THREADS = 2
os.environ["OMP_NUM_THREADS"] = str(THREADS)

import torch  # noqa: E402  the thread count is read when torch starts
from datasets import Dataset  # noqa: E402
from transformers import TrainerCallback  # noqa: E402
from trl import GRPOConfig, GRPOTrainer  # noqa: E402

PROMPTS, RESPONSES, TOKENS = 4, 8, 32
SUMS = Path(__file__).parent.parent / "algorithms" / "data" / "sums.jsonl"


class Timed(GRPOTrainer):
    generating = 0.0

    def _generate_single_turn(self, *args, **kwargs):
        start = time.perf_counter()
        result = super()._generate_single_turn(*args, **kwargs)
        self.generating += time.perf_counter() - start
        return result


class Report(TrainerCallback):
    """Prints a step's line when the step has ended."""

    trainer: Timed

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "reward" in logs:
            line = {
                "iteration": state.global_step,
                "seconds": {"roll": self.trainer.generating},
                "length": logs["completions/mean_length"],
                "reward": logs["reward"],
            }
            print(json.dumps(line), flush=True)
            self.trainer.generating = 0.0


def reward(completions, answer, **_):
    return [float(last_number(c[0]["content"]) == float(a)) for c, a in zip(completions, answer)]


def last_number(text):
    found = re.findall(r"-?\d+(?:\.\d+)?", text)
    return float(found[-1]) if found else None


def main(model: str, steps: int, output: str) -> None:
    torch.set_num_threads(THREADS)
    rows = [json.loads(line) for line in SUMS.read_text().splitlines()[: PROMPTS * steps]]
    data = Dataset.from_list([
        {"prompt": [{"role": "user", "content": row["question"]}], "answer": row["answer"]} for row in rows
    ])
    config = GRPOConfig(
        output_dir=output,
        model_init_kwargs={"dtype": "float32"},
        use_cpu=True, bf16=False, activation_checkpointing=False,
        per_device_train_batch_size=PROMPTS * RESPONSES, num_generations=RESPONSES,
        max_completion_length=TOKENS, generation_kwargs={"min_new_tokens": TOKENS},
        temperature=1.0, top_p=1.0, top_k=0,
        beta=0.04, epsilon=0.2, loss_type="grpo", scale_rewards="group",
        learning_rate=1e-5, lr_scheduler_type="constant", max_grad_norm=1.0,
        max_steps=steps, logging_steps=1, save_strategy="no", report_to="none",
        disable_tqdm=True, seed=0,
    )
    report = Report()
    trainer = Timed(model=model, reward_funcs=reward, args=config, train_dataset=data, callbacks=[report])
    report.trainer = trainer
    trainer.train()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="rlhf-bench-") as output:
        main(sys.argv[1], int(sys.argv[2]), output)
