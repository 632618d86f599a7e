"""Writes the arithmetic task in the forms that the shipped programs read.

    make_sums.py            writes the files beside this script
    make_sums.py --check    tells whether they are what this script writes

    sums      question, answer              rules: grpo, rloo, …
    demos     prompt, completion            demonstrations: sft
    pairs     prompt, chosen, rejected      preferences: reward, dpo, …
    labels    prompt, completion, label     judgements of single responses: kto

`.held.jsonl` files are held out. Every sum of two addends from 0 to 20 is asked either in the files to
train on or in the held-out ones, whichever way round: when 7 + 12 is held out, 12 + 7 is not trained on.
A demonstration reads "7 + 12 = 19". What is rejected is a wrong sum in the same words, or the right sum
in many words, in equal parts.
"""

import json
import random
import sys
from pathlib import Path

SEED = 1
LARGEST = 20
HELD = 64
QUESTION = "What is {a} + {b}? Answer with a number."
RIGHT = "{a} + {b} = {c}"
WORDY = (
    "Let me think about it. If {a} and {b} are put together, that makes {c}.",
    "Sure! The sum of {a} and {b} should be {c}, if I am not mistaken.",
    "That is a good question. I would say that it is {c}, more or less.",
)
MISTAKES = (-10, -3, -2, -1, 1, 2, 3, 10)

Row = dict[str, str | bool]


def main() -> int:
    here = Path(__file__).parent
    texts = {
        here / f"{name}.jsonl": "".join(json.dumps(row) + "\n" for row in rows) for name, rows in files().items()
    }
    match sys.argv[1:]:
        case []:
            for path, text in texts.items():
                path.write_text(text)
                print(f"{path}: {text.count(chr(10))} rows")
            return 0
        case ["--check"]:
            changed = [p.name for p, text in texts.items() if not p.exists() or p.read_text() != text]
            if changed:
                print(f"not what make_sums.py writes: {', '.join(changed)}", file=sys.stderr)
            return 1 if changed else 0
    print("usage: make_sums.py [--check]", file=sys.stderr)
    return 2


def files() -> dict[str, list[Row]]:
    """Every file's rows by its name."""
    train, held = split()
    generator = random.Random(SEED + 1)
    train_pairs, held_pairs = pairs(generator, train), pairs(generator, held)
    return {
        "sums": [question(a, b) for a, b in train],
        "sums.held": [question(a, b) for a, b in held],
        "demos": [demonstration(a, b) for a, b in train],
        "demos.held": [demonstration(a, b) for a, b in held],
        "pairs": train_pairs,
        "pairs.held": held_pairs,
        "labels": labels(generator, train_pairs),
    }


def split() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Sums to train on and held-out sums, each shuffled. Every unordered pair is in one of them."""
    generator = random.Random(SEED)
    sums = [(a, b) for a in range(LARGEST + 1) for b in range(a, LARGEST + 1)]
    generator.shuffle(sums)
    held, train = sums[:HELD], sums[HELD:]
    # Training asks both ways round; a held-out sum is asked once, one way or the other.
    both = sorted({way for a, b in train for way in ((a, b), (b, a))})
    generator.shuffle(both)
    return both, [(a, b) if generator.random() < 0.5 else (b, a) for a, b in held]


def question(a: int, b: int) -> Row:
    return {"question": QUESTION.format(a=a, b=b), "answer": str(a + b)}


def demonstration(a: int, b: int) -> Row:
    return {"prompt": QUESTION.format(a=a, b=b), "completion": RIGHT.format(a=a, b=b, c=a + b)}


def pairs(generator: random.Random, sums: list[tuple[int, int]]) -> list[Row]:
    """Two preferences a sum: against a wrong one, and against a wordy one."""
    rows: list[Row] = []
    for a, b in sums:
        mistakes = [m for m in MISTAKES if a + b + m >= 0]
        wrong = RIGHT.format(a=a, b=b, c=a + b + generator.choice(mistakes))
        wordy = generator.choice(WORDY).format(a=a, b=b, c=a + b)
        shown = demonstration(a, b)
        for rejected in (wrong, wordy):
            rows.append({"prompt": shown["prompt"], "chosen": shown["completion"], "rejected": rejected})
    generator.shuffle(rows)
    return rows


def labels(generator: random.Random, preferences: list[Row]) -> list[Row]:
    """Each preference as one judgement: of what was chosen, or of what was rejected."""
    rows: list[Row] = []
    for row in preferences:
        label = generator.random() < 0.5
        completion = row["chosen"] if label else row["rejected"]
        rows.append({"prompt": row["prompt"], "completion": completion, "label": label})
    return rows


if __name__ == "__main__":
    sys.exit(main())
