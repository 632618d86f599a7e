"""Times `rlhf check`, edits and hovers of a program of 500 lines, and ruff on a Python file of the same size.

Run by `bench/check`. Times are of whole processes unless they say otherwise; nothing else should run.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def times(command, rounds, env=None):
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=False)
        taken.append((time.perf_counter() - start) * 1e3)
    return taken


def line(what, taken):
    print(f"{what:52} {min(taken):8.2f} ms best {statistics.median(taken):8.2f} ms median of {len(taken)}")


def python_file(size):
    """A module of functions, as long as the program."""
    text, i = "import math\n", 0
    while len(text) < size:
        text += (f"\n\ndef shape_{i}(rewards, limit=0.{i}5):\n    mean = sum(rewards) / len(rewards)\n"
                 f"    spread = math.sqrt(sum((r - mean) ** 2 for r in rewards) / len(rewards)) + 1e-4\n"
                 f"    return [max(-limit, min(limit, (r - mean) / spread / 2)) for r in rewards]\n")
        i += 1
    return text


def save_to_screen(rlhf, folder, rounds):
    """From writing a file to the status line of `check --watch`."""
    program = Path(folder) / "watched.rlhf"
    text = (ROOT / "algorithms/grpo.rlhf").read_text().replace('"data/', f'"{ROOT}/algorithms/data/')
    program.write_text(text)
    watch = subprocess.Popen([rlhf, "check", "--watch", str(program)], stdout=subprocess.DEVNULL,
                             stderr=subprocess.PIPE, text=True)
    taken = []
    watch.stderr.readline()
    for i in range(rounds):
        time.sleep(0.2)
        start = time.perf_counter()
        program.write_text(text + f"// {i}\n")
        watch.stderr.readline()
        taken.append((time.perf_counter() - start) * 1e3)
    watch.terminate()
    watch.wait()
    return taken


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True, help="the folder of the executables")
    parser.add_argument("--rounds", type=int, default=60, help="processes a figure is taken from")
    parser.add_argument("--smoke", action="store_true", help="a few rounds, without ruff: does it run?")
    options = parser.parse_args()
    rounds = 3 if options.smoke else options.rounds
    rlhf = str(Path(options.target) / "rlhf")
    grpo = str(ROOT / "algorithms/grpo.rlhf")
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "RLHF_CACHE": folder}
        line("rlhf check grpo.rlhf, first time", times([rlhf, "check", grpo], 1, env))
        line("rlhf check grpo.rlhf", times([rlhf, "check", grpo], rounds, env))
        line("rlhf --version", times([rlhf, "--version"], rounds))
        line("check --watch, save to screen", save_to_screen(rlhf, folder, rounds // 3))
        speed = subprocess.run([str(Path(options.target) / "examples/speed"), str(rounds * 10)],
                               capture_output=True, text=True, check=True)
        found = json.loads(speed.stdout)
        print(f"edit to diagnostics, {found['lines']} lines, in process        {found['edit_p50_ms']:8.2f} ms p50 "
              f"{found['edit_p95_ms']:8.2f} ms p95 of {found['rounds']}")
        print(f"hover, in process                                    {found['hover_p50_ms']:8.4f} ms p50 "
              f"{found['hover_max_ms']:8.4f} ms worst")
        if options.smoke:
            return 0
        python = Path(folder) / "same.py"
        python.write_text(python_file(found["bytes"]))
        ruff = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check",
                "--target", str(ROOT / ".venv-bench/ruff"), "ruff==0.17.6"]
        if not (ROOT / ".venv-bench/ruff/bin/ruff").exists():
            subprocess.run(ruff, check=True)
        exe = str(ROOT / ".venv-bench/ruff/bin/ruff")
        line(f"ruff check of {python.stat().st_size} bytes of Python", times(
            [exe, "check", "--no-cache", "--isolated", str(python)], rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
