"""The processes of a run: how they find each other, and how they end together."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from types import TracebackType
from typing import Any

from .._volta import _distributed as _native

# As long as PyTorch waits.
DEFAULT_TIMEOUT = timedelta(minutes=30)


class ProcessGroup:
    """All processes of a run, and how long one waits for the others."""

    def __init__(self, world: Any, timeout: timedelta) -> None:
        self.world, self.timeout = world, timeout.total_seconds()
        self._waiting_since: float | None = None
        self.is_over = False
        if world.size > 1:
            threading.Thread(target=self._watch, name="volta-timeout", daemon=True).start()

    @contextmanager
    def waiting(self) -> Iterator[Any]:
        """The world, for something that waits for the other ranks: no longer than the timeout."""
        self._waiting_since = time.monotonic()
        try:
            yield self.world
        finally:
            self._waiting_since = None

    def _watch(self) -> None:
        while not self.is_over:
            time.sleep(min(0.5, self.timeout / 4))
            since = self._waiting_since
            if since is not None and time.monotonic() - since > self.timeout:
                seconds = f"{self.timeout:g} s"
                _end(self.world, f"it has waited for the other ranks for {seconds}: one of them hangs, or calls something else")


# MPI begins once in a process and ends with it; groups come and go.
_session: Any = None
_group: ProcessGroup | None = None


class group:
    """The group of all processes, `group.WORLD`: there are no others."""

    WORLD: Any = None


def _set_group(new: ProcessGroup | None) -> None:
    global _group
    _group = group.WORLD = new


def current(group: Any = None) -> ProcessGroup:
    """The group of all processes."""
    if group is not None and group is not _group:
        raise ValueError("there is one group, that of all processes: leave group out")
    if _group is None:
        raise RuntimeError("there is no process group yet: call volta.distributed.init_process_group() first")
    return _group


def is_available() -> bool:
    """Whether there is this package. It always is; `is_mpi_available` says whether it reaches other processes."""
    return True


def is_mpi_available() -> bool:
    """Whether the package was built with MPI."""
    return bool(_native.HAS_MPI)


def is_nccl_available() -> bool:
    """False: ranks speak MPI."""
    return False


def is_gloo_available() -> bool:
    """False: ranks speak MPI."""
    return False


def is_initialized() -> bool:
    """Whether there is a process group."""
    return _group is not None


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    **other: Any,
) -> None:
    """Joins the other processes that the launcher has started, by MPI. Without a launcher this is a world of one.

    From then on an exception that nobody catches ends all ranks, since the others may wait for this one; so does a rank that
    waits for others longer than `timeout`, half an hour unless told otherwise.
    """
    if _group is not None:
        raise RuntimeError("there is a process group already: destroy_process_group() ends it")
    if backend not in (None, "mpi", "cpu:mpi"):
        raise ValueError(f"the backend {backend!r} is not there: ranks speak MPI, so say 'mpi', or nothing")
    if init_method not in (None, "env://"):
        raise ValueError(f"init_method={init_method!r}: the launcher tells ranks of each other; leave it out")
    given = [name for name, value in other.items() if value is not None and value != "" and name != "device_id"]
    if given:
        raise ValueError(f"init_process_group has no use for {given[0]}: MPI brings what is needed")
    timeout = DEFAULT_TIMEOUT if timeout is None else timeout
    if timeout.total_seconds() <= 0:
        raise ValueError(f"a timeout of {timeout} is none: it must be more than 0")
    if _session is None:
        _begin(_native.Session.begin())
    world = _session.world()
    _check_launcher(world, rank, world_size)
    _set_group(ProcessGroup(world, timeout))


def _check_launcher(world: Any, rank: int, world_size: int) -> None:
    """What is said elsewhere about ranks must be what MPI says: else every process would take itself for the only one."""
    for name, said, real in (("world_size", world_size, world.size), ("rank", rank, world.rank)):
        if said not in (-1, real):
            raise ValueError(f"{name}={said}, and MPI says {real}: leave it out, and start with `mpirun -n 4 python …`")
    size = os.environ.get("WORLD_SIZE", "")
    if world.size == 1 and size.isdigit() and int(size) > 1:
        raise RuntimeError(
            f"WORLD_SIZE is {size}, and no launcher of MPI has started this process: start it with "
            f"`mpirun -n {size} python …` instead of torchrun"
        )


def destroy_process_group(group: Any = None) -> None:
    """Leaves the group, when all ranks have come here. A new one may begin."""
    own = current(group)
    with own.waiting() as world:
        world.barrier()
    own.is_over = True
    _set_group(None)


def get_backend(group: Any = None) -> str:
    """`"mpi"`."""
    current(group)
    return "mpi"


def get_rank(group: Any = None) -> int:
    """The number of this process, from 0."""
    return int(current(group).world.rank)


def get_world_size(group: Any = None) -> int:
    """How many processes there are."""
    return int(current(group).world.size)


def get_local_rank() -> int:
    """The number of this process among those of its machine: the GPU to take."""
    return int(current().world.local_rank)


def get_node_local_rank(fallback_rank: int | None = None) -> int:
    """`get_local_rank`, or `fallback_rank` if there is no process group."""
    if _group is None and fallback_rank is not None:
        return fallback_rank
    return get_local_rank()


def _begin(session: Any) -> None:
    """Sees to it that all ranks end together."""
    global _session
    _session = session
    world = session.world()
    if world.size == 1:
        return
    failed = False
    shows = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        nonlocal failed
        failed = True
        shows(kind, error, traceback)

    def end() -> None:
        if failed:
            _end(world, "an exception that nobody caught ended it, and ends the others")
        session.end()

    sys.excepthook = hook
    atexit.register(end)


def _end(world: Any, reason: str) -> None:
    """Ends all ranks at once."""
    sys.stdout.flush()
    print(f"volta: {world.name}: {reason}", file=sys.stderr, flush=True)
    world.abort(1)
