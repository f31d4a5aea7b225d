"""Layers and losses as functions, under PyTorch's names and with its defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._volta import Tensor
from .._volta import _nn as _native

Size = int | Sequence[int]


def _pair(size: Size, what: str) -> tuple[int, int]:
    """One number for height and width, or one each."""
    if isinstance(size, int):
        return (size, size)
    both = tuple(size)
    if len(both) == 1:
        return (both[0], both[0])
    if len(both) != 2:
        raise ValueError(f"{what} is {size!r}: one number is needed, or one each for height and width")
    return both


def _single(size: Size, what: str) -> int:
    """One number, or a sequence of one."""
    if isinstance(size, int):
        return size
    one = tuple(size)
    if len(one) != 1:
        raise ValueError(f"{what} is {size!r}: one number is needed")
    return one[0]


# Activations


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """max(x, 0)."""
    return _native.relu(input)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """min(max(x, 0), 6)."""
    return _native.relu6(input)


def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """x·Φ(x); with `approximate="tanh"` by the hyperbolic tangent, as GPT-2 has it."""
    if approximate == "none":
        return _native.gelu(input)
    if approximate == "tanh":
        return _native.gelu_tanh(input)
    raise ValueError(f'approximate is {approximate!r}: use "none" or "tanh"')


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """x·σ(x), also called swish."""
    return _native.silu(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·tanh(ln(1 + eˣ))."""
    return _native.mish(input)


def sigmoid(input: Tensor) -> Tensor:
    """1 / (1 + e⁻ˣ)."""
    return _native.sigmoid(input)


def tanh(input: Tensor) -> Tensor:
    """The hyperbolic tangent."""
    return _native.tanh(input)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """x where it is positive, and `negative_slope`·x elsewhere."""
    return _native.leaky_relu(input, negative_slope)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x where it is positive, and α·(eˣ − 1) elsewhere."""
    return _native.elu(input, alpha)


def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """x where it is positive, and `weight`·x elsewhere: one weight for all, or one a channel."""
    return _native.prelu(input, weight)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """ln(1 + e^(β·x)) / β, and x itself where β·x is above the threshold."""
    return _native.softplus(input, beta, threshold)


def softsign(input: Tensor) -> Tensor:
    """x / (1 + |x|)."""
    return _native.softsign(input)


def logsigmoid(input: Tensor) -> Tensor:
    """ln σ(x)."""
    return _native.logsigmoid(input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """x brought between `min_val` and `max_val`."""
    return _native.hardtanh(input, min_val, max_val)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """x/6 + 1/2, brought between 0 and 1."""
    return _native.hardsigmoid(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """x·hardsigmoid(x)."""
    return _native.hardswish(input)


def _chosen(dim: int | None, what: str) -> int:
    """The axis that was asked for. PyTorch guesses one, by a rule that few expect; a guess would be wrong in silence."""
    if dim is None:
        raise TypeError(f"{what} needs the axis to sum over: dim=-1 is the last one, dim=1 that of channels")
    return dim


def softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """eˣ over the axis `dim`, which must be given, scaled to a sum of one."""
    return _native.softmax(input if dtype is None else input.to(dtype), _chosen(dim, "softmax"))


def log_softmax(input: Tensor, dim: int | None = None, dtype: Any = None) -> Tensor:
    """The logarithm of softmax over the axis `dim`, which must be given."""
    return _native.log_softmax(input if dtype is None else input.to(dtype), _chosen(dim, "log_softmax"))


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half of an axis times σ of the second."""
    if input.size(dim) % 2:
        raise ValueError(f"glu: axis {dim} of shape {list(input.shape)} must be even to be halved")
    a, b = input.chunk(2, dim)
    return a * _native.sigmoid(b)


# Layers


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x·weightᵀ + bias over the last axis."""
    return _native.linear(input, weight, bias)


def embedding(input: Tensor, weight: Tensor, padding_idx: int | None = None) -> Tensor:
    """A row of the table `weight` for every index; the row `padding_idx` gets no gradient."""
    if padding_idx is not None and padding_idx < 0:
        padding_idx += weight.shape[0]
    return _native.embedding(input, weight, padding_idx)


def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Vectors of zeros with a one at the place of each index."""
    if num_classes < 0:
        num_classes = int(tensor.max().item()) + 1
    return _native.one_hot(tensor, num_classes)


def _same_padding(kernel: Sequence[int], dilation: Sequence[int], stride: Sequence[int]) -> tuple[int, ...]:
    if any(s != 1 for s in stride):
        raise ValueError('padding="same" goes with a stride of 1 only')
    whole = [d * (k - 1) for k, d in zip(kernel, dilation)]
    if any(w % 2 for w in whole):
        raise ValueError('padding="same" needs an odd kernel, or one that an even dilation makes odd: pad the input first')
    return tuple(w // 2 for w in whole)


def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution over (batch, channels, length), or the same without the batch."""
    stride, dilation = _single(stride, "stride"), _single(dilation, "dilation")
    if padding == "same":
        padding = _same_padding(weight.shape[2:], (dilation,), (stride,))
    padding = 0 if padding == "valid" else _single(padding, "padding")
    return _native.conv1d(input, weight, bias, stride, padding, dilation, groups)


def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size | str = 0,
    dilation: Size = 1,
    groups: int = 1,
) -> Tensor:
    """A convolution over (batch, channels, height, width), or the same without the batch."""
    stride, dilation = _pair(stride, "stride"), _pair(dilation, "dilation")
    if padding == "same":
        padding = _same_padding(weight.shape[2:], dilation, stride)
    padding = (0, 0) if padding == "valid" else _pair(padding, "padding")
    return _native.conv2d(input, weight, bias, stride, padding, dilation, groups)


def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Size = 1,
    padding: Size = 0,
    output_padding: Size = 0,
    groups: int = 1,
    dilation: Size = 1,
) -> Tensor:
    """A transposed convolution: the gradient of a convolution with respect to its input."""
    return _native.conv_transpose2d(
        input,
        weight,
        bias,
        _pair(stride, "stride"),
        _pair(padding, "padding"),
        _pair(output_padding, "output_padding"),
        groups,
        _pair(dilation, "dilation"),
    )


def max_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of every window of a sequence."""
    kernel = _single(kernel_size, "kernel_size")
    stride = kernel if stride is None else _single(stride, "stride")
    padding, dilation = _single(padding, "padding"), _single(dilation, "dilation")
    return _native.max_pool1d(input, kernel, stride, padding, dilation, ceil_mode)


def avg_pool1d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of a sequence."""
    kernel = _single(kernel_size, "kernel_size")
    stride = kernel if stride is None else _single(stride, "stride")
    return _native.avg_pool1d(input, kernel, stride, _single(padding, "padding"), ceil_mode, count_include_pad)


def max_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    dilation: Size = 1,
    ceil_mode: bool = False,
) -> Tensor:
    """The largest element of every window of an image."""
    kernel = _pair(kernel_size, "kernel_size")
    stride = kernel if stride is None else _pair(stride, "stride")
    padding, dilation = _pair(padding, "padding"), _pair(dilation, "dilation")
    return _native.max_pool2d(input, kernel, stride, padding, dilation, ceil_mode)


def avg_pool2d(
    input: Tensor,
    kernel_size: Size,
    stride: Size | None = None,
    padding: Size = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window of an image."""
    kernel = _pair(kernel_size, "kernel_size")
    stride = kernel if stride is None else _pair(stride, "stride")
    return _native.avg_pool2d(input, kernel, stride, _pair(padding, "padding"), ceil_mode, count_include_pad)


def adaptive_avg_pool2d(input: Tensor, output_size: Size) -> Tensor:
    """The means of images cut into as many parts as the result has pixels."""
    return _native.adaptive_avg_pool2d(input, _pair(output_size, "output_size"))


def layer_norm(
    input: Tensor,
    normalized_shape: Size,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes over the last axes, then scales and shifts."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    return _native.layer_norm(input, shape, weight, bias, eps)


def rms_norm(
    input: Tensor, normalized_shape: Size, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """Divides by the root of the mean square over the last axes, then scales."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    return _native.rms_norm(input, shape, weight, eps)


def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes every block of channels of every example, then scales and shifts each channel."""
    return _native.group_norm(input, num_groups, weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Normalizes every channel: by the batch while training, which the running averages take in; else by those."""
    if training:
        return _native.batch_norm_train(
            input, running_mean, running_var, None, weight, bias, momentum, eps
        )
    if running_mean is None or running_var is None:
        raise ValueError("batch_norm outside of training needs running_mean and running_var")
    return _native.batch_norm_eval(input, running_mean, running_var, weight, bias, eps)


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets elements to zero with probability `p` while training; the others grow by 1/(1 − p)."""
    return _native.dropout(input, p, training)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Sets whole channels to zero with probability `p` while training."""
    return _native.dropout2d(input, p, training)


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Makes every r² channels one of r times the height and width."""
    return _native.pixel_shuffle(input, upscale_factor)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`."""
    return _native.pixel_unshuffle(input, downscale_factor)


def interpolate(
    input: Tensor,
    size: Size | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """Images of another size, `"nearest"` or `"bilinear"`."""
    if size is not None:
        size = _pair(size, "size")
    if isinstance(scale_factor, (int, float)):
        scale_factor = (float(scale_factor), float(scale_factor))
    return _native.interpolate(input, size, scale_factor, mode, bool(align_corners))


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """`value` before and behind axes: two numbers an axis, the last axis first. Negative numbers cut off."""
    return input.pad(pad, mode, value)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along an axis, divided by their norm."""
    return _native.normalize(input, p, dim, eps)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along an axis."""
    return _native.cosine_similarity(x1, x2, dim, eps)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(q·kᵀ·scale)·v over (…, length, width). In a mask of bools, true means that a key is seen."""
    return _native.scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, is_causal, scale)


def rotary(x: Tensor, start: int = 0, base: float = 10_000.0, interleaved: bool = False) -> Tensor:
    """Positions as rotations of the vectors of (…, length, width), the first of them at position `start`."""
    return _native.rotary(x, start, base, interleaved)


# Losses


def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross-entropy of logits: the target holds classes, or a probability for each class."""
    return _native.cross_entropy(input, target, weight, ignore_index, label_smoothing, reduction)


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    bias: Tensor | None = None,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, bias), target)` that never holds all logits, for many classes."""
    return _native.linear_cross_entropy(
        input, linear_weight, target, bias, weight, ignore_index, label_smoothing, reduction
    )


def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: str = "mean",
) -> Tensor:
    """The negative of the log-probability of each target class."""
    return _native.nll_loss(input, target, weight, ignore_index, reduction)


def mse_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The square of the difference."""
    return _native.mse_loss(input, target, reduction)


def l1_loss(input: Tensor, target: Tensor, reduction: str = "mean") -> Tensor:
    """The difference without its sign."""
    return _native.l1_loss(input, target, reduction)


def smooth_l1_loss(input: Tensor, target: Tensor, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """Half the square by β for differences below β, and the difference less β/2 above."""
    return _native.smooth_l1_loss(input, target, beta, reduction)


def huber_loss(input: Tensor, target: Tensor, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Half the square for differences below δ, and δ times the difference less δ/2 above."""
    return _native.huber_loss(input, target, delta, reduction)


def binary_cross_entropy(
    input: Tensor, target: Tensor, weight: Tensor | None = None, reduction: str = "mean"
) -> Tensor:
    """The cross-entropy of probabilities of yes or no."""
    return _native.binary_cross_entropy(input, target, weight, reduction)


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy` of σ(input), computed without ever overflowing."""
    return _native.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input: Tensor, target: Tensor, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """The divergence of `target` from the log-probabilities `input`; `"batchmean"` is the mathematical one."""
    if reduction == "batchmean":
        return _native.kl_div(input, target, log_target, "sum") / input.shape[0]
    return _native.kl_div(input, target, log_target, reduction)


def cosine_embedding_loss(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """1 − cos for pairs that belong together (1), and what cos exceeds the margin by for others (−1)."""
    return _native.cosine_embedding_loss(input1, input2, target, margin, reduction)


def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2.0,
    eps: float = 1e-6,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """How much less than `margin` farther the negative is from the anchor than the positive."""
    return _native.triplet_margin_loss(anchor, positive, negative, margin, p, eps, swap, reduction)
