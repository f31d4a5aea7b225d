"""Layers: first values, names and layouts of parameters, and what they do with inputs."""

import math

import jax.numpy as jnp
import numpy as np
import pytest
from nn_reference import compare, normal

import volta
import volta.nn.functional as F
from volta import nn


def array(tensor):
    return tensor.detach().numpy()


SHAPES = [
    (lambda: nn.Linear(3, 4), (2, 3), (2, 4), {"weight": (4, 3), "bias": (4,)}),
    (lambda: nn.Linear(3, 4, bias=False), (3,), (4,), {"weight": (4, 3)}),
    (lambda: nn.Conv1d(2, 4, 3, stride=2), (5, 2, 9), (5, 4, 4), {"weight": (4, 2, 3), "bias": (4,)}),
    (lambda: nn.Conv2d(2, 4, (3, 1), groups=2), (2, 8, 8), (4, 6, 8), {"weight": (4, 1, 3, 1), "bias": (4,)}),
    (lambda: nn.ConvTranspose2d(2, 4, 2, stride=2), (1, 2, 3, 3), (1, 4, 6, 6), {"weight": (2, 4, 2, 2), "bias": (4,)}),
    (lambda: nn.MaxPool2d(2), (1, 1, 4, 6), (1, 1, 2, 3), {}),
    (lambda: nn.AvgPool2d(3, stride=1, padding=1), (1, 1, 4, 6), (1, 1, 4, 6), {}),
    (lambda: nn.MaxPool1d(2), (1, 1, 6), (1, 1, 3), {}),
    (lambda: nn.AvgPool1d(3), (1, 1, 6), (1, 1, 2), {}),
    (lambda: nn.AdaptiveAvgPool2d(1), (2, 3, 4, 5), (2, 3, 1, 1), {}),
    (lambda: nn.LayerNorm((2, 3)), (4, 2, 3), (4, 2, 3), {"weight": (2, 3), "bias": (2, 3)}),
    (lambda: nn.LayerNorm(3, bias=False), (4, 3), (4, 3), {"weight": (3,)}),
    (lambda: nn.GroupNorm(2, 4), (1, 4, 3), (1, 4, 3), {"weight": (4,), "bias": (4,)}),
    (lambda: nn.RMSNorm(3), (4, 3), (4, 3), {"weight": (3,)}),
    (lambda: nn.PReLU(3), (4, 3), (4, 3), {"weight": (3,)}),
    (lambda: nn.Flatten(), (2, 3, 4), (2, 12), {}),
    (lambda: nn.Unflatten(1, (2, -1)), (2, 6), (2, 2, 3), {}),
    (lambda: nn.PixelShuffle(2), (1, 4, 2, 3), (1, 1, 4, 6), {}),
    (lambda: nn.PixelUnshuffle(2), (1, 1, 4, 6), (1, 4, 2, 3), {}),
    (lambda: nn.Upsample(scale_factor=2), (1, 1, 2, 3), (1, 1, 4, 6), {}),
    (lambda: nn.Upsample(size=5, mode="bilinear"), (1, 1, 2, 3), (1, 1, 5, 5), {}),
    (lambda: nn.Identity(3, anything=True), (2,), (2,), {}),
    (lambda: nn.GLU(), (2, 6), (2, 3), {}),
]


@pytest.mark.parametrize("make,given,made,parameters", SHAPES)
def test_layers_have_pytorchs_shapes(make, given, made, parameters):
    layer = make()
    assert layer(volta.ones(*given)).shape == made
    assert {name: p.shape for name, p in layer.named_parameters()} == parameters


ACTIVATIONS = [
    nn.ReLU(), nn.ReLU6(), nn.GELU(), nn.GELU("tanh"), nn.SiLU(), nn.Mish(), nn.Sigmoid(), nn.Tanh(), nn.LeakyReLU(0.2),
    nn.ELU(), nn.Softplus(), nn.Softsign(), nn.LogSigmoid(), nn.Hardtanh(), nn.Hardsigmoid(), nn.Hardswish(), nn.Softmax(0),
    nn.LogSoftmax(-1),
]  # fmt: skip


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=repr)
def test_activations_call_the_function_of_their_name(layer):
    name = {"LeakyReLU": "leaky_relu", "LogSoftmax": "log_softmax"}.get(type(layer).__name__, type(layer).__name__.lower())
    arguments = {
        "GELU": ["approximate"],
        "LeakyReLU": ["negative_slope"],
        "LogSoftmax": ["dim"],
        "Softmax": ["dim"],
    }.get(type(layer).__name__, [])
    x = volta.tensor(normal(3, 4))
    expected = getattr(F, name)(x, *[getattr(layer, a) for a in arguments])
    assert np.array_equal(array(layer(x)), array(expected))


def test_first_values_are_pytorchs():
    volta.manual_seed(0)
    for layer, fan_in in [(nn.Linear(64, 256), 64), (nn.Conv2d(16, 64, 2), 64), (nn.GRU(9, 64), 64)]:
        for name, p in layer.named_parameters():
            values, bound = array(p), 1 / math.sqrt(fan_in)
            assert np.abs(values).max() <= bound, name
            assert abs(values.std() - bound / math.sqrt(3)) < 0.2 * bound, name
    table = array(nn.Embedding(500, 8, padding_idx=3).weight)
    assert abs(table.std() - 1) < 0.05 and not table[3].any() and table[2].any()
    attention = nn.MultiheadAttention(64, 4)
    assert not array(attention.in_proj_bias).any() and not array(attention.out_proj.bias).any()
    assert np.abs(array(attention.in_proj_weight)).max() <= math.sqrt(6 / (64 + 192))


def test_a_seed_repeats_first_values():
    def made():
        volta.manual_seed(7)
        return array(nn.Linear(3, 3).weight)

    assert np.array_equal(made(), made()) and not np.array_equal(made(), array(nn.Linear(3, 3).weight))


def test_numbers_are_drawn_as_the_engines_own_layers_draw_them():
    """Weights first, biases next, each (2u − 1)·bound: what a layer of the Rust library has for the same seed."""
    volta.manual_seed(5)
    layer = nn.Linear(3, 2)
    volta.manual_seed(5)
    weight, bias = volta.rand(2, 3), volta.rand(2)
    for drawn, parameter in ((weight, layer.weight), (bias, layer.bias)):
        assert np.array_equal(array((drawn * 2 - 1) * (1 / math.sqrt(3))), array(parameter))


def test_layers_are_made_in_a_type_of_choice():
    assert nn.Linear(2, 2, dtype=volta.float64).bias.dtype == volta.float64
    assert nn.BatchNorm1d(2, dtype=volta.float64).running_var.dtype == volta.float64
    assert str(nn.Linear(2, 2, device="cpu").weight.device) == "cpu"


def test_batch_norm_trains_by_the_batch_and_evaluates_by_averages():
    layer = nn.BatchNorm2d(3, momentum=0.3)
    mean, var = np.zeros(3), np.ones(3)
    for seed in range(4):
        x = normal(5, 3, 4, 2, seed=seed) * 2 + 1
        y = array(layer(volta.tensor(x)))
        m, v = x.mean((0, 2, 3)), x.var((0, 2, 3))
        np.testing.assert_allclose(y, (x - m[:, None, None]) / np.sqrt(v + 1e-5)[:, None, None], atol=1e-4)
        mean, var = 0.7 * mean + 0.3 * m, 0.7 * var + 0.3 * v * 40 / 39
    np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-4)
    np.testing.assert_allclose(layer.running_var.numpy(), var, rtol=1e-4)
    assert layer.num_batches_tracked.item() == 4
    x = normal(2, 3, 1, 1, seed=8)
    expected = (x - mean[:, None, None]) / np.sqrt(var + 1e-5)[:, None, None]
    np.testing.assert_allclose(array(layer.eval()(volta.tensor(x))), expected, rtol=1e-3, atol=1e-4)
    layer.reset_running_stats()
    assert layer.running_var.tolist() == [1, 1, 1] and layer.num_batches_tracked.item() == 0


def test_batch_norm_without_momentum_averages_over_all_batches():
    layer = nn.BatchNorm1d(2, momentum=None, affine=False)
    batches = [normal(6, 2, seed=k) for k in range(3)]
    for x in batches:
        layer(volta.tensor(x))
    expected = np.mean([x.mean(0) for x in batches], 0)
    np.testing.assert_allclose(layer.running_mean.numpy(), expected, atol=1e-6)
    assert not list(layer.parameters())
    free = nn.BatchNorm1d(2, track_running_stats=False)
    assert free.eval()(volta.tensor(batches[0])).shape == (6, 2) and "running_mean" not in free.state_dict()


def test_batch_norm_in_a_loop_without_steps_does_not_pile_up_work():
    layer = nn.BatchNorm1d(2)
    for _ in range(200):
        layer(volta.ones(4, 2))
    assert layer.num_batches_tracked.item() == 200


def test_batch_norm_has_a_gradient():
    layer = nn.BatchNorm1d(3)

    def theirs(x):
        return (x - x.mean(0)) / jnp.sqrt(x.var(0) + 1e-5)

    compare(layer, theirs, [normal(6, 3)])


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: nn.Linear(3, 2)(volta.ones(2, 4)), "linear"),
        (lambda: nn.BatchNorm2d(3)(volta.ones(2, 3)), r"BatchNorm2d: .*\(batch, 3, height, width\)"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "do not divide into 2 groups"),
        (lambda: nn.GroupNorm(3, 4), "do not divide into 3 groups"),
        (lambda: nn.Dropout(1.5), "between 0 and 1"),
        (lambda: nn.Embedding(3, 2, padding_idx=3), "3 rows"),
        (lambda: nn.MultiheadAttention(10, 3), "does not divide into 3 heads"),
        (lambda: nn.LSTM(3, 4, num_layers=0), "at least 1"),
        (lambda: nn.RNN(3, 4, nonlinearity="gelu"), "gelu"),
        (lambda: nn.LSTM(3, 4)(volta.ones(2, 3, 5)), "LSTM"),
        (lambda: nn.MultiheadAttention(4, 2)(*[volta.ones(2, 3, 5)] * 3), "MultiHeadAttention"),
    ],
)
def test_what_does_not_fit_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_init_functions_write_in_place():
    w = nn.Parameter(volta.zeros(200, 100))
    for f, std in [
        (lambda: nn.init.xavier_uniform_(w), math.sqrt(2 / 300)),
        (lambda: nn.init.xavier_normal_(w, gain=2), 2 * math.sqrt(2 / 300)),
        (lambda: nn.init.kaiming_uniform_(w, nonlinearity="relu"), math.sqrt(2 / 100)),
        (lambda: nn.init.kaiming_normal_(w, mode="fan_out", nonlinearity="relu"), math.sqrt(2 / 200)),
        (lambda: nn.init.normal_(w, 0, 0.02), 0.02),
        (lambda: nn.init.uniform_(w, 1, 2), math.sqrt(1 / 12)),
    ]:
        assert f() is w and w.requires_grad
        assert abs(array(w).std() / std - 1) < 0.05
    assert 1 <= array(w).min() and array(w).max() <= 2
    nn.init.trunc_normal_(w, std=1.0, a=-1, b=0.5)
    assert -1 <= array(w).min() and array(w).max() <= 0.5
    nn.init.orthogonal_(w)
    np.testing.assert_allclose(array(w).T @ array(w), np.eye(100), atol=1e-5)
    assert (array(nn.init.constant_(w, 3.5)) == 3.5).all() and not array(nn.init.zeros_(w)).any()
    assert np.array_equal(array(nn.init.eye_(w)), np.eye(200, 100, dtype=np.float32))
    with pytest.raises(ValueError, match="two axes"):
        nn.init.xavier_uniform_(volta.zeros(3))


def test_gradients_are_clipped():
    p, q = nn.Parameter(volta.ones(2)), nn.Parameter(volta.ones(3))
    (p.sum() * 3 + q.sum() * 4).backward()
    norm = nn.utils.clip_grad_norm_([p, q], 1.0)
    assert abs(norm.item() - math.sqrt(2 * 9 + 3 * 16)) < 1e-5
    total = math.sqrt((p.grad.numpy() ** 2).sum() + (q.grad.numpy() ** 2).sum())
    assert abs(total - 1) < 1e-5
    nn.utils.clip_grad_value_([p, q], 0.3)
    assert q.grad.numpy().max() == np.float32(0.3)
    vector = nn.utils.parameters_to_vector([p, q])
    nn.utils.vector_to_parameters(vector * 2, [p, q])
    assert p.tolist() == [2, 2] and p.requires_grad


def test_embedding_from_a_table_is_frozen():
    layer = nn.Embedding.from_pretrained(volta.tensor(normal(4, 2)))
    assert not layer.weight.requires_grad
    assert np.array_equal(array(layer(volta.tensor([3]))), normal(4, 2)[3:])


def test_bilinear_agrees_with_numpy():
    layer = nn.Bilinear(3, 4, 5)
    a, b = normal(2, 3), normal(2, 4, seed=1)
    expected = np.einsum("bi,oij,bj->bo", a, array(layer.weight), b) + array(layer.bias)
    np.testing.assert_allclose(array(layer(volta.tensor(a), volta.tensor(b))), expected, atol=1e-5)


def test_constants_have_all_digits_of_their_type():
    weight = nn.Parameter(volta.zeros(1, dtype=volta.float64))
    assert nn.init.constant_(weight, 0.1).item() == 0.1
    assert nn.PReLU(init=0.1, dtype=volta.float64).weight.item() == 0.1


def test_an_empty_batch_leaves_the_averages_of_a_batch_norm_alone():
    layer = nn.BatchNorm1d(3)
    layer(volta.tensor(normal(8, 3)))
    before = [array(layer.running_mean).copy(), array(layer.running_var).copy()]
    assert layer(volta.zeros(0, 3)).shape == (0, 3)
    np.testing.assert_array_equal([array(layer.running_mean), array(layer.running_var)], before)
    assert layer.num_batches_tracked.item() == 2
    mean, variance = volta.zeros(3), volta.ones(3)
    F.batch_norm(volta.zeros(0, 3), mean, variance, training=True)
    assert mean.tolist() == [0, 0, 0] and variance.tolist() == [1, 1, 1]


def test_batch_norm_does_not_cut_steps_in_two():
    layer = nn.BatchNorm1d(2)
    optimizer = volta.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(70):
        optimizer.zero_grad()
        layer(volta.tensor(normal(4, 2))).square().sum().backward()
        assert not layer.running_mean.is_realized
        optimizer.step()
