"""Layers: first values, names and layouts of parameters, and what they do with inputs."""

import math

import jax
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
    nn.LogSoftmax(),
]  # fmt: skip


@pytest.mark.parametrize("layer", ACTIVATIONS, ids=repr)
def test_activations_call_the_function_of_their_name(layer):
    name = {"LeakyReLU": "leaky_relu", "LogSoftmax": "log_softmax"}.get(type(layer).__name__, type(layer).__name__.lower())
    arguments = {"GELU": ["approximate"], "LeakyReLU": ["negative_slope"], "Softmax": ["dim"]}.get(type(layer).__name__, [])
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


# Recurrent networks


def step(kind, x, state, w_ih, w_hh, b_ih, b_hh):
    count = {"RNN": 1, "GRU": 3, "LSTM": 4}[kind]
    gates = lambda a, w, b: jnp.split(a @ w.T + b, count, -1)  # noqa: E731
    from_x, from_h = gates(x, w_ih, b_ih), gates(state[0], w_hh, b_hh)
    if kind == "RNN":
        return (jnp.tanh(from_x[0] + from_h[0]),)
    if kind == "GRU":
        r, z = jax.nn.sigmoid(from_x[0] + from_h[0]), jax.nn.sigmoid(from_x[1] + from_h[1])
        new = jnp.tanh(from_x[2] + r * from_h[2])
        return ((1 - z) * new + z * state[0],)
    i, f, g, o = (a + b for a, b in zip(from_x, from_h))
    cell = jax.nn.sigmoid(f) * state[1] + jax.nn.sigmoid(i) * jnp.tanh(g)
    return (jax.nn.sigmoid(o) * jnp.tanh(cell), cell)


def network(kind, layers, directions, x, weights):
    """Outputs and last states along (length, batch, inputs)."""
    ends = []
    for layer in range(layers):
        ways = []
        for d in range(directions):
            w = weights[layer * directions + d]
            hidden = w[1].shape[1]
            state = (jnp.zeros((x.shape[1], hidden)),) * (2 if kind == "LSTM" else 1)
            outputs = []
            for row in x[::-1] if d else x:
                state = step(kind, row, state, *w)
                outputs.append(state[0])
            ways.append(jnp.stack(outputs[::-1] if d else outputs))
            ends.append(state)
        x = jnp.concatenate(ways, -1)
    return x, [jnp.stack(s) for s in zip(*ends)]


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
@pytest.mark.parametrize(("layers", "both"), [(1, False), (2, True)])
def test_recurrent_networks_agree_with_jax(kind, layers, both):
    volta.manual_seed(3)
    net = getattr(nn, kind)(3, 4, num_layers=layers, bidirectional=both, batch_first=True)
    x = normal(2, 5, 3)
    flat = [array(p) for p in net.parameters()]
    directions = 1 + both

    def theirs(x, *flat):
        weights = [flat[4 * k : 4 * k + 4] for k in range(layers * directions)]
        y, ends = network(kind, layers, directions, x.swapaxes(0, 1), weights)
        return y.swapaxes(0, 1), ends

    given = volta.tensor(x).requires_grad_(True)
    y, last = net(given)
    last = last if kind == "LSTM" else (last,)
    expected, ends = theirs(x, *flat)
    np.testing.assert_allclose(array(y), expected, atol=1e-5)
    for ours, end in zip(last, ends):
        np.testing.assert_allclose(array(ours), end, atol=1e-5)
    y.pow(2).sum().backward()
    gradients = jax.grad(lambda *a: (theirs(*a)[0] ** 2).sum(), argnums=tuple(range(1 + len(flat))))(x, *flat)
    np.testing.assert_allclose(given.grad.numpy(), gradients[0], rtol=1e-3, atol=1e-5)
    for (name, p), gradient in zip(net.named_parameters(), gradients[1:]):
        np.testing.assert_allclose(p.grad.numpy(), gradient, rtol=1e-3, atol=1e-5, err_msg=name)


def test_recurrent_parameters_have_pytorchs_names():
    names = [name for name, _ in nn.GRU(2, 3, num_layers=2, bidirectional=True, bias=False).named_parameters()]
    assert names == [
        "weight_ih_l0", "weight_hh_l0", "weight_ih_l0_reverse", "weight_hh_l0_reverse",
        "weight_ih_l1", "weight_hh_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_cells_make_the_steps_of_their_networks(kind):
    net, cell = getattr(nn, kind)(3, 4), getattr(nn, f"{kind}Cell")(3, 4)
    for name, p in cell.named_parameters():
        setattr(cell, name, getattr(net, f"{name}_l0"))
    x = volta.tensor(normal(5, 2, 3))
    y, _ = net(x)
    state = None
    for k in range(5):
        state = cell(x[k], state)
        np.testing.assert_allclose(array(state[0] if kind == "LSTM" else state), array(y[k]), atol=1e-6)
    relu = nn.RNNCell(3, 4, nonlinearity="relu")
    assert array(relu(x[0])).min() == 0


def test_a_state_goes_on_where_another_ended():
    net = nn.LSTM(2, 3, num_layers=2)
    x = volta.tensor(normal(6, 1, 2))
    whole, _ = net(x)
    _, state = net(x[:4])
    rest, _ = net(x[4:], state)
    np.testing.assert_allclose(array(rest), array(whole[4:]), atol=1e-6)


# Attention


def heads(x, n):
    return x.reshape(*x.shape[:2], n, -1).swapaxes(1, 2)


def attend(q, k, v, w, b, wo, bo, n, seen=True):
    wq, wk, wv = jnp.split(w, 3)
    bq, bk, bv = jnp.split(b, 3)
    q, k, v = heads(q @ wq.T + bq, n), heads(k @ wk.T + bk, n), heads(v @ wv.T + bv, n)
    weights = jax.nn.softmax(jnp.where(seen, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -jnp.inf), -1)
    y = (weights @ v).swapaxes(1, 2).reshape(q.shape[0], q.shape[2], -1)
    return y @ wo.T + bo, weights


def test_attention_of_several_heads_agrees_with_jax():
    volta.manual_seed(1)
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    parameters = [array(p) for p in layer.parameters()]
    assert [p.shape for p in parameters] == [(24, 8), (24,), (8, 8), (8,)]
    q, k, v = normal(2, 3, 8), normal(2, 5, 8, seed=1), normal(2, 5, 8, seed=2)
    y, weights = layer(*map(volta.tensor, (q, k, v)))
    expected, theirs = attend(q, k, v, *parameters, 2)
    np.testing.assert_allclose(array(y), expected, atol=1e-5)
    np.testing.assert_allclose(array(weights), theirs.mean(1), atol=1e-5)
    x = volta.tensor(q).requires_grad_(True)
    layer(x, x, x, need_weights=False, is_causal=True)[0].pow(2).sum().backward()
    causal = np.tril(np.ones((3, 3), bool))
    gradients = jax.grad(
        lambda x, *p: (attend(x, x, x, *p, 2, causal)[0] ** 2).sum(), argnums=tuple(range(5))
    )(q, *parameters)
    for ours, gradient in zip([x, *layer.parameters()], gradients):
        np.testing.assert_allclose(ours.grad.numpy(), gradient, rtol=1e-3, atol=1e-4)


def test_masks_hide_where_they_are_true():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    parameters = [array(p) for p in layer.parameters()]
    x = normal(2, 4, 8)
    hidden = np.triu(np.ones((4, 4), bool), 1)
    padding = np.array([[False, False, False, True], [False, False, True, True]])
    t = volta.tensor(x)
    y, weights = layer(t, t, t, volta.tensor(padding), attn_mask=volta.tensor(hidden), average_attn_weights=False)
    seen = ~hidden & ~padding[:, None, None, :]
    expected, theirs = attend(x, x, x, *parameters, 2, seen)
    np.testing.assert_allclose(array(y), expected, atol=1e-5)
    np.testing.assert_allclose(array(weights), theirs, atol=1e-5)
    added = np.where(hidden, -np.inf, 0).astype(np.float32)
    by_sum, _ = layer(t, t, t, attn_mask=volta.tensor(added))
    by_flag, _ = layer(t, t, t, is_causal=True)
    np.testing.assert_allclose(array(by_sum), array(by_flag), atol=1e-6)
    per_head = layer(t, t, t, attn_mask=volta.tensor(np.broadcast_to(hidden, (4, 4, 4)).copy()))[0]
    np.testing.assert_allclose(array(per_head), array(by_flag), atol=1e-6)


def test_the_batch_is_the_second_axis_unless_told_otherwise():
    layer = nn.MultiheadAttention(8, 2)
    first = nn.MultiheadAttention(8, 2, batch_first=True)
    first.load_state_dict(layer.state_dict())
    x = volta.tensor(normal(5, 3, 8))
    y, weights = layer(x, x, x)
    other, same = first(*[x.transpose(0, 1)] * 3)
    np.testing.assert_allclose(array(y.transpose(0, 1)), array(other), atol=1e-6)
    np.testing.assert_allclose(array(weights), array(same), atol=1e-6)
    alone, _ = layer(x[:, 0], x[:, 0], x[:, 0])
    np.testing.assert_allclose(array(alone), array(y[:, 0]), atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"rotary": True}, {"kv_heads": 1}, {"kv_heads": 2, "rotary": nn.Rotary(100.0)}])
def test_a_cache_gives_what_causal_attention_gives(options):
    layer = nn.MultiheadAttention(16, 4, batch_first=True, **options)
    x = volta.tensor(normal(2, 6, 16))
    whole, weights = layer(x, x, x, is_causal=True)
    assert weights.shape == (2, 6, 6)
    cache = layer.cache(2, 8)
    parts = [layer.forward_cached(x[:, :3], cache)] + [layer.forward_cached(x[:, k : k + 1], cache) for k in (3, 4, 5)]
    np.testing.assert_allclose(array(volta.cat(parts, 1)), array(whole), atol=1e-5)
    assert len(cache) == 6 and cache.capacity == 8 and repr(cache) == "KVCache(6 of 8 positions)"
    cache.truncate(3)
    np.testing.assert_allclose(array(layer.forward_cached(x[:, 3:4], cache)), array(whole[:, 3:4]), atol=1e-5)
    with pytest.raises(ValueError, match="no room"):
        layer.forward_cached(x, cache)


def layer_norm(x, w, b):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_agrees_with_its_formula(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=norm_first).eval()
    p = {name: array(t) for name, t in layer.named_parameters()}
    x = normal(2, 4, 8)
    attention = [p[f"self_attn.{n}"] for n in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")]
    norms = [lambda x, k=k: layer_norm(x, p[f"norm{k}.weight"], p[f"norm{k}.bias"]) for k in (1, 2)]
    look = lambda x: attend(x, x, x, *attention, 2, np.tril(np.ones((4, 4), bool)))[0]  # noqa: E731
    inner = lambda x: jax.nn.gelu(x @ p["linear1.weight"].T + p["linear1.bias"], approximate=False)  # noqa: E731
    feed = lambda x: inner(x) @ p["linear2.weight"].T + p["linear2.bias"]  # noqa: E731
    y = x
    for norm, part in zip(norms, (look, feed)):
        y = y + part(norm(y)) if norm_first else norm(y + part(y))
    np.testing.assert_allclose(array(layer(volta.tensor(x), is_causal=True)), y, atol=1e-5)
    cache = layer.self_attn.cache(2, 4)
    steps = [layer.forward_cached(volta.tensor(x[:, k : k + 1]), cache) for k in range(4)]
    np.testing.assert_allclose(array(volta.cat(steps, 1)), y, atol=1e-5)


def test_transformers_have_pytorchs_names_and_drop_only_while_training():
    decoder = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.5)
    assert list(decoder.state_dict())[:5] == [
        "self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias",
        "multihead_attn.in_proj_weight",
    ]  # fmt: skip
    x, memory = volta.tensor(normal(4, 2, 8)), volta.tensor(normal(6, 2, 8, seed=1))
    assert not np.array_equal(array(decoder(x, memory)), array(decoder(x, memory)))
    decoder.eval()
    assert np.array_equal(array(decoder(x, memory)), array(decoder(x, memory)))
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 3, norm=nn.LayerNorm(8))
    assert encoder(x).shape == (4, 2, 8) and len(encoder.layers) == 3
    assert encoder.layers[0].linear1.weight is not encoder.layers[1].linear1.weight
    stack = nn.TransformerDecoder(decoder, 2)
    assert stack(x, memory, tgt_is_causal=True).shape == (4, 2, 8)
    with pytest.raises(ValueError, match="activation"):
        nn.TransformerEncoderLayer(8, 2, activation="swish")


# First values


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
