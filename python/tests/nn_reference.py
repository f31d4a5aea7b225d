"""Comparing functions of tensors with the same functions of JAX: values, and gradients of a weighted sum."""

import jax
import jax.numpy as jnp
import numpy as np

import volta

jax.config.update("jax_platforms", "cpu")


def rng(seed=0):
    return np.random.default_rng(seed)


def normal(*shape, seed=0):
    return rng(seed).standard_normal(shape).astype(np.float32)


def compare(ours, theirs, arrays, rtol=2e-4, atol=2e-5):
    """`ours` of tensors and `theirs` of arrays agree, and so do the gradients of all float arrays."""
    floats = [k for k, a in enumerate(arrays) if a.dtype == np.float32]
    tensors = [volta.tensor(a) for a in arrays]
    for k in floats:
        tensors[k].requires_grad_(True)
    value = ours(*tensors)

    def of_floats(*given):
        whole = list(map(jnp.asarray, arrays))
        for k, g in zip(floats, given):
            whole[k] = g
        return theirs(*whole)

    given = [jnp.asarray(arrays[k]) for k in floats]
    weights = normal(*jax.eval_shape(of_floats, *given).shape, seed=9)

    # One compilation for all: op by op, JAX would compile each.
    @jax.jit
    def reference(*given):
        expected, pull = jax.vjp(of_floats, *given)
        return expected, pull(jnp.asarray(weights))

    expected, gradients = reference(*given)
    np.testing.assert_allclose(value.detach().numpy(), np.asarray(expected), rtol=rtol, atol=atol)
    (value * volta.tensor(weights)).sum().backward()
    for k, gradient in zip(floats, gradients):
        found = tensors[k].grad
        found = np.zeros_like(arrays[k]) if found is None else found.numpy()
        np.testing.assert_allclose(found, np.asarray(gradient), rtol=rtol, atol=max(atol, 1e-4), err_msg=f"argument {k}")
