"""Deep learning on any GPU, without CUDA: lazy tensors, autograd and fused kernels."""

from ._volta import Tensor, __version__

__all__ = ["Tensor", "__version__"]
