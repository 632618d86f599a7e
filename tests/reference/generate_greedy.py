"""Writes the greedy continuations that transformers gives for 20 prompts.

    python tests/reference/generate_greedy.py MODEL_DIR interpreter/runtime/tests/generate/greedy.json

MODEL_DIR is SmolLM2-135M-Instruct as a Hugging Face directory. The model runs in f32. A prompt is kept as token ids, so
the test needs no tokenizer. `margin` is the smallest distance between the two largest logits along the way: the test
holds only if it is well above rounding.
"""

import json
import sys

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

QUESTIONS = [
    "What is 7 + 12?",
    "What is the capital of France?",
    "Write a haiku about the sea.",
    "Name three primary colours.",
    "How many legs does a spider have?",
    "Translate 'good morning' into Spanish.",
    "What is 9 times 8?",
    "Explain gravity to a child in one sentence.",
    "Who wrote Romeo and Juliet?",
    "List two uses of a hammer.",
    "What colour is the sky on a clear day?",
    "Give a synonym of 'happy'.",
]
TEXTS = [
    "Once upon a time",
    "The three laws of thermodynamics are",
    "def fibonacci(n):\n",
    "In 1969, the first",
    "Water boils at",
    "The quick brown fox",
    "Dear Sir or Madam,",
    "1, 2, 3, 5, 8, 13,",
]
NEW_TOKENS = 32


def main(model_dir, out):
    tokenizer = AutoTokenizer.from_pretrained(model_dir)
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=torch.float32).eval()
    prompts = [
        tokenizer.apply_chat_template(
            [{"role": "user", "content": question}], add_generation_prompt=True, return_dict=True
        )["input_ids"]
        for question in QUESTIONS
    ] + [tokenizer(text)["input_ids"] for text in TEXTS]
    eos = model.generation_config.eos_token_id
    cases = []
    for prompt in prompts:
        result = model.generate(
            torch.tensor([prompt]),
            attention_mask=torch.ones(1, len(prompt), dtype=torch.long),
            do_sample=False,
            max_new_tokens=NEW_TOKENS,
            output_logits=True,
            return_dict_in_generate=True,
        )
        response = result.sequences[0, len(prompt) :].tolist()
        tops = torch.cat(result.logits).topk(2).values
        margin = (tops[:, 0] - tops[:, 1]).min().item()
        print(f"{margin:.4f} {tokenizer.decode(response)!r}")
        cases.append({"prompt": prompt, "response": response, "margin": round(margin, 5)})
    with open(out, "w") as file:
        json.dump({"eos": [eos] if isinstance(eos, int) else eos, "new_tokens": NEW_TOKENS, "cases": cases}, file)
        file.write("\n")


main(*sys.argv[1:])
