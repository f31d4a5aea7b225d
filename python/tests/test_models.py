"""Models of others in Python: the tiny ones of the fixtures, and what `transformers` and `peft` computed with them."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

import volta
import volta.nn.functional as F
from volta import nn, optim
from volta.models import Bert, CausalLm, Embedder, Llm, Lora
from volta.models.streaming import StopTexts, TextStream

FIXTURES = Path(__file__).parents[2] / "crates" / "volta" / "tests" / "models" / "fixtures"
CONFIG = {
    "model_type": "llama", "vocab_size": 40, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2,
    "num_attention_heads": 2, "num_key_value_heads": 1, "max_position_embeddings": 32, "rms_norm_eps": 1e-5,
    "hidden_act": "silu", "rope_theta": 10000.0, "tie_word_embeddings": False,
}  # fmt: skip


@pytest.fixture(scope="module")
def llama():
    return Llm.load(FIXTURES / "llama", device="cpu")


def fresh():
    return Llm.load(FIXTURES / "llama", device="cpu")


def oracle(name):
    return volta.load(FIXTURES / name / "oracle.safetensors", device="cpu")


def answers(name):
    return json.loads((FIXTURES / name / "oracle.json").read_text(encoding="utf-8"))


def distance(found, expected):
    found, expected = np.asarray(found), np.asarray(expected)
    return np.abs(found - expected).max() / np.abs(expected).max()


@pytest.mark.parametrize(
    ("file", "name"), [("llama", "llama"), ("llama.gguf", "llama"), ("qwen3", "qwen3"), ("gemma3", "gemma3"), ("gpt2", "gpt2")]
)
def test_logits_and_greedy_text_are_those_of_transformers(file, name):
    llm, known = Llm.load(FIXTURES / file, device="cpu"), oracle(name)
    shown = known["logits"].shape[1]
    with volta.no_grad():
        logits = llm(known["tokens"])
        again = llm(known["tokens"].tolist())
    assert distance(logits[:, -shown:].numpy(), known["logits"].numpy()) < 1e-4
    assert volta.equal(logits, again)
    tokens, greedy = known["tokens"][0].tolist(), known["greedy"][0].tolist()
    core = volta._volta._models.Generation(llm._core, tokens, (0.0, 0, 1.0, 1.0), 0)
    assert [core.write() for _ in greedy] == greedy


@pytest.mark.parametrize("name", ["llama", "mistral", "gemma2"])
def test_texts_become_the_tokens_that_transformers_makes(name):
    llm = Llm.load(FIXTURES / name, device="cpu")
    for row in answers(name)["tokenizer"]:
        assert llm.encode(row["text"]) == row["ids"]
        assert llm.encode(row["text"], add_special_tokens=True) == row["with_special"]
        assert llm.decode(row["ids"]) == row["decoded"]
        stream = TextStream(llm.decode)
        assert "".join(stream.push(token) for token in row["ids"]) + stream.finish() == row["decoded"]


def test_a_text_is_written_piece_by_piece_and_the_same_for_one_seed(llama):
    options = {"max_new_tokens": 12, "temperature": 0.9, "top_k": 40, "top_p": 0.95, "seed": 7}
    text = llama.generate("The river", **options)
    pieces = llama.generate("The river", stream=True, **options)
    assert iter(pieces) is pieces
    pieces = list(pieces)
    assert len(pieces) > 1 and "".join(pieces) == text == llama.generate(llama.encode("The river"), **options)
    assert text != llama.generate("The river", **{**options, "seed": 8})
    assert llama.generate("The river", max_new_tokens=0) == ""
    # A text that occurs ends it, wherever tokens end.
    stop = text[3:5]
    assert llama.generate("The river", stop=stop, **options) == text[: text.index(stop)]
    assert llama.generate("The river", stop=["never", stop], **options) == text[: text.index(stop)]


def test_what_ends_a_text_is_held_back_until_it_is_sure():
    def through(pieces, *stops):
        filter = StopTexts(stops)
        shown = [[*filter.push(piece)] for piece in pieces]
        return shown, [*filter.finish()], filter.found

    assert through(["ab", "c"], "x") == ([["ab"], ["c"]], [], False)
    assert through(["a<", "e", "nd>b"], "<end>") == ([["a"], [], []], [], True)
    assert through(["a<", "e", "x"], "<end>") == ([["a"], [], ["<ex"]], [], False)
    assert through(["a<e"], "<end>") == ([["a"]], ["<e"], False)
    assert through(["ab12"], "2", "b1") == ([["a"]], [], True)
    with pytest.raises(ValueError, match="empty"):
        StopTexts([""])


def test_a_chat_goes_by_the_models_own_template(llama):
    chat = answers("llama")["chat"]
    assert llama.has_chat_template and llama.apply_chat_template(chat["messages"]) == chat["text"]
    said = [{"role": "user", "content": "Hi"}]
    prompt = llama.encode(llama.apply_chat_template(said))
    expected = llama.generate(prompt, 8)
    assert llama.chat(said, 8) == expected == "".join(llama.chat(said, 8, stream=True))
    with pytest.raises(ValueError, match="the model sees 64"):
        llama.chat([{"role": "user", "content": "long " * 100}])
    with pytest.raises(ValueError, match="role"):
        llama.apply_chat_template([{"role": "user", "text": "Hi"}])
    with pytest.raises(ValueError, match="no chat template"):
        Llm.load(FIXTURES / "gpt2", device="cpu").chat(said)


def test_what_cannot_be_generated_says_why(llama):
    for arguments, options, expected in [
        (([],), {}, "no tokens"),
        (("a", -1), {}, "max_new_tokens"),
        (("a",), {"temperature": -1.0}, "temperature"),
        (("a",), {"top_p": 0.0}, "top_p"),
        (("a",), {"stop": ""}, "empty"),
    ]:
        with pytest.raises(ValueError, match=expected):
            llama.generate(*arguments, **options)
    with pytest.raises(OSError, match="nowhere"):
        Llm.load("nowhere.gguf")
    with pytest.raises(ValueError, match="config.json"):
        Llm.load(FIXTURES)
    with pytest.raises(ValueError, match="no language model"):
        Embedder.load(FIXTURES / "bert", device="cpu")._core.loss(volta.zeros(1), volta.zeros(1))


def test_it_is_a_module_with_the_names_of_its_files(llama):
    names = dict(llama.named_parameters())
    assert {"model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight", "model.norm.weight"} <= set(names)
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in names.values())
    assert llama.model.layers is llama.get_submodule("model.layers")
    assert llama.device == volta.device("cpu") and llama.vocabulary == 300
    with pytest.raises(NotImplementedError, match="its network"):
        llama.model(volta.zeros(1))
    with pytest.raises(TypeError, match="state_dict"):
        pickle.dumps(llama)
    assert "2 layers" in repr(llama)


def test_all_of_a_model_is_trained_over_its_logits():
    volta.manual_seed(0)
    model = CausalLm(CONFIG, device="cpu")
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    tokens = volta.tensor([[1, 2, 3, 4, 5, 6, 7, 8], [8, 7, 6, 5, 4, 3, 2, 1]])
    x, y = tokens[:, :-1], tokens[:, 1:]
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 < 3 < losses[0]
    with volta.no_grad():
        assert model.loss(x, y).item() == pytest.approx(F.cross_entropy(model(x).flatten(0, 1), y.flatten()).item(), rel=1e-4)
    # Its values go into another one.
    other = CausalLm(json.dumps(CONFIG), device="cpu")
    other.load_state_dict(model.state_dict())
    assert volta.equal(other(x), model(x))
    with pytest.raises(ValueError, match="hidden_act"):
        CausalLm({**CONFIG, "hidden_act": "tanhshrink"})


def test_an_adapter_of_peft_computes_and_learns_what_it_did_there(tmp_path):
    llm, known = fresh(), oracle("llama-lora")
    plain = llm(known["tokens"]).detach()
    lora = Lora.load(llm, FIXTURES / "llama-lora")
    shown = known["logits"].shape[1]

    def close():
        with volta.no_grad():
            return distance(llm(known["tokens"])[:, -shown:].numpy(), known["logits"].numpy())

    assert close() < 1e-4
    lora.save(tmp_path / "adapter", base="llama")
    files = [volta.load(folder / "adapter_model.safetensors") for folder in (FIXTURES / "llama-lora", tmp_path / "adapter")]
    assert set(files[0]) == set(files[1]) == set(lora.state_dict())
    assert json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())["base_model_name_or_path"] == "llama"
    lora.detach()
    assert distance(llm(known["tokens"]).detach().numpy(), plain.numpy()) < 1e-6 and not any("lora" in n for n in llm.state_dict())
    lora = Lora.load(llm, tmp_path / "adapter")
    x, y = known["tokens"][:, :-1], known["tokens"][:, 1:]
    optimizer = optim.SGD(lora.parameters(), lr=0.05)
    frozen = llm.model.embed_tokens.weight.detach().clone()
    for expected in known["losses"].tolist():
        loss = F.cross_entropy(llm(x).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert volta.equal(frozen, llm.model.embed_tokens.weight)
    # Merged, the model computes the same, and has no adapters.
    before = llm(known["tokens"]).detach()
    lora.merge()
    assert distance(llm(known["tokens"]).detach().numpy(), before.numpy()) < 1e-5
    assert not any("lora" in name for name in llm.state_dict())
    with pytest.raises(ValueError, match="no longer"):
        lora.merge()


def test_adapters_are_attached_where_they_are_asked_for():
    model = CausalLm(CONFIG, device="cpu")
    lora = Lora.attach(model, rank=2, alpha=4, targets=["down_proj"], dropout=0.5)
    assert sorted(name for name, _ in lora.named_parameters()) == [
        f"model.layers.{k}.mlp.down_proj.lora_{side}.weight" for k in (0, 1) for side in "AB"
    ]
    assert [p.requires_grad for p in model.parameters()].count(True) == 4
    assert (lora.rank, lora.alpha, lora.targets) == (2, 4.0, ["down_proj"])
    tokens = volta.tensor([[1, 2, 3, 4]])
    # Dropout works while the model trains, and not else.
    for p in lora.parameters():
        with volta.no_grad():
            p.normal_()
    assert not volta.equal(model.train()(tokens), model(tokens))
    assert volta.equal(model.eval()(tokens), model(tokens))
    for arguments, expected in [({"targets": ["lm_head"]}, "lm_head"), ({}, "has adapters")]:
        with pytest.raises(ValueError, match=expected):
            Lora.attach(model if not arguments else CausalLm(CONFIG), **arguments)
    with pytest.raises(TypeError, match="Linear"):
        Lora.attach(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="GPT-2"):
        Lora.attach(Llm.load(FIXTURES / "gpt2", device="cpu"))


def test_sentences_have_the_vectors_of_the_oracle():
    embedder, rows = Embedder.load(FIXTURES / "bert", device="cpu"), answers("bert")
    vectors = embedder.embed([row["text"] for row in rows])
    assert vectors.shape == (len(rows), len(rows[0]["mean"])) and not vectors.requires_grad
    for row, vector in zip(rows, vectors.numpy(), strict=True):
        assert embedder.encode(row["text"]) == row["ids"]
        assert distance(vector, row["mean"]) < 1e-5
    assert (embedder.pooling, embedder.normalized) == ("mean", True)
    assert embedder.embed([]).shape == (0, vectors.shape[1])
    with pytest.raises(TypeError, match="one text"):
        embedder.embed("A text.")
    # The same by hand, filled up, and with gradients.
    ids = [row["ids"] for row in rows[:2]]
    longest = max(map(len, ids))
    mask = volta.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids])
    vectors_of = embedder([row + [0] * (longest - len(row)) for row in ids], mask)
    seen = mask.unsqueeze(-1).float()
    pooled = F.normalize((vectors_of * seen).sum(1) / seen.sum(1), dim=-1)
    assert distance(pooled.detach().numpy(), vectors[:2].numpy()) < 1e-5
    pooled[0, 0].backward()
    assert all(p.grad is not None for p in embedder.encoder.parameters())


def test_an_encoder_of_ones_own():
    config = {
        "model_type": "bert", "vocab_size": 30, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2,
        "intermediate_size": 16, "max_position_embeddings": 12,
    }  # fmt: skip
    model = Bert(config, device="cpu")
    assert model([[1, 2, 3]]).shape == (1, 3, 8)
    assert (model.max_tokens, model.vocabulary) == (12, 30)
    assert "embeddings.word_embeddings.weight" in model.state_dict()
