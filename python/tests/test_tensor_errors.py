"""What goes wrong raises Python's exceptions with the engine's message; no panic arrives."""

import re

import numpy as np
import pytest

import volta

x, y = volta.zeros(2, 3), volta.zeros(4)
CASES = [
    ("shapes", lambda: x + y, ValueError, "add: shapes [2, 3] and [4] do not broadcast"),
    ("product", lambda: x @ y, ValueError, "matmul: shapes [2, 3] and [4] do not fit"),
    ("product with number", lambda: x @ 2, TypeError, "matmul: a number is no matrix"),
    ("product of types", lambda: x @ volta.zeros(3, dtype=volta.float64), TypeError, "matmul: operands are f32 and f64"),
    ("mm", lambda: x.mm(y), ValueError, "mm: tensors of 2 and 2 dimensions are needed"),
    ("axis", lambda: x.sum(2), IndexError, "sum: axis 2 is out of range for shape [2, 3]"),
    ("softmax axis", lambda: x.softmax(-3), IndexError, "softmax: axis -3 is out of range"),
    ("axis twice", lambda: x.sum((0, 0)), ValueError, "appears twice"),
    ("reshape", lambda: x.reshape(4, 2), ValueError, "reshape: 6 elements of shape [2, 3] do not fit into shape [4, 2]"),
    ("reshape type", lambda: x.reshape("a"), TypeError, "integer"),
    ("permute", lambda: x.permute(0, 0), ValueError, "permute: order [0, 0] does not name every axis"),
    ("expand", lambda: x.expand(3, 3), ValueError, "expand: shape [2, 3] cannot be expanded to"),
    ("cat", lambda: volta.cat([x, y]), ValueError, "cat: shapes"),
    ("cat of nothing", lambda: volta.cat([]), ValueError, "cat: there is no tensor"),
    ("cat of numbers", lambda: volta.cat([1, 2]), TypeError, "Tensor"),
    ("stack", lambda: volta.stack([x, y]), ValueError, "stack: shapes"),
    ("einsum", lambda: volta.einsum("ij,jk", x), ValueError, "einsum"),
    ("item", lambda: x.item(), ValueError, "item: only a tensor of one element is one number"),
    ("truth", lambda: bool(x), ValueError, "is ambiguous"),
    ("gather", lambda: x.gather(0, y.long()), ValueError, "gather: the index has shape [4]"),
    ("index type", lambda: x.index_select(0, y), TypeError, "index_select: the index is f32"),
    ("mask type", lambda: x.masked_fill(x, 1), TypeError, "masked_fill: the mask is f32"),
    ("bits", lambda: x & x, TypeError, "& | ^ ~ are for bool tensors"),
    ("invert", lambda: ~x, TypeError, "& | ^ ~ are for bool tensors"),
    ("negative bool", lambda: -(x > 0), TypeError, "neg: bool is not a number"),
    ("maximum of nothing", lambda: volta.zeros(0).max(), ValueError, "max: the extremum of no elements"),
    ("topk", lambda: x.topk(9), ValueError, "topk: axis -1 of shape [2, 3] has no 9 elements"),
    ("split", lambda: x.split(0), ValueError, "split: axis 0"),
    ("split negative", lambda: x.split(-1), ValueError, "negative"),
    ("clamp", lambda: x.clamp(), ValueError, "clamp: at least one of the two bounds"),
    ("gelu", lambda: x.gelu("no"), ValueError, "gelu: no approximation"),
    ("div", lambda: x.div(2, rounding_mode="up"), ValueError, "div: no rounding mode"),
    ("norm", lambda: x.norm("nuc"), ValueError, "norm: there is no order"),
    ("rank", lambda: volta.zeros(*[1] * 9), ValueError, "at most 8 are possible"),
    ("size", lambda: volta.zeros(2**40, 2**40), ValueError, "too many elements"),
    ("randint", lambda: volta.randint(5, 2, (3,)), ValueError, "randint: no i32 numbers"),
    ("randint nothing", lambda: volta.randint(5), TypeError, "randint"),
    ("probability", lambda: volta.zeros(2).bernoulli_(2.0), ValueError, "2 is not a probability"),
    ("operand", lambda: x + "a", TypeError, "unsupported operand"),
    ("operand None", lambda: None * x, TypeError, "unsupported operand"),
    ("ragged", lambda: volta.tensor([[1], [2, 3]]), ValueError, "tensor: the data is no array of numbers"),
    ("huge int", lambda: x + 2**70, (OverflowError, TypeError), "operand"),
    ("backward", lambda: x.backward(), RuntimeError, "backward: the output does not depend on anything"),
    ("grad input", lambda: volta.grad(x.sum(), x), RuntimeError, "grad: an input"),
    ("keyword", lambda: x.sum(axis=1), TypeError, "axis"),
    ("pad", lambda: x.pad((1,)), ValueError, "pad: 1 numbers"),
    ("pad mode", lambda: x.pad((1, 1), mode="wrap"), ValueError, "pad: there is no mode"),
    ("gpu number", lambda: volta.zeros(1, device="gpu:99"), (RuntimeError, ValueError), "gpu"),
    ("no index", lambda: [1, 2][volta.tensor(1.0)], TypeError, "index"),
    ("movedim twice", lambda: volta.zeros(2, 3, 4).movedim((0, 1), (1, 1)), ValueError, "movedim: dimension 1 is there twice"),
    ("movedim from twice", lambda: x.movedim((0, 0), (0, 1)), ValueError, "movedim: dimension 0 is there twice"),
    ("squeeze axis", lambda: volta.zeros(1, 1, 1).squeeze(-5), IndexError, "dimension -5 is out of range"),
    ("squeeze twice", lambda: volta.zeros(1, 1, 2).squeeze((0, 0)), ValueError, "squeeze: dimension 0 is there twice"),
    ("pad too little", lambda: volta.nn.functional.pad(volta.arange(3.0), (0, -4)), ValueError, "takes more than dimension 0"),
    ("where", lambda: volta.where(x > 0, x), TypeError, "where: both alternatives"),
    ("array type", lambda: x + np.array(["a"]), TypeError, "ufunc"),
]


@pytest.mark.parametrize("action,error,message", [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_mistakes_raise_where_they_are_made(action, error, message):
    with pytest.raises(error, match=re.escape(message)) as caught:
        result = action()
        # A device that is not there may show only when it is used.
        result.tolist()
    assert ".rs" not in str(caught.value)


def test_a_failed_op_leaves_everything_usable():
    a = volta.ones(2, requires_grad=True)
    for _ in range(100):
        with pytest.raises(ValueError):
            a + volta.ones(3)
    (a * 2).sum().backward()
    assert a.grad.tolist() == [2.0, 2.0]
