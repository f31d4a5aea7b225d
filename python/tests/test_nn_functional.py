"""Functions of `nn.functional` against JAX: values and gradients."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nn_reference import compare, normal, rng

import volta
import volta.nn.functional as F

ACTIVATIONS = {
    "relu": (F.relu, jax.nn.relu),
    "relu6": (F.relu6, jax.nn.relu6),
    "gelu": (F.gelu, lambda x: jax.nn.gelu(x, approximate=False)),
    "gelu by tanh": (lambda x: F.gelu(x, approximate="tanh"), lambda x: jax.nn.gelu(x, approximate=True)),
    "silu": (F.silu, jax.nn.silu),
    "mish": (F.mish, jax.nn.mish),
    "sigmoid": (F.sigmoid, jax.nn.sigmoid),
    "tanh": (F.tanh, jnp.tanh),
    "leaky_relu": (lambda x: F.leaky_relu(x, 0.2), lambda x: jax.nn.leaky_relu(x, 0.2)),
    "elu": (lambda x: F.elu(x, 0.7), lambda x: jax.nn.elu(x, 0.7)),
    "softplus": (F.softplus, jax.nn.softplus),
    "softsign": (F.softsign, jax.nn.soft_sign),
    "logsigmoid": (F.logsigmoid, jax.nn.log_sigmoid),
    "hardtanh": (F.hardtanh, jax.nn.hard_tanh),
    "hardsigmoid": (F.hardsigmoid, jax.nn.hard_sigmoid),
    "hardswish": (F.hardswish, jax.nn.hard_swish),
    "softmax": (lambda x: F.softmax(x, 0), lambda x: jax.nn.softmax(x, 0)),
    "log_softmax": (lambda x: F.log_softmax(x, -1), jax.nn.log_softmax),
    "glu": (F.glu, lambda x: jax.nn.glu(x, -1)),
    "normalize": (F.normalize, lambda x: x / jnp.linalg.norm(x, axis=1, keepdims=True)),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_agree_with_jax(name):
    ours, theirs = ACTIVATIONS[name]
    compare(ours, theirs, [normal(5, 8) * 3])


def test_linear_agrees_with_jax():
    arrays = [normal(2, 3, 5), normal(4, 5, seed=1), normal(4, seed=2)]
    compare(F.linear, lambda x, w, b: x @ w.T + b, arrays)
    compare(F.linear, lambda x, w: x @ w.T, arrays[:2])


def test_embedding_gives_rows_and_leaves_padding_alone():
    table, index = normal(6, 3), np.array([[0, 2, 2], [5, 1, 0]], np.int32)
    compare(lambda w: F.embedding(volta.tensor(index), w), lambda w: w[index], [table])
    weight = volta.tensor(table).requires_grad_(True)
    F.embedding(volta.tensor(index), weight, padding_idx=-4).sum().backward()
    assert weight.grad.numpy().tolist() == [[2.0] * 3, [1.0] * 3, [0.0] * 3, [0.0] * 3, [0.0] * 3, [1.0] * 3]


def conv(dims, transpose=False, **options):
    layout = {1: ("NCH", "OIH", "NCH"), 2: ("NCHW", "OIHW", "NCHW")}[dims]

    def f(x, w, b):
        y = jax.lax.conv_general_dilated(x, w, dimension_numbers=layout, **options)
        return y + b.reshape(1, -1, *[1] * dims)

    return f


def test_convolutions_agree_with_jax():
    compare(
        lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=1, dilation=(1, 2), groups=2),
        conv(2, window_strides=(2, 1), padding=[(1, 1), (1, 1)], rhs_dilation=(1, 2), feature_group_count=2),
        [normal(2, 4, 7, 8), normal(6, 2, 3, 3, seed=1), normal(6, seed=2)],
    )
    compare(
        lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1),
        conv(1, window_strides=(2,), padding=[(1, 1)]),
        [normal(2, 3, 9), normal(5, 3, 3, seed=1), normal(5, seed=2)],
    )
    compare(
        lambda x, w, b: F.conv2d(x, w, b, padding="same"),
        conv(2, window_strides=(1, 1), padding="SAME"),
        [normal(1, 2, 5, 6), normal(3, 2, 3, 5, seed=1), normal(3, seed=2)],
    )


def test_a_transposed_convolution_is_the_gradient_of_one():
    def theirs(x, w, b):
        forward = lambda y: jax.lax.conv_general_dilated(  # noqa: E731
            y, w, (2, 2), [(1, 1), (1, 1)], dimension_numbers=("NCHW", "OIHW", "NCHW")
        )
        (y,) = jax.vjp(forward, jnp.zeros((2, 3, 10, 8)))[1](x)
        return y + b.reshape(1, -1, 1, 1)

    compare(
        lambda x, w, b: F.conv_transpose2d(x, w, b, stride=2, padding=1, output_padding=1),
        theirs,
        [normal(2, 4, 5, 4), normal(4, 3, 3, 3, seed=1), normal(3, seed=2)],
    )


def windows(x, reduce, start, kernel, stride, padding):
    pads = ((0, 0), (0, 0), *[(p, p) for p in padding])
    return jax.lax.reduce_window(x, start, reduce, (1, 1, *kernel), (1, 1, *stride), pads)


def test_pooling_agrees_with_jax():
    x = rng(3).permutation(2 * 3 * 7 * 8).reshape(2, 3, 7, 8).astype(np.float32)
    compare(
        lambda x: F.max_pool2d(x, (3, 2), stride=2, padding=1),
        lambda x: windows(x, jax.lax.max, -jnp.inf, (3, 2), (2, 2), (1, 1)),
        [x],
    )
    compare(
        lambda x: F.avg_pool2d(x, 2),
        lambda x: windows(x, jax.lax.add, 0.0, (2, 2), (2, 2), (0, 0)) / 4,
        [x],
    )
    compare(
        lambda x: F.max_pool1d(x, 3, 2),
        lambda x: windows(x, jax.lax.max, -jnp.inf, (3,), (2,), (0,)),
        [x[:, :, 0]],
    )
    compare(
        lambda x: F.avg_pool1d(x, 4, 2, padding=1),
        lambda x: windows(x, jax.lax.add, 0.0, (4,), (2,), (1,)) / 4,
        [x[:, :, 0]],
    )
    compare(
        lambda x: F.adaptive_avg_pool2d(x, (1, 2)),
        lambda x: jnp.stack([x[..., :4].mean((2, 3)), x[..., 4:].mean((2, 3))], -1)[:, :, None],
        [x],
        atol=1e-3,
    )


def by_statistics(axes, keep=0.0, eps=1e-5):
    return lambda x: (x - keep * 0 - x.mean(axes, keepdims=True)) / jnp.sqrt(x.var(axes, keepdims=True) + eps)


def test_norms_agree_with_jax():
    x, w, b = normal(3, 4, 6), normal(6, seed=1), normal(6, seed=2)
    compare(lambda x, w, b: F.layer_norm(x, 6, w, b), lambda x, w, b: by_statistics(-1)(x) * w + b, [x, w, b])
    compare(lambda x: F.layer_norm(x, (4, 6)), by_statistics((1, 2)), [x])
    rms = lambda x: x / jnp.sqrt((x**2).mean(-1, keepdims=True) + 1e-3)  # noqa: E731
    compare(lambda x, w: F.rms_norm(x, [6], w, eps=1e-3), lambda x, w: rms(x) * w, [x, w])
    channels = [normal(4, seed=1), normal(4, seed=2)]

    def groups(x, w, b):
        y = by_statistics((2, 3))(x.reshape(3, 2, 2, 6)).reshape(3, 4, 6)
        return y * w[:, None] + b[:, None]

    compare(lambda x, w, b: F.group_norm(x, 2, w, b), groups, [x, *channels])
    batch = lambda x, w, b: by_statistics((0, 2))(x) * w[:, None] + b[:, None]  # noqa: E731
    compare(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), batch, [x, *channels])


def test_images_are_resized():
    x = volta.tensor(np.array([[[[1.0, 2.0], [3.0, 4.0]]]], np.float32))
    assert F.interpolate(x, scale_factor=2).numpy()[0, 0, 0].tolist() == [1, 1, 2, 2]
    smooth = F.interpolate(x, size=(3, 3), mode="bilinear", align_corners=True).numpy()[0, 0]
    assert smooth.tolist() == [[1, 1.5, 2], [2, 2.5, 3], [3, 3.5, 4]]
    channels = volta.tensor(np.arange(8, dtype=np.float32).reshape(1, 4, 1, 2))
    assert F.pixel_shuffle(channels, 2).numpy()[0, 0].tolist() == [[0, 2, 1, 3], [4, 6, 5, 7]]
    assert F.pixel_unshuffle(F.pixel_shuffle(channels, 2), 2).numpy().tolist() == channels.numpy().tolist()


def test_padding_goes_from_the_last_axis_to_the_first():
    x = normal(2, 3, 4)
    compare(
        lambda x: F.pad(x, (1, 2, 0, 1), value=3.0),
        lambda x: jnp.pad(x, ((0, 0), (0, 1), (1, 2)), constant_values=3.0),
        [x],
    )
    compare(lambda x: F.pad(x, (-1, 1)), lambda x: jnp.pad(x[..., 1:], ((0, 0), (0, 0), (0, 1))), [x])


def test_dropout_zeroes_a_share_and_scales_the_rest():
    volta.manual_seed(1)
    x = volta.ones(10_000)
    y = F.dropout(x, 0.25).numpy()
    assert set(np.unique(y)) == {np.float32(0), np.float32(1 / 0.75)}
    assert abs((y == 0).mean() - 0.25) < 0.02
    assert F.dropout(x, 0.25, training=False).numpy().min() == 1
    channels = F.dropout2d(volta.ones(4, 50, 3, 3), 0.5).numpy()
    assert all(len(np.unique(c)) == 1 for c in channels.reshape(200, 9))


def test_attention_agrees_with_jax():
    q, k, v = normal(2, 3, 5, 4), normal(2, 3, 6, 4, seed=1), normal(2, 3, 6, 4, seed=2)
    seen = rng(4).random((5, 6)) < 0.7
    seen[:, 0] = True

    def theirs(mask, scale=0.5):
        return lambda q, k, v: (
            jax.nn.softmax(jnp.where(mask, q @ k.swapaxes(-1, -2) * scale, -jnp.inf), -1) @ v
        )

    compare(F.scaled_dot_product_attention, theirs(True), [q, k, v])
    compare(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, attn_mask=volta.tensor(seen)), theirs(seen), [q, k, v]
    )
    square = [q, k[:, :, :5], v[:, :, :5]]
    compare(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.3),
        theirs(np.tril(np.ones((5, 5), bool)), 0.3),
        square,
    )


def test_rotary_positions_turn_pairs_by_angles_that_grow_with_the_place():
    x = normal(2, 3, 4)

    def theirs(x):
        angle = (np.arange(3)[:, None] + 7) * 100.0 ** (-np.arange(2) / 2)
        a, b = x[..., :2], x[..., 2:]
        return jnp.concatenate([a * jnp.cos(angle) - b * jnp.sin(angle), a * jnp.sin(angle) + b * jnp.cos(angle)], -1)

    compare(lambda x: F.rotary(x, start=7, base=100.0), theirs, [x])


def test_one_hot_and_similarity():
    assert F.one_hot(volta.tensor([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]
    assert F.one_hot(volta.tensor([2, 0])).shape == (2, 3)

    def theirs(a, b):
        return (a * b).sum(1) / jnp.linalg.norm(a, axis=1) / jnp.linalg.norm(b, axis=1)

    compare(F.cosine_similarity, theirs, [normal(4, 5), normal(4, 5, seed=1)])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: F.linear(volta.ones(2, 3), volta.ones(4, 5)), ValueError, "linear"),
        (lambda: F.conv2d(volta.ones(1, 3, 4, 4), volta.ones(2, 2, 3, 3)), ValueError, "conv2d"),
        (lambda: F.conv2d(volta.ones(1, 1, 4, 4), volta.ones(1, 1, 3, 3), stride=(1, 2, 3)), ValueError, "stride"),
        (lambda: F.gelu(volta.ones(2), approximate="fast"), ValueError, "approximate"),
        (lambda: F.mse_loss(volta.ones(2), volta.ones(2), reduction="average"), ValueError, "reduction"),
        (lambda: F.softmax(volta.ones(2), 3), IndexError, "softmax"),
        (lambda: F.softmax(volta.ones(2, 2)), TypeError, "softmax needs the axis"),
        (lambda: F.log_softmax(volta.ones(2, 2, 2)), TypeError, "log_softmax needs the axis"),
        (lambda: volta.nn.Softmax(), TypeError, "Softmax needs the axis"),
        (lambda: volta.nn.LogSoftmax(), TypeError, "LogSoftmax needs the axis"),
        (lambda: F.glu(volta.ones(2, 3)), ValueError, "glu.*must be even"),
        (lambda: F.interpolate(volta.ones(1, 1, 2, 2), size=3, mode="cubic"), ValueError, "cubic"),
        (lambda: F.batch_norm(volta.ones(2, 3), None, None), ValueError, "running_mean"),
        (lambda: F.relu(3), TypeError, "Tensor"),
        (lambda: F.dropout(volta.ones(3), 2.0), ValueError, "dropout"),
    ],
)
def test_misuse_raises_with_the_name_of_the_function(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_padding_keeps_all_digits_of_integers():
    assert F.pad(volta.tensor([1]), (1, 0), value=2**53 + 1).tolist() == [2**53 + 1, 1]
    assert F.pad(volta.arange(5.0), (-1, -2)).tolist() == [1, 2] and F.pad(volta.arange(3.0), (-3, 1)).tolist() == [0]
