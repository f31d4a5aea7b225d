"""Mixed precision: products in half precision, what leaves its range in f32, and gradients that do not vanish."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ._volta import Tensor
from ._volta import _optim as _native
from ._volta import _scopes as _scopes
from .optim import Optimizer

__all__ = ["GradScaler", "autocast"]


class autocast:
    """Inside the `with` block, products, convolutions and attention take their f32 operands in half precision.

    Losses, sums, powers, exponentials and logarithms are f32, and so are the parameters: gradients arrive in the parameters' own
    type. With float16, scale the loss by a `GradScaler`. It also decorates functions.

    >>> with volta.amp.autocast():
    ...     loss = F.cross_entropy(model(x), y)
    """

    def __init__(self, dtype: Any = "float16", enabled: bool = True) -> None:
        self.dtype, self.enabled = dtype, enabled
        self._before: list[Any] = []

    def __enter__(self) -> autocast:
        self._before.append(_scopes.set_autocast(self.dtype if self.enabled else None))
        return self

    def __exit__(self, *_: object) -> None:
        _scopes.set_autocast(self._before.pop())

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def within(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.dtype, self.enabled):
                return f(*args, **kwargs)

        return within


class GradScaler:
    """Scales losses, and skips the steps whose gradients overflowed. Scale, check and decision live on the device.

    Several optimizers may share a scaler. Their steps are a round until a loss is scaled again or one of them steps again:
    all of them unscale by the scale that the round began with, and count as one step, which is good if it is for each.

    >>> scaler = volta.amp.GradScaler()
    >>> scaler.scale(loss).backward()
    >>> scaler.step(optimizer)
    """

    def __init__(
        self,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._enabled = enabled
        self._core = _native.GradScaler(init_scale, growth_factor, backoff_factor, growth_interval)

    def scale(self, loss: Tensor) -> Tensor:
        """The loss to call `backward` on."""
        return self._core.scale(loss) if self._enabled else loss

    def unscale_(self, optimizer: Optimizer) -> None:
        """Makes the gradients small again before the step, so that they can be clipped: once a step."""
        if self._enabled:
            self._core.unscale(optimizer._core)

    def step(self, optimizer: Optimizer) -> None:
        """Makes the gradients small again, steps unless one of them is not finite, and adapts the scale."""
        if self._enabled:
            self._core.step(optimizer._core, [optimizer._numbers(group) for group in optimizer.param_groups])
        else:
            optimizer.step()

    def update(self) -> None:
        """Nothing: `step` adapts the scale, on the device."""

    def get_scale(self) -> float:
        """The scale now; reading it waits for the device."""
        return self._core.current() if self._enabled else 1.0

    def is_enabled(self) -> bool:
        """Whether it scales at all."""
        return self._enabled

    def state_dict(self) -> dict[str, Any]:
        """What it must remember to go on."""
        values, tensors = self._core.state()
        return {**values, **dict(tensors)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        tensors = [(name, value) for name, value in state_dict.items() if isinstance(value, Tensor)]
        values = {name: value for name, value in state_dict.items() if not isinstance(value, Tensor)}
        self._core.load_state((values, tensors))
