"""Making tensors: values, types, devices, random numbers, and what cannot be made."""

import numpy as np
import pytest

import volta


def test_numbers_and_lists_become_pytorchs_types():
    assert volta.tensor(1.5).dtype == volta.float32 and volta.tensor(1.5).shape == ()
    assert volta.tensor(3).dtype == volta.int64 and volta.tensor(True).dtype == volta.bool
    assert volta.tensor([[1, 2], [3, 4]]).dtype == volta.int64
    assert volta.tensor([1, 2.5]).tolist() == [1.0, 2.5]
    assert volta.tensor([True, False]).dtype == volta.bool
    assert volta.tensor([]).shape == (0,) and volta.tensor([]).dtype == volta.float32
    assert volta.tensor([[], []]).shape == (2, 0)
    assert volta.tensor((1, 2), dtype=volta.float16).dtype == volta.float16
    assert volta.tensor(np.float64(2)).dtype == volta.float64
    assert volta.tensor([volta.tensor(1.0), volta.tensor(2.0)]).tolist() == [1.0, 2.0]
    assert volta.tensor(2**40).item() == 2**40
    assert volta.Tensor([1.0, 2.0]).tolist() == [1.0, 2.0]


def test_a_tensor_of_a_tensor_is_a_copy_without_its_history():
    x = volta.ones(2, requires_grad=True)
    y = volta.tensor(x * 2)
    assert not y.requires_grad and y.tolist() == [2, 2]
    assert volta.as_tensor(x) is x


SHAPED = {
    "zeros": lambda *s, **k: volta.zeros(*s, **k),
    "ones": lambda *s, **k: volta.ones(*s, **k),
    "empty": lambda *s, **k: volta.empty(*s, **k),
    "rand": lambda *s, **k: volta.rand(*s, **k),
    "randn": lambda *s, **k: volta.randn(*s, **k),
}


@pytest.mark.parametrize("name", SHAPED)
def test_shapes_are_given_as_numbers_or_as_one_tuple(name):
    make = SHAPED[name]
    for x in (make(2, 3), make((2, 3)), make([2, 3])):
        assert x.shape == (2, 3) and x.dtype == volta.float32 and not x.requires_grad
    assert make(()).shape == () and make(0).shape == (0,)
    x = make(2, dtype=volta.float64, device="cpu", requires_grad=True)
    assert x.dtype == volta.float64 and x.requires_grad and x.is_leaf
    with pytest.raises(ValueError, match="negative"):
        make(-1)


def test_values_by_rule():
    assert volta.zeros(2).tolist() == [0, 0] and volta.ones(2, dtype=volta.int32).tolist() == [1, 1]
    assert volta.full((2, 2), 7).dtype == volta.int64 and volta.full((2,), 0.5).tolist() == [0.5, 0.5]
    assert volta.full((2,), True).dtype == volta.bool
    assert volta.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert volta.tril_mask(2, 3, 1).tolist() == [[True, True, False], [True, True, True]]
    assert volta.triu_mask(2, 2).tolist() == [[True, True], [False, True]]
    np.testing.assert_allclose(volta.linspace(0, 1, 5).numpy(), np.linspace(0, 1, 5), rtol=1e-6)
    # Each half is counted from its own end.
    halves = [*(np.arange(3) * (1 / 6)), *(1 - np.arange(4)[::-1] * (1 / 6))]
    np.testing.assert_array_equal(volta.linspace(0, 1, 7, dtype=volta.float64).numpy(), halves)
    assert volta.linspace(3, 4, 1).tolist() == [3.0]


ARANGES = [(5,), (2, 7), (2, 9, 3), (9, 2, -3), (0.0, 1.0, 0.25), (5.0,), (3, 3), (1, 2.5), (2**40, 2**40 + 3), (10, 0, -4)]


@pytest.mark.parametrize("arguments", ARANGES, ids=str)
def test_arange_is_numpys(arguments):
    x = volta.arange(*arguments)
    expected = np.arange(*arguments)
    assert x.dtype == (volta.int64 if expected.dtype.kind == "i" else volta.float32)
    np.testing.assert_allclose(x.numpy(), expected, rtol=1e-6)
    np.testing.assert_allclose(volta.arange(*arguments, dtype=volta.float64).numpy(), expected)


def test_aranges_that_go_nowhere_say_so():
    for arguments in ((0, 5, 0), (0, 5, -1), (5, 0), (0, float("inf"))):
        with pytest.raises(ValueError, match="no numbers"):
            volta.arange(*arguments)


def test_like_means_the_same_shape_type_and_device():
    x = volta.zeros(2, 3, dtype=volta.float64)
    for name in ("zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"):
        y = getattr(volta, name)(x)
        assert y.shape == (2, 3) and y.dtype == volta.float64
    assert volta.full_like(x, 2, dtype=volta.int32).tolist() == [[2] * 3] * 2
    drawn = volta.randint_like(x, 1, 3)
    assert drawn.dtype == volta.float64 and set(drawn.ravel().tolist()) <= {1.0, 2.0}


def test_random_numbers_follow_the_seed_and_their_distributions():
    volta.manual_seed(5)
    a = [volta.rand(3), volta.randn(3), volta.randint(0, 10, (3,)), volta.randperm(5)]
    state = volta.get_rng_state()
    b = volta.rand(3)
    volta.set_rng_state(state)
    assert volta.rand(3).tolist() == b.tolist()
    volta.manual_seed(5)
    again = [volta.rand(3), volta.randn(3), volta.randint(0, 10, (3,)), volta.randperm(5)]
    assert [x.tolist() for x in a] == [x.tolist() for x in again]
    n = volta.randn(20000)
    assert abs(n.mean().item()) < 0.03 and abs(n.std().item() - 1) < 0.03
    u = volta.rand(20000)
    assert 0 <= u.min().item() and u.max().item() < 1 and abs(u.mean().item() - 0.5) < 0.02
    assert sorted(volta.randperm(50).tolist()) == list(range(50))
    assert set(volta.randint(3, (200,)).tolist()) == {0, 1, 2} and volta.randint(3, (2,)).dtype == volta.int64
    assert volta.randint(5, 7, (100,)).min().item() == 5
    assert abs(volta.bernoulli(volta.full((20000,), 0.3)).mean().item() - 0.3) < 0.02


def test_the_default_device_is_where_tensors_are_made():
    assert volta.get_default_device() == volta.device("cpu")
    with volta.device("gpu:3"):
        assert volta.get_default_device() == volta.device("gpu", 3)
        with volta.device("cpu"):
            assert volta.zeros(1).device.type == "cpu"
        assert volta.get_default_device().index == 3
    assert volta.get_default_device().type == "cpu"
    assert volta.devices()[0] == (volta.device("cpu"), "cpu")
    assert isinstance(volta.is_available(), bool)
    volta.synchronize()


def test_devices_and_types_have_names():
    assert str(volta.device("gpu")) == "gpu:0" and repr(volta.device("cpu")) == "device(type='cpu')"
    assert {volta.device("gpu:1"): 1}[volta.device("gpu", 1)] == 1
    assert volta.float is volta.float32 and volta.long is volta.int64 and volta.zeros(1).dtype is volta.float32
    assert repr(volta.bfloat16) == "volta.bfloat16" and volta.float16.itemsize == 2
    assert volta.int32.is_floating_point is False and volta.half.is_floating_point is True
    for given in ("float64", np.float64, np.dtype("float64"), float):
        assert volta.zeros(1, dtype=given).dtype is volta.float64
    assert volta.zeros(1, dtype=int).dtype is volta.int64 and volta.zeros(1, dtype=bool).dtype is volta.bool
    with pytest.raises(TypeError, match="complex64"):
        volta.zeros(1, dtype=np.complex64)
    with pytest.raises(ValueError, match="is no device"):
        volta.zeros(1, device="tpu")


def test_to_converts_and_moves_only_if_it_must():
    x = volta.ones(2)
    assert x.to("cpu") is x and x.float() is x and x.to(volta.float32) is x and x.contiguous() is x
    assert x.to(volta.float64).dtype == volta.float64 and x.to("cpu", volta.int32).dtype == volta.int32
    assert x.to(volta.zeros(1, dtype=volta.int64)).dtype == volta.int64
    assert x.to(dtype=volta.float16, device="cpu").dtype == volta.float16
    assert x.to(x, copy=True) is not x
    assert [getattr(x, name)().dtype for name in ("double", "half", "bfloat16", "int", "long", "byte", "bool")] == [
        volta.float64, volta.float16, volta.bfloat16, volta.int32, volta.int64, volta.uint8, volta.bool
    ]
    assert x.type_as(volta.tensor(1)).dtype == volta.int64 and x.type(volta.float64).dtype == volta.float64
    assert volta.tensor([1.9, -1.9]).int().tolist() == [1, -1]


def test_unsigned_integers_are_made_like_others():
    top = 2**32 - 1
    assert volta.tensor([0, 2**31, top], dtype=volta.uint32).tolist() == [0, 2**31, top]
    assert volta.tensor(np.array([top], np.uint32)).dtype == volta.uint32
    assert volta.tensor(top, dtype="uint32").item() == top
    for given in ("uint32", "u32", np.uint32, np.dtype("uint32"), volta.uint32):
        assert volta.zeros(2, dtype=given).dtype is volta.uint32
    assert volta.uint32.itemsize == 4 and not volta.uint32.is_floating_point and repr(volta.uint32) == "volta.uint32"
    assert volta.full((2,), top, dtype=volta.uint32).tolist() == [top] * 2
    assert volta.full((1,), -1, dtype=volta.uint32).tolist() == [top]
    assert volta.arange(2**31, 2**31 + 6, 2, dtype=volta.uint32).tolist() == [2**31, 2**31 + 2, 2**31 + 4]
    assert volta.arange(0, 5, dtype=volta.uint32).tolist() == [0, 1, 2, 3, 4]
    assert volta.linspace(0, 4e9, 3, dtype=volta.uint32).tolist() == [0, 2_000_000_000, 4_000_000_000]
    drawn = volta.randint(3, 9, (50,), dtype=volta.uint32)
    assert drawn.dtype == volta.uint32 and 3 <= min(drawn.tolist()) <= max(drawn.tolist()) < 9
    assert sorted(volta.randperm(5, dtype=volta.uint32).tolist()) == [0, 1, 2, 3, 4]
    assert volta.tensor([-1.5, 5e9, 3e9]).to(volta.uint32).tolist() == [0, top, 3_000_000_000]


def test_what_a_tensor_says_about_itself():
    x = volta.zeros(2, 3, dtype=volta.float16)
    assert x.shape == (2, 3) == x.size() and x.size(-1) == 3 and x.ndim == x.dim() == 2
    assert x.numel() == x.nelement() == 6 and x.itemsize == x.element_size() == 2 and x.nbytes == 12
    assert x.is_floating_point() and not x.is_gpu and x.is_contiguous() and x.is_leaf
    with pytest.raises(IndexError):
        x.size(2)
    y = x + 1
    assert not y.is_realized and y.realize() is y and y.is_realized
    z = x + 2
    volta.realize(z)
    assert z.is_realized


def test_shapes_broadcast():
    a, b = volta.broadcast_tensors(volta.zeros(3, 1), volta.ones(4))
    assert a.shape == b.shape == (3, 4) == volta.broadcast_shapes((3, 1), (4,))
    with pytest.raises(ValueError, match="do not broadcast"):
        volta.broadcast_tensors(volta.zeros(3), volta.ones(4))


def test_uniform_halves_are_below_one():
    for dtype in (volta.float16, volta.bfloat16):
        x = volta.rand(50000, dtype=dtype)
        for y in (x, volta.rand_like(x)):
            y = y.float().numpy()
            assert y.min() >= 0 and 0.99 < y.max() < 1, dtype


def test_ranges_of_floats_are_exact_integers():
    found = volta.arange(16777216.0, 16777220.0, dtype=volta.int32)
    assert found.dtype == volta.int32 and found.tolist() == [16777216, 16777217, 16777218, 16777219]


def test_evenly_spaced_numbers_end_where_they_should():
    for end, steps in [(0.7, 8), (1.0, 50), (1e-3, 3), (10.0, 99)]:
        for dtype, scale in [(volta.float32, np.float32), (volta.float64, np.float64)]:
            found = volta.linspace(-end, end, steps, dtype=dtype).numpy()
            assert found[0] == scale(-end) and found[-1] == scale(end)
            np.testing.assert_array_equal(found, -found[::-1])
    whole = volta.linspace(0, 99, 100, dtype=volta.int64)
    assert whole.tolist() == list(range(100))
    assert volta.linspace(0, 2**53 + 2, 3, dtype=volta.int64)[-1].item() == 2**53 + 2
    assert volta.linspace(-3, 3, 7, dtype=volta.int32).tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert volta.linspace(0, 1, 0).shape == (0,)


@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_shapes_may_be_given_by_name(name):
    make = getattr(volta, name)
    assert make(size=(2, 3)).shape == (2, 3) and make(size=[4]).shape == (4,)
    with pytest.raises(TypeError, match="size is given twice"):
        make(2, size=(2,))
    with pytest.raises(TypeError, match="integer"):
        make(True)


@pytest.mark.parametrize("arguments,dtype,expected", [
    # What is counted are the bounds as int64 has them.
    ((-0.9, 2.1, 2.0), "int64", [0]),
    ((0, 3.1), "int64", [0, 1, 2]),
    ((0.5, 0.2), "int64", []),
    ((5, 0, -1.5), "int64", [5, 4, 3, 2, 1]),
    # For other types they are counted as they are given, and then cut.
    ((-0.9, 2.1, 2.0), "int32", [0, 2]),
    ((0, 3.1), "int32", [0, 1, 2, 3]),
    ((0, 3.1), "uint8", [0, 1, 2, 3]),
    ((2**53, 2**53 + 3), "int64", [2**53, 2**53 + 1, 2**53 + 2]),
    ((5, 0, -2), None, [5, 3, 1]),
    ((0, 3.1), None, [0.0, 1.0, 2.0, 3.0]),
])
def test_ranges_are_pytorchs(arguments, dtype, expected):
    found = volta.arange(*arguments, dtype=dtype)
    assert found.tolist() == expected and (dtype is None or str(found.dtype) == f"volta.{dtype}")


@pytest.mark.parametrize("arguments", [(5, 0, -0.5), (0, 5, 0.9), (0, float("inf")), (0, 5, -1)])
def test_there_are_ranges_that_have_no_integers(arguments):
    for dtype in ("int64", "int32"):
        with pytest.raises(ValueError, match="arange"):
            volta.arange(*arguments, dtype=dtype)


@pytest.mark.parametrize("data,dtype", [
    ([2**40], "int32"), (2**40, "int32"), ([1, 300], "uint8"), (-256, "uint8"), ([[-(2**40)]], "uint32"),
    ([3e9], "int32"), ([float("nan")], "int64"), (float("inf"), "int32"),
])
def test_a_number_that_does_not_fit_is_an_error(data, dtype):
    with pytest.raises(ValueError, match="does not fit into"):
        volta.tensor(data, dtype=dtype)
    x = volta.zeros(2, 2, dtype=dtype)
    number = volta.tensor(data).max().item()
    if number != number or number == float("inf") or abs(number) > 2**31:
        with pytest.raises(ValueError, match="does not fit into"):
            volta.full((2,), number, dtype=dtype)
        for change in (lambda: x.fill_(number), lambda: x.masked_fill(x == 0, number), lambda: x.__setitem__(0, number)):
            with pytest.raises(ValueError, match="does not fit into"):
                change()
    assert x.tolist() == [[0, 0], [0, 0]]


def test_numbers_fit_as_in_pytorch():
    assert volta.tensor([255, -1, -255], dtype=volta.uint8).tolist() == [255, 255, 1]
    assert volta.tensor([2.9, -0.5], dtype=volta.int32).tolist() == [2, 0]
    assert volta.tensor([1e39]).tolist() == [float("inf")]
    assert volta.tensor(np.array([300]), dtype=volta.uint8).tolist() == [44]
    assert volta.tensor([300]).to(volta.uint8).tolist() == [44]
    assert volta.tensor([True, False], dtype=volta.uint8).tolist() == [1, 0]
    assert volta.tensor([], dtype=volta.int32).shape == (0,)
