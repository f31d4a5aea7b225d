"""Layers that multiply by a matrix, or look rows of it up."""

from __future__ import annotations

import math
from typing import Any

from .._volta import Tensor
from .._volta import _nn as _native
from . import functional as F
from .module import Module, Parameter


def _by_fan_in(shape: list[int], fan_in: int, device: Any, dtype: Any) -> Parameter:
    """Uniform within ±1/√fan_in: weights and biases of linear and convolution layers."""
    return Parameter(_native.init_uniform(shape, 1 / math.sqrt(max(fan_in, 1)), device, dtype))


class Identity(Module):
    """Passes its input on, whatever it was made with."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """A fully connected layer: x·weightᵀ + bias over the last axis.

    `weight` is (out_features, in_features); first values are uniform within ±1/√in_features.
    """

    def __init__(
        self, in_features: int, out_features: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = _by_fan_in([out_features, in_features], in_features, device, dtype)
        self.register_parameter("bias", _by_fan_in([out_features], in_features, device, dtype) if bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return _native.linear(input, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """x₁·weight·x₂ + bias over the last axes of two inputs."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features, self.out_features = in1_features, in2_features, out_features
        self.weight = _by_fan_in([out_features, in1_features, in2_features], in1_features, device, dtype)
        self.register_parameter("bias", _by_fan_in([out_features], in1_features, device, dtype) if bias else None)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        rows = self.weight.reshape(self.out_features * self.in1_features, self.in2_features)
        from_second = _native.linear(input2, rows)
        parts = from_second.reshape(*input2.shape[:-1], self.out_features, self.in1_features)
        result = (parts * input1.unsqueeze(-2)).sum(-1)
        return result if self.bias is None else result + self.bias

    def extra_repr(self) -> str:
        return (
            f"in1_features={self.in1_features}, in2_features={self.in2_features}, "
            f"out_features={self.out_features}, bias={self.bias is not None}"
        )


class Embedding(Module):
    """A row of the table `weight` for every index: the input's shape with the row's behind it.

    The row `padding_idx` is zero at first and is not trained.
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise ValueError(f"padding_idx is {padding_idx}, and the table has {num_embeddings} rows")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        weight = _native.init_normal([num_embeddings, embedding_dim], 0.0, 1.0, device, dtype)
        if padding_idx is not None:
            weight = weight * (_rows(num_embeddings, weight) != padding_idx).to(weight.dtype)
        self.weight = Parameter(weight)

    @classmethod
    def from_pretrained(
        cls, embeddings: Tensor, freeze: bool = True, padding_idx: int | None = None
    ) -> Embedding:
        """A layer with a table of one's own, which is not trained if `freeze`."""
        rows, width = embeddings.shape
        layer = cls(rows, width, padding_idx)
        layer.weight = Parameter(embeddings, requires_grad=not freeze)
        return layer

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(input, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


def _rows(count: int, like: Tensor) -> Tensor:
    """The numbers of rows, as a column."""
    import volta

    return volta.arange(count, device=like.device, dtype=volta.int32).reshape(count, 1)
