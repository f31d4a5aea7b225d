"""First values of parameters, written in place, under PyTorch's names."""

from __future__ import annotations

import math

from .._volta import Tensor
from .._volta import _nn as _native


def _drawn(tensor: Tensor, value: Tensor) -> Tensor:
    _native.assign(tensor, value)
    return tensor


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs an output has, and how many outputs an input has."""
    shape = tensor.shape
    if len(shape) < 2:
        raise ValueError(f"a tensor of shape {tuple(shape)} has no fan: two axes are needed")
    space = math.prod(shape[2:])
    return shape[1] * space, shape[0] * space


def _fan(tensor: Tensor, mode: str) -> int:
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f'mode is {mode!r}: use "fan_in" or "fan_out"')
    return _fans(tensor)[mode == "fan_out"]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """The factor that keeps the scale of signals through a nonlinearity."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return math.sqrt(2.0 / (1 + slope**2))
    gains = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv_transpose2d": 1.0, "sigmoid": 1.0}
    gains |= {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 0.75}
    if nonlinearity not in gains:
        raise ValueError(f"{nonlinearity!r} is not among {', '.join([*gains, 'leaky_relu'])}")
    return gains[nonlinearity]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0) -> Tensor:
    """Uniform between `a` and `b`."""
    middle, bound = (a + b) / 2, (b - a) / 2
    value = _native.init_uniform(tensor.shape, bound, tensor.device)
    return _drawn(tensor, value + middle if middle else value)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0) -> Tensor:
    """Normal."""
    return _drawn(tensor, _native.init_normal(tensor.shape, mean, std, tensor.device))


def trunc_normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, a: float = -2.0, b: float = 2.0) -> Tensor:
    """Normal, drawn again wherever it lies outside of `a` to `b`; drawn on the CPU."""
    import volta

    if not a < b or b < mean - 6 * std or a > mean + 6 * std:
        raise ValueError(f"there is nothing to draw between {a} and {b} with mean {mean} and deviation {std}")
    value = _native.init_normal(tensor.shape, mean, std, "cpu").numpy().copy()
    outside = (value < a) | (value > b)
    while outside.any():
        value[outside] = _native.init_normal([int(outside.sum())], mean, std, "cpu").numpy()
        outside = (value < a) | (value > b)
    return _drawn(tensor, volta.tensor(value))


def constant_(tensor: Tensor, val: float) -> Tensor:
    """One number everywhere."""
    return _drawn(tensor, _native.init_constant(tensor.shape, val, tensor.device, tensor.dtype))


def zeros_(tensor: Tensor) -> Tensor:
    """Zeros."""
    return constant_(tensor, 0.0)


def ones_(tensor: Tensor) -> Tensor:
    """Ones."""
    return constant_(tensor, 1.0)


def eye_(tensor: Tensor) -> Tensor:
    """Ones on the diagonal of a matrix, zeros elsewhere."""
    import volta

    rows, columns = tensor.shape
    size = max(rows, columns)
    return _drawn(tensor, volta.eye(size)[:rows, :columns])


def xavier_uniform_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Uniform within ±gain·√(6 / (fan_in + fan_out)) (Glorot and Bengio, 2010)."""
    bound = gain * math.sqrt(6.0 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound)


def xavier_normal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """Normal with gain·√(2 / (fan_in + fan_out))."""
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_fans(tensor))))


def kaiming_uniform_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Uniform within ±gain·√(3 / fan) (He et al., 2015)."""
    bound = calculate_gain(nonlinearity, a) * math.sqrt(3.0 / max(_fan(tensor, mode), 1))
    return uniform_(tensor, -bound, bound)


def kaiming_normal_(
    tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu"
) -> Tensor:
    """Normal with gain / √fan (He et al., 2015)."""
    return normal_(tensor, 0.0, calculate_gain(nonlinearity, a) / math.sqrt(max(_fan(tensor, mode), 1)))


def orthogonal_(tensor: Tensor, gain: float = 1.0) -> Tensor:
    """A matrix of orthonormal rows or columns, whichever are fewer (Saxe et al., 2014); drawn on the CPU."""
    import numpy as np

    import volta

    shape = tensor.shape
    if len(shape) < 2:
        raise ValueError(f"a tensor of shape {tuple(shape)} is no matrix: two axes are needed")
    rows, columns = shape[0], math.prod(shape[1:])
    drawn = _native.init_normal([max(rows, columns), min(rows, columns)], 0.0, 1.0, "cpu").numpy()
    q, r = np.linalg.qr(drawn.astype(np.float64))
    q = q * np.sign(np.diag(r))
    q = q if rows >= columns else q.T
    return _drawn(tensor, volta.tensor((gain * q).astype(np.float32).reshape(tuple(shape))))
