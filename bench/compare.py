"""Times one GRPO step of `rlhf` and of TRL on the same job, and prints both beside each other.

    bench/run [--only trl|rlhf] [--steps N] [--smoke]

The job: SmolLM2-135M, 4 prompts x 8 responses x 32 tokens (forced), f32, two threads. A step's seconds
are the time between the lines that two consecutive steps print, so they hold everything a step costs; the
first step of each run pays for warming up and is dropped. Generation is what each side reports for
it; training is the rest of the step: the reference's log-probabilities, the update, and what is
between. Peak memory is the largest resident set of any process of the run.

--smoke runs one step of `rlhf` alone on a tiny random model and checks that its report can be read.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "bench" / "grpo_bench.rlhf"
THREADS, TOKENS = 2, 32


@dataclass
class Run:
    steps: list[float]
    generation: list[float]
    peak_gb: float

    def row(self) -> tuple[float, float, float, float]:
        step, generation = mean(self.steps), mean(self.generation)
        return step, generation, step - generation, self.peak_gb


def main() -> int:
    parser = argparse.ArgumentParser(prog="bench/run", description="Times a GRPO step of rlhf and of TRL.")
    parser.add_argument("--only", choices=["trl", "rlhf"], help="time one side")
    parser.add_argument("--steps", type=int, default=3, help="steps to run; the first is dropped")
    parser.add_argument("--smoke", action="store_true", help="one step of rlhf on a tiny random model")
    options = parser.parse_args()
    if options.steps < 2:
        parser.error("--steps: at least 2, since the first is dropped")

    model = Path(os.environ["RLHF_SMOLLM2"])
    if options.smoke:
        return smoke(model)
    runs = {}
    if options.only != "rlhf":
        runs["TRL"] = measure([os.environ["RLHF_BENCH_PYTHON"], "bench/trl_step.py", model, options.steps])
    if options.only != "trl":
        runs["rlhf"] = with_output(lambda out: measure(rlhf(model, options.steps, out)))
    print(f"{'seconds a step':16}{'step':>8}{'generation':>12}{'training':>10}{'peak GB':>9}")
    for name, run in runs.items():
        print("{:16}{:8.2f}{:12.2f}{:10.2f}{:9.2f}".format(name, *run.row()))
    if len(runs) == 2:
        ratios = [trl / own for trl, own in zip(runs["TRL"].row(), runs["rlhf"].row())]
        print("{:16}{:8.2f}{:12.2f}{:10.2f}{:9.2f}".format("TRL / rlhf", *ratios))
    return 0


def rlhf(model: Path, steps: int, out: Path) -> list:
    return [ROOT / "rlhf", "run", PROGRAM, f"base={model}", "--iterations", steps, "--seed", 0,
            "--threads", THREADS, "--device", "cpu", "--json", "--out", out]


def measure(command: list) -> Run:
    """Runs a command and times its steps by the lines it prints."""
    print("running", Path(command[0]).name, Path(str(command[1])).name, file=sys.stderr, flush=True)
    lines, child = [], subprocess.Popen([str(part) for part in command], cwd=ROOT, stdout=subprocess.PIPE,
                                        text=True, env={**os.environ, "OMP_NUM_THREADS": str(THREADS)})
    for text in child.stdout:
        line = parsed(text)
        if line is not None:
            lines.append((time.perf_counter(), line))
    # Unlike wait(), wait4 tells the memory of the process and of those it waited for.
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        sys.exit(f"the run ended with status {os.waitstatus_to_exitcode(status)}")
    for _, line in lines:
        length = line.get("length", line.get("metrics", {}).get("length"))
        if length != TOKENS:
            sys.exit(f"responses of {length} tokens where {TOKENS} were forced: the figures would not compare")
    scale = 1 if sys.platform == "darwin" else 1024
    return Run(
        steps=[after - before for (before, _), (after, _) in zip(lines, lines[1:])],
        generation=[line["seconds"]["roll"] for _, line in lines[1:]],
        peak_gb=usage.ru_maxrss * scale / 1e9,
    )


def parsed(text: str) -> dict | None:
    """A step's line; None for anything else that is printed."""
    try:
        line = json.loads(text)
    except ValueError:
        return None
    return line if isinstance(line, dict) and "roll" in (line.get("seconds") or {}) else None


def with_output(body):
    """Gives `body` a directory for a run's checkpoint and records, and removes it afterwards."""
    with tempfile.TemporaryDirectory(prefix="rlhf-bench-") as parent:
        return body(Path(parent) / "run")


def smoke(tokenizer_from: Path) -> int:
    with tempfile.TemporaryDirectory(prefix="rlhf-bench-") as parent:
        model = Path(parent) / "tiny"
        write_tiny_model(model, tokenizer_from)
        run = measure(rlhf(model, 2, Path(parent) / "run"))
    print(f"bench smoke: a step on a tiny model took {run.steps[0]:.2f} s")
    return 0


def write_tiny_model(into: Path, tokenizer_from: Path) -> None:
    """Two random Llama layers behind the real tokenizer, so that the same program runs in a second."""
    import numpy as np
    from safetensors.numpy import save_file

    into.mkdir()
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(tokenizer_from / name, into)
    config = json.loads((tokenizer_from / "config.json").read_text())
    hidden, inner, heads, kv_heads, layers = 32, 64, 4, 2, 2
    config |= {"hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": layers,
               "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": hidden // heads}
    (into / "config.json").write_text(json.dumps(config))

    narrow = hidden // heads * kv_heads
    shapes = {"self_attn.q_proj": (hidden, hidden), "self_attn.k_proj": (narrow, hidden),
              "self_attn.v_proj": (narrow, hidden), "self_attn.o_proj": (hidden, hidden),
              "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}
    generator = np.random.default_rng(0)
    normal = lambda shape: generator.normal(0, 0.1, shape).astype(np.float32)  # noqa: E731
    ones = np.ones(hidden, np.float32)
    tensors = {"model.embed_tokens.weight": normal((config["vocab_size"], hidden)), "model.norm.weight": ones}
    for layer in range(layers):
        at = f"model.layers.{layer}"
        tensors |= {f"{at}.{name}.weight": normal(shape) for name, shape in shapes.items()}
        tensors |= {f"{at}.{name}.weight": ones for name in ("input_layernorm", "post_attention_layernorm")}
    save_file(tensors, into / "model.safetensors", metadata={"format": "pt"})


if __name__ == "__main__":
    sys.exit(main())
