"""One model on all ranks: each computes the gradients of its own batch, and all make the same step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from .. import _volta
from .._volta import Tensor
from .._volta import _distributed as _native
from ..autograd import is_grad_enabled, no_grad
from ..distributed import ReduceOp, all_reduce
from ..distributed.process_group import current
from ..utils.data.collate import moved
from .module import Module

__all__ = ["DistributedDataParallel"]

_engine: Any = _volta


class DistributedDataParallel(Module):
    """A module whose gradients are the means of those of all ranks, once `loss.backward()` is done.

    All ranks begin with rank 0's parameters and buffers. Gradients go in buckets, while the device computes the next ones:

    >>> dist.init_process_group("mpi")
    >>> model = nn.parallel.DistributedDataParallel(Net())
    >>> for x, y in DataLoader(data, batch_size=32, sampler=DistributedSampler(data)):
    ...     optimizer.zero_grad()
    ...     loss_of(model(x), y).backward()
    ...     optimizer.step()

    Without `find_unused_parameters` every parameter must have a gradient in every step. `broadcast_buffers` gives all ranks
    rank 0's buffers, running statistics for instance, before a forward pass that is trained with. `bucket_cap_mb` is how large a
    bucket is, 16 unless told otherwise. `device_ids` may name one device, to which inputs are moved.
    """

    def __init__(
        self,
        module: Module,
        device_ids: Sequence[Any] | None = None,
        output_device: Any = None,
        dim: int = 0,
        broadcast_buffers: bool = True,
        init_sync: bool = True,
        process_group: Any = None,
        bucket_cap_mb: float | None = None,
        find_unused_parameters: bool = False,
        check_reduction: bool = False,
        gradient_as_bucket_view: bool = False,
        static_graph: bool = False,
    ) -> None:
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(f"device_ids names {len(device_ids)} devices: a rank has one, and volta.parallel.DataParallel several")
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError("DistributedDataParallel is not needed when no parameter of a module requires a gradient")
        self.module = module
        self.broadcast_buffers, self.find_unused_parameters = broadcast_buffers, find_unused_parameters
        self.require_backward_grad_sync = True
        self._syncs_buffers_next = True
        self._input_device = _device(device_ids[0]) if device_ids else None
        self._group = current(process_group)
        size = None if bucket_cap_mb is None else int(bucket_cap_mb * (1 << 20))
        self._exchange = _native.GradientExchange(self._group.world, size)
        if init_sync and self._is_shared:
            self._agree()
            self._broadcast([*self._unique(module.parameters()), *self._unique(module.buffers())])

    @property
    def _is_shared(self) -> bool:
        return bool(self._group.world.size > 1)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """What the module makes of them."""
        if self._input_device is not None:
            inputs, named = moved(inputs, self._input_device), moved(named, self._input_device)
        if not self._is_shared:
            return self.module(*inputs, **named)
        if self._syncs_buffers_next and self.broadcast_buffers:
            self._broadcast(self._unique(self.module.buffers()))
        output = self.module(*inputs, **named)
        # As PyTorch has it: what is only evaluated, or accumulated, needs no other buffers than the last step left.
        self._syncs_buffers_next = is_grad_enabled() and self.require_backward_grad_sync
        return self._seen(output) if self._syncs_buffers_next else output

    @contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of what goes forward in here are added up on each rank, and exchanged by the first backward pass after it."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def _seen(self, output: Any) -> Any:
        """The output, whose backward pass exchanges gradients at its end."""
        due: list[bool] = []

        def exchange() -> None:
            due.clear()
            self._average()

        def backward(inputs: list[Tensor], output: Tensor, gradient: Tensor) -> list[Tensor]:
            if not due:
                due.append(True)
                _engine._after_backward(exchange)
            return [gradient]

        return _mapped(lambda t: _engine._apply(lambda inputs: inputs[0], backward, [t]), output)

    def _average(self) -> None:
        """Gives the parameters the mean of all ranks' gradients."""
        named = [(name, p) for name, p in self.module.named_parameters() if p.requires_grad]
        if self.find_unused_parameters:
            used = _volta.tensor([float(p.grad is not None) for _, p in named], device="cpu")
            all_reduce(used)
            named = [pair for pair, count in zip(named, used.tolist()) if count]
            for _, p in named:
                if p.grad is None:
                    p.grad = _volta.zeros_like(p, requires_grad=False)
        missing = [name for name, p in named if p.grad is None]
        if missing:
            raise RuntimeError(
                f"DistributedDataParallel: {', '.join(missing[:5])}{' and more' if len(missing) > 5 else ''} got no gradient in this "
                "backward pass: use all parameters in the loss, or pass find_unused_parameters=True"
            )
        with self._group.waiting():
            self._exchange.average([p for _, p in named if p.dtype != _volta.float64])
        for _, p in named:
            if p.dtype == _volta.float64 and p.grad is not None:
                mean = p.grad.detach().clone()
                all_reduce(mean, ReduceOp.AVG)
                p.grad = mean

    def _agree(self) -> None:
        """An error unless all ranks have the same module."""

        def said(t: Tensor) -> str:
            return f"{t.dtype} of {list(t.shape)}{', trained' if t.requires_grad else ''}"

        values = [(name, said(t)) for name, t in (*self.module.named_parameters(), *self.module.named_buffers())]
        with self._group.waiting() as world:
            world.agree(values)

    def _broadcast(self, tensors: list[Tensor]) -> None:
        """Gives all ranks the values of rank 0, in one message."""
        if not tensors:
            return
        with no_grad():
            arrays = [(t.float() if t.dtype == _volta.bfloat16 else t).detach().numpy(force=True) for t in tensors]
            with self._group.waiting() as world:
                received = world.broadcast(b"".join(array.tobytes() for array in arrays), 0)
            if world.rank == 0:
                return
            begin = 0
            for t, array in zip(tensors, arrays):
                values = np.frombuffer(received, array.dtype, array.size, begin).reshape(array.shape)
                begin += array.nbytes
                t.copy_(_volta.from_numpy(values.copy()))

    @staticmethod
    def _unique(tensors: Iterator[Tensor]) -> list[Tensor]:
        return list({id(t): t for t in tensors}.values())

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError("a DistributedDataParallel belongs to its process: save model.module, or model.state_dict()")


def _device(given: Any) -> Any:
    """A device, or the GPU of a number."""
    return f"gpu:{given}" if isinstance(given, int) else given


def _mapped(change: Any, value: Any) -> Any:
    """The value with all tensors in it changed that gradients flow through."""
    if isinstance(value, Tensor):
        return change(value) if value.requires_grad else value
    if isinstance(value, dict):
        return type(value)((key, _mapped(change, one)) for key, one in value.items())
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(_mapped(change, one) for one in value))
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(change, one) for one in value)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _mapped(change, getattr(value, f.name)) for f in fields(value) if f.init})
    return value
