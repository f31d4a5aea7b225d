"""Convolutions and pooling."""

from __future__ import annotations

import math
from typing import Any

from .._volta import Tensor
from . import functional as F
from .linear import _by_fan_in
from .module import Module


class _Conv(Module):
    """What all convolutions have in common."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel: tuple[int, ...],
        stride: tuple[int, ...],
        padding: tuple[int, ...] | str,
        dilation: tuple[int, ...],
        groups: int,
        bias: bool,
        device: Any,
        dtype: Any,
        transposed: bool = False,
    ) -> None:
        super().__init__()
        if groups < 1 or in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{in_channels} input and {out_channels} output channels do not divide into {groups} groups"
            )
        self.in_channels, self.out_channels, self.kernel_size = in_channels, out_channels, kernel
        self.stride, self.padding, self.dilation, self.groups = stride, padding, dilation, groups
        first, second = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        fan_in = second // groups * math.prod(kernel)
        self.weight = _by_fan_in([first, second // groups, *kernel], fan_in, device, dtype)
        self.register_parameter("bias", _by_fan_in([out_channels], fan_in, device, dtype) if bias else None)

    def extra_repr(self) -> str:
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"]
        usual = {"padding": (0,), "dilation": (1,), "output_padding": (0,)}
        for name, (value,) in usual.items():
            mine = getattr(self, name, None)
            if mine is not None and mine != (value,) * len(self.kernel_size):
                parts.append(f"{name}={mine!r}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        return ", ".join(parts)


class Conv1d(_Conv):
    """A convolution over (batch, channels, length), or the same without the batch."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: F.Size,
        stride: F.Size = 1,
        padding: F.Size | str = 0,
        dilation: F.Size = 1,
        groups: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            (F._single(kernel_size, "kernel_size"),),
            (F._single(stride, "stride"),),
            padding if isinstance(padding, str) else (F._single(padding, "padding"),),
            (F._single(dilation, "dilation"),),
            groups,
            bias,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.conv1d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv2d(_Conv):
    """A convolution over (batch, channels, height, width), or the same without the batch."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: F.Size,
        stride: F.Size = 1,
        padding: F.Size | str = 0,
        dilation: F.Size = 1,
        groups: int = 1,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            F._pair(kernel_size, "kernel_size"),
            F._pair(stride, "stride"),
            padding if isinstance(padding, str) else F._pair(padding, "padding"),
            F._pair(dilation, "dilation"),
            groups,
            bias,
            device,
            dtype,
        )

    def forward(self, input: Tensor) -> Tensor:
        return F.conv2d(input, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class ConvTranspose2d(_Conv):
    """A transposed convolution over (batch, channels, height, width): the gradient of a convolution."""

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: F.Size,
        stride: F.Size = 1,
        padding: F.Size = 0,
        output_padding: F.Size = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: F.Size = 1,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            F._pair(kernel_size, "kernel_size"),
            F._pair(stride, "stride"),
            F._pair(padding, "padding"),
            F._pair(dilation, "dilation"),
            groups,
            bias,
            device,
            dtype,
            transposed=True,
        )
        self.output_padding = F._pair(output_padding, "output_padding")

    def forward(self, input: Tensor) -> Tensor:
        return F.conv_transpose2d(
            input,
            self.weight,
            self.bias,
            self.stride,
            self.padding,
            self.output_padding,
            self.groups,
            self.dilation,
        )


class _Pool(Module):
    """What windows that move over images and sequences have in common."""

    def __init__(self, kernel_size: F.Size, stride: F.Size | None = None, padding: F.Size = 0, **options: Any) -> None:
        super().__init__()
        self.kernel_size, self.padding = kernel_size, padding
        self.stride = kernel_size if stride is None else stride
        for name, value in options.items():
            setattr(self, name, value)

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _MaxPool(_Pool):
    def __init__(
        self,
        kernel_size: F.Size,
        stride: F.Size | None = None,
        padding: F.Size = 0,
        dilation: F.Size = 1,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(kernel_size, stride, padding, dilation=dilation, ceil_mode=ceil_mode)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class _AvgPool(_Pool):
    def __init__(
        self,
        kernel_size: F.Size,
        stride: F.Size | None = None,
        padding: F.Size = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(kernel_size, stride, padding, ceil_mode=ceil_mode, count_include_pad=count_include_pad)


class MaxPool1d(_MaxPool):
    """The largest element of every window of a sequence."""

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool1d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class MaxPool2d(_MaxPool):
    """The largest element of every window of an image."""

    def forward(self, input: Tensor) -> Tensor:
        return F.max_pool2d(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode)


class AvgPool1d(_AvgPool):
    """The mean of every window of a sequence."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AvgPool2d(_AvgPool):
    """The mean of every window of an image."""

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool2d(
            input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad
        )


class AdaptiveAvgPool2d(Module):
    """The means of images cut into as many parts as the result has pixels."""

    def __init__(self, output_size: F.Size) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(input, self.output_size)

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"
