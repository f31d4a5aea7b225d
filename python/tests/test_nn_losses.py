"""Losses against JAX: values and gradients, by function and by module."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nn_reference import compare, normal, rng

import volta
import volta.nn.functional as F
from volta import nn

CLASSES = np.array([2, 0, 4, 1], np.int32)


def picked(logits, classes=CLASSES):
    return jnp.take_along_axis(jax.nn.log_softmax(logits, 1), classes[:, None], 1)[:, 0]


def huber(delta, scale=1.0):
    def f(x, y):
        d = jnp.abs(x - y)
        return (jnp.where(d < delta, d * d / 2, delta * (d - delta / 2)) * scale).mean()

    return f


X, Y = normal(4, 5), normal(4, 5, seed=1)
PROBABILITIES = rng(2).uniform(0.05, 0.95, (4, 5)).astype(np.float32)
BITS = (Y > 0).astype(np.float32)


def target(f):
    return lambda x: f(x, volta.tensor(CLASSES))


PAIRS = {
    "mse": (F.mse_loss, lambda x, y: ((x - y) ** 2).mean(), [X, Y]),
    "mse sum": (lambda x, y: F.mse_loss(x, y, reduction="sum"), lambda x, y: ((x - y) ** 2).sum(), [X, Y]),
    "mse none": (lambda x, y: F.mse_loss(x, y, reduction="none"), lambda x, y: (x - y) ** 2, [X, Y]),
    "l1": (nn.L1Loss(), lambda x, y: jnp.abs(x - y).mean(), [X, Y]),
    "huber": (nn.HuberLoss(delta=0.7), huber(0.7), [X, Y]),
    "smooth l1": (nn.SmoothL1Loss(beta=0.5), huber(0.5, 2.0), [X, Y]),
    "cross-entropy": (target(F.cross_entropy), lambda x: -picked(x).mean(), [X]),
    "smoothed cross-entropy": (
        target(nn.CrossEntropyLoss(label_smoothing=0.1)),
        lambda x: -(0.9 * picked(x) + 0.1 * jax.nn.log_softmax(x, 1).mean(1)).mean(),
        [X],
    ),
    "cross-entropy that ignores a class": (
        target(nn.CrossEntropyLoss(ignore_index=4)),
        lambda x: -picked(x)[np.array([0, 1, 3])].mean(),
        [X],
    ),
    "weighted cross-entropy": (
        target(nn.CrossEntropyLoss(weight=volta.tensor(np.arange(1, 6, dtype=np.float32)))),
        lambda x: -(picked(x) * (CLASSES + 1)).sum() / (CLASSES + 1).sum(),
        [X],
    ),
    "cross-entropy of probabilities": (
        F.cross_entropy,
        lambda x, p: -(p * jax.nn.log_softmax(x, 1)).sum(1).mean(),
        [X, PROBABILITIES],
    ),
    "nll": (lambda x: target(nn.NLLLoss())(F.log_softmax(x, 1)), lambda x: -picked(x).mean(), [X]),
    "bce": (nn.BCELoss(), lambda p: -(BITS * jnp.log(p) + (1 - BITS) * jnp.log(1 - p)).mean(), [PROBABILITIES]),
    "bce with logits": (
        nn.BCEWithLogitsLoss(pos_weight=volta.tensor(3.0)),
        lambda x: -(3 * BITS * jax.nn.log_sigmoid(x) + (1 - BITS) * jax.nn.log_sigmoid(-x)).mean(),
        [X],
    ),
    "kl": (
        nn.KLDivLoss(reduction="batchmean"),
        lambda x: (PROBABILITIES * (np.log(PROBABILITIES) - x)).sum() / 4,
        [X],
    ),
    "triplet": (
        nn.TripletMarginLoss(margin=0.5),
        lambda a, p, n: jax.nn.relu(jnp.linalg.norm(a - p + 1e-6, axis=1) - jnp.linalg.norm(a - n + 1e-6, axis=1) + 0.5).mean(),
        [X, Y, normal(4, 5, seed=3)],
    ),
}
SECOND = {"bce": BITS, "bce with logits": BITS, "kl": PROBABILITIES}


@pytest.mark.parametrize("name", PAIRS)
def test_losses_agree_with_jax(name):
    ours, theirs, arrays = PAIRS[name]
    if name in SECOND:
        other, loss = volta.tensor(SECOND[name]), ours
        ours = lambda x: loss(x, other)  # noqa: E731
    compare(ours, theirs, arrays)


def test_the_cross_entropy_of_images_has_its_classes_on_axis_1():
    logits, classes = normal(2, 3, 4, 5), rng(1).integers(0, 3, (2, 4, 5)).astype(np.int32)

    def theirs(x):
        return -jnp.take_along_axis(jax.nn.log_softmax(x, 1), classes[:, None], 1).mean()

    compare(lambda x: F.cross_entropy(x, volta.tensor(classes)), theirs, [logits])


def test_cosine_embedding_tells_pairs_apart():
    sign = np.array([1, -1, 1, -1], np.int32)

    def theirs(a, b):
        cos = (a * b).sum(1) / jnp.linalg.norm(a, axis=1) / jnp.linalg.norm(b, axis=1)
        return jnp.where(sign == 1, 1 - cos, jax.nn.relu(cos - 0.1)).mean()

    loss = nn.CosineEmbeddingLoss(margin=0.1)
    compare(lambda a, b: loss(a, b, volta.tensor(sign)), theirs, [X, Y])


def test_linear_cross_entropy_is_the_cross_entropy_of_a_linear_layer():
    x, w, b = normal(4, 6), normal(5, 6, seed=1), normal(5, seed=2)
    compare(
        lambda x, w, b: F.linear_cross_entropy(x, w, volta.tensor(CLASSES), bias=b),
        lambda x, w, b: -picked(x @ w.T + b).mean(),
        [x, w, b],
    )


def test_a_reduction_that_is_none_of_three_is_refused_when_the_module_is_made():
    with pytest.raises(ValueError, match="average"):
        nn.MSELoss(reduction="average")


def test_shapes_that_do_not_fit_are_named():
    with pytest.raises(ValueError, match="cross_entropy"):
        F.cross_entropy(volta.ones(4, 5), volta.tensor([0, 1]))
