"""Several devices at once: VOLTA_VIRTUAL_DEVICES makes several of one adapter."""

import numpy as np
import pytest

import volta
from volta import nn, optim
from volta.nn.functional import cross_entropy
from volta.parallel import DataParallel

GPUS = [str(d) for d, _ in volta.devices() if d.type == "gpu"]


def network(device):
    volta.manual_seed(3)
    model = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3))
    return model.to(device)


def batches(steps):
    random = np.random.default_rng(5)
    for _ in range(steps):
        x = random.standard_normal((16, 4), dtype=np.float32)
        yield volta.from_numpy(x), volta.from_numpy(x.argmax(1).clip(0, 2).astype(np.int32))


def trained(devices, parts, steps=4):
    model = network(devices[0])
    sgd = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    parallel = DataParallel(model, devices, gradient_parts=parts)
    losses = []
    for x, y in batches(steps):
        sgd.zero_grad()
        losses.append(parallel.backward(lambda x, y: cross_entropy(model(x), y), x, y).item())
        sgd.step()
    return [t.numpy().tobytes() for t in model.state_dict().values()], losses


@pytest.mark.parametrize("counts", [(1, 2), (1, 4)])
def test_any_number_of_devices_gives_the_same_bits(counts):
    if len(GPUS) < max(counts):
        pytest.skip(f"needs {max(counts)} GPUs: VOLTA_VIRTUAL_DEVICES={max(counts)}")
    one, many = (trained(GPUS[:count], 4) for count in counts)
    assert one == many


def test_parts_have_the_gradient_of_the_whole_batch():
    model = nn.Linear(4, 3, device="cpu")
    x, y = next(iter(batches(1)))
    whole = cross_entropy(model(x), y)
    whole.backward()
    expected = [p.grad.numpy() for p in model.parameters()]
    model.zero_grad()
    seen = []

    def step(x, y):
        seen.append(len(x))
        return cross_entropy(model(x), y)

    loss = DataParallel(model, "cpu", gradient_parts=3).backward(step, x, y)
    assert seen == [5, 5, 6]
    assert abs(loss.item() - whole.item()) < 1e-6
    for p, g in zip(model.parameters(), expected, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), g, atol=1e-6)


def test_what_a_step_raises_is_raised_and_leaves_the_module_as_it_was():
    model = network("cpu")
    before = [t.numpy().tobytes() for t in model.state_dict().values()]
    parallel = DataParallel(model, ["cpu"], gradient_parts=2)
    x, y = next(iter(batches(1)))

    def step(x, y):
        model(x)
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        parallel.backward(step, x, y)
    assert [t.numpy().tobytes() for t in model.state_dict().values()] == before
    with pytest.raises(TypeError, match="one tensor"):
        parallel.backward(lambda x, y: 3.0, x, y)
    assert parallel.shares == [2]


def test_what_cannot_be_shared_out_says_why():
    model = network("cpu")
    with pytest.raises(ValueError, match="twice"):
        DataParallel(model, ["cpu", "cpu"])
    with pytest.raises(RuntimeError, match="gpu:15"):
        DataParallel(model, "cpu,gpu:15")
    x, y = next(iter(batches(1)))
    with pytest.raises(ValueError, match="16 rows cannot be cut into 17 parts"):
        DataParallel(model, "cpu", gradient_parts=17).backward(lambda x, y: model(x).sum(), x, y)
