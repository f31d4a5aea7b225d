"""Every op's value and gradient against JAX, over types and layouts."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tensor_ops import DISCRETE, ROWS
from tensor_reference import close, in_64_bits, numbers

import volta


def names(rows):
    return [row.name for row in rows]


def arrays(row, dtype):
    """The arguments of an op: numbers that float32 has, so that the reference serves for both types."""
    single = [numbers(shape, low, high, "float32", seed) for seed, (shape, low, high) in enumerate(row.inputs)]
    return [a.astype(dtype) for a in single]


@functools.cache
def reference(k):
    """What JAX computes for a row in float64: the value, the gradient to start from, the gradients."""
    row = ROWS[k]
    inputs = arrays(row, "float64")

    @jax.jit
    def both(seed, *inputs):
        value, pull = jax.vjp(row.theirs, *inputs)
        return value, pull(seed) if row.grad else []

    with in_64_bits(True):
        seed = numbers(jax.eval_shape(row.theirs, *inputs).shape, 0.5, 1.5, "float32", 17)
        value, gradients = both(seed.astype("float64"), *inputs)
    return np.asarray(value), seed, [np.asarray(g) for g in gradients]


# How the elements of an op's arguments lie: (the array that is given, how it becomes the argument).
LAYOUTS = {
    "plain": (lambda a: a, lambda x: x),
    "transposed": (lambda a: np.swapaxes(a, 0, -1), lambda x: x.swapaxes(0, -1)),
    "sliced": (lambda a: np.repeat(a, 2, -1), lambda x: x[..., 1::2]),
    "shifted": (lambda a: np.concatenate([np.zeros_like(a[:1]), a]), lambda x: x[1:]),
}


def check(k, dtype, layout="plain"):
    row = ROWS[k]
    given, becomes = LAYOUTS[layout]
    value, seed, gradients = reference(k)
    leaves = [volta.tensor(given(a), requires_grad=row.grad) for a in arrays(row, dtype)]
    result = row.ours(*[becomes(x) for x in leaves])
    close(result, value, dtype, row.loose)
    assert str(result.dtype) == f"volta.{dtype}"
    if result.requires_grad:
        result.backward(volta.tensor(seed.astype(dtype)))
    for leaf, expected in zip(leaves, gradients):
        mine = leaf.grad if leaf.grad is not None else volta.zeros_like(leaf)
        close(becomes(mine), expected, dtype, 4 * row.loose)
        # What the op does not see has no gradient.
        close(mine.abs().sum(), np.abs(expected).sum(), dtype, 40 * row.loose)


@pytest.mark.parametrize("k", range(len(ROWS)), ids=names(ROWS))
def test_value_and_gradient_are_jaxs_in_float64(k):
    check(k, "float64")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("k", range(len(ROWS)), ids=names(ROWS))
def test_value_and_gradient_are_jaxs_in_float32_however_the_arguments_lie(k, layout):
    check(k, "float32", layout)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("row", ROWS, ids=names(ROWS))
def test_halves_are_floats_rounded(row, dtype):
    if row.name in ("remainder", "floor_divide", "div floor", "div trunc", "to float64 and back"):
        pytest.skip("jumps where an argument is rounded")
    halves = [volta.tensor(a).to(dtype=dtype) for a in arrays(row, "float32")]
    result = row.ours(*halves)
    assert str(result.dtype) == f"volta.{dtype}"
    close(result, row.ours(*[h.float() for h in halves]).numpy(), dtype, 2 * row.loose)


@pytest.mark.parametrize("row", DISCRETE, ids=names(DISCRETE))
def test_truths_and_positions_are_jaxs(row):
    inputs = arrays(row, "float64")
    result = row.ours(*[volta.tensor(a) for a in inputs])
    with in_64_bits(True):
        expected = row.theirs(*[jnp.asarray(a) for a in inputs])
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result.numpy(), np.asarray(expected))


INTEGERS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "pow": lambda a, b: a ** (b % 3),
    "compare": lambda a, b: (a < b) | (a == b),
    "abs": lambda a, b: abs(a) + -b,
    "sum": lambda a, b: a.sum() + b.sum(0),
    "prod": lambda a, b: a.prod(1),
    "max": lambda a, b: a.max() - b.min(),
    "number": lambda a, b: 7 - a * 2 + b // 2,
    "float": lambda a, b: a * 0.5 + b,
    "index": lambda a, b: a[1:, [0, 2]] + b[0, 0],
}


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_numpys(name, dtype):
    rng = np.random.default_rng(3)
    a, b = rng.integers(-9, 9, (3, 4)), rng.integers(1, 9, (3, 4))
    a, b = a.astype(dtype), b.astype(dtype)
    result, expected = INTEGERS[name](volta.tensor(a), volta.tensor(b)), INTEGERS[name](a, b)
    np.testing.assert_allclose(result.numpy(), expected, rtol=1e-6)


def test_bytes_wrap_around_and_bools_are_numbers_when_summed():
    x = volta.tensor(np.array([250, 5], np.uint8))
    np.testing.assert_array_equal((x + 10).numpy(), np.array([4, 15], np.uint8))
    assert volta.tensor([True, False, True]).sum().item() == 2
    assert (volta.tensor([True, False]) + 1).tolist() == [2, 1]


UNSIGNED = [0, 1, 7, 2**31 - 1, 2**31, 4_000_000_000, 2**32 - 1]


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_divide", "remainder", "compare", "abs", "sum", "max", "float", "index"])
def test_unsigned_integers_are_numpys(name):
    rng = np.random.default_rng(5)
    a = rng.choice(np.array(UNSIGNED, np.uint32), (3, 4))
    b = rng.choice(np.array(UNSIGNED[1:], np.uint32), (3, 4))
    result, expected = INTEGERS[name](volta.tensor(a), volta.tensor(b)).numpy(), INTEGERS[name](a, b)
    np.testing.assert_allclose(result, expected, rtol=1e-6)
    assert name in ("sum", "float") or result.dtype == expected.dtype


def test_unsigned_integers_meet_others_as_numpys_do():
    x = np.array(UNSIGNED, np.uint32)
    for dtype in ("uint8", "int32", "int64", "bool"):
        other = np.array([1, 0, 1, 1, 0, 1, 1]).astype(dtype)
        mine, expected = (volta.tensor(x) + volta.tensor(other)).numpy(), x + other
        assert mine.dtype == expected.dtype
        np.testing.assert_array_equal(mine, expected)
    minus = volta.tensor(x) + volta.full((7,), -1, dtype=volta.int32)
    assert minus.dtype == volta.int64 and minus.tolist() == [n - 1 for n in UNSIGNED]
    assert (-volta.tensor(x)).numpy().tolist() == (-x).tolist()
    assert volta.sign(volta.tensor(x)).tolist() == np.sign(x).tolist()


@pytest.mark.parametrize("shape", [(0,), (2, 0), (0, 3)])
def test_tensors_of_no_elements_go_through_ops(shape):
    x = volta.zeros(shape, requires_grad=True)
    y = ((x.exp() + 1) * 2).sum()
    y.backward()
    assert y.item() == 0 and x.grad.shape == shape
    assert volta.cat([x, x]).shape == (2 * shape[0], *shape[1:])
    assert x.T.shape == shape[::-1] and x.reshape(0, 5).shape == (0, 5)


def test_types_meet_as_in_pytorch():
    half, single = volta.zeros(2, dtype=volta.float16), volta.zeros(2)
    whole, truth = volta.tensor([1, 2]), volta.tensor([True, False])
    assert (half + single).dtype == volta.float32
    assert (half + 1.5).dtype == volta.float16
    assert (whole + 1.5).dtype == volta.float32
    assert (whole + 1).dtype == volta.int64
    assert (whole / 2).dtype == volta.float32
    assert (truth + truth).dtype == volta.bool
    assert (half + whole).dtype == volta.float16
    assert (half + volta.zeros(2, dtype=volta.bfloat16)).dtype == volta.float32
    assert (2 - half).dtype == volta.float16


def test_a_number_on_the_left_of_halves_is_not_rounded_to_one():
    for dtype in (volta.float16, volta.bfloat16):
        half = volta.tensor([0.5], dtype=dtype)
        assert (65536.0 * half).tolist() == [32768.0] and (65536.0 * half).dtype == dtype
        assert (1e5 / volta.tensor([1000.0], dtype=dtype)).tolist() == pytest.approx([100.0], rel=0.004)
        assert (1e5 - volta.tensor([65024.0], dtype=dtype)).tolist() == pytest.approx([34976.0], rel=0.004)
        assert (2.0 ** volta.tensor([3.0], dtype=dtype)).tolist() == [8.0]


def test_integers_are_divided_toward_zero_exactly():
    a = np.array([16777217, -16777217, 7, -7, 7, -7, 0], np.int64)
    b = np.array([1, 1, 2, 2, -2, -2, 3], np.int64)
    found = volta.tensor(a).div(volta.tensor(b), rounding_mode="trunc")
    assert found.dtype == volta.int64 and found.tolist() == [16777217, -16777217, 3, -3, -3, 3, 0]
    assert volta.tensor([7]).div(0.4, rounding_mode="trunc").tolist() == [17.0]
    assert volta.tensor([7]).div(0.4, rounding_mode="trunc").dtype == volta.float32


def test_a_truth_value_in_the_place_of_a_dimension_is_what_pytorch_takes_it_for():
    array = np.arange(6.0).reshape(2, 3)
    x = volta.tensor(array)
    for name in ("var", "std"):
        spread, numpys = getattr(x, name), getattr(array, name)
        assert spread(False).item() == pytest.approx(numpys(), rel=1e-12)
        assert spread(True).item() == pytest.approx(numpys(ddof=1), rel=1e-12)
        np.testing.assert_allclose(spread(0, False).numpy(), numpys(0), rtol=1e-12)
        np.testing.assert_allclose(spread(False, keepdim=True).numpy(), [[numpys()]], rtol=1e-12)
        with pytest.raises(TypeError):
            spread(True, False)
        with pytest.raises(TypeError, match="correction"):
            spread(0, False, correction=1)
    for misused in (x.sum, x.mean, x.amax, x.max, x.argmax, x.softmax, x.unsqueeze, x.squeeze, x.cumsum, x.flip, x.sort):
        with pytest.raises(TypeError, match="integer"):
            misused(True)
    for misused in (lambda: x.sum((0, True)), lambda: volta.cat([x], dim=False), lambda: x.size(True)):
        with pytest.raises(TypeError, match="integer"):
            misused()


def test_numbers_of_python_are_exact_or_an_error():
    assert int(volta.tensor(1e19, dtype=volta.float64)) == 10**19
    assert int(volta.tensor(-2.7)) == -2 and int(volta.tensor(2**62 + 1)) == 2**62 + 1 and int(volta.tensor(True)) == 1
    with pytest.raises(ValueError, match="NaN"):
        int(volta.tensor(float("nan")))
    for sign in (1, -1):
        with pytest.raises(OverflowError, match="infinity"):
            int(volta.tensor(sign * float("inf")))
    assert complex(volta.tensor(1.5)) == 1.5 + 0j


def test_a_number_less_bytes_may_be_negative():
    x = volta.tensor([1, 2], dtype=volta.uint8)
    assert x.rsub(0.5).tolist() == [-0.5, -1.5] and volta.rsub(x, 0.5).dtype == volta.float32
    assert x.rsub(1).tolist() == [0, 255]


def test_dimensions_and_shapes_go_by_pytorchs_names():
    x = volta.arange(6).reshape(shape=(2, 3))
    assert x.shape == (2, 3) and x.view(size=(3, 2)).shape == (3, 2)
    assert x.flip(dims=(0, 1)).tolist() == [[5, 4, 3], [2, 1, 0]] and x.flip(dims=1).tolist() == x.flip(1).tolist()
    assert x.permute(dims=(1, 0)).shape == (3, 2) and volta.permute(x, dims=(1, 0)).shape == (3, 2)
    assert x.tile(dims=(2,)).shape == (2, 6) and x.repeat(repeats=(2, 1)).shape == (4, 3)
    assert x[:1].expand(size=(4, 3)).shape == (4, 3) and volta.broadcast_to(x, size=(5, 2, 3)).shape == (5, 2, 3)
    with pytest.raises(TypeError, match="dims is given twice"):
        x.flip(0, dims=1)


def test_functions_take_their_first_argument_by_name():
    x = volta.tensor([[1.0, -2.0], [3.0, 4.0]])
    assert volta.abs(input=x).tolist() == [[1, 2], [3, 4]]
    assert volta.sum(input=x, dim=1).tolist() == [-1, 7]
    assert volta.permute(input=x, dims=(1, 0)).tolist() == x.T.tolist()
    assert volta.add(x, other=1).tolist() == volta.add(input=x, other=1).tolist()
    assert volta.exp.__name__ == "exp" and "e to the power" in volta.exp.__doc__
    with pytest.raises(TypeError):
        volta.abs(x, input=x)


def test_positions_and_integers_are_int64():
    x = volta.tensor([5.0, 9.0, 1.0])
    assert (x.argmax() * 50000 * 50000).item() == 2_500_000_000
    pairs = [x.max(0), x.min(0), x.median(0), x.sort(), x.topk(2)]
    found = [x.argmax(), x.argmin(0, keepdim=True), x.argsort(), *[pair.indices for pair in pairs]]
    assert {y.dtype for y in found} == {volta.int64}
    truth = volta.tensor([True, False])
    made = [truth * 2, 2 * truth, truth + 1, 1 - truth, truth // 1, truth**2, volta.where(truth, 1, 0),
            volta.where(truth, truth, 3), volta.where(truth, True, 2), truth.where(truth, 2), truth.add(1, alpha=2)]
    assert {y.dtype for y in made} == {volta.int64}
    assert (truth * 2**40).tolist() == [2**40, 0] and (2**40 - truth).tolist() == [2**40 - 1, 2**40]
    assert volta.where(truth, 1.0, 0).dtype == volta.float32 and volta.where(truth, True, False).dtype == volta.bool
    assert (truth * 2.0).dtype == volta.float32 and (truth == 1).tolist() == [True, False]
    # They are positions still.
    rows = volta.arange(6.0).reshape(2, 3)
    assert rows.gather(1, rows.argmax(1, keepdim=True)).tolist() == [[2.0], [5.0]]
    assert rows[rows[0].argmax()-1].tolist() == [3.0, 4.0, 5.0]


def test_the_sign_of_nan_is_zero():
    assert volta.tensor([float("nan"), -0.0, -3.0]).sign().tolist() == [0.0, 0.0, -1.0]


def test_slices_are_added_where_an_index_says():
    x, index = volta.zeros(3, 2), volta.tensor([2, 0, 2])
    source = volta.arange(6.0).reshape(3, 2)
    assert volta.index_add(x, 0, index, source).tolist() == [[2.0, 3.0], [0.0, 0.0], [4.0, 6.0]]
    x.index_add_(0, index, source, alpha=-1)
    assert x.tolist() == [[-2.0, -3.0], [0.0, 0.0], [-4.0, -6.0]]
    for bad in (lambda: x.index_add(0, index, source.half()), lambda: x.index_add(1, index, source)):
        with pytest.raises((TypeError, ValueError), match="index_add"):
            bad()
