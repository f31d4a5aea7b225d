"""Deep learning on any GPU, without CUDA: lazy tensors, autograd and fused kernels.

>>> import volta
>>> x = volta.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from math import inf, nan

from . import amp, autograd, distributed, models, nn, optim, parallel, profiler, return_types, utils
from ._functions import *  # noqa: F403
from ._functions import __all__ as _function_names
from ._volta import *  # noqa: F403
from ._volta import __all__ as _native_names
from ._volta import __version__
from .amp import autocast, is_autocast_enabled
from .autograd import checkpoint, enable_grad, inference_mode, no_grad, set_grad_enabled
from .files import inspect, load, save
from .nn.functional import (
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    batch_norm,
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    conv1d,
    conv2d,
    conv_transpose2d,
    cosine_embedding_loss,
    cross_entropy,
    dropout,
    dropout2d,
    embedding,
    group_norm,
    huber_loss,
    interpolate,
    kl_div,
    l1_loss,
    layer_norm,
    linear,
    linear_cross_entropy,
    max_pool1d,
    max_pool2d,
    mse_loss,
    nll_loss,
    pixel_shuffle,
    pixel_unshuffle,
    rms_norm,
    scaled_dot_product_attention,
    smooth_l1_loss,
    triplet_margin_loss,
)

__all__ = [
    *(name for name in _native_names if not name.startswith("_")),
    *_function_names,
    "__version__",
    "adaptive_avg_pool2d",
    "amp",
    "autocast",
    "autograd",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "checkpoint",
    "conv1d",
    "conv2d",
    "conv_transpose2d",
    "cosine_embedding_loss",
    "cross_entropy",
    "distributed",
    "dropout",
    "dropout2d",
    "embedding",
    "enable_grad",
    "group_norm",
    "huber_loss",
    "inf",
    "inference_mode",
    "inspect",
    "interpolate",
    "is_autocast_enabled",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "linear",
    "linear_cross_entropy",
    "load",
    "max_pool1d",
    "max_pool2d",
    "models",
    "mse_loss",
    "nan",
    "nll_loss",
    "nn",
    "no_grad",
    "optim",
    "pixel_shuffle",
    "pixel_unshuffle",
    "profiler",
    "return_types",
    "rms_norm",
    "save",
    "scaled_dot_product_attention",
    "set_grad_enabled",
    "smooth_l1_loss",
    "triplet_margin_loss",
    "utils",
]
