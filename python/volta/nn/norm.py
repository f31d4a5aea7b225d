"""Normalization: by the statistics of a batch, of each example, or of groups of its channels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._volta import Tensor, realize
from .._volta import _nn as _native
from .module import Module, Parameter

# As many updates of running averages may wait for a plan. An optimizer's step computes them; a loop that never takes one
# would let them pile up.
_MOST_WAITING = 32


class _BatchNorm(Module):
    """Normalizes every channel (axis 1) by the batch while training, and by running averages in evaluation."""

    ranks: tuple[int, ...]
    shape: str

    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        one, zero = ([_native.init_constant([num_features], x, device, dtype) for x in (1.0, 0.0)])
        self.register_parameter("weight", Parameter(one) if affine else None)
        self.register_parameter("bias", Parameter(zero) if affine else None)
        tracked = track_running_stats
        constant = _native.init_constant
        self.register_buffer("running_mean", constant([num_features], 0.0, device, dtype) if tracked else None)
        self.register_buffer("running_var", constant([num_features], 1.0, device, dtype) if tracked else None)
        self.register_buffer("num_batches_tracked", _native.init_count(device) if tracked else None)
        self._waiting = 0

    def reset_running_stats(self) -> None:
        """Forgets what training has seen."""
        if self.track_running_stats:
            for buffer, value in ((self.running_mean, 0.0), (self.running_var, 1.0), (self.num_batches_tracked, 0)):
                _native.assign(buffer, _native.init_constant(buffer.shape, value))

    def forward(self, input: Tensor) -> Tensor:
        shape = input.shape
        if len(shape) not in self.ranks or shape[1] != self.num_features:
            raise ValueError(
                f"{type(self).__name__}: the input has shape {list(shape)}, and "
                f"(batch, {self.num_features}{self.shape}) is needed"
            )
        if self.running_mean is not None and not self.training:
            return _native.batch_norm_eval(
                input, self.running_mean, self.running_var, self.weight, self.bias, self.eps
            )
        self._hold_back()
        return _native.batch_norm_train(
            input,
            self.running_mean,
            self.running_var,
            self.num_batches_tracked,
            self.weight,
            self.bias,
            self.momentum,
            self.eps,
        )

    def _hold_back(self) -> None:
        """Computes the running averages if too many updates wait for it; mostly a step has done so."""
        if self.running_mean is None or self.running_mean.is_realized:
            self._waiting = 0
            return
        self._waiting += 1
        if self._waiting > _MOST_WAITING:
            realize(self.running_mean, self.running_var, self.num_batches_tracked)

    def extra_repr(self) -> str:
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"track_running_stats={self.track_running_stats}"
        )


class BatchNorm1d(_BatchNorm):
    """Normalizes every channel of (batch, channels) or (batch, channels, length).

    While training it goes by the mean and variance in the batch, and takes them into running averages; in evaluation it
    goes by those. Without a momentum the averages are over all batches.
    """

    ranks = (2, 3)
    shape = ", length"


class BatchNorm2d(_BatchNorm):
    """Normalizes every channel of (batch, channels, height, width).

    While training it goes by the mean and variance in the batch, and takes them into running averages; in evaluation it
    goes by those. Without a momentum the averages are over all batches.
    """

    ranks = (4,)
    shape = ", height, width"


def _extents(shape: int | Sequence[int]) -> tuple[int, ...]:
    return (shape,) if isinstance(shape, int) else tuple(shape)


class LayerNorm(Module):
    """Normalizes over the last axes, whose sizes are `normalized_shape`, then scales and shifts."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _extents(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = [_native.init_constant(self.normalized_shape, x, device, dtype) for x in (1.0, 0.0)]
        self.register_parameter("weight", Parameter(made[0]) if elementwise_affine else None)
        self.register_parameter("bias", Parameter(made[1]) if elementwise_affine and bias else None)

    def forward(self, input: Tensor) -> Tensor:
        return _native.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class RMSNorm(Module):
    """Divides by the root of the mean square over the last axes, then scales."""

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = _extents(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        made = _native.init_constant(self.normalized_shape, 1.0, device, dtype)
        self.register_parameter("weight", Parameter(made) if elementwise_affine else None)

    def forward(self, input: Tensor) -> Tensor:
        return _native.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(Module):
    """Normalizes every block of channels (axis 1) of every example, then scales and shifts each channel."""

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        if num_groups < 1 or num_channels % num_groups:
            raise ValueError(f"{num_channels} channels do not divide into {num_groups} groups")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        made = [_native.init_constant([num_channels], x, device, dtype) for x in (1.0, 0.0)]
        self.register_parameter("weight", Parameter(made[0]) if affine else None)
        self.register_parameter("bias", Parameter(made[1]) if affine else None)

    def forward(self, input: Tensor) -> Tensor:
        return _native.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"
