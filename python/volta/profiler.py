"""Where the time goes: kernels timed one by one, the plan of the last step, and what the engine has done."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

from ._volta import _scopes as _native

__all__ = [
    "Counters", "KernelTime", "OpTime", "counters", "guards_enabled", "last_plan", "measure_peak", "profile",
    "reset_peak", "set_guards",
]  # fmt: skip


class KernelTime(NamedTuple):
    """All runs of kernels that compute the same."""

    label: str
    kind: str
    result: str
    calls: int
    seconds: float
    flops: int
    bytes: int


class OpTime(NamedTuple):
    """All that one op took; the gradient of an op is an op of its own."""

    name: str
    device: str
    calls: int
    seconds: float
    flops: int
    bytes: int


class Counters(NamedTuple):
    """Totals since the program started, of all threads."""

    bind_groups: int
    kernels_run: int
    peak_bytes: int
    plans_compiled: int
    plans_replayed: int
    pool_bytes: int
    reads: int
    shaders_compiled: int
    submissions: int
    uploads: int


def counters() -> Counters:
    """What the engine has done so far: plans compiled and replayed, kernels run, copies both ways, submissions to
    GPUs and bind groups made for them, bytes held and the most that were in use at once."""
    return Counters(**_native.counters())


def reset_peak() -> None:
    """Counts `peak_bytes` anew, from the next tensor or plan on."""
    _native.reset_peak()


def last_plan() -> str | None:
    """The kernels of the plan that this thread ran last: what each fuses, its traffic and arithmetic, and its memory."""
    return _native.last_plan()


def measure_peak(device: Any = "cpu") -> tuple[float, float]:
    """Bytes and arithmetic operations a second that a device can do at best; profiles compare ops with it from then on."""
    return _native.measure_peak(device)


def set_guards(on: bool) -> None:
    """Checks every op's result for NaN and infinity and every index for its bounds from now on, or no longer."""
    _native.set_guards(on)


def guards_enabled() -> bool:
    """Whether the guards are on."""
    return _native.guards_enabled()


class profile:
    """Times every kernel that this thread runs inside the `with` block. Printed, it is a table.

    >>> with volta.profiler.profile() as prof:
    ...     step()
    >>> print(prof)             # by kernel
    >>> print(prof.by_op())     # by the ops that the program called
    >>> prof.export_chrome_trace("trace.json")  # for https://ui.perfetto.dev
    """

    def __init__(self) -> None:
        self._core = _native.Profile()
        self._start: Counters | None = None
        self._end: Counters | None = None

    def __enter__(self) -> profile:
        self._start, self._end = counters(), None
        self._core.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self._core.end()
        self._end = counters()

    @property
    def kernels(self) -> list[KernelTime]:
        """One entry for every different kernel, the slowest first."""
        return [KernelTime(*kernel) for kernel in self._core.kernels()]

    @property
    def ops(self) -> list[OpTime]:
        """One entry for every op and device, the slowest first. What fused kernels took is shared out."""
        return [OpTime(*op) for op in self._core.ops()]

    @property
    def total(self) -> float:
        """Seconds in kernels."""
        return self._core.total()

    @property
    def counters(self) -> Counters:
        """What the engine did meanwhile, in all threads; `pool_bytes` and `peak_bytes` are those at the end."""
        if self._start is None:
            raise RuntimeError("nothing was profiled yet")
        end = self._end or counters()
        done = {name: getattr(end, name) - getattr(self._start, name) for name in Counters._fields}
        return Counters(**{**done, "pool_bytes": end.pool_bytes, "peak_bytes": end.peak_bytes})

    def by_op(self) -> str:
        """A table of the ops that the program called, forward and gradient apart."""
        return self._core.table_by_op()

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Writes what happened when, in the form that https://ui.perfetto.dev opens."""
        self._core.write_trace(path)

    def __str__(self) -> str:
        return self._core.table()

    def __repr__(self) -> str:
        return f"<profile of {len(self.kernels)} kernels, {self.total * 1e3:.3f} ms>"
