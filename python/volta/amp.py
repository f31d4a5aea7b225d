"""Mixed precision: products in half precision, what leaves its range in f32, and gradients that do not vanish."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import _volta
from ._volta import Tensor
from ._volta import _optim as _native
from ._volta import _scopes as _scopes
from .optim import Optimizer

__all__ = ["GradScaler", "autocast", "is_autocast_enabled"]

# PyTorch's name of GPUs beside Volta's own.
_GPUS = ("gpu", "cuda")


class autocast:
    """Inside the `with` block, products, convolutions and attention take their f32 operands in half precision.

    Losses, sums, powers, exponentials and logarithms are f32, and so are the parameters: gradients arrive in the parameters' own
    type. With float16, scale the loss by a `GradScaler`. It also decorates functions.

    >>> with volta.autocast("gpu", dtype=volta.float16):
    ...     loss = F.cross_entropy(model(x), y)

    `device_type` is `"cpu"` or `"gpu"`, which `"cuda"` means, too: what is computed elsewhere stays as it is. Without one it holds for
    all devices. The type is float16 unless told otherwise, and bfloat16 for `"cpu"`. With `enabled=False` products are as
    outside of any such block.
    """

    def __init__(
        self, device_type: Any = None, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        kind = None if device_type is None else str(getattr(device_type, "type", device_type))
        if dtype is None and (isinstance(device_type, _volta.dtype) or kind in ("float16", "bfloat16")):
            kind, dtype = None, device_type
        if kind not in (None, "cpu", *_GPUS):
            raise ValueError(f"there is no device type {kind!r}: 'cpu' and 'gpu' are, and without one it holds for both")
        if dtype is None:
            dtype = "bfloat16" if kind == "cpu" else "float16"
        self.device, self.dtype, self.enabled = kind, dtype, enabled
        self._before: list[tuple[Any, Any]] = []

    def __enter__(self) -> autocast:
        cpu, gpu = _scopes.autocast_types()
        wanted = self.dtype if self.enabled else None
        if self.device not in _GPUS:
            cpu = wanted
        if self.device != "cpu":
            gpu = wanted
        self._before.append(_scopes.set_autocast(cpu, gpu))
        return self

    def __exit__(self, *_: object) -> None:
        _scopes.set_autocast(*self._before.pop())

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(f)
        def within(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.dtype, self.enabled):
                return f(*args, **kwargs)

        return within


def is_autocast_enabled(device_type: str | None = None) -> bool:
    """Whether products are computed in half precision, on a type of device, or on any."""
    cpu, gpu = _scopes.autocast_types()
    if device_type is None:
        return cpu is not None or gpu is not None
    return (cpu if device_type == "cpu" else gpu) is not None


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
        device: Any = None,
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        # PyTorch has both orders; where it is follows from what it scales.
        if isinstance(device, (int, float)):
            init_scale = device
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
