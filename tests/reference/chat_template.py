"""Chat templates and token ids as transformers makes them.

Writes interpreter/text/tests/fixtures/tokenizer/ (a small byte-level BPE tokenizer trained on the
text below) and fixtures/chat_template.json. With a SmolLM2 folder as argument it also writes
fixtures/chat_smollm2.json.
"""

import json
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

FIXTURES = pathlib.Path(__file__).parents[2] / "interpreter/text/tests/fixtures"
CORPUS = ["What is 12 plus 7? The sum of twelve and seven is nineteen.", "user system assistant",
          "You are a helpful assistant. Answer with a number."]

TEMPLATES = {
    "turns": """{%- for message in messages -%}
    {{- '<|start|>' + message['role'] + '\\n' + message['content'] | trim + '<|end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|start|>assistant\\n' -}}
{%- endif -%}
""",
    "bos_and_system": """{{ bos_token }}
{%- if messages[0]['role'] == 'system' %}
    {%- set system = messages[0].content %}
    {%- set rest = messages[1:] %}
{%- else %}
    {%- set system = 'Default.' %}
    {%- set rest = messages %}
{%- endif %}
{%- if tools is not none %}{{ raise_exception('no tools here') }}{% endif %}
{{ '<<' ~ system.strip().upper() ~ '>>' }}
{% for m in rest %}
  {% if (m.role == 'user') != (loop.index0 % 2 == 0) %}
{{ raise_exception('roles must alternate') }}
  {% endif %}
{{ m.role.capitalize() }}: {{ m.content }}{{ eos_token if m.role == 'assistant' else '' }}
{% endfor %}
{% if add_generation_prompt %}Assistant:{% endif %}
""",
    "state_and_json": """{%- macro turn(m, last=false) -%}
<|start|>{{ m | tojson }} last={{ last }}{% if last %} {{ last }}{% endif %}
{%- endmacro -%}
{%- set ns = namespace(users=0, seen=[]) -%}
{%- for m in messages -%}
  {%- if m.role == 'tool' -%}{%- continue -%}{%- endif -%}
  {%- if m.role == 'user' -%}{%- set ns.users = ns.users + 1 -%}{%- endif -%}
  {%- set ns.seen = ns.seen + [m.role] -%}
  {% generation %}{{ turn(m, loop.last) }}{% endgeneration %}
{%- endfor -%}
{{ '\\n' }}{{ ns.users }} of {{ messages | length }}: {{ ns.seen | join(', ') }} {{ ns.seen | tojson(indent=2) }}
{%- if strftime_now is defined %} on a date{% endif -%}
{%- if messages[-1].content.startswith('What') and 'sum' not in messages[-1].content %} asks {{ messages[-1].content.split(' ')[1] }}{% endif %}
""",
}

CHATS = [
    [{"role": "user", "content": "What is 12 plus 7?"}],
    [{"role": "system", "content": " Answer with a number. "},
     {"role": "user", "content": "  The sum of twelve & <seven> \u2013 \"s\u00e9ven\"?\n"}],
    [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "<|end|> 19 \U0001f600"},
     {"role": "user", "content": "What is it's sum?"}],
]


def small():
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|none|>", "<|start|>", "<|end|>"]
    trainer = trainers.BpeTrainer(vocab_size=320, special_tokens=special, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<|start|> $A", special_tokens=[("<|start|>", tokenizer.token_to_id("<|start|>"))])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=AddedToken("<|start|>", special=True),
        eos_token="<|end|>", pad_token="<|none|>")


def case(tokenizer, template, chat):
    ask = dict(add_generation_prompt=True, chat_template=template)
    text = tokenizer.apply_chat_template(chat, tokenize=False, **ask)
    ids = tokenizer.apply_chat_template(chat, tokenize=True, return_dict=False, **ask)
    closed = tokenizer.apply_chat_template(
        chat, tokenize=False, add_generation_prompt=False, chat_template=template)
    return {"messages": chat, "text": text, "ids": ids, "closed": closed}


def main():
    tokenizer = small()
    folder = FIXTURES / "tokenizer"
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save_pretrained(folder)
    (folder / "generation_config.json").write_text('{"eos_token_id": [2, 0]}\n')
    plain = [{"text": t, "bare": tokenizer(t, add_special_tokens=False)["input_ids"],
              "special": tokenizer(t)["input_ids"]}
             for t in CORPUS + ["", " caf\u00e9\n\n<|end|>x", "\U0001f600"]]
    chats = [{"template": t, "cases": [case(tokenizer, t, c) for c in CHATS]}
             for t in TEMPLATES.values()]
    out = {"plain": plain, "templates": chats}
    (FIXTURES / "chat_template.json").write_text(json.dumps(out, indent=1) + "\n")
    if len(sys.argv) > 1:
        smol = AutoTokenizer.from_pretrained(sys.argv[1])
        cases = [case(smol, smol.chat_template, c) for c in CHATS]
        (FIXTURES / "chat_smollm2.json").write_text(json.dumps(cases, indent=1) + "\n")


if __name__ == "__main__":
    main()
