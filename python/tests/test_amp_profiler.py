"""Mixed precision, loss scaling, and profiles."""

import json
import threading

import numpy as np
import pytest
from nn_reference import normal

import volta
import volta.nn.functional as F
from volta import nn, optim
from volta.amp import GradScaler, autocast


def test_products_are_in_half_precision_inside_and_nowhere_else():
    layer, x = nn.Linear(4, 3), volta.tensor(normal(2, 4))
    with autocast():
        y = layer(x)
        with autocast(enabled=False):
            assert layer(x).dtype == volta.float32
        with autocast(volta.bfloat16):
            assert layer(x).dtype == volta.bfloat16
        assert layer(x).dtype == volta.float16
    assert y.dtype == volta.float16 and layer(x).dtype == volta.float32
    F.mse_loss(y, volta.zeros(2, 3)).backward()
    assert layer.weight.grad.dtype == volta.float32
    np.testing.assert_allclose(y.detach().float().numpy(), layer(x).detach().numpy(), atol=2e-3)


def test_a_type_of_device_may_be_named_as_in_pytorch():
    layer, x = nn.Linear(4, 3, device="cpu"), volta.tensor(normal(2, 4), device="cpu")
    for arguments, expected in [
        (("cpu",), volta.bfloat16),
        (("cpu", volta.float16), volta.float16),
        ((volta.device("cpu"),), volta.bfloat16),
        (("gpu",), volta.float32),
        (("cuda", volta.float16), volta.float32),
        (("cpu", volta.bfloat16, False), volta.float32),
        (("float16",), volta.float16),
        ((), volta.float16),
    ]:
        with volta.autocast(*arguments):
            assert layer(x).dtype == expected, arguments
            assert volta.is_autocast_enabled("cpu") == (expected != volta.float32)
    with volta.autocast(device_type="cpu", dtype=volta.bfloat16, cache_enabled=True):
        with volta.autocast("gpu"):
            assert layer(x).dtype == volta.bfloat16, "the other device's scope changes nothing here"
            assert volta.is_autocast_enabled("gpu")
        with volta.amp.autocast("cpu", enabled=False):
            assert layer(x).dtype == volta.float32
        assert not volta.is_autocast_enabled("cuda") and volta.is_autocast_enabled()
    assert not volta.is_autocast_enabled()
    assert volta.autocast("cpu")(layer)(x).dtype == volta.bfloat16
    with pytest.raises(ValueError, match="'tpu'"):
        volta.autocast("tpu")
    with pytest.raises(TypeError, match="half precision"):
        volta.autocast("cpu", volta.float32).__enter__()


def test_a_scaler_takes_pytorchs_arguments():
    for scaler in (GradScaler("cuda", init_scale=8.0), GradScaler(8.0), GradScaler(device="cpu", init_scale=8.0)):
        assert scaler.get_scale() == 8.0


def test_it_decorates_functions_and_ends_with_exceptions():
    layer, x = nn.Linear(2, 2), volta.ones(1, 2)

    @autocast(dtype=volta.float16)
    def run():
        return layer(x)

    assert run().dtype == volta.float16 and layer(x).dtype == volta.float32
    with pytest.raises(RuntimeError, match="stop"):
        with autocast():
            raise RuntimeError("stop")
    assert layer(x).dtype == volta.float32
    with pytest.raises(TypeError, match="half precision"):
        with autocast(volta.float64):
            pass


def test_it_is_a_matter_of_the_thread():
    layer, x, found = nn.Linear(2, 2), volta.ones(1, 2), []
    with autocast():
        thread = threading.Thread(target=lambda: found.append(layer(x).dtype))
        thread.start()
        thread.join()
    assert found == [volta.float32]


def test_an_overflow_skips_the_step_and_halves_the_scale():
    w = nn.Parameter(volta.tensor([1.0]))
    sgd, scaler = optim.SGD([w], lr=0.5), GradScaler(8.0, growth_interval=2)

    def step(factor):
        sgd.zero_grad()
        scaler.scale((w * factor).sum()).backward()
        scaler.step(sgd)
        scaler.update()
        return w.item(), scaler.get_scale()

    assert step(3e38) == (1.0, 4.0)
    assert step(1.0) == (0.5, 4.0)
    sgd.param_groups[0]["lr"] = 0.25
    assert step(1.0) == (0.25, 8.0)


def test_unscaled_gradients_can_be_clipped():
    w = nn.Parameter(volta.ones(4))
    sgd, scaler = optim.SGD([w], lr=1.0), GradScaler()
    scaler.scale((w * 3).sum()).backward()
    scaler.unscale_(sgd)
    np.testing.assert_allclose(w.grad.numpy(), [3] * 4)
    with pytest.raises(ValueError, match="unscaled already"):
        scaler.unscale_(sgd)
    assert abs(nn.utils.clip_grad_norm_([w], 2.0).item() - 6) < 1e-5
    scaler.step(sgd)
    np.testing.assert_allclose(w.detach().numpy(), [0] * 4, atol=1e-5)


def test_a_scaler_goes_on_where_it_stopped_or_does_nothing():
    scaler = GradScaler(16.0, growth_interval=7)
    other = GradScaler()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 16 and other.state_dict()["interval"] == 7
    off = GradScaler(enabled=False)
    w = nn.Parameter(volta.ones(1))
    sgd = optim.SGD([w], lr=1.0)
    off.scale((w * 2).sum()).backward()
    off.step(sgd)
    assert w.item() == -1 and off.get_scale() == 1 and not off.is_enabled()


def test_training_in_half_precision_learns():
    volta.manual_seed(0)
    net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
    adam, scaler = optim.Adam(net.parameters(), lr=0.02), GradScaler()
    x = volta.tensor(normal(64, 2))
    y = (x[:, :1] * x[:, 1:]).detach()
    losses = []
    for _ in range(100):
        adam.zero_grad()
        with autocast():
            loss = F.mse_loss(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(adam)
        losses.append(loss.item())
    assert losses[-1] < 0.1 * losses[0]


def test_a_profile_tells_kernels_ops_and_what_the_engine_did(tmp_path):
    x = volta.tensor(normal(64, 64))
    with volta.profiler.profile() as prof:
        (x @ x).relu().sum().item()
    kernels = prof.kernels
    assert kernels and all(k.calls >= 1 and k.seconds >= 0 for k in kernels)
    assert any(op.name == "matmul" and op.device == "cpu" and op.flops >= 2 * 64**3 for op in prof.ops)
    assert prof.total == pytest.approx(sum(k.seconds for k in kernels))
    assert "GFLOP/s" in str(prof) and "matmul" in prof.by_op()
    assert prof.counters.kernels_run >= len(kernels) and prof.counters.reads >= 1
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(path)
    assert json.loads(path.read_text())
    assert "kernels" in volta.profiler.last_plan()
    volta.profiler.reset_peak()
    (x + 1).sum().item()
    assert 4 * 64**2 <= volta.profiler.counters().peak_bytes <= prof.counters.peak_bytes + (1 << 20)
    assert repr(prof).startswith("<profile of")


def test_profiles_inside_one_another_and_empty_ones():
    prof = volta.profiler.profile()
    assert "nothing" in str(prof) and prof.kernels == []
    with pytest.raises(RuntimeError, match="nothing was profiled"):
        prof.export_chrome_trace("never")
    with pytest.raises(RuntimeError, match="nothing was profiled"):
        prof.counters
    with prof:
        (volta.ones(3) + 1).sum().item()
        with volta.profiler.profile() as inner:
            (volta.ones(5) * 2).sum().item()
    assert inner.kernels and prof.kernels
    with pytest.raises(OSError, match="cannot be written"):
        prof.export_chrome_trace("/no/such/folder/trace.json")


def test_guards_name_the_op_that_made_a_nan():
    volta.profiler.set_guards(True)
    try:
        assert volta.profiler.guards_enabled()
        with pytest.raises(RuntimeError, match="log"):
            volta.tensor([-1.0]).log().item()
    finally:
        volta.profiler.set_guards(False)


def test_what_is_added_takes_the_wider_type_under_autocast():
    index = volta.tensor([1, 1, 0])
    with volta.amp.autocast(dtype=volta.float16):
        for into, source in ((volta.float32, volta.float16), (volta.float16, volta.float32)):
            x, values = volta.zeros(2, dtype=into), volta.tensor([1.0, 2.0, 3.0]).to(source)
            for y in (x.scatter_add(0, index, values), x.index_add(0, index, values)):
                assert y.dtype == volta.float32 and y.tolist() == [3.0, 3.0]
            x.scatter_add_(0, index, values)
            assert x.dtype == into and x.tolist() == [3.0, 3.0]
    with pytest.raises(TypeError, match="cannot add"):
        volta.zeros(2).scatter_add(0, index, volta.ones(3, dtype=volta.float16))
