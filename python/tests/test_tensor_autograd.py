"""Gradients: collecting, modes, gradients of gradients, functions of one's own, checkpoints."""

import numpy as np
import pytest

import volta


def test_gradients_are_collected_and_add_up():
    x = volta.tensor([1.0, 2.0], requires_grad=True)
    assert x.grad is None
    (x * x).sum().backward()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad.zero_()
    assert x.grad.tolist() == [0.0, 0.0]
    x.grad += 1
    x.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    x.grad = None
    assert x.grad is None
    x.grad = volta.ones(2)
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="the gradient is"):
        x.grad = volta.ones(3)


def test_backward_from_a_gradient_and_twice():
    x = volta.ones(3, requires_grad=True)
    y = x * x
    with pytest.raises(RuntimeError, match="must be one number"):
        y.backward()
    y.backward(volta.tensor([1.0, 2.0, 3.0]), retain_graph=True)
    y.backward(gradient=volta.ones(3))
    assert x.grad.tolist() == [4.0, 6.0, 8.0]
    with pytest.raises(RuntimeError, match="retain_graph"):
        y.sum().backward()


def test_gradients_of_gradients():
    x = volta.tensor(2.0, requires_grad=True)
    (first,) = volta.grad(x**3, x, create_graph=True)
    (second,) = volta.grad(first, x)
    assert (first.item(), second.item()) == (12.0, 12.0)
    assert x.grad is None
    y = (x**3).backward(create_graph=True)
    assert y is None and x.grad.requires_grad


def test_grad_of_several_and_of_what_is_not_used():
    x, y = volta.ones(2, requires_grad=True), volta.ones(2, requires_grad=True)
    gx, gy = volta.autograd.grad([(x * 2).sum(), (x * y).sum()], [x, y])
    assert gx.tolist() == [3.0, 3.0] and gy.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="allow_unused"):
        volta.grad(x.sum(), [x, y])
    assert volta.grad(x.sum(), [x, y], allow_unused=True)[1] is None
    (seeded,) = volta.grad(x * 2, x, grad_outputs=volta.tensor([1.0, 5.0]))
    assert seeded.tolist() == [2.0, 10.0]


def test_modes_are_contexts_and_decorators():
    x = volta.ones(2, requires_grad=True)
    with volta.no_grad():
        assert not (x * 2).requires_grad and not volta.is_grad_enabled()
        with volta.enable_grad():
            assert (x * 2).requires_grad
        assert not volta.is_grad_enabled()
    assert volta.is_grad_enabled()

    @volta.no_grad()
    def quiet():
        return x * 2

    @volta.no_grad
    def also_quiet():
        return x * 2

    @volta.no_grad()
    def steps():
        for _ in range(2):
            yield x * 2

    assert not quiet().requires_grad and not also_quiet().requires_grad
    for y in steps():
        assert not y.requires_grad and volta.is_grad_enabled()
    with pytest.raises(ZeroDivisionError):
        with volta.no_grad():
            1 / 0
    assert volta.is_grad_enabled()
    with volta.inference_mode():
        assert not volta.is_grad_enabled()
    volta.set_grad_enabled(False)
    assert not volta.is_grad_enabled()
    volta.set_grad_enabled(True)
    with volta.set_grad_enabled(False):
        assert not volta.is_grad_enabled()
    assert volta.is_grad_enabled()


def test_leaves_begin_and_stop_to_require_gradients():
    x = volta.ones(2)
    assert x.requires_grad_() is x and x.requires_grad and x.is_leaf
    y = x * 2
    assert y.requires_grad and not y.is_leaf
    with pytest.raises(RuntimeError, match="not a leaf"):
        y.requires_grad = False
    x.requires_grad = False
    assert not x.requires_grad
    with pytest.raises(TypeError, match="only floats"):
        volta.tensor([1]).requires_grad_()
    with pytest.raises(RuntimeError, match="requires a gradient"):
        x.sum().backward()
    d = (volta.ones(2, requires_grad=True) * 2).detach()
    assert not d.requires_grad and d.is_leaf
    z = volta.ones(2, requires_grad=True) * 2
    assert z.detach_() is z and not z.requires_grad and z.tolist() == [2, 2]


class Cube(volta.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x)
        ctx.scale = scale
        assert not volta.is_grad_enabled()
        return x**3 * scale

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return 3 * x**2 * gradient * ctx.scale, None


def test_functions_have_gradients_of_their_own():
    x = volta.tensor([1.0, 2.0], requires_grad=True)
    y = Cube.apply(x, 2.0)
    assert y.tolist() == [2.0, 16.0]
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]
    (first,) = volta.grad(Cube.apply(x, 1.0).sum(), x, create_graph=True)
    (second,) = volta.grad(first.sum(), x)
    assert second.tolist() == [6.0, 12.0]
    assert not Cube.apply(volta.ones(2), 1.0).requires_grad


class Broken(volta.autograd.Function):
    @staticmethod
    def forward(ctx, x, how):
        if how == "forward":
            raise KeyError("in forward")
        ctx.how = how
        return 1.0 if how == "number" else x * 1

    @staticmethod
    def backward(ctx, gradient):
        if ctx.how == "backward":
            raise LookupError("in backward")
        return gradient


def test_what_a_function_raises_arrives():
    x = volta.ones(2, requires_grad=True)
    with pytest.raises(KeyError, match="in forward"):
        Broken.apply(x, "forward")
    with pytest.raises(TypeError, match="one tensor, not float"):
        Broken.apply(x, "number")
    with pytest.raises(LookupError, match="in backward"):
        Broken.apply(x, "backward").sum().backward()
    with pytest.raises(RuntimeError, match="1 gradients for 2 arguments"):
        Broken.apply(x, "count").sum().backward()
    assert volta.is_grad_enabled()
    with pytest.raises(NotImplementedError):
        volta.autograd.Function.apply(x)


def test_checkpoints_compute_again():
    calls = []

    def block(x, w, power):
        calls.append(1)
        return (x @ w).tanh() ** power

    x, w = volta.randn(3, 4, requires_grad=True), volta.randn(4, 4, requires_grad=True)
    volta.checkpoint(block, x, w, 2).sum().backward()
    assert len(calls) == 2
    kept = [x.grad.numpy().copy(), w.grad.numpy().copy()]
    x.grad = w.grad = None
    block(x, w, 2).sum().backward()
    np.testing.assert_allclose(kept[0], x.grad.numpy(), rtol=1e-6)
    np.testing.assert_allclose(kept[1], w.grad.numpy(), rtol=1e-6)
    with pytest.raises(RuntimeError, match="not among its inputs"):
        volta.checkpoint(lambda x: x @ w, x).sum().backward()


def test_training_by_hand():
    volta.manual_seed(0)
    x = volta.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    y = volta.tensor([[0.0], [1.0], [1.0], [0.0]])
    parameters = [volta.randn(2, 16), volta.zeros(16), volta.randn(16, 1), volta.zeros(1)]
    for p in parameters:
        p.requires_grad_()
    w1, b1, w2, b2 = parameters
    for _ in range(500):
        loss = (((x @ w1 + b1).tanh() @ w2 + b2 - y) ** 2).mean()
        loss.backward()
        with volta.no_grad():
            for p in parameters:
                p -= 0.1 * p.grad
                p.grad = None
        volta.realize(*parameters)
    assert loss.item() < 0.05


def test_a_decorator_that_sets_the_mode_is_for_its_function_only():
    x = volta.ones(1, requires_grad=True)
    try:

        @volta.set_grad_enabled(False)
        def plain(x):
            return x * 2

        assert volta.is_grad_enabled() and (x * 2).requires_grad
        assert not plain(x).requires_grad and volta.is_grad_enabled()
        volta.set_grad_enabled(False)

        @volta.set_grad_enabled(True)
        def recorded(x):
            return x * 2

        assert not volta.is_grad_enabled() and recorded(x).requires_grad
    finally:
        volta.set_grad_enabled(True)


def test_a_value_that_is_filled_in_gets_its_gradient():
    x, mask = volta.ones(3, requires_grad=True), volta.tensor([True, False, True])
    for fill in (lambda v: x.masked_fill(mask, v), lambda v: (x * 1).masked_fill_(mask, v)):
        value = volta.tensor(7.0, requires_grad=True)
        y = fill(value)
        (y * volta.tensor([1.0, 10.0, 100.0])).sum().backward()
        assert y.tolist() == [7.0, 1.0, 7.0] and value.grad.item() == 101.0
    assert x.grad.tolist() == [0.0, 20.0, 0.0]
    value = volta.tensor(2.0, requires_grad=True)
    (x * 1).fill_(value).sum().backward()
    assert value.grad.item() == 3.0
    with pytest.raises(ValueError, match="without axes"):
        x.masked_fill(mask, volta.ones(1))


def test_a_number_never_drops_a_gradient():
    x, tracked = volta.ones(3), volta.tensor(0.5, requires_grad=True)
    for lost in (lambda: x.leaky_relu(tracked), lambda: x.elu(tracked), lambda: x.softplus(tracked),
                 lambda: x.hardtanh(tracked, 2.0), lambda: volta.full((2,), tracked), lambda: x.add(x, alpha=tracked)):
        with pytest.raises(TypeError, match="would be lost"):
            lost()
    assert x.leaky_relu(tracked.detach()).tolist() == [1.0] * 3


def test_clamp_between_numbers_and_tensors():
    x = volta.tensor([-2.0, -1.0, 0.0, 1.0, 2.0], requires_grad=True)
    x.clamp(-1, 1).sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]
    x.grad = None
    low, high = volta.tensor(-1.0, requires_grad=True), volta.full((5,), 1.0, requires_grad=True)
    y = x.clamp(low, high)
    y.sum().backward()
    assert y.tolist() == [-1.0, -1.0, 0.0, 1.0, 1.0] and x.grad.tolist() == [0.0, 1.0, 1.0, 1.0, 0.0]
    assert low.grad.item() == 1.0 and high.grad.tolist() == [0.0, 0.0, 0.0, 0.0, 1.0]
    z = x.detach().clone().clamp_(min=volta.tensor(0.5))
    assert z.tolist() == [0.5, 0.5, 0.5, 1.0, 2.0]


def test_the_count_of_what_is_not_zero_has_a_gradient_of_zero():
    x = volta.tensor([0.0, -2.0, 3.0], requires_grad=True)
    count = x.norm(p=0)
    count.backward()
    assert count.item() == 2.0 and x.grad.tolist() == [0.0] * 3
