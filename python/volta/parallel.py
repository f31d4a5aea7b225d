"""Several devices at once: each computes the gradients of parts of a batch, for one optimizer."""

from collections.abc import Callable, Sequence
from typing import Any

from ._volta import Tensor, device
from ._volta import _parallel as _native
from .nn import Module

__all__ = ["DataParallel"]


class DataParallel:
    """Computes gradients on several devices, for one optimizer.

    The module and its optimizer stay on the first device. A batch is cut into parts along its first axis, and each
    device computes the loss and the gradients of some of them, with the module's values as they are:

    >>> import volta
    >>> from volta import nn, optim
    >>> model = nn.Linear(3, 1, device="cpu")
    >>> sgd = optim.SGD(model.parameters(), lr=0.1)
    >>> parallel = volta.parallel.DataParallel(model, ["cpu"], gradient_parts=4)
    >>> x, y = volta.rand(8, 3, device="cpu"), volta.rand(8, 1, device="cpu")
    >>> loss = parallel.backward(lambda x, y: nn.functional.mse_loss(model(x), y), x, y)
    >>> sgd.step()

    Without `gradient_parts` each device has one part. With it, devices of one kind give the same bits, however many
    there are. With `shares_by_speed` devices get shares that suit how fast they are, measured while they run.

    `devices` is a list, or a text such as `"gpu:0,gpu:1"` or `"gpus"`, which is the default: all GPUs.
    """

    def __init__(
        self,
        module: Module,
        devices: Sequence[device | str] | str = "gpus",
        *,
        gradient_parts: int | None = None,
        shares_by_speed: bool = False,
    ) -> None:
        self.module = module
        self.devices: list[device] = (
            _native.devices(devices)
            if isinstance(devices, str)
            else [d if isinstance(d, device) else device(d) for d in devices]
        )
        tensors = (list(module.parameters()), list({id(b): b for b in module.buffers()}.values()))
        self._native = _native.DataParallel(*tensors, self.devices, gradient_parts, shares_by_speed)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """What the module makes of them, on its own device alone."""
        return self.module(*arguments, **named)

    def backward(self, step: Callable[[Tensor, Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
        """Adds the gradient of a batch's mean loss to what the parameters have collected, and gives that loss.

        `step` computes the mean loss of some rows of the batch with the module; it is called once for each part.
        """
        return self._native.backward(step, x, y)  # type: ignore[no-any-return]

    @property
    def shares(self) -> list[int]:
        """How many parts each device has now; thousandths of the rows where parts are not fixed."""
        return self._native.shares()  # type: ignore[no-any-return]
