# %% [markdown]
# # A GPT in thirty lines
#
# A transformer that learns to write, character by character. Without a text of yours it learns the nineteen lines that
# `import this` prints, which come with every Python.
#
#     python python/examples/gpt.py [--data book.txt] [--steps 300] [--device auto|cpu|gpu]

# %%
import argparse
import codecs
import contextlib
import io
import time

import numpy as np

import volta
from volta import nn, optim
from volta.nn import functional as F

parser = argparse.ArgumentParser(description="A character GPT.")
parser.add_argument("--data", help="a text to learn")
parser.add_argument("--steps", type=int, default=300)
parser.add_argument("--device", default="auto", help="auto, cpu, gpu or gpu:N")
parser.add_argument("--length", type=int, default=200, help="characters to write at the end")
options = parser.parse_args()


def default_text():
    with contextlib.redirect_stdout(io.StringIO()):
        import this
    return codecs.decode(this.s, "rot13")


text = open(options.data, encoding="utf-8").read() if options.data else default_text()
name = options.device if options.device != "auto" else "gpu" if volta.is_available() else "cpu"
device = volta.device(name)

# %% [markdown]
# ## The thirty lines
# Attention that looks back only, a network of two layers after it, both added to what came in; four such blocks between
# an embedding and its mirror image. Then: random windows of the text, the next character at every place, AdamW.

# %%
WIDTH, HEADS, LAYERS, CONTEXT, BATCH = 64, 4, 4, 64, 16
alphabet = sorted(set(text))
tokens = np.array([alphabet.index(c) for c in text], np.int32)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        b, t, _ = x.shape
        q, k, v = self.qkv(self.norm1(x)).reshape(b, t, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        heads = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(heads.transpose(1, 2).reshape(b, t, WIDTH))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.token, self.place = nn.Embedding(len(alphabet), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*[Block() for _ in range(LAYERS)])
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(alphabet))

    def forward(self, ids):
        places = volta.arange(ids.shape[1], device=device)
        return self.head(self.norm(self.blocks(self.token(ids) + self.place(places))))


volta.manual_seed(0)
rng = np.random.default_rng(0)
model = GPT().to(device)
optimizer = optim.AdamW(model.parameters(), lr=3e-3)
start = time.perf_counter()
for step in range(options.steps):
    places = rng.integers(0, len(tokens) - CONTEXT, (BATCH, 1)) + np.arange(CONTEXT + 1)
    window = volta.from_numpy(tokens[places]).to(device)
    loss = F.cross_entropy(model(window[:, :-1]).flatten(0, 1), window[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 50 == 0 or step == options.steps - 1:
        print(f"step {step:4}  loss {loss.item():.3f}  {time.perf_counter() - start:.1f} s")

# %% [markdown]
# ## Writing
# The last `CONTEXT` characters go in, padded at the end to one length, so that every character replays the same plan; one
# comes out, drawn by its probability.

# %%
model.eval()
written = list(tokens[:32])
with volta.no_grad():
    for _ in range(options.length):
        seen = written[-CONTEXT:]
        ids = np.array([seen + [0] * (CONTEXT - len(seen))], np.int32)
        logits = model(volta.from_numpy(ids).to(device))[0].numpy()[len(seen) - 1]
        weights = np.exp((logits - logits.max()) / 0.5)
        written.append(int(rng.choice(len(alphabet), p=weights / weights.sum())))
print("".join(alphabet[k] for k in written))
