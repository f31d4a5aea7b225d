"""The table of ops: what Volta computes, and the same by JAX."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

import volta


@dataclass
class Row:
    """An op of one or more tensors; `inputs` are (shape, low, high), integer arrays or bool arrays."""

    name: str
    ours: object
    theirs: object
    inputs: list
    grad: bool = True
    # Factor on the tolerance, for what loses digits by its nature.
    loose: float = 1.0


WIDE = ((3, 4), -2.0, 2.0)
ABOVE = ((3, 4), 0.2, 3.0)

# PyTorch's name, JAX's function, the range of its argument.
UNARY = {
    "neg": (jnp.negative, WIDE),
    "abs": (jnp.abs, WIDE),
    "reciprocal": (jnp.reciprocal, ABOVE),
    "sqrt": (jnp.sqrt, ABOVE),
    "rsqrt": (jax.lax.rsqrt, ABOVE),
    "square": (jnp.square, WIDE),
    "exp": (jnp.exp, WIDE),
    "expm1": (jnp.expm1, WIDE),
    "exp2": (jnp.exp2, WIDE),
    "log": (jnp.log, ABOVE),
    "log1p": (jnp.log1p, ABOVE),
    "log2": (jnp.log2, ABOVE),
    "sin": (jnp.sin, WIDE),
    "cos": (jnp.cos, WIDE),
    "tan": (jnp.tan, ((3, 4), -1.2, 1.2)),
    "tanh": (jnp.tanh, WIDE),
    "sigmoid": (jax.nn.sigmoid, WIDE),
    "erf": (jax.lax.erf, WIDE),
    "erfc": (jax.lax.erfc, WIDE),
    "sign": (jnp.sign, WIDE),
    "floor": (jnp.floor, WIDE),
    "ceil": (jnp.ceil, WIDE),
    "trunc": (jnp.trunc, WIDE),
    "round": (jnp.round, WIDE),
    "relu": (jax.nn.relu, WIDE),
    "relu6": (jax.nn.relu6, ((3, 4), -3.0, 9.0)),
    "silu": (jax.nn.silu, WIDE),
    "mish": (jax.nn.mish, WIDE),
    "softsign": (jax.nn.soft_sign, WIDE),
    "hardsigmoid": (jax.nn.hard_sigmoid, ((3, 4), -5.0, 5.0)),
    "hardswish": (jax.nn.hard_swish, ((3, 4), -5.0, 5.0)),
    "logsigmoid": (jax.nn.log_sigmoid, WIDE),
    "gelu": (lambda x: jax.nn.gelu(x, approximate=False), WIDE),
    "softplus": (jax.nn.softplus, WIDE),
    "elu": (jax.nn.elu, WIDE),
    "leaky_relu": (jax.nn.leaky_relu, WIDE),
    "hardtanh": (jax.nn.hard_tanh, WIDE),
}

ROWS = [Row(name, getattr(volta, name), theirs, [inputs]) for name, (theirs, inputs) in UNARY.items()]

OTHER = ((4,), 0.5, 2.0)
BINARY = {
    "add": (lambda a, b: a + b, lambda a, b: a + b, WIDE),
    "sub": (lambda a, b: a - b, lambda a, b: a - b, WIDE),
    "mul": (lambda a, b: a * b, lambda a, b: a * b, WIDE),
    "div": (lambda a, b: a / b, lambda a, b: a / b, WIDE),
    "pow": (lambda a, b: a**b, lambda a, b: a**b, ABOVE),
    "maximum": (volta.maximum, jnp.maximum, WIDE),
    "minimum": (volta.minimum, jnp.minimum, WIDE),
    "remainder": (lambda a, b: a % b, lambda a, b: a % b, WIDE),
    "add alpha": (lambda a, b: volta.add(a, b, alpha=0.5), lambda a, b: a + 0.5 * b, WIDE),
    "sub alpha": (lambda a, b: a.sub(b, alpha=2), lambda a, b: a - 2 * b, WIDE),
    "rsub": (lambda a, b: a.rsub(b), lambda a, b: b - a, WIDE),
    "number on the left": (lambda a, b: 2.5 - a + 3 / b + 2**a, lambda a, b: 2.5 - a + 3 / b + 2**a, WIDE),
    "numbers on the right": (lambda a, b: (a - 1) * 2 / 3 + b**2, lambda a, b: (a - 1) * 2 / 3 + b**2, WIDE),
}
ROWS += [Row(name, ours, theirs, [inputs, OTHER]) for name, (ours, theirs, inputs) in BINARY.items()]

CUBE = ((2, 3, 4), -2.0, 2.0)
POSITIONS = np.array([[0, 2, 1, 0], [2, 2, 0, 1]])
MASK = np.arange(24).reshape(2, 3, 4) % 3 == 0


def stable_log_sum(x, axis, keepdims=False):
    return jax.scipy.special.logsumexp(x, axis=axis, keepdims=keepdims)


def norm(x, p, axis, keepdims=False):
    return jnp.sum(jnp.abs(x) ** p, axis=axis, keepdims=keepdims) ** (1 / p)


ROWS += [
    Row("sum", lambda x: x.sum(), jnp.sum, [CUBE]),
    Row("sum dim", lambda x: x.sum(1), lambda x: x.sum(1), [CUBE]),
    Row("sum dims keepdim", lambda x: x.sum((0, -1), keepdim=True), lambda x: x.sum((0, 2), keepdims=True), [CUBE]),
    Row("mean", lambda x: x.mean(dim=-1), lambda x: x.mean(-1), [CUBE]),
    Row("mean all", volta.mean, jnp.mean, [CUBE]),
    Row("prod", lambda x: x.prod(2), lambda x: x.prod(2), [CUBE]),
    Row("prod all", volta.prod, jnp.prod, [WIDE]),
    Row("amax", lambda x: x.amax((0, 2)), lambda x: x.max((0, 2)), [CUBE]),
    Row("amin", lambda x: x.amin(1, keepdim=True), lambda x: x.min(1, keepdims=True), [CUBE]),
    Row("max", volta.max, jnp.max, [CUBE]),
    Row("min", volta.min, jnp.min, [CUBE]),
    Row("max dim", lambda x: x.max(dim=1).values, lambda x: x.max(1), [CUBE]),
    Row("min dim", lambda x: volta.min(x, -1, keepdim=True)[0], lambda x: x.min(-1, keepdims=True), [CUBE]),
    Row("max of two", lambda a, b: volta.max(a, b), jnp.maximum, [WIDE, OTHER]),
    Row("min of two", lambda a, b: a.min(b), jnp.minimum, [WIDE, OTHER]),
    Row("var", lambda x: x.var(), lambda x: x.var(ddof=1), [CUBE]),
    Row("var dim", lambda x: x.var(1, correction=0), lambda x: x.var(1), [CUBE]),
    Row("std", lambda x: x.std((0, 1)), lambda x: x.std((0, 1), ddof=1), [CUBE]),
    Row("std biased", lambda x: x.std(0, unbiased=False, keepdim=True), lambda x: x.std(0, keepdims=True), [CUBE]),
    Row("norm", lambda x: x.norm(), lambda x: norm(x, 2, None), [CUBE]),
    Row("norm 1", lambda x: x.norm(1, dim=1), lambda x: norm(x, 1, 1), [CUBE]),
    Row("norm 3", lambda x: volta.norm(x, 3, (0, 1), True), lambda x: norm(x, 3, (0, 1), True), [CUBE], loose=3),
    Row("norm inf", lambda x: x.norm(float("inf"), -1), lambda x: jnp.abs(x).max(-1), [CUBE]),
    Row("logsumexp", lambda x: x.logsumexp(1), lambda x: stable_log_sum(x, 1), [CUBE]),
    Row("logsumexp dims", lambda x: x.logsumexp((0, 2), True), lambda x: stable_log_sum(x, (0, 2), True), [CUBE]),
    Row("softmax", lambda x: x.softmax(-1), lambda x: jax.nn.softmax(x, -1), [CUBE]),
    Row("softmax dim 0", lambda x: volta.softmax(x, dim=0), lambda x: jax.nn.softmax(x, 0), [CUBE]),
    Row("log_softmax", lambda x: x.log_softmax(1), lambda x: jax.nn.log_softmax(x, 1), [CUBE]),
    Row("median", lambda x: x.median(-1).values, lambda x: jnp.sort(x, -1)[..., 1], [CUBE]),
    Row("median all", volta.median, lambda x: jnp.sort(x.ravel())[11], [CUBE]),
    Row("sort", lambda x: x.sort(1)[0], lambda x: jnp.sort(x, 1), [CUBE]),
    Row("sort descending", lambda x: x.sort(descending=True).values, lambda x: -jnp.sort(-x, -1), [CUBE]),
    Row("topk", lambda x: x.topk(2).values, lambda x: jax.lax.top_k(x, 2)[0], [CUBE]),
    Row("topk smallest", lambda x: x.topk(1, 0, largest=False)[0], lambda x: jnp.sort(x, 0)[:1], [CUBE]),
    Row("cumsum", lambda x: x.cumsum(1), lambda x: jnp.cumsum(x, 1), [CUBE]),
    Row("cumprod", lambda x: x.cumprod(-1), lambda x: jnp.cumprod(x, -1), [CUBE]),
    Row("diff", lambda x: x.diff(), lambda x: jnp.diff(x), [CUBE]),
    Row("diff twice", lambda x: volta.diff(x, 2, 1), lambda x: jnp.diff(x, 2, 1), [CUBE]),
    Row("normalize", lambda x: x.normalize(dim=-1), lambda x: x / norm(x, 2, -1, True), [CUBE]),
    Row(
        "cosine_similarity",
        lambda a, b: volta.cosine_similarity(a, b, dim=-1),
        lambda a, b: (a * b).sum(-1) / (norm(a, 2, -1) * norm(b, 2, -1)),
        [CUBE, ((2, 3, 4), 0.5, 2.0)],
    ),
    Row("clamp", lambda x: x.clamp(-1, 1.5), lambda x: jnp.clip(x, -1, 1.5), [CUBE]),
    Row("clamp min", lambda x: x.clamp(min=0.5), lambda x: jnp.maximum(x, 0.5), [CUBE]),
    Row("clip max", lambda x: volta.clip(x, max=0.5), lambda x: jnp.minimum(x, 0.5), [CUBE]),
    Row("gelu tanh", lambda x: x.gelu(approximate="tanh"), jax.nn.gelu, [CUBE]),
    Row("softplus beta", lambda x: x.softplus(2, 20), lambda x: jax.nn.softplus(2 * x) / 2, [CUBE]),
    Row("elu alpha", lambda x: x.elu(0.5), lambda x: jax.nn.elu(x, 0.5), [CUBE]),
    Row("prelu", lambda x, w: x.prelu(w), lambda x, w: jnp.where(x > 0, x, w[:, None] * x), [CUBE, ((3,), 0.1, 0.5)]),
    Row("floor_divide", lambda a, b: a // b, lambda a, b: a // b, [WIDE, OTHER], False),
    Row("div floor", lambda a, b: a.div(b, rounding_mode="floor"), lambda a, b: jnp.floor(a / b), [WIDE, OTHER], False),
    Row("div trunc", lambda a, b: a.div(b, rounding_mode="trunc"), lambda a, b: jnp.trunc(a / b), [WIDE, OTHER]),
]

ROWS += [
    Row("reshape", lambda x: x.reshape(4, -1), lambda x: x.reshape(4, 6), [CUBE]),
    Row("view", lambda x: x.view((6, 4)), lambda x: x.reshape(6, 4), [CUBE]),
    Row("permute", lambda x: x.permute(2, 0, 1), lambda x: x.transpose(2, 0, 1), [CUBE]),
    Row("transpose", lambda x: x.transpose(0, -1), lambda x: x.swapaxes(0, 2), [CUBE]),
    Row("movedim", lambda x: x.movedim((0, 1), (1, 2)), lambda x: jnp.moveaxis(x, (0, 1), (1, 2)), [CUBE]),
    Row("T", lambda x: x.T @ x, lambda x: x.T @ x, [WIDE]),
    Row("mT", lambda x: x.mT, lambda x: x.swapaxes(1, 2), [CUBE]),
    Row("t", lambda x: x.t(), lambda x: x.T, [WIDE]),
    Row("expand", lambda x: x.expand(2, -1, 4), lambda x: jnp.broadcast_to(x, (2, 3, 4)), [((3, 1), -2, 2)]),
    Row("broadcast_to", lambda x: volta.broadcast_to(x, (2, 4)), lambda x: jnp.broadcast_to(x, (2, 4)), [OTHER]),
    Row("squeeze", lambda x: x.squeeze(), lambda x: x.squeeze(), [((1, 3, 1), -2, 2)]),
    Row("squeeze dim", lambda x: x.squeeze(0), lambda x: x[0], [((1, 3, 1), -2, 2)]),
    Row("squeeze dims", lambda x: x.squeeze((0, -1)), lambda x: x.squeeze((0, 2)), [((1, 3, 1), -2, 2)]),
    Row("unsqueeze", lambda x: x.unsqueeze(-1), lambda x: x[..., None], [WIDE]),
    Row("flatten", lambda x: x.flatten(1), lambda x: x.reshape(2, 12), [CUBE]),
    Row("ravel", lambda x: x.ravel(), lambda x: x.ravel(), [CUBE]),
    Row("unflatten", lambda x: x.unflatten(1, (2, -1)), lambda x: x.reshape(3, 2, 2), [WIDE]),
    Row("narrow", lambda x: x.narrow(1, 1, 2), lambda x: x[:, 1:3], [CUBE]),
    Row("narrow negative", lambda x: x.narrow(1, -2, 2), lambda x: x[:, -2:], [CUBE]),
    Row("select", lambda x: x.select(2, -1), lambda x: x[..., -1], [CUBE]),
    Row("flip", lambda x: x.flip(0, 2), lambda x: jnp.flip(x, (0, 2)), [CUBE]),
    Row("roll", lambda x: x.roll(1, 1), lambda x: jnp.roll(x, 1, 1), [CUBE]),
    Row("roll flat", lambda x: volta.roll(x, 3), lambda x: jnp.roll(x, 3), [CUBE]),
    Row("unfold", lambda x: x.unfold(1, 2, 2), lambda x: jnp.stack([x[:, :2], x[:, 2:]], 1), [WIDE]),
    Row("repeat", lambda x: x.repeat(2, 1, 3), lambda x: jnp.tile(x, (2, 1, 3)), [WIDE]),
    Row("tile", lambda x: x.tile((2,)), lambda x: jnp.tile(x, 2), [WIDE]),
    Row("repeat_interleave", lambda x: x.repeat_interleave(2, 1), lambda x: jnp.repeat(x, 2, 1), [WIDE]),
    Row("split", lambda x: x.split(2, 1)[1], lambda x: x[:, 2:], [CUBE]),
    Row("split sizes", lambda x: x.split([1, 3], dim=-1)[1], lambda x: x[..., 1:], [CUBE]),
    Row("chunk", lambda x: x.chunk(2, 2)[0], lambda x: x[..., :2], [CUBE]),
    Row("unbind", lambda x: x.unbind(1)[2], lambda x: x[:, 2], [CUBE]),
    Row("tril", lambda x: x.tril(1), lambda x: jnp.tril(x, 1), [CUBE]),
    Row("triu", lambda x: volta.triu(x), jnp.triu, [CUBE]),
    Row("pad", lambda x: x.pad((1, 2, 0, 1), value=3.0), lambda x: jnp.pad(x, ((0, 0), (0, 1), (1, 2)), constant_values=3.0), [CUBE]),
    Row("pad negative", lambda x: volta.pad(x, [-1, 1]), lambda x: jnp.pad(x[:, 1:], ((0, 0), (0, 1))), [WIDE]),
    Row("masked_fill", lambda x: x.masked_fill(volta.tensor(MASK), -1.0), lambda x: jnp.where(MASK, -1.0, x), [CUBE]),
    Row("masked_select", lambda x: x.masked_select(volta.tensor(MASK)), lambda x: x[MASK], [CUBE]),
    Row("where", lambda a, b: volta.where(a > 0, a, b), lambda a, b: jnp.where(a > 0, a, b), [WIDE, OTHER]),
    Row("Tensor.where", lambda a, b: a.where(a < 0, b), lambda a, b: jnp.where(a < 0, a, b), [WIDE, OTHER]),
    Row("where number", lambda a: volta.where(a > 0, a, 0.5), lambda a: jnp.where(a > 0, a, 0.5), [WIDE]),
    Row("gather", lambda x: x.gather(0, volta.tensor(POSITIONS)), lambda x: jnp.take_along_axis(x, POSITIONS, 0), [WIDE]),
    Row("index_select", lambda x: x.index_select(1, volta.tensor([0, 2, 2])), lambda x: x[:, jnp.array([0, 2, 2])], [CUBE]),
    Row(
        "scatter_add",
        lambda x, v: x.scatter_add(0, volta.tensor(POSITIONS), v),
        lambda x, v: x.at[POSITIONS, jnp.arange(4)].add(v),
        [WIDE, ((2, 4), -2, 2)],
    ),
    Row("clone", lambda x: x.clone(), lambda x: x, [CUBE]),
    Row("cat", lambda a, b: volta.cat([a, b], 0), lambda a, b: jnp.concatenate([a, b], 0), [WIDE, ((2, 4), -2, 2)]),
    Row("stack", lambda a, b: volta.stack((a, b), dim=1), lambda a, b: jnp.stack([a, b], 1), [WIDE, ((3, 4), -1, 1)]),
    Row("matmul", lambda a, b: a @ b, lambda a, b: a @ b, [WIDE, ((4, 2), -2, 2)], loose=3),
    Row("matmul batch", volta.matmul, jnp.matmul, [CUBE, ((4, 5), -2, 2)], loose=3),
    Row("matmul vector", lambda a, b: a.matmul(b), jnp.matmul, [CUBE, OTHER], loose=3),
    Row("mm", volta.mm, jnp.matmul, [WIDE, ((4, 2), -2, 2)], loose=3),
    Row("bmm", volta.bmm, jnp.matmul, [CUBE, ((2, 4, 2), -2, 2)], loose=3),
    Row("mv", volta.mv, jnp.matmul, [WIDE, OTHER], loose=3),
    Row("dot", volta.dot, jnp.dot, [OTHER, ((4,), -2, 2)], loose=3),
    Row("outer", volta.outer, jnp.outer, [OTHER, ((3,), -2, 2)]),
    Row("einsum", lambda a, b: volta.einsum("bij,jk->bki", a, b), lambda a, b: jnp.einsum("bij,jk->bki", a, b), [CUBE, ((4, 2), -2, 2)], loose=3),
    Row("index mix", lambda x: x[1, :, ::2], lambda x: x[1, :, ::2], [CUBE]),
    Row("index array", lambda x: x[:, [2, 0, 2]], lambda x: x[:, jnp.array([2, 0, 2])], [CUBE]),
    Row("index mask", lambda x: x[volta.tensor(MASK)], lambda x: x[MASK], [CUBE]),
    Row("to float64 and back", lambda x: x.double().to(x.dtype), lambda x: x, [CUBE]),
]

# Ops whose results are truth values or positions.
DISCRETE = [
    Row("lt", lambda a, b: a < b, lambda a, b: a < b, [WIDE, OTHER]),
    Row("le", lambda a, b: a <= b, lambda a, b: a <= b, [WIDE, OTHER]),
    Row("gt", lambda a, b: volta.gt(a, b), lambda a, b: a > b, [WIDE, OTHER]),
    Row("ge", lambda a, b: a.ge(b), lambda a, b: a >= b, [WIDE, OTHER]),
    Row("eq", lambda a, b: a == a.relu(), lambda a, b: a == jnp.maximum(a, 0), [WIDE, OTHER]),
    Row("ne", lambda a, b: a != a.relu(), lambda a, b: a != jnp.maximum(a, 0), [WIDE, OTHER]),
    Row("isnan", lambda a, b: (a.log()).isnan(), lambda a, b: jnp.isnan(jnp.log(a)), [WIDE, OTHER]),
    Row("isinf", lambda a, b: (a / a.relu()).isinf(), lambda a, b: jnp.isinf(a / jnp.maximum(a, 0)), [WIDE, OTHER]),
    Row("isfinite", lambda a, b: (a / a.relu()).isfinite(), lambda a, b: jnp.isfinite(a / jnp.maximum(a, 0)), [WIDE, OTHER]),
    Row("isclose", lambda a, b: a.isclose(a + 1e-9), lambda a, b: jnp.isclose(a, a + 1e-9), [WIDE, OTHER]),
    Row("logical_and", lambda a, b: (a > 0) & (b > 1), lambda a, b: (a > 0) & (b > 1), [WIDE, OTHER]),
    Row("logical_or", lambda a, b: (a > 0) | (b > 1), lambda a, b: (a > 0) | (b > 1), [WIDE, OTHER]),
    Row("logical_xor", lambda a, b: (a > 0) ^ (b > 1), lambda a, b: (a > 0) ^ (b > 1), [WIDE, OTHER]),
    Row("logical_not", lambda a, b: ~(a > 0), lambda a, b: ~(a > 0), [WIDE, OTHER]),
    Row("logical functions", lambda a, b: volta.logical_or(a.relu(), b), lambda a, b: jnp.logical_or(jnp.maximum(a, 0), b), [WIDE, OTHER]),
    Row("any", lambda a, b: (a > 1).any(1), lambda a, b: (a > 1).any(1), [WIDE, OTHER]),
    Row("all", lambda a, b: (a > -2).all(), lambda a, b: (a > -2).all(), [WIDE, OTHER]),
    Row("argmax", lambda a, b: a.argmax(1), lambda a, b: a.argmax(1), [WIDE, OTHER]),
    Row("argmax all", lambda a, b: a.argmax(), lambda a, b: a.argmax(), [WIDE, OTHER]),
    Row("argmin", lambda a, b: a.argmin(0, keepdim=True), lambda a, b: a.argmin(0, keepdims=True), [WIDE, OTHER]),
    Row("argsort", lambda a, b: a.argsort(), lambda a, b: jnp.argsort(a), [WIDE, OTHER]),
    Row("sort positions", lambda a, b: a.sort(0).indices, lambda a, b: jnp.argsort(a, 0), [WIDE, OTHER]),
    Row("max positions", lambda a, b: a.max(0).indices, lambda a, b: a.argmax(0), [WIDE, OTHER]),
    Row("topk positions", lambda a, b: a.topk(2)[1], lambda a, b: jax.lax.top_k(a, 2)[1], [WIDE, OTHER]),
    Row("nonzero", lambda a, b: a.relu().nonzero(), lambda a, b: jnp.argwhere(jnp.maximum(a, 0)), [WIDE, OTHER]),
    Row("where alone", lambda a, b: volta.where(a > 0)[1], lambda a, b: jnp.where(a > 0)[1], [WIDE, OTHER]),
    Row("one_hot", lambda a, b: a.argmax(1).one_hot(5), lambda a, b: jax.nn.one_hot(a.argmax(1), 5, dtype=int), [WIDE, OTHER]),
]
