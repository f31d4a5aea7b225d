"""Indexing against NumPy, by PyTorch's rule for single elements: fixed cases and random ones, read and written, with
gradients."""

import numpy as np
import pytest

import volta

CASES = [
    0,
    -1,
    slice(None),
    slice(1, None),
    slice(None, -1),
    slice(None, None, 2),
    slice(10, 20),
    slice(-2, None, 3),
    Ellipsis,
    None,
    (),
    (0, 1),
    (0, Ellipsis),
    (Ellipsis, 0),
    (Ellipsis, None),
    (None, 0, None, slice(1, 3)),
    (slice(None), None, slice(None, None, 2), Ellipsis),
    [0, 2],
    [[0, 1], [2, 0]],
    [],
    np.array([2, -1, 0]),
    np.array(1),
    (slice(None), [0, 3, -1]),
    ([0, 1], [1, 2]),
    ([0, 1], slice(None), [1, 2]),
    (0, slice(None), [1, 2]),
    (slice(None), [0, 1], [1, 2]),
    (slice(None), 1, [1, 2]),
    ([[0], [2]], [1, 3]),
    (np.array([0, 1]), Ellipsis, np.array([1, 2])),
    (slice(None), [0, 1], None, [1, 2]),
    True,
    False,
    (True, 0),
    (slice(1, None), [True, False, True, True]),
    np.array([True, False, True]),
    np.arange(12).reshape(3, 4) % 2 == 0,
    np.arange(60).reshape(3, 4, 5) % 7 == 0,
    (np.array([True, False, True]), 2),
    (np.array([True, False, True]), slice(None), [1, 0]),
    (Ellipsis, np.array([True, False, True, False, True])),
    (slice(0, 2), slice(1, None, 2), slice(None, None, 3)),
]


def shown(index):
    return repr(index).replace("array", "").replace("\n", "")


def ours(index):
    """The same index with tensors in place of arrays."""
    if isinstance(index, np.ndarray):
        return volta.tensor(index)
    return tuple(ours(i) for i in index) if isinstance(index, tuple) else index


@pytest.mark.parametrize("index", CASES, ids=shown)
def test_reading_and_writing_are_numpys_after_single_elements(index):
    check(np.arange(60.0).reshape(3, 4, 5), index)


def collected(leaf):
    """A leaf's gradient; what nothing depends on has none."""
    return np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy()


def taken_first(array, index):
    """PyTorch takes single elements first: a view of the array with them, and the rest of the index."""
    items = index if isinstance(index, tuple) else (index,)

    def is_single(i):
        return (isinstance(i, int) and not isinstance(i, bool)) or (isinstance(i, np.ndarray) and i.shape == () and i.dtype != bool)

    first = []
    for i in items:
        if is_single(i) or i is Ellipsis:
            first.append(i)
        elif i is not None and not isinstance(i, bool):
            covered = np.ndim(i) if np.asarray(i).dtype == bool else 1
            first += [slice(None)] * covered
    # The ellipsis makes a view of what is one element, too.
    view = array[tuple(int(i) if isinstance(i, np.ndarray) else i for i in first) + (() if any(i is Ellipsis for i in items) else (Ellipsis,))]
    return view, tuple(i for i in items if not is_single(i))


def check(array, index):
    array = array.copy()
    view, rest = taken_first(array, index)
    expected = view[rest]
    x = volta.tensor(array)
    for own in (index, ours(index)):
        np.testing.assert_array_equal(x[own].numpy(), expected)
    # What is read has the gradient of a scatter.
    leaf = volta.tensor(array, requires_grad=True)
    seed = np.arange(1.0, 1 + expected.size).reshape(expected.shape)
    leaf[index].backward(volta.tensor(seed))
    gradient = np.zeros_like(array)
    np.add.at(*taken_first(gradient, index), seed)
    np.testing.assert_array_equal(leaf.grad.numpy(), gradient)
    # A number, and values of the shape that was read.
    for value in (-1.0, seed):
        changed, written = array.copy(), volta.tensor(array)
        part, rest = taken_first(changed, index)
        part[rest] = value
        written[ours(index)] = volta.tensor(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(written.numpy(), changed)
    # What is written has the gradient of what was read there.
    source = volta.tensor(seed, requires_grad=True)
    base = volta.tensor(array, requires_grad=True)
    target = base * 1
    target[index] = source
    weights = np.arange(array.size, dtype=float).reshape(array.shape)
    (target * volta.tensor(weights)).sum().backward()
    places = np.arange(array.size).reshape(array.shape)
    winners = np.full(array.size, -1)
    part, rest = taken_first(places, index)
    winners[part[rest].ravel()] = np.arange(expected.size)
    counts = np.zeros(expected.size)
    for place, winner in enumerate(winners):
        if winner >= 0:
            counts[winner] = weights.ravel()[place]
    np.testing.assert_array_equal(collected(source), counts.reshape(expected.shape))
    kept = np.where(winners.reshape(array.shape) < 0, weights, 0)
    np.testing.assert_array_equal(collected(base), kept)


def random_item(rng, extent, length):
    kind = rng.integers(5)
    if kind == 0:
        return int(rng.integers(-extent, extent))
    if kind == 1:
        return slice(None)
    if kind == 2:
        bounds = [None if rng.random() < 0.3 else int(rng.integers(-extent - 1, extent + 2)) for _ in range(2)]
        return slice(*bounds, None if rng.random() < 0.5 else int(rng.integers(1, 4)))
    if kind == 3:
        return rng.integers(-extent, extent, length)
    return np.sort(rng.permutation(extent * 2)[:extent]) % 2 == 0


@pytest.mark.parametrize("seed", range(120))
def test_random_indices_are_numpys_after_single_elements(seed):
    rng = np.random.default_rng(seed)
    shape = tuple(int(e) for e in rng.integers(1, 5, rng.integers(1, 5)))
    array = rng.normal(size=shape)
    length = int(rng.integers(1, 4))
    items = [random_item(rng, extent, length) for extent in shape[: rng.integers(1, len(shape) + 1)]]
    counts = {int(i.sum()) for i in items if isinstance(i, np.ndarray) and i.dtype == bool}
    if counts and (len(counts) > 1 or any(isinstance(i, np.ndarray) and i.dtype != bool for i in items)):
        # Masks and positions that do not broadcast are another test's.
        items = [i if not (isinstance(i, np.ndarray) and i.dtype == bool) else slice(None) for i in items]
    # In the middle an ellipsis must stand for nothing: what follows is for the last dimensions.
    middle = len(items) == len(shape)
    for _ in range(rng.integers(0, 3)):
        items.insert(int(rng.integers(0, len(items) + 1)), None)
    if rng.random() < 0.4:
        items.insert(int(rng.integers(0, len(items) + 1)) if middle else len(items), Ellipsis)
    check(array, tuple(items))


def test_positions_that_are_not_computed_yet_stay_pending():
    x = volta.arange(10.0)
    at = volta.tensor([1, 2, 3]) * 2 - 4
    y = x[at]
    assert not y.is_realized
    assert y.tolist() == [8.0, 0.0, 2.0]
    pair = volta.arange(12.0).reshape(3, 4)[volta.tensor([0, 1]) + 1, volta.tensor([0, 1]) - 1]
    assert pair.tolist() == [7.0, 8.0]


def test_a_value_is_broadcast_converted_and_may_have_leading_ones():
    x = volta.zeros(2, 3, dtype=volta.int32)
    x[:, 1] = 2.7
    x[0] = volta.ones(1, 1, 3)
    assert x.tolist() == [[1, 1, 1], [0, 2, 0]]
    x[1, ::2] = [5, 6]
    assert x.tolist() == [[1, 1, 1], [5, 2, 6]]


def test_in_place_operators_reach_through_an_index():
    x = volta.zeros(3, 2)
    x[0] += 1
    x[:, 1] -= 2
    x[[0, 2]] *= 3
    assert x.tolist() == [[3.0, -3.0], [0.0, -2.0], [0.0, -6.0]]


def test_what_is_read_by_basic_indexing_is_not_a_view_to_write_to():
    x = volta.zeros(3, 2)
    with pytest.raises(ValueError, match="assigned to"):
        x[0].fill_(1)
    copy = x[0].clone()
    copy.fill_(1)
    assert x.sum().item() == 0 and copy.sum().item() == 2


ERRORS = [
    ((3,), IndexError, "index 3 is out of range"),
    ((slice(None), -5), IndexError, "index -5 is out of range for dimension 1 of size 4"),
    ((0, 0, 0, 0), IndexError, "too many"),
    ((Ellipsis, Ellipsis), IndexError, "one ellipsis"),
    ((slice(None, None, -1),), ValueError, "must be positive"),
    ((slice(None, None, 0),), ValueError, "must be positive"),
    (([0, 3],), IndexError, "index 3 is out of range"),
    (([0, 1], [0, 1, 2]), IndexError, "do not broadcast"),
    ((np.array([True, False]),), IndexError, "a mask of shape \\[2\\]"),
    (([0.5],), IndexError, "float64 cannot be an index"),
    (("a",), IndexError, "str cannot be an index"),
]


@pytest.mark.parametrize("index,error,message", ERRORS, ids=lambda v: shown(v) if isinstance(v, tuple) else "")
def test_indices_that_make_no_sense_say_why(index, error, message):
    x = volta.zeros(3, 4, 5)
    with pytest.raises(error, match=message):
        x[index]
    with pytest.raises(error, match=message):
        x[index] = 1.0


def test_values_that_do_not_fit_say_why():
    x = volta.zeros(3, 4)
    with pytest.raises(ValueError, match="cannot be expanded"):
        x[0] = volta.zeros(3)
    with pytest.raises(ValueError, match="cannot be expanded"):
        x[[0, 1]] = volta.zeros(3, 4)
    leaf = volta.zeros(3, requires_grad=True)
    with pytest.raises(RuntimeError, match="cannot be changed in place"):
        leaf[0] = 1.0
    with volta.no_grad():
        leaf[0] = 1.0
    assert leaf.requires_grad and leaf.is_leaf and leaf.tolist() == [1.0, 0.0, 0.0]


def test_tensors_are_sequences_of_their_rows():
    x = volta.arange(6).reshape(3, 2)
    assert len(x) == 3
    assert [row.tolist() for row in x] == [[0, 1], [2, 3], [4, 5]]
    assert 4 in x and 7 not in x
    assert [int(v) for v in x[:, 0]] == [0, 2, 4]
    assert [10, 20, 30][x[0, 1]] == 20
    with pytest.raises(TypeError):
        len(volta.tensor(1.0))
    with pytest.raises(TypeError):
        iter(volta.tensor(1.0))


def test_indices_that_are_not_known_yet_do_not_reach_into_another_row():
    x = volta.arange(12.0).reshape(3, 4)

    def later(*at):
        return tuple(volta.tensor([k]) + 0 for k in at)

    assert x[later(1, -1)].tolist() == [7.0] and x[later(-1, 2)].tolist() == [10.0]
    for at in [(0, 5), (1, -5), (3, 0), (0, 4)]:
        with pytest.raises(IndexError, match="out of bounds"):
            x[later(*at)].numpy()


def test_numbers_go_into_float64_with_all_their_digits():
    x = volta.zeros(4, dtype=volta.float64)
    x[0] = 0.1
    x[1:3] = [0.2, 1 / 3]
    x[x == 0] = 1e-300
    assert x.tolist() == [0.1, 0.2, 1 / 3, 1e-300]
    large = volta.zeros(2, dtype=volta.int64)
    large[0] = 2**53 + 1
    assert large.tolist() == [2**53 + 1, 0]


def test_single_elements_are_taken_before_positions_are_looked_up():
    array = np.arange(120.0).reshape(2, 3, 4, 5)
    x = volta.tensor(array)
    # The rest of the index is applied to what is left: the positions keep their place.
    assert x[0, :, [1, 2]].shape == (3, 2, 5)
    np.testing.assert_array_equal(x[0, :, [1, 2]].numpy(), array[0][:, [1, 2]])
    np.testing.assert_array_equal(x[1, :, :, [1, 2]].numpy(), array[1][:, :, [1, 2]])
    np.testing.assert_array_equal(x[[0, 1], 2, [1, 2]].numpy(), array[:, 2][[0, 1], [1, 2]])
    # A slice between positions still sends them to the front.
    assert x[[0, 1], 2, :, [1, 2]].shape == (2, 4)
    first = volta.tensor(0)
    for at in (first, volta.tensor(1) - 1):
        assert x[at, :, [1, 2]].shape == (3, 2, 5)
        written = volta.zeros(2, 3, 4)
        written[at, :, [1, 2]] = volta.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
        assert written[0].tolist() == [[0, 1, 2, 0], [0, 3, 4, 0], [0, 5, 6, 0]] and written[1].sum().item() == 0
    later = x[volta.tensor(1) - 1]
    assert not later.is_realized and later.shape == (3, 4, 5) and later[0, 0, 0].item() == 0
    with pytest.raises(IndexError, match="index 2 is out of range for dimension 0 of size 2"):
        x[volta.tensor(1) + 1] = 1.0


@pytest.mark.parametrize("value,found", [(0.0, []), (3.0, [0])])
def test_positions_of_a_tensor_without_dimensions(value, found):
    x = volta.tensor(value)
    assert x.nonzero().shape == (len(found), 0) and x.nonzero().dtype == volta.int64
    for positions in (x.nonzero(as_tuple=True), volta.where(x != 0)):
        assert len(positions) == 1 and positions[0].tolist() == found
