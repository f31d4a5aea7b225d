"""`volta.distributed` between processes: `mpirun -n 2`, with a package that was built with the feature `mpi` (scripts/test-mpi)."""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import ranks

import volta
import volta.distributed as dist
from volta import optim
from volta.nn.functional import mse_loss

pytestmark = [
    pytest.mark.skipif(not dist.is_mpi_available(), reason="this package was built without MPI: scripts/test-mpi"),
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is missing"),
]

PROGRAM = Path(ranks.__file__)


def start(count, name, **more):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    command = ["mpirun", *root, "--oversubscribe", "-n", str(count), sys.executable, str(PROGRAM), name]
    # Ranks share the machine's cores.
    variables = {**os.environ, "VOLTA_THREADS": "1", **more}
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=120)


def run(count, name):
    done = start(count, name)
    assert done.returncode == 0 and "done" in done.stdout, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("count", [2, 3])
def test_collectives_compute_what_numpy_does(count):
    run(count, "collectives")


@pytest.mark.parametrize("name", ["exchange", "unused", "different"])
def test_ranks(name):
    run(2, name)


def trained_alone():
    model = ranks.network(3)
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    x, y = ranks.samples()
    for step in range(ranks.STEPS):
        optimizer.zero_grad()
        whole_x, whole_y = ranks.batch_of(step, x, y)
        loss = mse_loss(model(whole_x), whole_y)
        loss.backward()
        optimizer.step()
        yield loss.item()


@pytest.mark.parametrize(("count", "name"), [(2, "training"), (4, "training"), (2, "accumulated")])
def test_ranks_have_the_losses_of_one_process_with_the_whole_batch(count, name):
    losses = json.loads(run(count, name).splitlines()[0])
    expected = list(trained_alone())
    assert expected[-1] < 0.7 * expected[0]
    assert losses == pytest.approx(expected, rel=1e-4)


def test_gradients_of_a_gpu_are_exchanged():
    if not volta.is_available():
        pytest.skip("no GPU here, or this package was built without")
    run(2, "gpu")


@pytest.mark.parametrize(("name", "expected"), [("raises", "KeyError: 'mine'"), ("hangs", "it has waited for the other ranks for 1 s")])
def test_a_rank_that_fails_ends_the_others(name, expected):
    begun = time.monotonic()
    done = start(2, name)
    assert done.returncode != 0 and "done" not in done.stdout and expected in done.stderr, done.stderr
    assert time.monotonic() - begun < 60
