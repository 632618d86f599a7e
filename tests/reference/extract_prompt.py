"""The implicit prompts of preference pairs as TRL takes them out (`trl.data_utils.extract_prompt`, TRL 1.16).

Writes interpreter/runtime/tests/fixtures/extract_prompt.json.
"""

import json
import pathlib

from trl.data_utils import extract_prompt

OUT = pathlib.Path(__file__).parents[2] / "interpreter/runtime/tests/fixtures/extract_prompt.json"

TEXTS = [
    ("The sky is blue.", "The sky is in the sky."),
    ("Q: 1 + 1 A: 2", "Q: 1 + 1 A: three"),
    ("\n\nHuman: Hi\n\nAssistant: é", "\n\nHuman: Hi\n\nAssistant: ê"),
    ("same", "same"),
    ("a", "b"),
    ("short", "shorter"),
]


def say(*turns):
    return [{"role": role, "content": content} for role, content in turns]


CHATS = [
    (
        say(("user", "Hi"), ("assistant", "Hello")),
        say(("user", "Hi"), ("assistant", "Go away")),
    ),
    (
        say(("system", "s"), ("user", "1"), ("assistant", "2"), ("user", "3"), ("assistant", "4")),
        say(("system", "s"), ("user", "1"), ("assistant", "2"), ("user", "5"), ("assistant", "6")),
    ),
    (say(("user", "Hi"), ("assistant", "a")), say(("user", "Hi"), ("assistant", "a"))),
    (say(("user", "Hi")), say(("user", "Ho"))),
]


def main():
    cases = {}
    for name, pairs in {"text": TEXTS, "chat": CHATS}.items():
        made = [extract_prompt({"chosen": c, "rejected": r}) for c, r in pairs]
        cases[name] = {
            "chosen": [c for c, _ in pairs],
            "rejected": [r for _, r in pairs],
            "prompt": [m["prompt"] for m in made],
            "rest": [m["chosen"] for m in made],
        }
    OUT.write_text(json.dumps(cases, indent=1) + "\n")


main()
