"""Several processes at once, on one machine or many, with the names of `torch.distributed`.

>>> import volta.distributed as dist
>>> dist.init_process_group("mpi")
>>> x = volta.ones(3) * (dist.get_rank() + 1)
>>> dist.all_reduce(x)
>>> dist.destroy_process_group()

`mpirun -n 4 python train.py` starts four of it, if the package was built with its feature `mpi`. A process that no launcher
started is a world of one.
"""

from .collectives import (
    ReduceOp,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    barrier,
    broadcast,
    broadcast_object_list,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
)
from .process_group import (
    destroy_process_group,
    get_backend,
    get_local_rank,
    get_node_local_rank,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
)

__all__ = [
    "ReduceOp", "Work", "all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "barrier", "broadcast",
    "broadcast_object_list", "destroy_process_group", "get_backend", "get_local_rank", "get_node_local_rank", "get_rank",
    "get_world_size", "group", "init_process_group", "is_available", "is_gloo_available", "is_initialized",
    "is_mpi_available", "is_nccl_available", "reduce", "reduce_scatter", "reduce_scatter_tensor",
]  # fmt: skip
