"""Memory shared with NumPy and JAX: values, lifetimes, layouts, who sees what is written."""

import gc
import weakref

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from tensor_reference import in_64_bits, numbers

import volta

DTYPES = ["float32", "float64", "float16", "int32", "int64", "uint8", "uint32", "bool"]


def sample(dtype, shape=(2, 3)):
    return (np.arange(np.prod(shape)).reshape(shape) % 2 if dtype == "bool" else np.arange(np.prod(shape)).reshape(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_come_and_go_without_being_copied(dtype):
    array = sample(dtype)
    x = volta.from_numpy(array)
    assert str(x.dtype) == f"volta.{dtype}" and x.shape == (2, 3)
    assert np.shares_memory(x.numpy(), array)
    np.testing.assert_array_equal(x.numpy(), array)
    assert x.numpy().dtype == array.dtype


def test_bfloat16_goes_by_ml_dtypes():
    x = volta.tensor([1.5, -2.0], dtype=volta.bfloat16)
    assert x.numpy().dtype == ml_dtypes.bfloat16
    assert x.tolist() == [1.5, -2.0]
    back = volta.from_numpy(x.numpy())
    assert back.dtype == volta.bfloat16 and back.tolist() == [1.5, -2.0]


def test_what_is_written_to_an_array_is_seen_by_its_tensor_and_the_other_way():
    array = np.zeros(3, np.float32)
    x = volta.from_numpy(array)
    array[0] = 5
    assert x.tolist() == [5, 0, 0]
    own = volta.zeros(3)
    view = own.numpy()
    view[1] = 7
    assert own.tolist() == [0, 7, 0] and (own.expand(2, 3) + 1).tolist() == [[1, 8, 1]] * 2
    number = volta.tensor(2.0)
    number.numpy()[...] = 5
    assert (number * volta.ones(2)).tolist() == [5, 5]
    assert volta.as_tensor(array).tolist() == [5, 0, 0]
    assert np.shares_memory(volta.as_tensor(array).numpy(), array)
    assert not np.shares_memory(volta.tensor(array).numpy(), array)


def test_ops_in_place_leave_the_array_as_it_is():
    array = np.ones(4, np.float32)
    x = volta.from_numpy(array)
    for _ in range(3):
        x += 1
        x.mul_(2)
        x.realize()
    assert x.tolist() == [22.0] * 4
    assert array.tolist() == [1.0] * 4
    own = volta.ones(4)
    before = own.numpy()
    own.zero_()
    assert own.tolist() == [0.0] * 4 and before.tolist() == [1.0] * 4


def test_a_clone_has_memory_of_its_own():
    for dtype in DTYPES + ["bfloat16"]:
        x = volta.tensor(sample("bool" if dtype == "bool" else "float32")).to(dtype=dtype)
        clone = x.clone()
        assert clone.dtype == x.dtype and clone.tolist() == x.tolist()
        assert not np.shares_memory(clone.numpy(), x.numpy())
    negative_zero = volta.tensor([-0.0]).clone()
    assert np.signbit(negative_zero.numpy()[0])


@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "uint32"])
def test_arrays_that_do_not_lie_in_order_are_copied(dtype):
    array = sample(dtype, (4, 6))
    for odd in (array.T, array[:, ::2], array[::-1], np.broadcast_to(array[0], (3, 6)), np.asfortranarray(array)):
        x = volta.from_numpy(odd)
        np.testing.assert_array_equal(x.numpy(), odd)
        assert not np.shares_memory(x.numpy(), array)
    np.testing.assert_array_equal(volta.from_numpy(array[1:3]).numpy(), array[1:3])
    assert np.shares_memory(volta.from_numpy(array[1:3]).numpy(), array)


def test_the_other_byte_order_and_odd_addresses_are_copied():
    big = np.array([1.5, -2.0], ">f4")
    assert volta.from_numpy(big).tolist() == [1.5, -2.0]
    assert volta.tensor(np.array([1, 2], ">i8")).tolist() == [1, 2]
    raw = np.zeros(13, np.uint8)[1:].view(np.float32)
    raw[:] = [1, 2, 3]
    assert volta.from_numpy(raw).tolist() == [1, 2, 3]


def test_read_only_arrays_stay_read_only():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = volta.from_numpy(array)
    assert np.shares_memory(x.numpy(), array) and not x.numpy().flags.writeable
    x += 1
    assert x.tolist() == [1, 2, 3] and array.tolist() == [0, 1, 2] and x.numpy().flags.writeable


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0, 4), ()])
def test_no_elements_and_no_dimensions_go_both_ways(shape):
    for array in (np.zeros(shape, np.float32), np.zeros(shape, np.int64)):
        x = volta.from_numpy(array)
        assert x.shape == shape and x.numpy().shape == shape
        assert volta.from_dlpack(x).shape == shape
        assert np.from_dlpack(x).shape == shape


def test_types_that_tensors_do_not_have_say_so():
    for dtype in (np.int16, np.uint16, np.complex64):
        with pytest.raises(TypeError, match="convert the array with astype"):
            volta.from_numpy(np.zeros(2, dtype))
    with pytest.raises(TypeError, match="a NumPy array is needed"):
        volta.from_numpy([1.0])
    with pytest.raises(TypeError):
        volta.tensor(["a"])


class Memory(bytearray):
    """Memory that can be watched."""


def watched(values):
    """An array, and a question whether its memory is still there."""
    memory = Memory(values.tobytes())
    return np.frombuffer(memory, values.dtype), weakref.ref(memory)


def test_either_side_can_be_dropped_first():
    array, gone = watched(np.arange(1000.0))
    x = volta.from_numpy(array)
    del array
    gc.collect()
    assert gone() is not None and x.sum().item() == 499500
    view = x.numpy()
    y = x * 2
    del x
    gc.collect()
    assert view[-1] == 999 and gone() is not None
    assert y.sum().item() == 999000
    del view, y
    volta.zeros(1).item()
    gc.collect()
    assert gone() is None
    view = volta.arange(5.0).numpy()
    gc.collect()
    volta.ones(5).numpy()
    assert view.tolist() == [0, 1, 2, 3, 4]


def test_numpy_understands_tensors():
    x = volta.tensor([[1.0, 2.0], [3.0, 4.0]])
    assert np.asarray(x).shape == (2, 2) and np.asarray(x, dtype=np.int32).dtype == np.int32
    assert np.array(x).tolist() == x.tolist() and not np.shares_memory(np.array(x), x.numpy())
    assert np.exp(x).shape == (2, 2)
    for mixed in (np.ones(2) + x, x + np.ones(2), np.float32(2) * x, np.ones((2, 2), np.float32) @ x):
        assert isinstance(mixed, volta.Tensor)
    assert (np.array([5.0, 1.0]) > x).tolist() == [[True, False], [True, False]]


def test_gradients_and_gpus_must_be_left_behind_first():
    x = volta.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="detach"):
        x.numpy()
    with pytest.raises(RuntimeError, match="detach"):
        np.asarray(x)
    with pytest.raises(BufferError, match="detach"):
        np.from_dlpack(x)
    assert x.numpy(force=True).tolist() == [1, 1]


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_goes_both_ways_with_numpy(dtype):
    array = sample(dtype)
    x = volta.from_dlpack(array)
    np.testing.assert_array_equal(x.numpy(), array)
    assert np.shares_memory(x.numpy(), array)
    back = np.from_dlpack(x)
    assert np.shares_memory(back, array) and back.dtype == array.dtype


@pytest.mark.parametrize("dtype", DTYPES + ["bfloat16"])
def test_dlpack_goes_both_ways_with_jax(dtype):
    with in_64_bits(True):
        array = jnp.asarray(sample("float32" if dtype == "bfloat16" else dtype)).astype(dtype)
        x = volta.from_dlpack(array)
        assert str(x.dtype) == f"volta.{dtype}" and x.tolist() == array.tolist()
        back = jax.dlpack.from_dlpack(x)
        assert back.dtype == array.dtype and back.tolist() == array.tolist()
        assert jax.dlpack.from_dlpack(volta.tensor(numbers((64, 64)))).shape == (64, 64)


def test_dlpack_keeps_memory_alive_whoever_goes_first():
    array, gone = watched(np.arange(100.0))
    x = volta.from_dlpack(array)
    del array
    gc.collect()
    assert gone() is not None and x.sum().item() == 4950
    other = np.from_dlpack(x)
    del x
    gc.collect()
    assert other.sum() == 4950 and gone() is not None
    del other
    gc.collect()
    volta.zeros(1).item()
    assert gone() is None
    # A capsule that nobody takes lets go too.
    array, gone = watched(np.arange(5.0))
    x = volta.from_numpy(array)
    capsule = x.__dlpack__()
    del array, x
    assert gone() is not None
    del capsule
    volta.zeros(1).item()
    gc.collect()
    assert gone() is None


def test_dlpack_says_what_it_cannot_do():
    x = volta.zeros(2)
    assert x.__dlpack_device__() == (1, 0)
    capsule = x.__dlpack__()
    assert volta.from_dlpack(capsule).tolist() == [0, 0]
    with pytest.raises(BufferError, match="taken already"):
        volta.from_dlpack(capsule)
    with pytest.raises(BufferError, match="cpu"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(TypeError, match="DLPack's type"):
        volta.from_dlpack(np.zeros(2, np.complex64))
    assert volta.from_dlpack(np.arange(6.0).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
    copy = np.from_dlpack(x, copy=True)
    assert not np.shares_memory(copy, x.numpy())


def test_read_only_memory_is_told_on():
    array = np.arange(3.0)
    array.flags.writeable = False
    x = volta.from_dlpack(array)
    assert not x.numpy().flags.writeable and not np.from_dlpack(x).flags.writeable
    # The older form cannot say so: what it gives is a copy.
    old = volta.from_dlpack(x.__dlpack__())
    assert old.numpy().flags.writeable and not np.shares_memory(old.numpy(), array)


def test_large_arrays_are_not_copied():
    array = np.zeros(25_000_000, np.float32)
    x = volta.from_numpy(array)
    assert x.numpy().__array_interface__["data"][0] == array.__array_interface__["data"][0]
    assert volta.from_dlpack(x).numpy().__array_interface__["data"][0] == array.__array_interface__["data"][0]


def test_an_array_beside_an_operator_counts_with_the_values_it_has_then():
    buffer, results = np.zeros(2, np.float32), []
    for k in range(3):
        buffer[:] = k
        results += [volta.zeros(2) + buffer, buffer * volta.ones(2), volta.zeros(2).add(buffer), volta.zeros(2) < buffer]
    assert [r.tolist() for r in results[::4]] == [[0, 0], [1, 1], [2, 2]]
    assert [r.tolist() for r in results[1::4]] == [[0, 0], [1, 1], [2, 2]]
    assert [r.tolist() for r in results[2::4]] == [[0, 0], [1, 1], [2, 2]]
    assert [r.tolist() for r in results[3::4]] == [[False, False], [True, True], [True, True]]
