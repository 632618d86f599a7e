"""Assistant masks of conversations as transformers makes them (`return_assistant_tokens_mask`).

Writes interpreter/text/tests/fixtures/assistant_masks.json over fixtures/tokenizer.
"""

import json
import pathlib

from transformers import AutoTokenizer

FIXTURES = pathlib.Path(__file__).parents[2] / "interpreter/text/tests/fixtures"

TURNS = """{%- for message in messages -%}
{%- if message.role == 'assistant' -%}
<|start|>assistant
{% generation %}{{ message.content }}<|end|>{% endgeneration %}
{{ '\\n' }}
{%- else -%}
<|start|>{{ message.role }}
{{ message.content }}<|end|>
{{ '\\n' }}
{%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
<|start|>assistant
{{ '' }}
{%- endif -%}
"""

TRIMMED = """{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {{- '<|start|>assistant\\n' }}
        {%- generation %}
        {{- m.content + '<|end|>' }}
        {%- endgeneration %}
        {{- '\\n' }}
    {%- else %}
        {{- '<|start|>' + m.role + '\\n' + m.content + '<|end|>\\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start|>assistant\\n' }}
{%- endif %}
"""


def say(*turns):
    return [{"role": role, "content": content} for role, content in turns]


CHATS = [
    say(("user", "What is 12 plus 7?"), ("assistant", "The sum is nineteen.")),
    say(
        ("system", "Answer with a number."),
        ("user", "What is twelve plus seven?"),
        ("assistant", "nineteen é"),
        ("user", "and 12 plus twelve?"),
        ("assistant", "  a number. "),
    ),
]


def main():
    tokenizer = AutoTokenizer.from_pretrained(FIXTURES / "tokenizer")
    cases = []
    for name, template in {"turns": TURNS, "trimmed": TRIMMED}.items():
        for chat in CHATS:
            made = tokenizer.apply_chat_template(
                chat,
                chat_template=template,
                return_assistant_tokens_mask=True,
                return_dict=True,
            )
            opening = [m for m in chat if m["role"] != "assistant"][: 1 + (chat[0]["role"] == "system")]
            prompt = tokenizer.apply_chat_template(
                opening, chat_template=template, add_generation_prompt=True, return_dict=True
            )["input_ids"]
            ids = made["input_ids"]
            assert ids[: len(prompt)] == prompt
            cases.append(
                {
                    "template": name,
                    "messages": chat,
                    "opening": len(opening),
                    "prompt": prompt,
                    "response": ids[len(prompt) :],
                    "mask": made["assistant_masks"][len(prompt) :],
                }
            )
    out = {"templates": {"turns": TURNS, "trimmed": TRIMMED}, "cases": cases}
    (FIXTURES / "assistant_masks.json").write_text(json.dumps(out, indent=1) + "\n")


main()
