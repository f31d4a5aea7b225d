# %% [markdown]
# # Digits from NumPy arrays
#
# A small convolutional network learns ten digits. The images are arrays of NumPy's: those of MNIST where their four files
# are (`--data FOLDER`, or the environment variable VOLTA_DATA), otherwise digits that this program draws itself.
#
#     python python/examples/mnist.py [--data FOLDER] [--samples 4000] [--epochs 2] [--device auto|cpu|gpu]

# %%
import argparse
import gzip
import os
from pathlib import Path

import numpy as np

import volta
from volta import nn, optim
from volta.nn import functional as F
from volta.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="Digits, from NumPy arrays.")
parser.add_argument("--data", type=Path, default=os.environ.get("VOLTA_DATA"), help="a folder with MNIST's files")
parser.add_argument("--samples", type=int, default=4000, help="images to train on")
parser.add_argument("--epochs", type=int, default=2)
parser.add_argument("--device", default="auto", help="auto, cpu, gpu or gpu:N")
options = parser.parse_args()

# %% [markdown]
# ## Images
# MNIST's files are a few numbers of four bytes, most significant first, and then bytes.


# %%
def read_idx(folder, name):
    """The array in one of MNIST's files, packed or not; None where there is no such file."""
    for path in [p for sub in ("", "mnist") for p in (folder / sub / name, folder / sub / f"{name}.gz")]:
        if path.exists():
            raw = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            rank = raw[3]
            shape = np.frombuffer(raw, ">u4", rank, offset=4)
            return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)
    return None


# %% [markdown]
# Without them: digits of seven strokes, each moved, leaned, made bolder or fainter at random, with noise on top.

# %%
#          left and right ends of each stroke, in a box of 2 by 4: top, middle, bottom, then the four uprights
STROKES = [((0, 0), (2, 0)), ((0, 2), (2, 2)), ((0, 4), (2, 4)), ((0, 0), (0, 2)), ((0, 2), (0, 4)), ((2, 0), (2, 2)), ((2, 2), (2, 4))]
DIGITS = ["1011111", "0000011", "1110110", "1110011", "0101011", "1111001", "1111101", "1000011", "1111111", "1111011"]


def draw_digits(count, seed):
    """Images (count, 28, 28) of bytes and the digits on them."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count)
    down, across = np.mgrid[0:28, 0:28].astype(np.float32)
    images = np.zeros((count, 28, 28), np.float32)
    for image, label in zip(images, labels):
        size, lean, bold = rng.uniform(3.5, 5.0), rng.uniform(-0.3, 0.3), rng.uniform(0.8, 1.6)
        left, top = 14 - size + rng.uniform(-3, 3), 14 - 2 * size + rng.uniform(-2, 2)
        for (start, end), on in zip(STROKES, DIGITS[label]):
            if on == "1":
                ends = [(left + size * x + lean * size * (2 - y), top + size * y) for x, y in (start, end)]
                (x0, y0), (x1, y1) = ends
                along = ((across - x0) * (x1 - x0) + (down - y0) * (y1 - y0)) / ((x1 - x0) ** 2 + (y1 - y0) ** 2)
                along = along.clip(0, 1)
                distance = np.hypot(across - x0 - along * (x1 - x0), down - y0 - along * (y1 - y0))
                np.maximum(image, (bold + 0.7 - distance).clip(0, 1), out=image)
    images = 255 * (rng.uniform(0.6, 1.0, (count, 1, 1)) * images + rng.normal(0, 0.05, images.shape))
    return images.clip(0, 255).astype(np.uint8), labels.astype(np.uint8)


files = ["train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"]
arrays = [read_idx(Path(options.data), name) for name in files] if options.data else [None]
if any(array is None for array in arrays):
    print("no MNIST here (--data, VOLTA_DATA): drawing digits")
    arrays = [*draw_digits(options.samples, seed=1), *draw_digits(1000, seed=2)]
train_images, train_labels, test_images, test_labels = arrays
train_images, train_labels = train_images[: options.samples], train_labels[: options.samples]
print(f"{len(train_images)} images to train on, {len(test_images)} to test with")


# %% [markdown]
# ## From arrays to tensors
# `volta.from_numpy` shares an array's memory; numbers between 0 and 1 are better than bytes, and classes are `int64`
# (as in PyTorch) or, for GPUs that have no such type, `int32`.


# %%
def tensors(images, labels):
    pixels = volta.from_numpy(images.astype(np.float32)[:, None] / 255)
    return TensorDataset(pixels, volta.from_numpy(labels.astype(np.int32)))


if options.device == "auto":
    device = volta.device("gpu" if volta.is_available() else "cpu")
else:
    device = volta.device(options.device)

# %% [markdown]
# ## The network

# %%
volta.manual_seed(0)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Linear(32 * 7 * 7, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
).to(device)
print(model)

# %% [markdown]
# ## Training
# Nothing is computed until `step()`: forward, backward and update are one plan, compiled in the first step and replayed
# in all others. The loss is read once an epoch.

# %%
optimizer = optim.AdamW(model.parameters(), lr=2e-3)
loader = DataLoader(tensors(train_images, train_labels), batch_size=64, shuffle=True, drop_last=True)
for epoch in range(options.epochs):
    model.train()
    for images, labels in loader:
        loss = F.cross_entropy(model(images.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with volta.no_grad():
        right = sum(
            (model(images.to(device)).argmax(dim=1) == labels.to(device)).sum().item()
            for images, labels in DataLoader(tensors(test_images, test_labels), batch_size=250)
        )
    print(f"epoch {epoch + 1}  loss {loss.item():.4f}  test accuracy {100 * right / len(test_images):.1f} %")

# %% [markdown]
# ## A look at one
# Back to NumPy, and printed.

# %%
with volta.no_grad():
    guess = model(tensors(test_images[:1], test_labels[:1])[0][0][None].to(device)).argmax(dim=1).item()
for line in test_images[0][::2, ::1]:
    print("".join(" .:-=+*#%@"[int(pixel) * 10 // 256] for pixel in line))
print(f"the network reads {int(guess)}, and it is {test_labels[0]}")
