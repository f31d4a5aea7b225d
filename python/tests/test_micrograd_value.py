"""`Value`: numbers and gradients against plain Python and slopes, errors, deep graphs, memory, threads."""

import ast
import math
import random
import threading
from pathlib import Path

import numpy as np
import pytest

import micrograd_rs
from micrograd_rs import MLP, Device, Layer, Module, Neuron, Value, live_values

# An expression of values and numbers alike, the same with plain numbers, and where to try it.
EXPRESSIONS = [
    ("a + b", (2.0, -3.0)),
    ("a - b", (2.0, -3.0)),
    ("a * b", (2.0, -3.0)),
    ("a / b", (2.0, -3.0)),
    ("a ** 3", (-2.0, 0.0)),
    ("a ** -1.5", (2.0, 0.0)),
    ("a ** b", (2.0, -3.0)),
    ("a ** 0", (0.0, 1.0)),
    ("2 + a", (2.0, 0.0)),
    ("2 - a", (2.0, 0.0)),
    ("2 * a", (2.0, 0.0)),
    ("2 / a", (2.0, 0.0)),
    ("2 ** a", (1.5, 0.0)),
    ("-a", (1.5, 0.0)),
    ("relu(a) + relu(b)", (1.5, -1.5)),
    ("tanh(a * b)", (0.4, 0.9)),
    ("exp(a - b)", (0.4, 0.9)),
    ("log(a + b)", (0.4, 0.9)),
    ("a * a + a * b + b", (3.0, -4.0)),
    ("(a + b) * (a - b) / (a * b + 2) + relu(a) ** 2 - tanh(b)", (1.3, 0.7)),
]
OF_VALUES = {name: (lambda v, name=name: getattr(v, name)()) for name in ["relu", "tanh", "exp", "log"]}
OF_NUMBERS = {"relu": lambda x: max(x, 0.0), "tanh": math.tanh, "exp": math.exp, "log": math.log}


@pytest.mark.parametrize("expression, at", EXPRESSIONS)
def test_values_and_gradients_are_those_of_plain_numbers(expression, at):
    a, b = map(Value, at)
    out = eval(expression, {"a": a, "b": b} | OF_VALUES)

    def plain(x, y):
        return eval(expression, {"a": x, "b": y} | OF_NUMBERS)

    assert out.data == pytest.approx(plain(*at), rel=1e-15)
    out.backward()
    h = 1e-6
    x, y = at
    assert out.grad == 1.0
    assert a.grad == pytest.approx((plain(x + h, y) - plain(x - h, y)) / (2 * h), rel=1e-7, abs=1e-7)
    assert b.grad == pytest.approx((plain(x, y + h) - plain(x, y - h)) / (2 * h), rel=1e-7, abs=1e-7)


def test_a_second_backward_adds_up_as_in_micrograd():
    # Also the gradients between root and leaves add up, so that the second pass brings more than the first.
    a = Value(3.0)
    b = a * 2.0
    c = b * b
    c.backward()
    assert (a.grad, b.grad) == (24.0, 12.0)
    c.backward()
    assert (a.grad, b.grad) == (24.0 + 48.0, 24.0)


def test_only_what_a_value_was_computed_from_gets_a_gradient():
    a, b = Value(1.0), Value(2.0)
    used, unused = a * b, a + b
    used.backward()
    assert unused.grad == 0.0


def test_data_and_grad_are_set_as_in_a_step_of_descent():
    a = Value(1.0)
    (a * 3.0).backward()
    a.data -= 0.5 * a.grad
    assert a.data == -0.5
    a.grad = 0
    assert a.grad == 0.0


def test_values_print_like_micrograds():
    assert repr(Value(-4)) == "Value(data=-4.0, grad=0.0)"
    assert repr(Value(1e22)) == "Value(data=1e+22, grad=0.0)"
    assert repr(Neuron(3)) == "ReLUNeuron(3)"
    assert repr(Neuron(3, nonlin=False)) == "LinearNeuron(3)"
    assert repr(Layer(1, 2)) == "Layer of [ReLUNeuron(1), ReLUNeuron(1)]"
    assert repr(MLP(2, [1, 1])) == "MLP of [Layer of [ReLUNeuron(2)], Layer of [LinearNeuron(1)]]"


def test_a_value_is_equal_to_itself_only():
    a, b = Value(1.0), Value(1.0)
    assert a == a and a != b and a != 1.0
    assert len({a, b, a}) == 2


def test_numbers_of_all_kinds_take_part():
    a = Value(2.0)
    for three in (3, 3.0, np.int64(3), np.float32(3), np.array(3.0)):
        assert (three * a).data == 6.0
        assert (a - three).data == -1.0
    assert isinstance(np.float64(2) * a, Value)
    assert [v.data for v in np.array([1.0, 2.0]) * a] == [2.0, 4.0]
    assert Value(True).data == 1.0


@pytest.mark.parametrize(
    "mistake, error, message",
    [
        (lambda a: a / 0, ZeroDivisionError, "zero"),
        (lambda a: Value(0.0) ** -1, ZeroDivisionError, "zero"),
        (lambda a: (a - 2).log(), ValueError, "above zero"),
        (lambda a: (-a) ** 0.5, ValueError, "real power"),
        (lambda a: (a * 1e4).exp(), OverflowError, "largest"),
        (lambda a: a + "1", TypeError, "unsupported operand"),
        (lambda a: [] - a, TypeError, "unsupported operand"),
        (lambda a: a + 10**400, OverflowError, "large"),
        (lambda a: pow(a, 2, 3), TypeError, "modulo"),
        (lambda a: Value("two"), TypeError, "real number"),
        (lambda a: setattr(a, "data", "two"), TypeError, "real number"),
        (lambda a: MLP(2, []), ValueError, "needs a layer"),
        (lambda a: MLP(2, [1])([a]), ValueError, "1 inputs for 2 weights"),
        (lambda a: MLP(2, [1])([a, "b"]), TypeError, "a Value or a number"),
        (lambda a: MLP(2, [1])(a), TypeError, "not iterable"),
    ],
)
def test_mistakes_raise_what_python_would(mistake, error, message):
    before = live_values()
    a = Value(2.0)
    with pytest.raises(error, match=message):
        mistake(a)
    del a
    assert live_values() == before


def test_values_of_two_devices_do_not_mix(gpu):
    a, b = Value(1.0), Value(2.0, device=gpu)
    for mix in (lambda: a + b, lambda: b * a, lambda: MLP(1, [1])([b]), lambda: MLP(1, [1], device=gpu)([a])):
        with pytest.raises(RuntimeError, match=r"move one with \.to"):
            mix()
    c = a.to(gpu) * b + 1.0
    c.backward()
    assert c.device == gpu and c.data == 3.0
    assert a.grad == 2.0 and a.device == Device.cpu()


def test_devices_compare_and_print():
    assert Device.cpu() == Device.Cpu and Device.Cpu != Device.Gpu
    assert repr(Device.cpu()) == "Device.Cpu"
    assert len({Device.Cpu, Device.cpu()}) == 1


def test_a_network_is_what_its_weights_say():
    random.seed(7)
    model = MLP(3, [4, 2])
    x = [0.5, -1.5, 2.0]
    y = model(x)
    h = x
    for layer in model.layers:
        h = [sum((w * v for w, v in zip(n.w, h)), n.b) for n in layer.neurons]
        if layer.neurons[0].nonlin:
            h = [v.relu() for v in h]
    assert [v.data for v in y] == [v.data for v in h]
    loss = sum(v * v for v in y)
    loss.backward()
    fused = [p.grad for p in model.parameters()]
    model.zero_grad()
    assert all(p.grad == 0.0 for p in model.parameters())
    sum(v * v for v in h).backward()
    assert fused == pytest.approx([p.grad for p in model.parameters()], rel=1e-12, abs=1e-12)
    assert any(fused)


def test_the_gradients_of_a_network_reach_its_inputs():
    random.seed(3)
    model = MLP(2, [8, 1])
    x = [Value(0.3), Value(-0.8)]
    model(x).backward()
    h = 1e-6
    slope = (model([0.3 + h, -0.8]).data - model([0.3 - h, -0.8]).data) / (2 * h)
    assert x[0].grad == pytest.approx(slope, rel=1e-6)


def test_a_seed_gives_the_same_network_again():
    random.seed(11)
    first = [p.data for p in MLP(2, [3, 1]).parameters()]
    random.seed(11)
    drawn = [random.uniform(-1, 1) for _ in range(2)]
    random.seed(11)
    assert [p.data for p in MLP(2, [3, 1]).parameters()] == first
    assert first[:3] == drawn + [0.0]


def test_parameters_are_the_same_objects_every_time():
    model = MLP(2, [3, 1])
    assert all(p is q for p, q in zip(model.parameters(), model.parameters()))
    assert model.layers[0].neurons[0].w[0] is model.parameters()[0]


def test_a_class_of_ones_own_is_a_module():
    class Line(Module):
        def __init__(self, slope):
            self.slope = Value(slope)

        def parameters(self):
            return [self.slope]

    line = Line(2.0)
    (line.slope * 3.0).backward()
    assert line.slope.grad == 3.0
    line.zero_grad()
    assert line.slope.grad == 0.0
    assert Module().parameters() == []


def test_a_generator_may_be_the_input_of_a_network():
    model = MLP(2, [2])
    out = model(Value(k) for k in (1.0, 2.0))
    assert [v.data for v in out] == [v.data for v in model([1.0, 2.0])]
    assert [v.data for v in model(np.array([1.0, 2.0]))] == [v.data for v in out]


def test_a_sum_of_a_hundred_thousand_values_does_not_overflow_the_stack():
    before = live_values()
    a = Value(1.0)
    total = a
    for _ in range(100_000):
        total = total + a
    total.backward()
    assert total.data == 100_001.0
    assert a.grad == 100_001.0
    del total
    assert live_values() == before + 1


def test_training_keeps_no_more_than_a_step():
    resident = pytest.importorskip("resource")
    model = MLP(2, [4, 1])

    def step(k):
        loss = sum((model([k % 7 - 3.0, 1.0]) - target) ** 2 for target in (0.5, -0.5))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= 1e-3 * p.grad
        return loss

    for k in range(100):
        step(k)
    values, peak = live_values(), resident.getrusage(resident.RUSAGE_SELF).ru_maxrss
    for k in range(10_000):
        step(k)
    assert live_values() == values
    assert resident.getrusage(resident.RUSAGE_SELF).ru_maxrss - peak < 2048


def test_threads_share_the_engine():
    model = MLP(2, [8, 1])
    plain = [model([k / 10.0, -1.0]).data for k in range(50)]
    found = {}

    def work(name):
        for _ in range(20):
            outs = [model([k / 10.0, -1.0]) for k in range(50)]
            sum(outs).backward()
            found[name] = [v.data for v in outs]

    threads = [threading.Thread(target=work, args=(name,)) for name in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(data == plain for data in found.values())


def test_the_names_are_where_micrograd_has_them():
    import micrograd_rs.engine
    import micrograd_rs.nn

    assert micrograd_rs.engine.Value is Value
    assert micrograd_rs.nn.MLP is MLP


def test_the_stub_names_what_the_package_has():
    stub = (Path(micrograd_rs.__file__).parent / "__init__.pyi").read_text(encoding="utf-8")
    tree = {node.name: node for node in ast.parse(stub).body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert sorted(tree) == sorted(micrograd_rs.__all__)
    for name, node in tree.items():
        members = {m.name for m in ast.walk(node) if isinstance(m, ast.FunctionDef)} - {name}
        assert all(hasattr(getattr(micrograd_rs, name), member) for member in members)
        public = {m for m in vars(getattr(micrograd_rs, name)) if not m.startswith("_")} if members else set()
        targets = {m.target.id for m in ast.walk(node) if isinstance(m, ast.AnnAssign)}
        inherited = {"parameters", "zero_grad"}
        assert public <= members | targets | inherited, name


def test_moons_are_learned():
    generator = random.Random(2)
    points, sides = [], []
    for k in range(40):
        angle = math.pi * generator.random()
        x, y = (math.cos(angle), math.sin(angle)) if k % 2 else (1 - math.cos(angle), 0.5 - math.sin(angle))
        points.append((x, y))
        sides.append(1 if k % 2 else -1)
    random.seed(1337)
    model = MLP(2, [16, 16, 1])
    for step in range(60):
        scores = [model(list(point)) for point in points]
        loss = sum((1 + -side * score).relu() for side, score in zip(sides, scores)) * (1 / len(scores))
        model.zero_grad()
        loss.backward()
        for p in model.parameters():
            p.data -= (1.0 - 0.9 * step / 60) * p.grad
    assert all((score.data > 0) == (side > 0) for side, score in zip(sides, scores))
