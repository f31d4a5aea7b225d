"""Ops in place: values, types, what else they change, gradients through them."""

import numpy as np
import pytest

import volta

OPERATORS = {
    "+=": lambda x: x.__iadd__(3),
    "-=": lambda x: x.__isub__(3),
    "*=": lambda x: x.__imul__(3),
    "/=": lambda x: x.__itruediv__(4),
    "//=": lambda x: x.__ifloordiv__(2),
    "%=": lambda x: x.__imod__(2),
    "**=": lambda x: x.__ipow__(2),
}
METHODS = {
    "add_": (lambda x: x.add_(2), lambda a: a + 2),
    "add_ alpha": (lambda x: x.add_(x, alpha=3), lambda a: a + 3 * a),
    "sub_": (lambda x: x.sub_(1.5), lambda a: a - 1.5),
    "mul_": (lambda x: x.mul_(x), lambda a: a * a),
    "div_": (lambda x: x.div_(2), lambda a: a / 2),
    "pow_": (lambda x: x.pow_(2), lambda a: a**2),
    "floor_divide_": (lambda x: x.floor_divide_(2), lambda a: a // 2),
    "remainder_": (lambda x: x.remainder_(2), lambda a: a % 2),
    "zero_": (lambda x: x.zero_(), lambda a: a * 0),
    "fill_": (lambda x: x.fill_(5), lambda a: a * 0 + 5),
    "copy_": (lambda x: x.copy_(volta.tensor([9, 8, 7])), lambda a: np.array([9.0, 8, 7])),
    "clamp_": (lambda x: x.clamp_(0, 2), lambda a: a.clip(0, 2)),
    "masked_fill_": (lambda x: x.masked_fill_(x > 1, 0.0), lambda a: np.where(a > 1, 0, a)),
    "relu_": (lambda x: x.relu_(), lambda a: a.clip(0)),
    "neg_": (lambda x: x.neg_(), lambda a: -a),
    "exp_": (lambda x: x.exp_(), np.exp),
    "scatter_add_": (lambda x: x.scatter_add_(0, volta.tensor([0, 0]), volta.ones(2)), lambda a: a + np.array([2, 0, 0])),
}
VALUES = np.array([-1.0, 1.5, 4.0])


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_change_the_tensor_that_every_name_names(name):
    x = volta.tensor(VALUES.astype("float32"))
    other = x
    result = OPERATORS[name](x)
    array = VALUES.copy()
    array = OPERATORS[name](array)
    assert result is x and other is x
    np.testing.assert_allclose(other.numpy(), array, rtol=1e-6)


@pytest.mark.parametrize("name", METHODS)
def test_methods_change_the_tensor_and_return_it(name):
    ours, theirs = METHODS[name]
    x = volta.tensor(VALUES.astype("float32"))
    assert ours(x) is x
    np.testing.assert_allclose(x.numpy(), theirs(VALUES), rtol=1e-6)


def test_every_unary_op_has_its_form_in_place():
    forms = [n for n in dir(volta.Tensor) if n.endswith("_") and not n.startswith("_") and n[:-1] in dir(volta.Tensor)]
    unary = [n for n in forms if n in ("exp_", "sqrt_", "abs_", "tanh_", "sigmoid_", "floor_", "log_", "sin_", "cos_")]
    assert len(unary) == 9 and len(forms) > 40
    for name in unary:
        x = volta.tensor([0.5, 2.0])
        expected = getattr(x, name[:-1])().tolist()
        assert getattr(x, name)().tolist() == expected


def test_results_of_ops_can_be_changed_too_and_what_used_them_keeps_its_value():
    x = volta.ones(3)
    y = x * 2
    z = y + 1
    y.add_(10)
    assert y.tolist() == [12.0] * 3 and z.tolist() == [3.0] * 3 and x.tolist() == [1.0] * 3


def test_gradients_flow_through_what_was_changed():
    x = volta.tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    y *= x
    y[0] = 7.0
    y.add_(x)
    y.sum().backward()
    assert x.grad.tolist() == [1.0, 13.0]


def test_leaves_that_collect_gradients_are_protected():
    x = volta.ones(2, requires_grad=True)
    for change in (lambda: x.add_(1), lambda: x.__iadd__(1), lambda: x.zero_(), lambda: x.relu_()):
        with pytest.raises(RuntimeError, match="cannot be changed in place"):
            change()
    with volta.no_grad():
        x -= 0.5
        x.mul_(2)
    assert x.is_leaf and x.requires_grad and x.tolist() == [1.0, 1.0]


def test_types_stay_and_what_does_not_fit_is_refused():
    x = volta.ones(2, dtype=volta.float16)
    x += volta.ones(2)
    assert x.dtype == volta.float16
    whole = volta.ones(2, dtype=volta.int32)
    whole += True
    with pytest.raises(TypeError, match="float32 cannot be put into int32"):
        whole += 0.5
    with pytest.raises(TypeError, match="cannot be put"):
        whole /= 2
    with pytest.raises(ValueError, match="cannot put"):
        volta.ones(2).add_(volta.ones(3, 2))
    assert whole.tolist() == [2, 2]


def test_data_is_read_and_assigned_whole():
    x = volta.ones(2, requires_grad=True)
    x.data -= 0.5
    x.data = x.data * 4
    assert x.tolist() == [2.0, 2.0] and x.requires_grad and x.is_leaf
    with pytest.raises(ValueError, match="assigned to"):
        x.data.zero_()


def test_random_fillings():
    x = volta.zeros(10000)
    assert 1.9 < x.uniform_(1, 3).mean().item() < 2.1 and x.min().item() >= 1
    assert abs(x.normal_(5, 0.1).mean().item() - 5) < 0.02
    assert abs(x.bernoulli_(0.2).mean().item() - 0.2) < 0.03


def test_copies_share_no_memory_with_what_they_are_copies_of():
    buffer = np.ones(4, np.float32)
    source = volta.from_numpy(buffer)
    copied, placed = volta.zeros(4), volta.zeros(4)
    copied.copy_(source)
    placed[:] = source
    copied.realize(), placed.realize()
    buffer[:] = 2
    assert copied.tolist() == placed.tolist() == [1.0] * 4


def test_integers_stay_integers_with_alpha():
    x = volta.tensor([16777217])
    assert x.add(1, alpha=2).tolist() == [16777219] and x.add(1, alpha=2).dtype == volta.int64
    assert x.sub(1, alpha=-2).tolist() == [16777219]
    assert volta.tensor([3]).add_(1, alpha=2).tolist() == [5]
    assert volta.tensor([3]).add(1, alpha=0.5).tolist() == [3.5]


def test_what_is_written_through_an_array_is_seen_in_half_precision():
    w = volta.ones(2, 2, requires_grad=True)
    sgd = volta.optim.SGD([w], lr=0.1)
    x = volta.ones(1, 2)

    def product():
        with volta.amp.autocast("bfloat16"):
            return x @ w

    product().float().sum().backward()
    sgd.step()
    w.detach().numpy()[:] = 0
    assert product().float().tolist() == [[0.0, 0.0]]


def test_what_is_no_tensor_of_its_own_says_how_to_change_it():
    p = volta.nn.Parameter(volta.ones(2))
    p.sum().backward()
    for change in (
        lambda: p.data.normal_(),
        lambda: p.data.copy_(volta.zeros(2)),
        lambda: p.grad.data.zero_(),
        lambda: p.data.__setitem__(0, 1.0),
        lambda: volta.nn.init.zeros_(p.data),
    ):
        with pytest.raises(ValueError, match=r"with volta.no_grad\(\): p.normal_\(\)"):
            change()
    p.data -= 1
    with volta.no_grad():
        p.add_(3)
    assert p.tolist() == [3.0, 3.0] and p.grad.tolist() == [1.0, 1.0]
