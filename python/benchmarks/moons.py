"""micrograd's moons demo with micrograd and with micrograd_rs, on the same points and the same first weights.

    pip install micrograd
    python python/benchmarks/moons.py [--steps 100] [--rounds 3] [--peer-steps 10]

Each side runs the code below, which is written for micrograd: Python builds every expression, value by value. Prints the
least processor time of a step on each side, their ratio, and how far the losses are apart.
"""

import argparse
import math
import random
import sys
import time


def moons(count=100, noise=0.1, seed=2):
    """Points of two half circles that reach into each other, and their sides, -1 and 1."""
    generator = random.Random(seed)
    points, sides = [], []
    for k in range(count):
        angle = math.pi * generator.random()
        x, y = math.cos(angle), math.sin(angle)
        if k % 2:
            x, y = 1.0 - x, 0.5 - y
        points.append([x + generator.gauss(0.0, noise), y + generator.gauss(0.0, noise)])
        sides.append(2 * (k % 2) - 1)
    return points, sides


def loss_and_accuracy(Value, model, points, sides):
    """The max-margin loss with L2 regularisation, and the share of points on their side."""
    inputs = [list(map(Value, point)) for point in points]
    scores = list(map(model, inputs))
    losses = [(1 + -side * score).relu() for side, score in zip(sides, scores)]
    data_loss = sum(losses) * (1.0 / len(losses))
    regularisation = 1e-4 * sum(p * p for p in model.parameters())
    right = [(side > 0) == (score.data > 0) for side, score in zip(sides, scores)]
    return data_loss + regularisation, sum(right) / len(right)


def train(Value, MLP, steps, run=None):
    """Trains for `run` of `steps` steps, and gives the losses, the last accuracy and the seconds of each step."""
    random.seed(1337)
    model = MLP(2, [16, 16, 1])
    points, sides = moons()
    history, seconds = [], []
    for step in range(run or steps):
        start = time.process_time()
        loss, accuracy = loss_and_accuracy(Value, model, points, sides)
        model.zero_grad()
        loss.backward()
        rate = 1.0 - 0.9 * step / steps
        for p in model.parameters():
            p.data -= rate * p.grad
        seconds.append(time.process_time() - start)
        history.append(loss.data)
    return history, accuracy, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=100, help="steps of the training")
    parser.add_argument("--peer-steps", type=int, default=10, help="how many of them micrograd runs a round")
    parser.add_argument("--rounds", type=int, default=3, help="rounds, in turn")
    options = parser.parse_args()
    try:
        import micrograd.engine
        import micrograd.nn
    except ImportError:
        sys.exit("moons.py compares with micrograd, which is not installed: pip install micrograd")
    import micrograd_rs

    peer_steps = min(options.peer_steps, options.steps)
    theirs = ours = math.inf
    for _ in range(options.rounds):
        losses, accuracy, seconds = train(micrograd_rs.Value, micrograd_rs.MLP, options.steps)
        ours = min(ours, min(seconds))
        peer_losses, _, seconds = train(micrograd.engine.Value, micrograd.nn.MLP, options.steps, peer_steps)
        theirs = min(theirs, min(seconds))
    apart = max(abs(a - b) for a, b in zip(losses, peer_losses))
    print(f"micrograd     {1e3 * theirs:9.3f} ms a step (best of {options.rounds} x {peer_steps})")
    print(f"micrograd_rs  {1e3 * ours:9.3f} ms a step (best of {options.rounds} x {options.steps})")
    print(f"ratio         {theirs / ours:9.1f}")
    print(f"losses of the first {peer_steps} steps differ by {apart:.1e} at most")
    print(f"micrograd_rs after {options.steps} steps: loss {losses[-1]:.4f}, accuracy {100 * accuracy:.0f} %")


if __name__ == "__main__":
    main()
