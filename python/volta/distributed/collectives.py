"""What all ranks do together: each calls the same functions in the same order, with tensors of the same shapes and types."""

from __future__ import annotations

import enum
import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .. import _volta
from .._volta import Tensor
from ..autograd import no_grad
from .process_group import current

Array = np.ndarray[Any, Any]


class ReduceOp(enum.Enum):
    """What becomes of the numbers of all ranks."""

    SUM = "SUM"
    AVG = "AVG"
    PRODUCT = "PRODUCT"
    MIN = "MIN"
    MAX = "MAX"
    BAND = "BAND"
    BOR = "BOR"
    BXOR = "BXOR"


# Those that add do so in 32 bits, if floats have fewer. All go by the order of the ranks, and all ranks get the same bits.
_FOLDS: dict[ReduceOp, Callable[..., Array]] = {
    ReduceOp.SUM: np.add.reduce,
    ReduceOp.AVG: np.add.reduce,
    ReduceOp.PRODUCT: np.multiply.reduce,
    ReduceOp.MIN: np.minimum.reduce,
    ReduceOp.MAX: np.maximum.reduce,
    ReduceOp.BAND: np.bitwise_and.reduce,
    ReduceOp.BOR: np.bitwise_or.reduce,
    ReduceOp.BXOR: np.bitwise_xor.reduce,
}


class Work:
    """What `async_op=True` returns: it is done already."""

    def wait(self, timeout: Any = None) -> bool:
        """True: there is nothing to wait for."""
        return True

    def is_completed(self) -> bool:
        """True."""
        return True


def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None) -> Work | None:
    """Waits until all ranks are here."""
    with current(group).waiting() as world:
        world.barrier()
    return _done(async_op)


def broadcast(tensor: Tensor, src: int = 0, group: Any = None, async_op: bool = False) -> Work | None:
    """Gives the tensor, on all ranks, the values that it has on rank `src`."""
    own = current(group)
    _check_rank("src", src, own.world.size)
    mine = _array(tensor)
    with own.waiting() as world:
        received = world.broadcast(mine.tobytes(), src)
    _put(tensor, np.frombuffer(received, mine.dtype).reshape(mine.shape))
    return _done(async_op)


def all_reduce(tensor: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Replaces the tensor by the sum over all ranks, element by element, or by what else `op` makes of them.

    Sums of 32-bit floats have no fixed order: their last bits depend on how many ranks there are.
    """
    _put(tensor, _reduced(current(group), _array(tensor), op))
    return _done(async_op)


def reduce(
    tensor: Tensor, dst: int = 0, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """`all_reduce` for rank `dst` alone: the tensors of the others stay."""
    own = current(group)
    _check_rank("dst", dst, own.world.size)
    reduced = _reduced(own, _array(tensor), op)
    if own.world.rank == dst:
        _put(tensor, reduced)
    return _done(async_op)


def all_gather(tensor_list: Sequence[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """Puts the tensor of rank `r` into `tensor_list[r]`, on all ranks."""
    own = current(group)
    mine = _array(tensor)
    _check_list("tensor_list", tensor_list, tensor, own.world.size)
    for place, part in zip(tensor_list, _gathered(own, mine)):
        _put(place, part)
    return _done(async_op)


def all_gather_into_tensor(
    output_tensor: Tensor, input_tensor: Tensor, group: Any = None, async_op: bool = False
) -> Work | None:
    """Puts the tensors of all ranks one behind the other into `output_tensor`, along its first axis or a new one."""
    own = current(group)
    _check_parts("output_tensor", output_tensor, "input_tensor", input_tensor, own.world.size)
    _put(output_tensor, _gathered(own, _array(input_tensor)).reshape(output_tensor.shape))
    return _done(async_op)


def reduce_scatter(
    output: Tensor,
    input_list: Sequence[Tensor],
    op: ReduceOp = ReduceOp.SUM,
    group: Any = None,
    async_op: bool = False,
) -> Work | None:
    """Gives rank `r` the sum, or what else `op` makes, of what all ranks have in `input_list[r]`."""
    own = current(group)
    _check_list("input_list", input_list, output, own.world.size)
    parts = np.stack([_array(part) for part in input_list])
    _put(output, _reduced_part(own, parts, op).reshape(output.shape))
    return _done(async_op)


def reduce_scatter_tensor(
    output: Tensor, input: Tensor, op: ReduceOp = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Work | None:
    """Gives rank `r` part `r` of the sums, or of what else `op` makes, of what all ranks have in `input`."""
    own = current(group)
    _check_parts("input", input, "output", output, own.world.size)
    parts = _array(input).reshape(own.world.size, -1)
    _put(output, _reduced_part(own, parts, op).reshape(output.shape))
    return _done(async_op)


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Puts the object of rank `r` into `object_list[r]`, on all ranks; objects go by pickle."""
    own = current(group)
    _check_length("object_list", object_list, own.world.size)
    with own.waiting() as world:
        object_list[:] = [pickle.loads(one) for one in world.gather(pickle.dumps(obj))]


def broadcast_object_list(object_list: list[Any], src: int = 0, group: Any = None, device: Any = None) -> None:
    """Replaces the objects in the list, on all ranks, by those of rank `src`; they go by pickle."""
    own = current(group)
    _check_rank("src", src, own.world.size)
    mine = pickle.dumps(object_list) if own.world.rank == src else b""
    with own.waiting() as world:
        received = pickle.loads(world.gather(mine)[src])
    if len(received) != len(object_list):
        raise ValueError(f"rank {src} has {len(received)} objects in its list, and this one {len(object_list)}")
    object_list[:] = received


def _reduced(own: Any, mine: Array, op: ReduceOp) -> Array:
    """The same on all ranks: each folds a part."""
    size, kind = own.world.size, mine.dtype
    wide = _widened(mine, op)
    if op in (ReduceOp.SUM, ReduceOp.AVG) and wide.dtype == np.float32:
        with own.waiting() as world:
            sums = np.frombuffer(world.sum(wide.tobytes()), np.float32)
        return _narrowed(sums, op, size, kind).reshape(mine.shape)
    length = -(-wide.size // size)
    parts = np.zeros((size, length), wide.dtype)
    parts.reshape(-1)[: wide.size] = wide.reshape(-1)
    folded = np.ascontiguousarray(_folded(own, parts, op))
    return _narrowed(_gathered(own, folded).reshape(-1)[: wide.size], op, size, kind).reshape(mine.shape)


def _reduced_part(own: Any, parts: Array, op: ReduceOp) -> Array:
    """This rank's part alone; there is a row for each rank."""
    size, kind = own.world.size, parts.dtype
    wide = _widened(parts, op)
    if op in (ReduceOp.SUM, ReduceOp.AVG) and wide.dtype == np.float32:
        with own.waiting() as world:
            part = np.frombuffer(world.sum_scatter(wide.tobytes()), np.float32)
    else:
        part = _folded(own, wide.reshape(size, -1), op)
    return _narrowed(part, op, size, kind)


def _folded(own: Any, parts: Array, op: ReduceOp) -> Array:
    """What `op` makes of this rank's row of all ranks."""
    with own.waiting() as world:
        received = np.frombuffer(world.all_to_all(parts.tobytes()), parts.dtype).reshape(parts.shape)
    fold = _FOLDS[op]
    return fold(received, axis=0, dtype=parts.dtype)


def _widened(array: Array, op: ReduceOp) -> Array:
    """The array in the type that its numbers are folded in."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"op is {op!r}, and must be one of volta.distributed.ReduceOp")
    is_float = array.dtype.kind == "f"
    if op is ReduceOp.AVG and not is_float:
        raise TypeError(f"ReduceOp.AVG is for floats, and the tensor is {array.dtype}: use SUM, and divide")
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and is_float:
        raise TypeError(f"ReduceOp.{op.name} is for integers and truth values, and the tensor is {array.dtype}")
    return array.astype(np.float32) if array.dtype == np.float16 else array


def _narrowed(array: Array, op: ReduceOp, size: int, kind: np.dtype[Any]) -> Array:
    """The result in the tensor's own type."""
    mean = array / array.dtype.type(size) if op is ReduceOp.AVG else array
    return mean.astype(kind, copy=False)


def _gathered(own: Any, mine: Array) -> Array:
    """The arrays of all ranks along a new first axis."""
    with own.waiting() as world:
        received = world.all_gather(mine.tobytes())
    return np.frombuffer(received, mine.dtype).reshape(own.world.size, *mine.shape)


def _array(tensor: Tensor) -> Array:
    """The values now; those of bfloat16 as 32-bit floats."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"ranks exchange tensors, and this is a {type(tensor).__name__}")
    with no_grad():
        values = tensor.detach().float() if tensor.dtype == _volta.bfloat16 else tensor
        return values.numpy(force=True)


def _put(tensor: Tensor, array: Array) -> None:
    """Gives the tensor these values. The array is nobody else's."""
    with no_grad():
        tensor.copy_(_volta.from_numpy(array))


def _done(async_op: bool) -> Work | None:
    return Work() if async_op else None


def _check_rank(name: str, rank: int, size: int) -> None:
    if not 0 <= rank < size:
        raise ValueError(f"{name} is {rank}, and there are {size} ranks, from 0")


def _check_length(name: str, given: Sequence[Any], size: int) -> None:
    if len(given) != size:
        raise ValueError(f"{name} has {len(given)} places, and there are {size} ranks")


def _check_list(name: str, given: Sequence[Tensor], like: Tensor, size: int) -> None:
    _check_length(name, given, size)
    for r, place in enumerate(given):
        if (place.shape, place.dtype) != (like.shape, like.dtype):
            raise ValueError(
                f"{name}[{r}] is {place.dtype} of {list(place.shape)}, and the other tensor {like.dtype} of {list(like.shape)}"
            )


def _check_parts(name: str, whole: Tensor, part_name: str, part: Tensor, size: int) -> None:
    if whole.dtype != part.dtype or whole.numel() != part.numel() * size:
        raise ValueError(
            f"{name} is {whole.dtype} of {list(whole.shape)}, and must hold {size} times {part_name}, "
            f"{part.dtype} of {list(part.shape)}"
        )
