"""Functions that are methods of tensors too: `volta.exp(x)` is `x.exp()`."""

import functools

from ._volta import _ELEMENTWISE, Tensor, cat

# Methods that PyTorch has as functions as well; those of the tables of elementwise ops are known.
_METHODS = _ELEMENTWISE + """
add all allclose amax amin any argmax argmin argsort bmm broadcast_to chunk clamp clone cosine_similarity
cumprod cumsum detach diff div dot elu equal expand_as flatten flip gather gelu hardtanh index_add
index_select isclose isfinite isinf isnan leaky_relu log_softmax logsumexp masked_fill masked_select matmul
max mean median min mm movedim mv narrow nonzero norm normalize numel one_hot outer pad permute pow prelu prod
ravel repeat_interleave reshape roll rsub scatter_add select softmax softplus sort split squeeze std sub sum t
tile topk transpose tril triu unbind unflatten unsqueeze var
""".split()

# PyTorch's second names: methods and functions.
_ALIASES = {
    "absolute": "abs",
    "clip": "clamp",
    "divide": "div",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "multiply": "mul",
    "negative": "neg",
    "not_equal": "ne",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
}

for _alias, _name in _ALIASES.items():
    setattr(Tensor, _alias, getattr(Tensor, _name))


def _function(name):
    """The method as a function, whose first argument may also come by its name in PyTorch."""
    method = getattr(Tensor, name)

    @functools.wraps(method)
    def call(*args, **kwargs):
        if "input" in kwargs:
            return method(kwargs.pop("input"), *args, **kwargs)
        return method(*args, **kwargs)

    call.__qualname__ = name
    call.__module__ = "volta"
    return call


for _name in [*_METHODS, *_ALIASES]:
    globals()[_name] = _function(_name)

concat = concatenate = cat


def is_tensor(obj):
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


__all__ = [*_METHODS, *_ALIASES, "concat", "concatenate", "is_tensor"]
