"""Networks on a GPU, if there is one or `VOLTA_ADAPTER` names a software one: the same numbers as on the CPU."""

import copy

import numpy as np
import pytest
from nn_reference import normal

import volta
import volta.nn.functional as F
from volta import nn, optim

pytestmark = pytest.mark.skipif(not volta.is_available(), reason="there is no GPU")


def both(net, *inputs):
    """The output of a network on both devices, and its gradients."""
    twin = copy.deepcopy(net).to("gpu")
    results = []
    for network, device in ((net, "cpu"), (twin, "gpu")):
        y = network(*[x.to(device) for x in inputs])
        y = y[0] if isinstance(y, tuple) else y
        (y * y).sum().backward()
        results.append([y.detach().cpu().numpy()] + [p.grad.cpu().numpy() for p in network.parameters()])
    return zip(*results)


NETWORKS = [
    (lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)), (4, 6)),
    (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)), (2, 2, 6, 6)),
    (lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True), (2, 5, 8)),
    (lambda: nn.GRU(3, 4), (4, 2, 3)),
]


@pytest.mark.parametrize("make,shape", NETWORKS)
def test_networks_compute_the_same_on_both_devices(make, shape):
    for ours, theirs in both(make(), volta.tensor(normal(*shape))):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-4)


def test_training_on_the_gpu_learns_and_moves_in_place():
    volta.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 1))
    adam = optim.Adam(net.parameters(), lr=0.05)
    net.to("gpu")
    x = volta.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], device="gpu")
    y = volta.tensor([[0.0], [1.0], [1.0], [0.0]], device="gpu")
    scaler = volta.amp.GradScaler()
    for _ in range(150):
        adam.zero_grad()
        loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(adam)
    assert loss.item() < 0.02 and net[0].weight.is_gpu
    assert str(net.cpu()[0].weight.device) == "cpu"


def test_layers_are_made_on_the_gpu_and_saved_from_there(tmp_path):
    layer = nn.Linear(3, 2, device="gpu")
    assert layer.weight.is_gpu
    volta.save(layer, tmp_path / "x.safetensors")
    assert np.array_equal(
        volta.load(tmp_path / "x.safetensors")["weight"].cpu().numpy(), layer.weight.detach().cpu().numpy()
    )


def test_operands_on_two_devices_are_refused():
    with pytest.raises(RuntimeError, match="linear"):
        nn.Linear(3, 2)(volta.ones(1, 3, device="gpu"))
