"""Writes the arithmetic task: sums.jsonl to train on, sums.held.jsonl to test on.

    make_sums.py            writes both files beside this script
    make_sums.py --check    tells whether they are what this script writes

Every sum of two addends from 0 to 20 is asked in one of the two files only, whichever way round: when
7 + 12 is held out, 12 + 7 is not trained on.
"""

import json
import random
import sys
from pathlib import Path

SEED = 1
LARGEST = 20
HELD = 64
QUESTION = "What is {a} + {b}? Answer with a number."


def main() -> int:
    here = Path(__file__).parent
    texts = {here / "sums.jsonl": "", here / "sums.held.jsonl": ""}
    for (path, _), rows in zip(list(texts.items()), split(), strict=True):
        texts[path] = "".join(
            json.dumps({"question": QUESTION.format(a=a, b=b), "answer": str(a + b)}) + "\n" for a, b in rows
        )
    match sys.argv[1:]:
        case []:
            for path, text in texts.items():
                path.write_text(text)
                print(f"{path}: {text.count(chr(10))} rows")
            return 0
        case ["--check"]:
            changed = [path.name for path, text in texts.items() if path.read_text() != text]
            if changed:
                print(f"not what make_sums.py writes: {', '.join(changed)}", file=sys.stderr)
            return 1 if changed else 0
    print("usage: make_sums.py [--check]", file=sys.stderr)
    return 2


def split() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Rows to train on and held-out rows, each shuffled. Every unordered pair is in one of them."""
    generator = random.Random(SEED)
    pairs = [(a, b) for a in range(LARGEST + 1) for b in range(a, LARGEST + 1)]
    generator.shuffle(pairs)
    held, train = pairs[:HELD], pairs[HELD:]
    # Training asks both ways round; a held-out pair is asked once, one way or the other.
    both = sorted({way for a, b in train for way in ((a, b), (b, a))})
    generator.shuffle(both)
    return both, [(a, b) if generator.random() < 0.5 else (b, a) for a, b in held]


if __name__ == "__main__":
    sys.exit(main())
