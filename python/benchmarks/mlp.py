"""A training step of `mlp` in Python beside the same step in Rust.

    python python/benchmarks/mlp.py [--volta target/release/volta] [--device cpu] [--batch 128] [--iters 200]

Prints the median and the shortest step of both, and their ratio, if the program is given or found.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import time

import volta
import volta.nn.functional as F
from volta import nn, optim


def python_step(device: str, batch: int):
    """The step of the benchmark's `mlp`: two hidden layers of 512, Adam, cross-entropy of ten classes."""
    volta.manual_seed(0)
    with volta.device(device):
        net = nn.Sequential(
            nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)
        )
        x, y = volta.randn(batch, 784), volta.randint(0, 10, (batch,), dtype=volta.int32)
    adam = optim.Adam(net.parameters(), lr=1e-3)

    def step():
        adam.zero_grad()
        loss = F.cross_entropy(net(x), y)
        loss.backward()
        adam.step()
        return loss

    return step


def measure(step, device: str, iters: int) -> tuple[float, float]:
    """The median and the shortest of so many steps, in milliseconds, after a quarter as many to warm up."""
    for _ in range(max(iters // 4, 3)):
        step().item()
    times = []
    for _ in range(iters):
        start = time.perf_counter()
        loss = step()
        volta.synchronize(device)
        times.append((time.perf_counter() - start) * 1e3)
    assert loss.item() >= 0
    return statistics.median(times), min(times)


def rust(program: str, device: str, batch: int, iters: int) -> tuple[float, float]:
    """The same of the program's own benchmark."""
    command = [program, "bench", "--workloads", "mlp", "--device", device, "--batch", str(batch), "--iters", str(iters)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    result = json.loads(next(line for line in lines if line.startswith("{")))
    return result["median_ms"], result["min_ms"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--volta", default=shutil.which("volta"), help="the program to compare with")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--iters", type=int, default=200)
    options = parser.parse_args()
    ours = measure(python_step(options.device, options.batch), options.device, options.iters)
    print(f"Python: median {ours[0]:.3f} ms, shortest {ours[1]:.3f} ms")
    if options.volta:
        theirs = rust(options.volta, options.device, options.batch, options.iters)
        print(f"Rust:   median {theirs[0]:.3f} ms, shortest {theirs[1]:.3f} ms")
        print(f"ratio:  median {ours[0] / theirs[0]:.3f}, shortest {ours[1] / theirs[1]:.3f}")


if __name__ == "__main__":
    main()
