"""Deep learning on any GPU, without CUDA: lazy tensors, autograd and fused kernels.

>>> import volta
>>> x = volta.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from math import inf, nan

from . import autograd, return_types
from ._functions import *  # noqa: F403
from ._functions import __all__ as _function_names
from ._volta import *  # noqa: F403
from ._volta import __all__ as _native_names
from ._volta import __version__
from .autograd import checkpoint, enable_grad, no_grad, set_grad_enabled


__all__ = [
    *(name for name in _native_names if not name.startswith("_")),
    *_function_names,
    "__version__",
    "autograd",
    "checkpoint",
    "enable_grad",
    "inf",
    "nan",
    "no_grad",
    "return_types",
    "set_grad_enabled",
]
