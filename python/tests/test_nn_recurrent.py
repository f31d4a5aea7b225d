"""Recurrent networks and their cells, against JAX."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nn_reference import normal

import volta
from volta import nn


def array(tensor):
    return tensor.detach().numpy()


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
    expected, ends = jax.jit(theirs)(x, *flat)
    np.testing.assert_allclose(array(y), expected, atol=1e-5)
    for ours, end in zip(last, ends):
        np.testing.assert_allclose(array(ours), end, atol=1e-5)
    y.pow(2).sum().backward()
    total = jax.grad(lambda *a: (theirs(*a)[0] ** 2).sum(), argnums=tuple(range(1 + len(flat))))
    gradients = jax.jit(total)(x, *flat)
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
