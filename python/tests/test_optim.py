"""Optimizers against plain NumPy over several steps, in f64; groups, states, averages."""

import copy

import numpy as np
import pytest
from nn_reference import normal

import volta
from volta import nn, optim

STEPS = 6


def gradient(p, t):
    """Some gradient that depends on the parameter and the step."""
    return p * 0.3 + np.sin(np.arange(p.size).reshape(p.shape) + t)


def sgd(p, g, s, t, lr, momentum=0.0, dampening=0.0, weight_decay=0.0, nesterov=False):
    g = g + weight_decay * p
    if momentum:
        s["v"] = g if t == 1 else momentum * s["v"] + (1 - dampening) * g
        g = g + momentum * s["v"] if nesterov else s["v"]
    return p - lr * g


def adam(p, g, s, t, lr, betas=(0.9, 0.999), eps=1e-8, weight_decay=0.0, amsgrad=False, decoupled=False):
    if decoupled:
        p = p * (1 - lr * weight_decay)
    else:
        g = g + weight_decay * p
    s["m"] = betas[0] * s.get("m", 0) + (1 - betas[0]) * g
    s["v"] = betas[1] * s.get("v", 0) + (1 - betas[1]) * g**2
    v = s["v"]
    if amsgrad:
        v = s["largest"] = np.maximum(s.get("largest", 0), v)
    return p - lr * (s["m"] / (1 - betas[0] ** t)) / (np.sqrt(v / (1 - betas[1] ** t)) + eps)


def adamw(p, g, s, t, lr, weight_decay=0.01, **options):
    return adam(p, g, s, t, lr, weight_decay=weight_decay, decoupled=True, **options)


def rmsprop(p, g, s, t, lr, alpha=0.99, eps=1e-8, weight_decay=0.0, momentum=0.0, centered=False):
    g = g + weight_decay * p
    s["v"] = alpha * s.get("v", 0) + (1 - alpha) * g**2
    v = s["v"]
    if centered:
        s["g"] = alpha * s.get("g", 0) + (1 - alpha) * g
        v = v - s["g"] ** 2
    d = g / (np.sqrt(v) + eps)
    if momentum:
        d = s["b"] = momentum * s.get("b", 0) + d
    return p - lr * d


def adagrad(p, g, s, t, lr, lr_decay=0.0, weight_decay=0.0, initial_accumulator_value=0.0, eps=1e-10):
    g = g + weight_decay * p
    s["sum"] = s.get("sum", initial_accumulator_value) + g**2
    return p - lr / (1 + (t - 1) * lr_decay) * g / (np.sqrt(s["sum"]) + eps)


def lion(p, g, s, t, lr, betas=(0.9, 0.99), weight_decay=0.0):
    m = s.get("m", 0)
    s["m"] = betas[1] * m + (1 - betas[1]) * g
    return p - lr * (np.sign(betas[0] * m + (1 - betas[0]) * g) + weight_decay * p)


def muon(p, g, s, t, lr, momentum=0.95, weight_decay=0.0, nesterov=True, ns_steps=5):
    s["m"] = momentum * s.get("m", 0) + (1 - momentum) * g
    u = momentum * s["m"] + (1 - momentum) * g if nesterov else s["m"]
    x = u.T if u.shape[0] > u.shape[1] else u
    x = x / np.linalg.norm(x)
    for _ in range(ns_steps):
        gram = x @ x.T
        x = 3.4445 * x + (-4.7750 * gram + 2.0315 * gram @ gram) @ x
    x = x.T if u.shape[0] > u.shape[1] else x
    return p - lr * (max(1, p.shape[0] / p.shape[1]) ** 0.5 * x + weight_decay * p)


CASES = [
    (optim.SGD, sgd, dict(lr=0.1)),
    (optim.SGD, sgd, dict(lr=0.1, momentum=0.9, weight_decay=0.01)),
    (optim.SGD, sgd, dict(lr=0.1, momentum=0.9, dampening=0.2)),
    (optim.SGD, sgd, dict(lr=0.1, momentum=0.8, nesterov=True)),
    (optim.Adam, adam, dict(lr=0.05)),
    (optim.Adam, adam, dict(lr=0.05, betas=(0.7, 0.9), eps=1e-3, weight_decay=0.1, amsgrad=True)),
    (optim.AdamW, adamw, dict(lr=0.05)),
    (optim.AdamW, adamw, dict(lr=0.05, weight_decay=0.3, amsgrad=True)),
    (optim.RMSprop, rmsprop, dict(lr=0.02)),
    (optim.RMSprop, rmsprop, dict(lr=0.02, alpha=0.8, momentum=0.5, centered=True, weight_decay=0.1)),
    (optim.Adagrad, adagrad, dict(lr=0.1)),
    (optim.Adagrad, adagrad, dict(lr=0.1, lr_decay=0.1, weight_decay=0.1, initial_accumulator_value=0.5)),
    (optim.Lion, lion, dict(lr=0.01, weight_decay=0.1)),
    (optim.Muon, muon, dict(lr=0.02, weight_decay=0.1)),
    (optim.Muon, muon, dict(lr=0.02, nesterov=False, ns_steps=3)),
]


def named(case):
    return f"{case[0].__name__} " + " ".join(f"{k}={v}" for k, v in case[2].items())


@pytest.mark.parametrize("case", CASES, ids=named)
def test_optimizers_agree_with_their_formulas(case):
    kind, formula, options = case
    arrays = [normal(4, 3).astype(np.float64), normal(2, 5, seed=1).astype(np.float64)]
    parameters = [nn.Parameter(volta.tensor(a)) for a in arrays]
    assert parameters[0].dtype == volta.float64
    optimizer, states = kind(parameters, **options), [{}, {}]
    for t in range(1, STEPS + 1):
        for p, a in zip(parameters, arrays):
            p.grad = volta.tensor(gradient(a, t))
        optimizer.step()
        arrays = [formula(a, gradient(a, t), s, t, **options) for a, s in zip(arrays, states)]
        for p, a in zip(parameters, arrays):
            np.testing.assert_allclose(p.detach().numpy(), a, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_training_goes_on_to_the_same_bits_after_loading(case):
    kind, _, options = case

    def steps(p, optimizer, start, count):
        for t in range(start, start + count):
            p.grad = volta.tensor(gradient(np.ones((3, 3)), t).astype(np.float32))
            optimizer.step()

    p = nn.Parameter(volta.tensor(normal(3, 3)))
    optimizer = kind([p], **options)
    steps(p, optimizer, 1, 3)
    state, value = optimizer.state_dict(), p.detach().numpy().copy()
    steps(p, optimizer, 4, 3)
    q = nn.Parameter(volta.tensor(value))
    other = kind([q], lr=123.0)
    other.load_state_dict(copy.deepcopy(state))
    assert other.param_groups[0]["lr"] == options["lr"]
    steps(q, other, 4, 3)
    assert np.array_equal(p.detach().numpy(), q.detach().numpy())


def test_groups_have_options_of_their_own_that_may_change():
    w, b = nn.Parameter(volta.ones(2)), nn.Parameter(volta.ones(2))
    optimizer = optim.SGD([{"params": [w]}, {"params": b, "lr": 0.5}], lr=0.1)
    assert [g["lr"] for g in optimizer.param_groups] == [0.1, 0.5]
    (w + b).sum().backward()
    optimizer.step()
    np.testing.assert_allclose([w.detach().numpy()[0], b.detach().numpy()[0]], [0.9, 0.5], rtol=1e-6)
    optimizer.param_groups[0]["lr"] = 0.4
    optimizer.step()
    np.testing.assert_allclose(w.detach().numpy(), [0.5, 0.5], rtol=1e-6)
    late = nn.Parameter(volta.ones(1))
    optimizer.add_param_group({"params": [late], "momentum": 0.9})
    assert optimizer.param_groups[2]["lr"] == 0.1 and "momentum: 0.9" in repr(optimizer)


def test_only_parameters_with_gradients_move():
    p, q = nn.Parameter(volta.ones(1)), nn.Parameter(volta.ones(1))
    optimizer = optim.Adam([p, q], lr=0.1)
    p.sum().backward()
    optimizer.step()
    assert q.item() == 1 and abs(p.item() - 0.9) < 1e-6
    optimizer.zero_grad()
    assert p.grad is None
    optimizer.step()
    assert abs(p.item() - 0.9) < 1e-6


def test_the_state_is_laid_out_as_pytorchs():
    p = nn.Parameter(volta.ones(2))
    optimizer = optim.Adam([("weight", p)], lr=0.1)
    p.sum().backward()
    optimizer.step()
    state = optimizer.state_dict()
    assert state["state"][0]["step"] == 1 and state["state"][0]["exp_avg"].shape == (2,)
    assert state["param_groups"][0]["params"] == [0] and state["param_groups"][0]["betas"] == (0.9, 0.999)


def test_a_closure_is_called_first():
    p = nn.Parameter(volta.tensor([2.0]))
    optimizer = optim.SGD([p], lr=0.25)

    def closure():
        optimizer.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss

    assert optimizer.step(closure).item() == 4 and p.item() == 1


def test_changing_a_rate_compiles_nothing():
    p = nn.Parameter(volta.ones(3))
    optimizer = optim.Adam([p], lr=0.1)

    def step(k):
        optimizer.param_groups[0]["lr"] = 0.1 / (k + 1)
        optimizer.zero_grad()
        (p * p).sum().backward()
        optimizer.step()

    for k in range(3):
        step(k)
    before = volta.profiler.counters()
    for k in range(10):
        step(k)
    after = volta.profiler.counters()
    assert after.plans_compiled == before.plans_compiled
    assert after.plans_replayed - before.plans_replayed == 10 and after.reads == before.reads


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda p: optim.SGD([]), ValueError, "no parameters"),
        (lambda p: optim.SGD([p], lr=-1), ValueError, "learning rate"),
        (lambda p: optim.Adam([p], betas=(1.0, 0.9)), ValueError, "Adam.*first beta"),
        (lambda p: optim.SGD([p, p]), ValueError, "twice"),
        (lambda p: optim.SGD([3]), TypeError, "int"),
        (lambda p: optim.SGD([p * 2]), ValueError, "no leaf"),
        (lambda p: optim.Muon([p]), ValueError, "matrices"),
        (lambda p: optim.SGD([{"params": [p], "beta": 1}]), ValueError, "'beta'"),
        (lambda p: optim.SGD([p], nesterov=True), ValueError, "Nesterov"),
        (lambda p: optim.SGD([p]).load_state_dict({"state": {}, "param_groups": []}), ValueError, "0 groups"),
    ],
)
def test_misuse_is_named(call, error, words):
    with pytest.raises(error, match=words):
        call(nn.Parameter(volta.ones(2)))


def test_a_state_of_other_shapes_changes_nothing():
    def trained(shape):
        p = nn.Parameter(volta.ones(*shape))
        optimizer = optim.Adam([p], lr=0.1)
        p.sum().backward()
        optimizer.step()
        return optimizer

    optimizer = trained((2,))
    with pytest.raises(ValueError, match="saved with shape"):
        optimizer.load_state_dict({**trained((3,)).state_dict()})
    assert optimizer.state_dict()["state"][0]["exp_avg"].shape == (2,)


def test_averages_follow_and_stand_in():
    p = nn.Parameter(volta.tensor([1.0]))
    ema = optim.EMA([p], decay=0.5)
    with volta.no_grad():
        p.copy_(volta.tensor([3.0]))
    ema.update()
    assert ema.averages()[0].item() == 2
    with ema.applied():
        assert p.item() == 2
        with pytest.raises(ValueError, match="swap"):
            ema.update()
    assert p.item() == 3
    other = nn.Parameter(volta.zeros(1))
    ema.copy_to([other])
    assert other.item() == 2
    again = optim.EMA([p], decay=0.9)
    again.load_state_dict(ema.state_dict())
    assert again.decay == 0.5 and again.averages()[0].item() == 2
    with pytest.raises(ValueError, match="decay"):
        optim.EMA([p], decay=2)


def test_frozen_parameters_wait_until_they_are_thawed():
    frozen, p = nn.Parameter(volta.ones(1), requires_grad=False), nn.Parameter(volta.ones(1))
    plain = volta.ones(1)
    optimizer = optim.Adam([frozen, p, plain], lr=0.1)
    (p * frozen * plain).sum().backward()
    optimizer.step()
    assert (frozen.item(), plain.item()) == (1, 1) and p.item() == pytest.approx(0.9)
    frozen.requires_grad_(True)
    optimizer.zero_grad()
    (p * frozen).sum().backward()
    optimizer.step()
    assert frozen.item() == pytest.approx(0.9)
    assert optimizer.state_dict()["state"][0]["step"] == 1 and optimizer.state_dict()["state"][1]["step"] == 2
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    model[0].requires_grad_(False)
    optim.SGD(model.parameters(), lr=0.1).step()


def test_an_option_that_was_refused_is_refused_again():
    p, q = nn.Parameter(volta.ones(1)), nn.Parameter(volta.ones(1))
    optimizer = optim.SGD([{"params": [p]}, {"params": [q], "lr": 0.5}], lr=0.1)
    (p + q).sum().backward()
    optimizer.param_groups[0]["lr"], optimizer.param_groups[1]["lr"] = 0.2, -1
    for _ in range(2):
        with pytest.raises(ValueError, match="learning rate"):
            optimizer.step()
        assert (p.item(), q.item()) == (1, 1)
    optimizer.param_groups[1]["lr"] = 0.5
    optimizer.step()
    assert p.item() == pytest.approx(0.8) and q.item() == 0.5


def test_a_loaded_state_has_memory_of_its_own():
    p = nn.Parameter(volta.ones(2))
    optimizer = optim.Adam([p], lr=0.1)
    array = np.zeros(2, np.float32)
    state = {"step": 1, "exp_avg": volta.from_numpy(array), "exp_avg_sq": volta.zeros(2)}
    optimizer.load_state_dict({"state": {0: state}, "param_groups": optimizer.state_dict()["param_groups"]})
    array += 1
    assert optimizer.state_dict()["state"][0]["exp_avg"].tolist() == [0, 0]
    ema = optim.EMA([p])
    ema.load_state_dict({"decay": 0.5, "averages": [volta.from_numpy(array)]})
    array += 1
    assert ema.averages()[0].tolist() == [1, 1]
