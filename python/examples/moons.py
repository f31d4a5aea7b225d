# %% [markdown]
# # Two moons, one boundary
#
# A network of 337 numbers learns to tell two half circles apart. Every number is a `Value` of `micrograd_rs`: Python
# writes the loss, value by value, as with micrograd; the network itself is one walk through an engine in Rust.
#
#     python python/examples/moons.py [--steps 100] [--svg moons.svg]
#
# It prints the boundary as text and writes it as a picture that any browser shows.

# %%
import argparse
import math
import random
from pathlib import Path

from micrograd_rs import MLP, Value

parser = argparse.ArgumentParser(description="Two moons and the boundary between them.")
parser.add_argument("--steps", type=int, default=100)
parser.add_argument("--svg", type=Path, default=Path("moons.svg"), help="where the picture goes")
options = parser.parse_args()

# %% [markdown]
# ## The points
# Half circles of radius one that reach into each other, a little shaken. Their sides are -1 and 1.

# %%
random.seed(2)
points, sides = [], []
for k in range(100):
    angle = math.pi * random.random()
    x, y = math.cos(angle), math.sin(angle)
    if k % 2:
        x, y = 1.0 - x, 0.5 - y
    points.append((x + random.gauss(0.0, 0.1), y + random.gauss(0.0, 0.1)))
    sides.append(2 * (k % 2) - 1)

# %% [markdown]
# ## The network and its loss
# Two layers of sixteen neurons. A point costs nothing once its score lies beyond 1 on its own side; a small price on
# large weights keeps the boundary smooth.

# %%
random.seed(1337)
model = MLP(2, [16, 16, 1])
print(f"{len(model.parameters())} parameters")


def loss_and_accuracy():
    scores = [model([Value(x), Value(y)]) for x, y in points]
    losses = [(1 - side * score).relu() for side, score in zip(sides, scores)]
    price = 1e-4 * sum(p * p for p in model.parameters())
    right = [(score.data > 0) == (side > 0) for side, score in zip(sides, scores)]
    return sum(losses) / len(losses) + price, sum(right) / len(right)


# %% [markdown]
# ## Training
# The gradient of everything, then a step downhill, smaller and smaller.

# %%
for step in range(options.steps):
    loss, accuracy = loss_and_accuracy()
    model.zero_grad()
    loss.backward()
    rate = 1.0 - 0.9 * step / options.steps
    for p in model.parameters():
        p.data -= rate * p.grad
    if step % 10 == 0 or step == options.steps - 1:
        print(f"step {step:3}  loss {loss.data:.4f}  accuracy {100 * accuracy:.0f} %")

# %% [markdown]
# ## The boundary
# As text: `#` and `.` are the two sides of the plane, `1` and `0` the points.

# %%
LEFT, RIGHT, BOTTOM, TOP = -1.6, 2.6, -1.1, 1.6


def column(x, width):
    return int((x - LEFT) / (RIGHT - LEFT) * width)


def row(y, height):
    return int((TOP - y) / (TOP - BOTTOM) * height)


def score(i, j, width, height):
    x, y = LEFT + (i + 0.5) / width * (RIGHT - LEFT), TOP - (j + 0.5) / height * (TOP - BOTTOM)
    return model([x, y]).data


WIDTH, HEIGHT = 72, 24
picture = [["#" if score(i, j, WIDTH, HEIGHT) > 0 else "." for i in range(WIDTH)] for j in range(HEIGHT)]
for (x, y), side in zip(points, sides):
    i, j = column(x, WIDTH), row(y, HEIGHT)
    if 0 <= i < WIDTH and 0 <= j < HEIGHT:
        picture[j][i] = "1" if side > 0 else "0"
print("\n".join("".join(line) for line in picture))

# %% [markdown]
# As a picture: small squares, darker where the network is surer.

# %%
COLUMNS, ROWS, CELL = 84, 54, 8
parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {COLUMNS * CELL} {ROWS * CELL}" width="840">']
for j in range(ROWS):
    for i in range(COLUMNS):
        s = score(i, j, COLUMNS, ROWS)
        colour, strength = ("#c1440e" if s > 0 else "#2b5c8a"), 0.15 + 0.5 * math.tanh(abs(s))
        parts.append(
            f'<rect x="{i * CELL}" y="{j * CELL}" width="{CELL}" height="{CELL}" fill="{colour}" '
            f'fill-opacity="{strength:.2f}"/>'
        )
for (x, y), side in zip(points, sides):
    cx, cy = (x - LEFT) / (RIGHT - LEFT) * COLUMNS * CELL, (TOP - y) / (TOP - BOTTOM) * ROWS * CELL
    colour = "#7f1d00" if side > 0 else "#0b2a4a"
    parts.append(f'<circle cx="{cx:.1f}" cy="{cy:.1f}" r="5" fill="{colour}" stroke="white"/>')
options.svg.write_text("\n".join([*parts, "</svg>\n"]), encoding="utf-8")
print(f"the picture is in {options.svg}")
