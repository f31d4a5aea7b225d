"""What tensors look like, and what becomes of them in pickles and copies."""

import copy
import pickle

import numpy as np
import pytest

import volta

SHOWN = [
    (lambda: volta.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True), "tensor([[1., 2.],\n        [3., 4.]], requires_grad=True)"),
    (lambda: volta.tensor([1, 2, 3]), "tensor([1, 2, 3])"),
    (lambda: volta.tensor([1, 2, 3], dtype=volta.int32), "tensor([1, 2, 3], dtype=volta.int32)"),
    (lambda: volta.tensor(2.5), "tensor(2.5)"),
    (lambda: volta.tensor(True), "tensor(True)"),
    (lambda: volta.tensor([True, False]), "tensor([ True, False])"),
    (lambda: volta.tensor([0.1, -1e10]), "tensor([ 1.e-01, -1.e+10])"),
    (lambda: volta.tensor([float("nan"), float("inf")]), "tensor([nan, inf])"),
    (lambda: volta.tensor([1.5], dtype=volta.bfloat16), "tensor([1.5], dtype=volta.bfloat16)"),
    (lambda: volta.tensor([]), "tensor([])"),
    (lambda: volta.zeros(2, 0), "tensor([], size=(2, 0))"),
    (lambda: volta.zeros(0, dtype=volta.int64), "tensor([], dtype=volta.int64)"),
    (lambda: volta.tensor([1.0], requires_grad=True) * 2, "tensor([2.], requires_grad=True)"),
]


@pytest.mark.parametrize("make,text", SHOWN, ids=[text for _, text in SHOWN])
def test_tensors_print_as_numpy_does(make, text):
    assert repr(make()) == text == str(make())


@pytest.mark.parametrize("seed", range(4))
def test_long_and_random_values_print_as_numpy_does(seed):
    array = np.random.default_rng(seed).normal(size=[(3, 4), (2000,), (2, 3, 4), (50, 60)][seed]).astype("float32")
    shown = np.array2string(array, separator=", ", prefix="tensor(")
    assert repr(volta.tensor(array)) == f"tensor({shown})"


def test_numbers_in_text():
    x = volta.tensor(3.14159)
    assert f"{x:.2f}" == "3.14" and f"{x}" == "tensor(3.14159)"
    assert float(x) == pytest.approx(3.14159) and int(x) == 3 and x.item() == pytest.approx(3.14159)
    assert isinstance(volta.tensor(1).item(), int) and isinstance(volta.tensor(True).item(), bool)
    assert volta.tensor(2**53 + 1).item() == 2**53 + 1
    assert volta.tensor([[1, 2]]).tolist() == [[1, 2]] and volta.tensor(5).tolist() == 5
    assert bool(volta.tensor([1.0])) and not volta.tensor(0)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8", "uint32", "bool"])
@pytest.mark.parametrize("shape", [(2, 3), (), (0, 2)])
def test_pickles_bring_back_value_type_and_shape(dtype, shape):
    x = volta.ones(shape).to(dtype=dtype)
    for protocol in (2, pickle.HIGHEST_PROTOCOL):
        back = pickle.loads(pickle.dumps(x, protocol))
        assert back.dtype is x.dtype and back.shape == x.shape and back.tolist() == x.tolist()


def test_pickles_know_leaves_types_and_devices():
    x = volta.ones(2, requires_grad=True)
    back = pickle.loads(pickle.dumps(x))
    assert back.requires_grad and back.is_leaf
    back.data = back.data + 1
    assert back.tolist() == [2.0, 2.0] and x.tolist() == [1.0, 1.0]
    assert not pickle.loads(pickle.dumps(x.detach())).requires_grad
    assert pickle.loads(pickle.dumps(volta.bfloat16)) is volta.bfloat16
    assert pickle.loads(pickle.dumps(volta.device("gpu:2"))) == volta.device("gpu:2")


def test_copies_are_deep_or_names():
    x = volta.ones(2, requires_grad=True)
    (x * 3).sum().backward()
    deep = copy.deepcopy({"a": x, "b": x})
    assert deep["a"] is deep["b"] and deep["a"] is not x
    assert deep["a"].requires_grad and deep["a"].grad.tolist() == [3.0, 3.0]
    with volta.no_grad():
        deep["a"].zero_()
    assert x.tolist() == [1.0, 1.0]
    assert copy.copy(x).is_same(x)
    with pytest.raises(RuntimeError, match="only leaves"):
        copy.deepcopy(x * 2)


def test_tensors_are_hashed_by_identity_and_can_be_watched():
    import weakref

    x, y = volta.ones(2), volta.ones(2)
    assert len({x, y, x}) == 2 and {x: 1}[x] == 1
    assert weakref.ref(x)() is x
    assert (x == None) is False and (x != None) is True  # noqa: E711


def test_everything_has_help_and_a_signature():
    import inspect

    for owner in (volta.Tensor, volta):
        for name in dir(owner):
            member = getattr(owner, name)
            if name.startswith("_") or not callable(member) or inspect.isclass(member):
                continue
            assert member.__doc__, f"{name} has no documentation"
            inspect.signature(member)
