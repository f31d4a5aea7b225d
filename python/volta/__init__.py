"""Deep learning on any GPU, without CUDA: lazy tensors, autograd and fused kernels.

>>> import volta
>>> x = volta.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from math import inf, nan

from . import amp, autograd, nn, optim, profiler, return_types, utils
from ._functions import *  # noqa: F403
from ._functions import __all__ as _function_names
from ._volta import *  # noqa: F403
from ._volta import __all__ as _native_names
from ._volta import __version__
from .autograd import checkpoint, enable_grad, inference_mode, no_grad, set_grad_enabled
from .files import inspect, load, save

__all__ = [
    *(name for name in _native_names if not name.startswith("_")),
    *_function_names,
    "__version__",
    "amp",
    "autograd",
    "checkpoint",
    "enable_grad",
    "inf",
    "inference_mode",
    "inspect",
    "load",
    "nan",
    "nn",
    "no_grad",
    "optim",
    "profiler",
    "return_types",
    "save",
    "set_grad_enabled",
    "utils",
]
