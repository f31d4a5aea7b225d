"""`volta.distributed` in a process by itself: a world of one, what samplers give each rank, and what is an error."""

import os
import pickle
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest

import volta
import volta.distributed as dist
from volta import nn, optim
from volta.nn.parallel import DistributedDataParallel
from volta.utils.data import DataLoader, DistributedSampler


@pytest.fixture
def alone():
    dist.init_process_group()
    yield
    if dist.is_initialized():
        dist.destroy_process_group()


def test_a_process_by_itself_is_a_world_of_one(alone):
    assert dist.is_available() and dist.is_initialized() and dist.get_backend() == "mpi"
    assert (dist.get_rank(), dist.get_world_size(), dist.get_local_rank()) == (0, 1, 0)
    dist.barrier()
    with pytest.raises(RuntimeError, match="already"):
        dist.init_process_group("mpi")
    dist.destroy_process_group()
    assert not dist.is_initialized() and dist.get_node_local_rank(fallback_rank=3) == 3
    dist.init_process_group("mpi", timeout=timedelta(seconds=5), world_size=1, rank=0)


def test_without_a_group_there_is_no_rank():
    for function in (dist.get_rank, dist.get_world_size, dist.barrier, dist.destroy_process_group):
        with pytest.raises(RuntimeError, match="init_process_group"):
            function()
    with pytest.raises(RuntimeError, match="init_process_group"):
        DistributedDataParallel(nn.Linear(2, 2))


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"backend": "nccl"}, "nccl"),
        ({"init_method": "tcp://10.0.0.1:23456"}, "init_method"),
        ({"world_size": 4}, "world_size=4"),
        ({"rank": 2}, "rank=2"),
        ({"store": object()}, "store"),
        ({"timeout": timedelta(0)}, "timeout"),
    ],
)
def test_what_a_group_cannot_be_is_an_error(arguments, expected):
    with pytest.raises(ValueError, match=expected):
        dist.init_process_group(**arguments)
    assert not dist.is_initialized()


TYPES = [volta.float32, volta.float64, volta.float16, volta.bfloat16, volta.int32, volta.int64, volta.uint8]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", ["SUM", "PRODUCT", "MIN", "MAX"])
def test_one_rank_reduces_to_what_it_has(alone, dtype, op):
    x = volta.tensor([[1, 2, 3], [4, 5, 6]], dtype=dtype)
    assert dist.all_reduce(x, dist.ReduceOp[op]) is None
    assert x.dtype == dtype and x.tolist() == [[1, 2, 3], [4, 5, 6]]
    out = volta.zeros(2, 3, dtype=dtype)
    dist.reduce_scatter_tensor(out, x, dist.ReduceOp[op])
    assert out.tolist() == x.tolist()


def test_every_collective_of_one_rank(alone):
    x = volta.tensor([1.0, 2.0])
    assert dist.broadcast(x, 0, async_op=True).wait()
    dist.all_reduce(x, dist.ReduceOp.AVG)
    dist.reduce(x, 0)
    places = [volta.zeros(2)]
    dist.all_gather(places, x)
    assert places[0].tolist() == [1.0, 2.0]
    whole = volta.zeros(1, 2)
    dist.all_gather_into_tensor(whole, x)
    assert whole.tolist() == [[1.0, 2.0]]
    out = volta.zeros(2)
    dist.reduce_scatter(out, [x])
    assert out.tolist() == [1.0, 2.0]
    flags = volta.tensor([True, False])
    dist.all_reduce(flags, dist.ReduceOp.BOR)
    assert flags.tolist() == [True, False]
    objects = [None]
    dist.all_gather_object(objects, {"a": 1})
    dist.broadcast_object_list(objects, 0)
    assert objects == [{"a": 1}]


def test_a_parameter_is_written_in_place(alone):
    layer = nn.Linear(2, 2)
    before = layer.weight.detach().clone()
    dist.all_reduce(layer.weight)
    assert layer.weight.requires_grad and volta.equal(layer.weight, before)
    layer(volta.ones(1, 2)).sum().backward()
    dist.all_reduce(layer.weight.grad)
    assert layer.weight.grad.tolist() == [[1, 1], [1, 1]]


def test_what_cannot_be_exchanged_says_why(alone):
    x = volta.zeros(4)
    for call, error, expected in [
        (lambda: dist.broadcast(x, 1), ValueError, "src is 1"),
        (lambda: dist.all_gather([], x), ValueError, "0 places"),
        (lambda: dist.all_gather([volta.zeros(3)], x), ValueError, r"tensor_list\[0\]"),
        (lambda: dist.all_gather_into_tensor(volta.zeros(5), x), ValueError, "output_tensor"),
        (lambda: dist.reduce_scatter_tensor(volta.zeros(5), x), ValueError, "input"),
        (lambda: dist.all_reduce(x, "sum"), TypeError, "ReduceOp"),
        (lambda: dist.all_reduce(volta.tensor([1]), dist.ReduceOp.AVG), TypeError, "AVG"),
        (lambda: dist.all_reduce(x, dist.ReduceOp.BAND), TypeError, "BAND"),
        (lambda: dist.all_reduce([1.0]), TypeError, "list"),
        (lambda: dist.all_reduce(x[0:2]), ValueError, "values of their own"),
        (lambda: dist.barrier(group="mine"), ValueError, "one group"),
    ]:
        with pytest.raises(error, match=expected):
            call()


def test_a_wrapped_module_alone_is_the_module(alone):
    volta.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    wrapped = DistributedDataParallel(model, device_ids=None)
    assert list(wrapped.state_dict()) == [f"module.{name}" for name in model.state_dict()]
    x = volta.rand(8, 3)
    optimizer = optim.SGD(wrapped.parameters(), lr=0.1)
    with wrapped.no_sync():
        wrapped(x).sum().backward()
    wrapped(x).sum().backward()
    optimizer.step()
    assert volta.equal(wrapped.eval()(x), model(x))
    with pytest.raises(TypeError, match="module"):
        pickle.dumps(wrapped)
    with pytest.raises(RuntimeError, match="not needed"):
        DistributedDataParallel(nn.ReLU())
    with pytest.raises(ValueError, match="2 devices"):
        DistributedDataParallel(model, device_ids=[0, 1])
    with pytest.raises(ValueError, match="0 bytes"):
        DistributedDataParallel(model, bucket_cap_mb=0)


def test_gradients_are_exchanged_when_a_backward_pass_is_over():
    seen = []

    def backward(inputs, output, gradient):
        volta._volta._after_backward(lambda: seen.append(x.grad.tolist()))
        return [gradient]

    x = volta.tensor([1.0, 2.0], requires_grad=True)
    through = volta._volta._apply(lambda inputs: inputs[0], backward, [x])
    (through * 3).sum().backward()
    assert seen == [[3.0, 3.0]]
    (x * 2).sum().backward()
    assert len(seen) == 1, "each call is for one pass"
    through = volta._volta._apply(lambda inputs: inputs[0], backward, [x])
    with pytest.raises(RuntimeError, match=r"loss.backward\(\)"):
        volta.autograd.grad(through.sum(), x)


def test_permutations_are_those_of_pytorch():
    # torch.randperm(10, generator=torch.Generator().manual_seed(seed)) for seeds 0 and 42
    one = DistributedSampler(range(10), num_replicas=1, rank=0)
    assert list(one) == [4, 1, 7, 5, 3, 9, 0, 8, 6, 2]
    one.set_epoch(42)
    assert list(one) == [2, 6, 1, 8, 4, 5, 0, 9, 3, 7]
    assert list(DistributedSampler(range(10), 1, 0, seed=40, shuffle=True)) != list(one)


@pytest.mark.parametrize(("length", "ranks"), [(10, 3), (12, 4), (2, 5), (1, 2), (0, 2)])
@pytest.mark.parametrize("drop_last", [False, True])
@pytest.mark.parametrize("shuffle", [False, True])
def test_ranks_share_the_samples_evenly(length, ranks, drop_last, shuffle):
    samplers = [DistributedSampler(range(length), ranks, r, shuffle, drop_last=drop_last) for r in range(ranks)]
    shares = [list(sampler) for sampler in samplers]
    count = length // ranks if drop_last else -(-length // ranks)
    assert [len(share) for share in shares] == [count] * ranks == [len(sampler) for sampler in samplers]
    together = [share[k] for k in range(count) for share in shares]
    assert set(together) <= set(range(length))
    if not drop_last:
        assert set(together) == set(range(length))
        assert together[length:] == [together[k % length] for k in range(len(together) - length)]
    else:
        assert len(set(together)) == len(together)


def test_a_sampler_asks_the_group_and_feeds_a_loader(alone):
    sampler = DistributedSampler(range(5), shuffle=False)
    assert [batch.tolist() for batch in DataLoader(range(5), batch_size=2, sampler=sampler)] == [[0, 1], [2, 3], [4]]
    dist.destroy_process_group()
    with pytest.raises(RuntimeError, match="init_process_group"):
        DistributedSampler(range(5))
    with pytest.raises(ValueError, match="rank 2"):
        DistributedSampler(range(5), num_replicas=2, rank=2)


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({"WORLD_SIZE": "2", "RANK": "0"}, "instead of torchrun"),
        pytest.param(
            {"OMPI_COMM_WORLD_SIZE": "2"},
            "built without MPI",
            marks=pytest.mark.skipif(dist.is_mpi_available(), reason="this package was built with MPI"),
        ),
    ],
)
def test_processes_that_would_not_find_each_other_are_an_error(variables, expected):
    program = "import volta.distributed as d; d.init_process_group()"
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, **variables}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1 and expected in done.stderr, done.stderr


def test_halves_keep_their_values(alone):
    x = volta.tensor(np.array([1.5, -2.25, 65504.0], np.float16))
    dist.broadcast(x)
    assert x.tolist() == [1.5, -2.25, 65504.0]
