"""Activations as layers: each calls the function of the same name."""

from __future__ import annotations

from typing import Any

from .._volta import Tensor
from .._volta import _nn as _native
from . import functional as F
from .module import Module, Parameter


class ReLU(Module):
    """max(x, 0)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return _native.relu(input)


class ReLU6(Module):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return _native.relu6(input)


class GELU(Module):
    """x·Φ(x); with `approximate="tanh"` by the hyperbolic tangent, as GPT-2 has it."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class SiLU(Module):
    """x·σ(x), also called swish."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return _native.silu(input)


class Mish(Module):
    """x·tanh(ln(1 + eˣ))."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return _native.mish(input)


class Sigmoid(Module):
    """1 / (1 + e⁻ˣ)."""

    def forward(self, input: Tensor) -> Tensor:
        return _native.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent."""

    def forward(self, input: Tensor) -> Tensor:
        return _native.tanh(input)


class LeakyReLU(Module):
    """x where it is positive, and `negative_slope`·x elsewhere."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Tensor) -> Tensor:
        return _native.leaky_relu(input, self.negative_slope)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class PReLU(Module):
    """x where it is positive, and a trained `weight` times x elsewhere: one for all, or one a channel."""

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(_native.init_constant([num_parameters], init, device, dtype))

    def forward(self, input: Tensor) -> Tensor:
        return _native.prelu(input, self.weight)

    def extra_repr(self) -> str:
        return f"num_parameters={self.num_parameters}"


class ELU(Module):
    """x where it is positive, and α·(eˣ − 1) elsewhere."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Tensor) -> Tensor:
        return _native.elu(input, self.alpha)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class Softplus(Module):
    """ln(1 + e^(β·x)) / β, and x itself where β·x is above the threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return _native.softplus(input, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class Softsign(Module):
    """x / (1 + |x|)."""

    def forward(self, input: Tensor) -> Tensor:
        return _native.softsign(input)


class LogSigmoid(Module):
    """ln σ(x)."""

    def forward(self, input: Tensor) -> Tensor:
        return _native.logsigmoid(input)


class Hardtanh(Module):
    """x brought between `min_val` and `max_val`."""

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Tensor) -> Tensor:
        return _native.hardtanh(input, self.min_val, self.max_val)

    def extra_repr(self) -> str:
        return f"min_val={self.min_val}, max_val={self.max_val}"


class Hardsigmoid(Module):
    """x/6 + 1/2, brought between 0 and 1."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return _native.hardsigmoid(input)


class Hardswish(Module):
    """x·hardsigmoid(x)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return _native.hardswish(input)


class Softmax(Module):
    """eˣ over the axis `dim`, which must be given, scaled to a sum of one."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = F._chosen(dim, "Softmax")

    def forward(self, input: Tensor) -> Tensor:
        return _native.softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class LogSoftmax(Module):
    """The logarithm of softmax over the axis `dim`, which must be given."""

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = F._chosen(dim, "LogSoftmax")

    def forward(self, input: Tensor) -> Tensor:
        return _native.log_softmax(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class GLU(Module):
    """The first half of an axis times σ of the second."""

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        return F.glu(input, self.dim)

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Dropout(Module):
    """Sets elements to zero with probability `p` while training, and passes its input on otherwise."""

    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        _check_probability(p)
        self.p = p

    def forward(self, input: Tensor) -> Tensor:
        return _native.dropout(input, self.p, self.training)

    def extra_repr(self) -> str:
        return f"p={self.p}"


class Dropout2d(Dropout):
    """Sets whole channels to zero with probability `p` while training."""

    def forward(self, input: Tensor) -> Tensor:
        return _native.dropout2d(input, self.p, self.training)


def _check_probability(p: float) -> None:
    if not 0 <= p <= 1:
        raise ValueError(f"the probability of a zero is {p}, and must lie between 0 and 1")
