"""What a module is: parameters by attribute, modes, state, hooks, printing, copies."""

import copy
import pickle

import numpy as np
import pytest
from nn_reference import normal

import volta
from volta import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(4, 8)
        self.drop = nn.Dropout(0.5)
        self.scale = nn.Parameter(volta.ones(1))
        self.register_buffer("seen", volta.zeros(1))
        self.register_buffer("loose", volta.zeros(1), persistent=False)
        self.output = nn.Linear(8, 2, bias=False)

    def forward(self, x):
        return self.output(self.drop(self.hidden(x).relu())) * self.scale


def names(pairs):
    return [name for name, _ in pairs]


def test_parameters_buffers_and_modules_are_found_by_attribute():
    net = Net()
    assert names(net.named_parameters()) == ["scale", "hidden.weight", "hidden.bias", "output.weight"]
    assert names(net.named_buffers()) == ["seen", "loose"]
    assert names(net.named_children()) == ["hidden", "drop", "output"]
    assert names(net.named_modules()) == ["", "hidden", "drop", "output"]
    assert [type(m).__name__ for m in net.modules()] == ["Net", "Linear", "Dropout", "Linear"]
    assert names(net.named_parameters(recurse=False)) == ["scale"]
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in net.parameters())
    assert net.get_submodule("hidden") is net.hidden
    assert net.get_parameter("hidden.bias") is net.hidden.bias


def test_plain_tensors_are_no_parameters():
    net = Net()
    net.note = volta.ones(3)
    assert "note" not in dict(net.named_parameters()) and "note" not in net.state_dict()


def test_assignment_exchanges_and_deletion_removes_a_parameter():
    net = nn.Linear(2, 2)
    net.weight = nn.Parameter(volta.zeros(2, 2))
    assert net(volta.ones(1, 2)).tolist() == [net.bias.tolist()]
    net.bias = None
    assert names(net.named_parameters()) == ["weight"]
    assert net(volta.ones(1, 2)).tolist() == [[0, 0]]
    del net.bias
    assert not hasattr(net, "bias")
    with pytest.raises(TypeError, match="'weight' is a parameter of Linear.*nn.Parameter"):
        net.weight = volta.ones(2, 2)


def test_what_comes_before_init_and_bad_names_are_refused():
    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)

    with pytest.raises(AttributeError, match=r"Early must call super\(\).__init__\(\)"):
        Early()
    with pytest.raises(KeyError, match="without dots"):
        nn.Module().register_buffer("a.b", volta.ones(1))
    with pytest.raises(KeyError, match="already"):
        nn.Module().register_parameter("forward", None)
    with pytest.raises(TypeError, match="Tensor or None"):
        nn.Module().register_buffer("x", 3)
    with pytest.raises(NotImplementedError, match="defines no forward"):
        nn.Module()(1)


def test_a_tied_weight_counts_once_and_moves_once():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.emb = nn.Embedding(5, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.emb.weight

    net = Tied()
    assert names(net.named_parameters()) == ["emb.weight"]
    assert names(net.named_parameters(remove_duplicate=False)) == ["emb.weight", "head.weight"]
    assert list(net.state_dict()) == ["emb.weight", "head.weight"]
    before = net.emb.weight.detach().numpy().copy()
    optimizer = volta.optim.SGD(net.parameters(), lr=1.0)
    net.head(net.emb(volta.tensor([1]))).sum().backward()
    optimizer.step()
    assert net.head.weight is net.emb.weight
    assert not np.allclose(net.head.weight.detach().numpy(), before)
    other = Tied()
    other.load_state_dict({"head.weight": net.head.weight})
    assert np.array_equal(other.emb.weight.detach().numpy(), net.emb.weight.detach().numpy())


def test_train_and_eval_reach_every_module():
    net = Net()
    assert net.eval() is net and not any(m.training for m in net.modules())
    x = volta.ones(3, 4)
    assert np.array_equal(net(x).detach().numpy(), net(x).detach().numpy())
    assert all(m.training for m in net.train().modules())


def test_to_moves_in_place_so_that_optimizers_go_on():
    net = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    optimizer = volta.optim.SGD(net.parameters(), lr=0.5)
    weight = net[0].weight
    assert net.double() is net and net[0].weight is weight
    assert weight.dtype == volta.float64 and net[1].running_mean.dtype == volta.float64
    assert net[1].num_batches_tracked.dtype == volta.int32
    before = weight.detach().numpy().copy()
    net(volta.tensor(normal(4, 3)).to(volta.float64)).pow(2).sum().backward()
    optimizer.step()
    assert not np.array_equal(weight.detach().numpy(), before)
    assert net.to("cpu", volta.float32)[0].weight.dtype == volta.float32
    assert net.to(volta.ones(1, dtype=volta.float16))[0].bias.dtype == volta.float16


def test_gradients_are_forgotten_and_parameters_frozen():
    net = nn.Linear(2, 1)
    net(volta.ones(1, 2)).sum().backward()
    assert net.weight.grad is not None
    net.zero_grad()
    assert net.weight.grad is None
    net.requires_grad_(False)
    assert not net.weight.requires_grad and not net(volta.ones(1, 2)).requires_grad
    assert net.requires_grad_().weight.requires_grad


def test_apply_visits_children_first():
    seen = []
    nn.Sequential(nn.ReLU(), nn.Sequential(nn.Tanh())).apply(lambda m: seen.append(type(m).__name__))
    assert seen == ["ReLU", "Tanh", "Sequential", "Sequential"]


def test_a_state_keeps_its_values_while_training_goes_on():
    net = nn.Linear(2, 1)
    state = net.state_dict()
    old = net.weight.detach().numpy().copy()
    net(volta.ones(1, 2)).sum().backward()
    volta.optim.SGD(net.parameters(), lr=1.0).step()
    assert np.array_equal(state["weight"].numpy(), old)
    net.load_state_dict(state)
    assert np.array_equal(net.weight.detach().numpy(), old) and net.weight.requires_grad


def test_loading_reports_or_refuses_what_does_not_fit():
    net, state = Net(), Net().state_dict()
    assert list(state) == ["scale", "seen", "hidden.weight", "hidden.bias", "output.weight"]
    del state["scale"]
    state["extra"] = volta.ones(1)
    before = net.hidden.weight.detach().numpy().copy()
    with pytest.raises(ValueError, match="missing: scale; unexpected: extra"):
        net.load_state_dict(state)
    assert np.array_equal(net.hidden.weight.detach().numpy(), before)
    report = net.load_state_dict(state, strict=False)
    assert report.missing_keys == ["scale"] and report.unexpected_keys == ["extra"]
    assert np.array_equal(net.hidden.weight.detach().numpy(), state["hidden.weight"].numpy())
    with pytest.raises(ValueError, match=r"hidden.bias \(here \[8\], given \[3\]\)"):
        net.load_state_dict({**state, "hidden.bias": volta.ones(3)}, strict=False)


def test_a_state_of_numpy_arrays_loads():
    net = nn.Linear(2, 1)
    net.load_state_dict({"weight": np.array([[1.0, 2.0]]), "bias": np.array([0.5], np.float32)})
    assert net(volta.ones(1, 2)).item() == 3.5


def test_hooks_see_and_change_what_goes_in_and_out():
    layer, seen = nn.Identity(), []
    first = layer.register_forward_pre_hook(lambda m, args: seen.append(args[0].item()))
    second = layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,))
    third = layer.register_forward_hook(lambda m, args, out: out * 10)
    assert layer(volta.tensor(2.0)).item() == 30 and seen == [2.0]
    with layer.register_forward_hook(lambda m, args, kwargs, out: out + 1, with_kwargs=True, prepend=True):
        assert layer(volta.tensor(2.0)).item() == 40
    for handle in (first, second, third, third):
        handle.remove()
    assert layer(volta.tensor(2.0)).item() == 2 and seen == [2.0, 2.0]


def test_a_network_prints_like_pytorch():
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Sequential(nn.Conv2d(1, 2, 3, padding=1, bias=False)))
    assert repr(net) == (
        "Sequential(\n"
        "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
        "  (1): ReLU()\n"
        "  (2): Sequential(\n"
        "    (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1), bias=False)\n"
        "  )\n"
        ")"
    )
    assert repr(nn.Parameter(volta.zeros(2))).startswith("Parameter containing:\n")
    assert "requires_grad=True" in repr(nn.Parameter(volta.zeros(2)))


def test_copies_and_pickles_are_networks_of_their_own():
    net = Net()
    net.output.weight = nn.Parameter(volta.ones(2, 8))
    for twin in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert names(twin.named_parameters()) == names(net.named_parameters())
        assert np.array_equal(twin.hidden.weight.detach().numpy(), net.hidden.weight.detach().numpy())
        assert isinstance(twin.scale, nn.Parameter) and twin.scale.requires_grad
        twin.load_state_dict({**twin.state_dict(), "scale": volta.zeros(1)})
        assert net.scale.item() == 1 and twin.scale.item() == 0
    tied = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    tied[1].weight = tied[0].weight
    twin = copy.deepcopy(tied)
    assert twin[0].weight is twin[1].weight and twin[0].weight is not tied[0].weight


def test_parameters_take_attributes_of_their_own():
    p = nn.Parameter(volta.ones(2), requires_grad=False)
    p.decay = False
    assert not p.decay and not p.requires_grad and isinstance(p, volta.Tensor)
    assert not isinstance(p + 1, nn.Parameter)


def test_containers():
    net = nn.Sequential({"first": nn.Linear(1, 2), "act": nn.Tanh()})
    net.append(nn.Linear(2, 3))
    assert len(net) == 3 and net[-1].out_features == 3 and len(net[:2]) == 2
    assert names(net.named_parameters())[:2] == ["first.weight", "first.bias"]
    net[1] = nn.ReLU()
    assert [type(m).__name__ for m in net] == ["Linear", "ReLU", "Linear"]
    with pytest.raises(IndexError, match="3 of 3"):
        net[3]
    layers = nn.ModuleList([nn.Linear(1, 1)])
    layers.extend([nn.Tanh(), nn.ReLU()])
    layers.insert(1, nn.GELU())
    assert [type(m).__name__ for m in layers] == ["Linear", "GELU", "Tanh", "ReLU"]
    assert isinstance(layers.pop(), nn.ReLU) and names(layers.named_children()) == ["0", "1", "2"]
    table = nn.ModuleDict({"a": nn.Linear(1, 1)})
    table["b"] = nn.Tanh()
    assert "b" in table and list(table) == ["a", "b"] and table["a"].in_features == 1
    with pytest.raises(KeyError, match="only a, b"):
        table["c"]
    values = nn.ParameterList([volta.ones(1), nn.Parameter(volta.zeros(2))])
    assert names(values.named_parameters()) == ["0", "1"] and values[0].requires_grad
    by_name = nn.ParameterDict({"x": volta.ones(1)})
    assert list(by_name.state_dict()) == ["x"]


def test_a_deep_copy_of_a_parameter_has_memory_of_its_own():
    parameter = nn.Parameter(volta.ones(3))
    twin = copy.deepcopy(parameter)
    twin.detach().numpy()[0] = 5
    assert parameter.tolist() == [1.0, 1.0, 1.0] and twin.tolist() == [5.0, 1.0, 1.0]
    assert twin.requires_grad and isinstance(twin, nn.Parameter)


def test_a_loaded_state_has_memory_of_its_own():
    array = np.zeros((2, 2), np.float32)
    lent = volta.from_numpy(np.zeros(2, np.float32))
    net = nn.Linear(2, 2)
    net.load_state_dict({"weight": array, "bias": lent})
    array += 1
    lent.numpy()[:] = 1
    assert net.weight.tolist() == [[0, 0], [0, 0]] and net.bias.tolist() == [0, 0]
    other = nn.Linear(2, 2)
    other.load_state_dict(net.state_dict())
    net.weight.detach().numpy()[:] = 7
    assert other.weight.tolist() == [[0, 0], [0, 0]]


def test_train_is_called_on_every_module_so_that_it_may_be_overridden():
    class Frozen(nn.BatchNorm1d):
        def train(self, mode=True):
            return super().train(False)

    class Watched(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.calls = Frozen(2), []

        def train(self, mode=True):
            self.calls.append(mode)
            return super().train(mode)

    net = nn.Sequential(Watched(), nn.Dropout())
    net.train()
    assert net.training and net[1].training and net[0].training and not net[0].norm.training
    net.eval()
    assert net[0].calls == [True, False] and not any(m.training for m in net.modules())


def test_containers_with_tensors_of_their_own_walk_modules_only():
    class Scaled(nn.Sequential):
        def __init__(self, *modules):
            super().__init__()
            self.scale = nn.Parameter(volta.full((1,), 2.0))
            self.register_buffer("seen", volta.zeros(1))
            self.extend(modules)

        def forward(self, input):
            return super().forward(input) * self.scale

    scaled = Scaled(nn.Identity(), nn.ReLU())
    assert len(scaled) == 2 and names(scaled.named_children()) == ["0", "1"]
    assert isinstance(scaled[0], nn.Identity) and isinstance(scaled[-1], nn.ReLU) and len(list(scaled)) == len(scaled[:]) == 2
    assert scaled(volta.tensor([-1.0, 3.0])).tolist() == [0, 6]
    scaled[0] = nn.Tanh()
    assert isinstance(scaled[0], nn.Tanh) and isinstance(scaled.scale, nn.Parameter)

    listed = nn.ModuleList([nn.ReLU()])
    listed.weight = nn.Parameter(volta.ones(1))
    listed.append(nn.Tanh())
    listed.insert(0, nn.Identity())
    assert len(listed) == 3 and [type(m).__name__ for m in listed] == ["Identity", "ReLU", "Tanh"]
    assert isinstance(listed.pop(), nn.Tanh) and isinstance(listed[-1], nn.ReLU) and listed.weight.item() == 1

    named = nn.ModuleDict({"a": nn.ReLU()})
    named.register_buffer("b", volta.zeros(1))
    assert len(named) == 1 and named.keys() == list(named) == ["a"] and "b" not in named
    with pytest.raises(KeyError):
        named["b"]
    with pytest.raises(KeyError):
        del named["b"]

    several = nn.ParameterList([volta.ones(1)])
    several.register_buffer("seen", volta.zeros(1))
    several.append(volta.zeros(2))
    assert len(several) == 2 and several[-1].shape == (2,)


def test_a_hook_that_is_removed_twice_takes_no_other_away():
    net, seen = nn.Identity(), []
    first = net.register_forward_hook(lambda *_: seen.append("first"))
    first.remove()
    second = net.register_forward_hook(lambda *_: seen.append("second"))
    first.remove()
    net(volta.ones(1))
    assert seen == ["second"] and first.id != second.id


def test_a_module_moves_as_a_tensor_does():
    net, x = nn.Linear(2, 2), volta.ones(1)
    messages = []
    for moved in (x, net):
        with pytest.raises(ValueError) as caught:
            moved.to("cuda")
        messages.append(str(caught.value))
    assert messages[0] == messages[1] and "cuda" in messages[0]
    assert net.to("cpu", non_blocking=True) is net and net.to("cpu", volta.float64, True).weight.dtype == volta.float64
    assert net.to("float32").weight.dtype == volta.float32
