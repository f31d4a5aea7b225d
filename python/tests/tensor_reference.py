"""What the tests of tensors share: JAX on the CPU as the reference, and numbers to compare on."""

import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax  # noqa: E402
import numpy as np  # noqa: E402

import volta  # noqa: E402

# JAX has 64 bits only where it is told so; the tests of layers are about 32.
in_64_bits = jax.enable_x64

# How far results may be apart, relative and absolute, by type.
TOLERANCE = {
    "float64": (1e-10, 1e-12),
    "float32": (2e-5, 2e-6),
    "float16": (4e-3, 2e-3),
    "bfloat16": (3e-2, 2e-2),
}


def numbers(shape, low=-2.0, high=2.0, dtype="float64", seed=0):
    """Random numbers from `low` to `high`."""
    rng = np.random.default_rng(seed + 7919 * len(shape) + sum(shape))
    return rng.uniform(low, high, shape).astype(dtype)


def close(actual, expected, dtype="float32", factor=1.0):
    """Asserts that a tensor has the values of an array, and its shape."""
    actual = actual.detach().cpu()
    if actual.dtype == volta.bfloat16:
        actual = actual.float()
    rtol, atol = TOLERANCE.get(dtype, (0, 0))
    expected = np.asarray(expected)
    assert actual.shape == expected.shape, f"{actual.shape} is not {expected.shape}"
    np.testing.assert_allclose(actual.numpy(), expected, rtol=rtol * factor, atol=atol * factor)
