"""`Tensor` and `ValueBatch`: the same numbers and gradients as NumPy, on the CPU and on the GPU."""

import numpy as np
import pytest

from micrograd_rs import Device, Tensor, ValueBatch


@pytest.fixture(params=["cpu", "gpu"])
def device(request):
    return Device.cpu() if request.param == "cpu" else request.getfixturevalue("gpu")


def close(tensor, expected):
    tolerance = 1e-12 if tensor.device == Device.cpu() else 1e-5
    return np.allclose(tensor.numpy(), expected, rtol=tolerance, atol=tolerance)


# An expression of two tensors, x positive, and its gradients with respect to x and y.
EXPRESSIONS = [
    ("x + y", "1 + 0 * x", "1 + 0 * y"),
    ("x - y * 2", "1 + 0 * x", "-2 + 0 * y"),
    ("x * y", "y", "x"),
    ("x / (y + 4)", "1 / (y + 4)", "-x / (y + 4) ** 2"),
    ("x ** 2 - 3 * y", "2 * x", "-3 + 0 * y"),
    ("1 - x", "-1 + 0 * x", "0 * y"),
    ("1 / x", "-1 / x ** 2", "0 * y"),
    ("2 ** x", "2 ** x * np.log(2)", "0 * y"),
    ("x.log() * y", "y / x", "np.log(x)"),
    ("y.exp() + x", "1 + 0 * x", "np.exp(y)"),
    ("y.tanh() - x", "-1 + 0 * x", "1 - np.tanh(y) ** 2"),
    ("(-y).relu() * x", "np.maximum(-y, 0)", "-x * (y < 0)"),
]


@pytest.mark.parametrize("expression, by_x, by_y", EXPRESSIONS)
@pytest.mark.parametrize("make", [Tensor, ValueBatch])
def test_ops_have_the_values_and_gradients_of_numpy(make, expression, by_x, by_y, device):
    a, b = np.array([0.5, 1.25, 3.0]), np.array([-1.5, 0.75, 2.0])
    x, y = make(a, device=device), make(b, device=device)
    out = eval(expression, {"x": x, "y": y})
    assert type(out) is make and out.device == device
    functions = {"log": np.log, "exp": np.exp, "tanh": np.tanh, "relu": lambda z: np.maximum(z, 0)}
    plain = expression
    for name in functions:
        plain = plain.replace(f"x.{name}()", f"{name}(x)").replace(f"y.{name}()", f"{name}(y)")
        plain = plain.replace(f"(-y).{name}()", f"{name}(-y)")
    assert close(out, eval(plain, {"x": a, "y": b} | functions))
    out.backward()
    assert close(x.grad, eval(by_x, {"x": a, "y": b, "np": np}))
    assert close(y.grad, eval(by_y, {"x": a, "y": b, "np": np}))


def test_products_of_matrices_have_gradients(device):
    a, b = np.arange(6.0).reshape(2, 3), np.arange(12.0).reshape(3, 4) - 5
    x, y = Tensor(a.tolist(), device=device), Tensor(b, device=device)
    product = x @ y
    assert product.shape == (2, 4) and close(product, a @ b)
    product.sum().backward()
    assert close(x.grad, np.ones((2, 4)) @ b.T)
    assert close(y.grad, a.T @ np.ones((2, 4)))
    assert close(y.T @ x.T, (a @ b).T)


def test_a_line_is_fitted_on_the_device(device):
    x = Tensor(np.linspace(-1, 1, 20).reshape(20, 1), device=device)
    target = x.data * 3.0 - 0.5
    w, b = Tensor([[0.0]], device=device), Tensor([0.0], device=device)
    for _ in range(200):
        loss = ((x @ w + b - target) ** 2).mean()
        w.zero_grad()
        b.zero_grad()
        loss.backward()
        w.data -= 0.3 * w.grad
        b.data -= 0.3 * b.grad
    assert loss.item() < 1e-6
    assert abs(w.item() - 3.0) < 1e-3 and abs(b.item() + 0.5) < 1e-3


def test_gradients_add_up_until_they_are_zeroed(device):
    batch = ValueBatch([1.0, 2.0], device=device)
    assert batch.grad.tolist() == [0.0, 0.0]
    (batch * batch).backward()
    (batch * batch).backward()
    assert batch.grad.tolist() == [4.0, 8.0]
    batch.zero_grad()
    assert batch.grad.tolist() == [0.0, 0.0]
    assert (batch * 2.0).grad is None


def test_a_move_between_devices_has_a_gradient(gpu):
    x = Tensor([1.0, 2.0])
    y = (x.to(gpu) * 3.0).to(Device.cpu())
    y.backward()
    assert y.device == Device.cpu() and y.tolist() == [3.0, 6.0]
    assert x.grad.tolist() == [3.0, 3.0]


def test_data_can_be_set_from_numbers(device):
    x = Tensor([[1.0, 2.0]], device=device)
    x.data = [[5.0, 6.0]]
    assert x.tolist() == [[5.0, 6.0]]
    with pytest.raises(ValueError, match="cannot put"):
        x.data = [1.0, 2.0]


def test_shapes_and_lengths():
    assert Tensor(5).shape == () and Tensor(5).item() == 5.0
    assert Tensor([[1, 2], [3, 4]]).shape == (2, 2)
    assert len(ValueBatch([1, 2, 3])) == 3
    assert ValueBatch([]).tolist() == []
    assert Tensor(np.array([[1, 2]], dtype=">i4")[:, ::-1]).tolist() == [[2.0, 1.0]]


def test_they_print_data_and_gradient():
    assert repr(Tensor([[1, 2]])) == "Tensor(data=[[1.0, 2.0]], grad=[[0.0, 0.0]])"
    assert repr(ValueBatch([1.5]) * 2) == "ValueBatch(data=[3.0], grad=None)"


@pytest.mark.parametrize(
    "mistake, error, message",
    [
        (lambda: Tensor([1.0, 2.0]) + Tensor([1.0, 2.0, 3.0]), ValueError, "shape"),
        (lambda: Tensor([[1.0]]) @ Tensor([[1.0], [2.0]]), ValueError, "matmul"),
        (lambda: Tensor([[1.0, 2.0], [3.0]]), ValueError, "inhomogeneous"),
        (lambda: Tensor(["a"]), ValueError, "convert"),
        (lambda: Tensor([1.0]) + "a", TypeError, "unsupported operand"),
        (lambda: Tensor([1.0, 2.0]).item(), ValueError, "one number"),
        (lambda: ValueBatch([[1.0]]), ValueError, "use Tensor"),
        (lambda: len(Tensor(1.0)), TypeError, "no length"),
        (lambda: Tensor([1.0]).data.backward(), RuntimeError, "gradient"),
    ],
)
def test_mistakes_raise_with_a_message(mistake, error, message):
    with pytest.raises(error, match=message):
        mistake()


def test_tensors_of_two_devices_do_not_mix(gpu):
    here, there = Tensor([[1.0]]), Tensor([[1.0]], device=gpu)
    for mix in (lambda: here + there, lambda: there @ here):
        with pytest.raises(RuntimeError, match=r"move one with \.to"):
            mix()
