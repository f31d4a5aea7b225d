"""What ranks do in the tests of `volta.distributed` with MPI: `mpirun -n 2 python ranks.py NAME` runs one function of this file."""

import json
import sys
import time
from datetime import timedelta

import numpy as np

import volta
import volta.distributed as dist
from volta import nn, optim
from volta.distributed import ReduceOp
from volta.nn.functional import mse_loss
from volta.nn.parallel import DistributedDataParallel
from volta.utils.data import DataLoader, DistributedSampler, TensorDataset

FOLDS = {
    "SUM": np.sum, "PRODUCT": np.prod, "MIN": np.min, "MAX": np.max, "BAND": np.bitwise_and.reduce,
    "BOR": np.bitwise_or.reduce, "BXOR": np.bitwise_xor.reduce, "AVG": np.mean,
}  # fmt: skip
FLOATS = ["float32", "float64", "float16", "bfloat16"]
# float16 and bfloat16 hold these numbers, their sums and their products.
NUMBERS = np.array([[1, 2, 3], [4, 1, 2], [2, 2, 1], [1, 3, 1]])


def collectives():
    rank, size = dist.get_rank(), dist.get_world_size()
    of = [np.roll(NUMBERS[:3], r, 0) for r in range(size)]
    for name in [*FLOATS, "int32", "int64", "uint8"]:
        dtype = getattr(volta, name)
        mine = volta.tensor(of[rank], dtype=dtype)
        for op, fold in FOLDS.items():
            if op.startswith("B") and name in FLOATS or op == "AVG" and name not in FLOATS:
                continue
            expected = fold(np.stack(of), axis=0)
            x = mine.clone()
            dist.all_reduce(x, ReduceOp[op])
            assert x.dtype == dtype
            np.testing.assert_allclose(x.tolist(), expected, rtol=1e-2 if name == "bfloat16" else 1e-3)
            x = mine.clone()
            dist.reduce(x, size - 1, ReduceOp[op])
            kept = expected if rank == size - 1 else of[rank]
            np.testing.assert_allclose(x.tolist(), kept, rtol=1e-2)
            # Each rank has an array for every rank.
            parts = [volta.tensor(of[rank] * (r + 1) % 5, dtype=dtype) for r in range(size)]
            expected = fold(np.stack([of[r] * (rank + 1) % 5 for r in range(size)]), axis=0)
            out = volta.zeros(3, 3, dtype=dtype)
            dist.reduce_scatter(out, parts, ReduceOp[op])
            np.testing.assert_allclose(out.tolist(), expected, rtol=1e-2)
            flat = volta.zeros(9, dtype=dtype)
            dist.reduce_scatter_tensor(flat, volta.cat(parts), ReduceOp[op])
            assert flat.tolist() == out.flatten().tolist()
        places = [volta.zeros(3, 3, dtype=dtype) for _ in range(size)]
        dist.all_gather(places, mine)
        whole = volta.zeros(3 * size, 3, dtype=dtype)
        dist.all_gather_into_tensor(whole, mine)
        for r in range(size):
            assert places[r].tolist() == whole[3 * r : 3 * r + 3].tolist() == of[r].tolist()
        x = mine.clone()
        dist.broadcast(x, size - 1)
        assert x.tolist() == of[size - 1].tolist()
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * (10 * rank)})
    assert [o["rank"] for o in objects] == list(range(size))
    said = ["first", rank] if rank == 0 else [None, None]
    dist.broadcast_object_list(said, 0)
    assert said == ["first", 0]
    dist.barrier()
    assert dist.get_local_rank() == rank
    # Groups come and go, MPI stays.
    dist.destroy_process_group()
    dist.init_process_group("mpi", rank=rank, world_size=size)


def network(seed, widths=(6, 16, 16, 2)):
    volta.manual_seed(seed)
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


def samples():
    random = np.random.default_rng(7)
    x = random.standard_normal((48, 6), dtype=np.float32)
    return volta.from_numpy(x), volta.from_numpy(np.tanh(x @ random.standard_normal((6, 2), dtype=np.float32)))


STEPS = 12


def batch_of(step, x, y):
    """The 16 rows of a step."""
    at = 16 * (step % 3)
    return x[at : at + 16], y[at : at + 16]


def training(accumulation=1):
    """Trains with the whole batch cut among ranks; what rank 0 prints is compared with one process."""
    rank, size = dist.get_rank(), dist.get_world_size()
    # Other first values on each rank: those of rank 0 count. Buckets hold a layer or so.
    model = DistributedDataParallel(network(3 + rank), bucket_cap_mb=0.0005)
    optimizer = optim.AdamW(model.parameters(), lr=0.02)
    x, y = samples()
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        whole_x, whole_y = batch_of(step, x, y)
        own = slice(rank, None, size)
        mine_x, mine_y = whole_x[own], whole_y[own]
        count = len(mine_x) // accumulation
        total = 0.0
        for k in range(accumulation):
            part = slice(k * count, (k + 1) * count)
            model.require_backward_grad_sync = k + 1 == accumulation
            loss = mse_loss(model(mine_x[part]), mine_y[part]) / accumulation
            loss.backward()
            total += loss.item()
        mean = volta.tensor(total)
        dist.all_reduce(mean, ReduceOp.AVG)
        losses.append(mean.item())
        optimizer.step()
    sums = [None] * size
    dist.all_gather_object(sums, [p.numpy(force=True).tobytes() for p in model.module.parameters()])
    assert all(other == sums[0] for other in sums), "ranks have drifted apart"
    if rank == 0:
        print(json.dumps(losses))


def accumulated():
    training(accumulation=2)


def exchange():
    """What is synchronised, and when."""
    rank, size = dist.get_rank(), dist.get_world_size()
    layer = nn.Linear(2, 1, bias=False)
    model = DistributedDataParallel(layer)
    one = volta.ones(1, 2) * (rank + 1)
    mean = (size + 1) / 2
    with model.no_sync():
        model(one).sum().backward()
    assert layer.weight.grad.tolist() == [[rank + 1] * 2], "nothing was exchanged"
    model(one).sum().backward()
    assert layer.weight.grad.tolist() == [[2 * mean] * 2], "all that was collected was"
    # Two passes forward and two backward: each of these exchanges.
    layer.zero_grad()
    a, b = model(one).sum(), model(one * 2).sum()
    a.backward()
    assert layer.weight.grad.tolist() == [[mean] * 2]
    b.backward()
    assert layer.weight.grad.tolist() == [[3 * mean] * 2]
    # What is only evaluated is not exchanged, nor waited for.
    with volta.no_grad():
        if rank == 0:
            model(one)
    # Outputs in whatever they come.
    two = DistributedDataParallel(Several())
    found = two(one)
    (found["a"][0] + found["a"][1]).sum().backward()
    assert two.module.layer.weight.grad.tolist() == [[3 * mean] * 2]
    assert two.module.halved.grad.dtype == volta.float16 and two.module.wide.grad.dtype == volta.float64
    assert two.module.wide.grad.tolist() == [mean] and two.module.halved.grad.tolist() == [mean]
    # Buffers are those of rank 0.
    norm = DistributedDataParallel(nn.BatchNorm1d(2))
    x = volta.tensor([[0.0, 1.0], [2.0, 3.0]]) * (rank + 1)
    for _ in range(2):
        norm(x).sum().backward()
    expected = [None]
    if rank == 0:
        expected = [norm.module.running_mean.tolist()]
    norm(x)
    dist.broadcast_object_list(expected)
    before = (np.array(norm.module.running_mean.tolist()) - 0.1 * x.mean(0).numpy()) / 0.9
    np.testing.assert_allclose(before, expected[0], atol=1e-5)


class Several(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 1, bias=False)
        self.halved = nn.Parameter(volta.ones(1, dtype=volta.float16))
        self.wide = nn.Parameter(volta.ones(1, dtype=volta.float64))

    def forward(self, x):
        first = x[:, :1]
        more = (self.halved.float() * first).sum() + (self.wide.float() * first).sum()
        return {"a": (self.layer(x) + more, self.layer(x * 2))}


class Halves(nn.Module):
    """Uses one of its two layers, and never the third."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(1, 1, bias=False) for _ in range(3)])

    def forward(self, x, which):
        return self.layers[which](x)


def unused():
    rank = dist.get_rank()
    model = DistributedDataParallel(Halves(), find_unused_parameters=True)
    model(volta.ones(1, 1), rank % 2).sum().backward()
    gradients = [layer.weight.grad for layer in model.module.layers]
    share = 1 / dist.get_world_size()
    assert [g if g is None else g.item() for g in gradients] == [share, share, None]
    strict = DistributedDataParallel(Halves())
    try:
        strict(volta.ones(1, 1), 0).sum().backward()
    except RuntimeError as error:
        assert "layers.1.weight" in str(error) and "find_unused_parameters" in str(error)
    else:
        raise AssertionError("unused parameters must be an error")


def different():
    """Ranks with other models, and a loader's share of the samples."""
    rank, size = dist.get_rank(), dist.get_world_size()
    try:
        DistributedDataParallel(network(1, (6, 16 + rank, 2)))
    except ValueError as error:
        assert "0.weight" in str(error) and "rank 1" in str(error)
    else:
        raise AssertionError("other shapes on each rank must be an error")
    data = TensorDataset(volta.arange(10))
    seen = [int(k) for (batch,) in DataLoader(data, batch_size=2, sampler=DistributedSampler(data)) for k in batch.tolist()]
    shares = [None] * size
    dist.all_gather_object(shares, seen)
    assert len({len(share) for share in shares}) == 1 and set(sum(shares, [])) == set(range(10))


def gpu():
    """Gradients of a model on a GPU."""
    model = DistributedDataParallel(network(3).to("gpu"), device_ids=[0])
    x, y = samples()
    rank, size = dist.get_rank(), dist.get_world_size()
    mse_loss(model(x[rank::size]), y[rank::size].to("gpu")).backward()
    alone = network(3)
    mse_loss(alone(x), y).backward()
    for p, q in zip(model.parameters(), alone.parameters()):
        assert p.grad.is_gpu
        np.testing.assert_allclose(p.grad.numpy(force=True), q.grad.numpy(), atol=1e-6)


def raises():
    if dist.get_rank() == 1:
        raise KeyError("mine")
    dist.barrier()


def hangs():
    dist.destroy_process_group()
    dist.init_process_group("mpi", timeout=timedelta(seconds=1))
    if dist.get_rank() == 1:
        time.sleep(600)
    dist.all_reduce(volta.ones(3))


if __name__ == "__main__":
    dist.init_process_group("mpi")
    globals()[sys.argv[1]]()
    if dist.get_rank() == 0:
        print("done", flush=True)
