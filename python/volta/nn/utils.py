"""What is done with gradients before a step, and with parameters as one vector."""

from __future__ import annotations

from collections.abc import Iterable

from .._volta import Tensor
from .._volta import _nn as _native
from .._volta import _optim as _optim


def _listed(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    return [parameters] if isinstance(parameters, Tensor) else list(parameters)


def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float) -> Tensor:
    """Scales all gradients down so that their norm together is at most `max_norm`; returns what it was.

    The norm is a value of the step's plan: nothing is read back from the device unless it is asked for.
    """
    return _optim.clip_grad_norm(_listed(parameters), max_norm)


def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Brings every element of every gradient between −`clip_value` and `clip_value`."""
    _optim.clip_grad_value(_listed(parameters), clip_value)


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All parameters as one vector."""
    import volta

    return volta.cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Gives parameters the values of one vector."""
    parameters = list(parameters)
    needed = sum(p.numel() for p in parameters)
    if vec.shape[0] != needed:
        raise ValueError(f"the vector has {vec.shape[0]} elements, and the parameters have {needed}")
    start = 0
    for p in parameters:
        count = p.numel()
        _native.assign(p, vec[start : start + count].reshape(*p.shape))
        start += count
