"""Gradients: modes in which ops are recorded, functions with gradients of their own, checkpoints."""

import functools
import inspect

from . import _volta
from ._volta import grad, is_grad_enabled

__all__ = [
    "Function",
    "checkpoint",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_grad_enabled",
]


class _GradMode:
    """A mode as a context manager and as a decorator."""

    def __init__(self, mode):
        self._mode = mode
        self._outer = []

    def __enter__(self):
        self._outer.append(_volta._set_grad_enabled(self._mode))
        return self

    def __exit__(self, *exception):
        _volta._set_grad_enabled(self._outer.pop())

    def __call__(self, function):
        mode = self._mode
        if inspect.isgeneratorfunction(function):

            @functools.wraps(function)
            def generate(*args, **kwargs):
                generator = function(*args, **kwargs)
                while True:
                    with _GradMode(mode):
                        try:
                            item = next(generator)
                        except StopIteration as end:
                            return end.value
                    yield item

            return generate

        @functools.wraps(function)
        def call(*args, **kwargs):
            with _GradMode(mode):
                return function(*args, **kwargs)

        return call


def _mode(name, value, doc):
    class Mode(_GradMode):
        def __new__(cls, function=None):
            made = super().__new__(cls)
            if function is None:
                return made
            made.__init__()
            return made(function)

        def __init__(self, function=None):
            super().__init__(value)

    Mode.__name__ = Mode.__qualname__ = name
    Mode.__module__ = "volta"
    Mode.__doc__ = doc
    return Mode


no_grad = _mode(
    "no_grad", False, "Computes without recording for gradients: `with volta.no_grad():` or `@volta.no_grad()`."
)
# PyTorch's stricter form; here there is nothing left to save.
inference_mode = no_grad
enable_grad = _mode(
    "enable_grad", True, "Records for gradients, also inside `no_grad`: `with volta.enable_grad():` or a decorator."
)


class set_grad_enabled(_GradMode):
    """Records for gradients, or not, from now on; as a context manager, until its end; as a decorator, in the function."""

    def __init__(self, mode):
        super().__init__(bool(mode))
        self._outer.append(_volta._set_grad_enabled(self._mode))

    def __enter__(self):
        _volta._set_grad_enabled(self._mode)
        return self

    def __call__(self, function):
        # As a decorator it is for the function, and not from now on.
        _volta._set_grad_enabled(self._outer.pop())
        return super().__call__(function)


class _Context:
    """What a function's forward pass leaves for its backward pass."""

    def __init__(self):
        self._saved = ()
        self.needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Keeps tensors for `saved_tensors`; inputs among them are seen by gradients of gradients."""
        self._saved = tensors

    @property
    def saved_tensors(self):
        """The tensors that were saved."""
        return self._saved


class Function:
    """A differentiable function whose gradient you write.

    >>> class Cube(volta.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x ** 3
    ...
    ...     @staticmethod
    ...     def backward(ctx, gradient):
    ...         (x,) = ctx.saved_tensors
    ...         return 3 * x ** 2 * gradient
    >>> y = Cube.apply(x)

    `forward` returns one tensor; `backward` returns a gradient, or `None`, for each argument of `forward`.
    """

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """The value. What it computes is not differentiated."""
        raise NotImplementedError("a Function needs a static method forward(ctx, ...)")

    @staticmethod
    def backward(ctx, gradient):
        """The gradient of each argument, given the output's."""
        raise NotImplementedError("a Function needs a static method backward(ctx, gradient)")

    @classmethod
    def apply(cls, *args, **kwargs):
        """Calls the function."""
        context = _Context()
        places = [k for k, value in enumerate(args) if isinstance(value, _volta.Tensor)]
        context.needs_input_grad = tuple(isinstance(a, _volta.Tensor) and a.requires_grad for a in args)
        seen = {}

        def forward(inputs):
            full = list(args)
            for k, tensor in zip(places, inputs):
                full[k] = tensor
            seen["inputs"] = inputs
            seen["output"] = cls.forward(context, *full, **kwargs)
            return seen["output"]

        def backward(inputs, output, gradient):
            # The tensors that forward saw are not recorded; those given now are.
            known = {id(old): new for old, new in zip(seen["inputs"], inputs)}
            known[id(seen["output"])] = output
            saved = context._saved
            context._saved = tuple(known.get(id(tensor), tensor) for tensor in saved)
            try:
                gradients = cls.backward(context, gradient)
            finally:
                context._saved = saved
            if not isinstance(gradients, (tuple, list)):
                gradients = (gradients,)
            if len(gradients) != len(args):
                raise RuntimeError(
                    f"{cls.__name__}.backward gave {len(gradients)} gradients for {len(args)} arguments"
                )
            return [gradients[k] for k in places]

        return _volta._apply(forward, backward, [args[k] for k in places])


def checkpoint(function, *args, use_reentrant=False, **kwargs):
    """`function(*args, **kwargs)` without keeping what it computes on the way: the backward pass runs it again.

    The function returns one tensor, and every tensor that requires gradients must be among `args`.
    """
    places = [k for k, value in enumerate(args) if isinstance(value, _volta.Tensor)]

    def run(inputs):
        full = list(args)
        for k, tensor in zip(places, inputs):
            full[k] = tensor
        return function(*full, **kwargs)

    return _volta._checkpoint(run, [args[k] for k in places])
