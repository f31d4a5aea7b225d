"""Saving and loading: round trips, other programs' files, what is wrong with files."""

import io
import json
import pickle
import struct
import sys
import types
import zipfile
from collections import OrderedDict

import numpy as np
import pytest
from nn_reference import normal

import volta
from volta import nn, optim


def test_a_module_comes_back_the_same(tmp_path):
    path = tmp_path / "net.safetensors"
    net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    net(volta.tensor(normal(5, 3)))
    volta.save(net, path)
    other = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    other.load_state_dict(volta.load(path))
    for (name, ours), theirs in zip(net.state_dict().items(), other.state_dict().values()):
        assert np.array_equal(ours.numpy(), theirs.numpy()), name


def test_types_and_shapes_survive(tmp_path):
    path = str(tmp_path / "all.safetensors")
    tensors = {
        "half": volta.ones(2, dtype=volta.float16),
        "brain": volta.ones(3, dtype=volta.bfloat16),
        "wide": volta.tensor(np.pi),
        "whole": volta.tensor([[1, -2]]),
        "bits": volta.tensor([True, False]),
        "bytes": volta.tensor(np.array([255], np.uint8)),
        "unsigned": volta.tensor(np.array([0, 2**31, 2**32 - 1], np.uint32)),
        "empty": volta.zeros(0, 3),
        "pending": volta.ones(2) + 1,
    }
    volta.save(tensors, path)
    loaded = volta.load(path, device="cpu")
    assert list(loaded) == list(tensors)
    for name, t in tensors.items():
        assert loaded[name].dtype == t.dtype and loaded[name].shape == t.shape, name
        assert loaded[name].tolist() == t.tolist(), name


def test_a_whole_checkpoint_comes_back_with_its_structure(tmp_path):
    path = tmp_path / "last.safetensors"
    net = nn.Linear(2, 2)
    adam = optim.Adam(net.parameters(), lr=0.1)
    net(volta.ones(1, 2)).sum().backward()
    adam.step()
    state = {"model": net.state_dict(), "optimizer": adam.state_dict(), "epoch": 3, "best": None, "log": [1.5, "x"]}
    volta.save(state, path)
    loaded = volta.load(path)
    assert loaded["epoch"] == 3 and loaded["best"] is None and loaded["log"] == [1.5, "x"]
    assert loaded["optimizer"]["param_groups"] == adam.state_dict()["param_groups"]
    twin = nn.Linear(2, 2)
    twin.load_state_dict(loaded["model"])
    again = optim.Adam(twin.parameters())
    again.load_state_dict(loaded["optimizer"])
    volta.save(adam, path)
    assert volta.load(path)["state"][0]["step"] == 1
    for network, optimizer in ((net, adam), (twin, again)):
        optimizer.zero_grad()
        network(volta.tensor([[1.0, -2.0]])).sum().backward()
        optimizer.step()
    assert np.array_equal(net.weight.detach().numpy(), twin.weight.detach().numpy())


def test_a_tied_tensor_is_written_once(tmp_path):
    path = tmp_path / "tied.safetensors"
    net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    net[1].weight = net[0].weight
    volta.save(net, path)
    assert list(volta.load(path)) == ["0.weight", "0.bias", "1.bias"]
    other = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    other[1].weight = other[0].weight
    other.load_state_dict(volta.load(path))


def test_files_are_what_other_programs_read(tmp_path):
    path = tmp_path / "plain.safetensors"
    volta.save({"w": volta.tensor([1.0, 2.0])}, path, metadata={"format": "pt"})
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + length])
    assert header["__metadata__"] == {"format": "pt"}
    assert header["w"] == {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}
    assert np.frombuffer(raw[8 + length :], np.float32).tolist() == [1, 2]


def pytorch_file(path, arrays, monkeypatch):
    """A file as `torch.save` writes a state: a pickle that names storages, and their bytes beside it."""
    torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")

    class FloatStorage:
        pass

    def _rebuild_tensor_v2(*_):
        raise AssertionError("nothing in a file is run")

    for thing, module in ((FloatStorage, torch), (_rebuild_tensor_v2, utils)):
        thing.__module__, thing.__qualname__ = module.__name__, thing.__name__
        setattr(module, thing.__name__, thing)
        monkeypatch.setitem(sys.modules, module.__name__, module)

    class Storage:
        def __init__(self, key, count):
            self.key, self.count = key, count

    class Rebuilt:
        def __init__(self, storage, shape, strides):
            self.arguments = (storage, 0, shape, strides, False, OrderedDict())

        def __reduce__(self):
            return _rebuild_tensor_v2, self.arguments

    class Pickler(pickle.Pickler):
        def persistent_id(self, thing):
            return ("storage", FloatStorage, thing.key, "cpu", thing.count) if isinstance(thing, Storage) else None

    state = OrderedDict()
    with zipfile.ZipFile(path, "w") as archive:
        for k, (name, a) in enumerate(arrays.items()):
            strides = tuple(s // a.itemsize for s in a.strides)
            state[name] = Rebuilt(Storage(str(k), a.size), a.shape, strides)
            archive.writestr(f"archive/data/{k}", a.tobytes(order="A"))
        pickled = io.BytesIO()
        Pickler(pickled, protocol=2).dump(state)
        archive.writestr("archive/data.pkl", pickled.getvalue())
        archive.writestr("archive/version", "3")


def test_pytorchs_files_are_read_and_nothing_in_them_is_run(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    weight, bias = normal(2, 3), normal(2, seed=1)
    pytorch_file(path, {"weight": np.asfortranarray(weight), "bias": bias}, monkeypatch)
    layer = nn.Linear(3, 2)
    layer.load_state_dict(volta.load(path))
    assert np.array_equal(layer.weight.detach().numpy(), weight)
    assert np.array_equal(layer.bias.detach().numpy(), bias)


def test_files_are_inspected(tmp_path):
    path = tmp_path / "net.safetensors"
    volta.save(nn.Linear(3, 4), path)
    assert "weight" in volta.inspect(path) and "bias" in volta.inspect(str(path))


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    with pytest.raises(OSError, match="missing.safetensors"):
        volta.load(tmp_path / "missing.safetensors")
    broken = tmp_path / "broken.safetensors"
    volta.save({"w": volta.ones(100)}, broken)
    broken.write_bytes(broken.read_bytes()[:-4])
    with pytest.raises(ValueError, match="broken.safetensors"):
        volta.load(broken)
    with pytest.raises(OSError):
        volta.save({"w": volta.ones(1)}, tmp_path / "no" / "folder.safetensors")
    with pytest.raises(TypeError, match="object at a.0"):
        volta.save({"a": [object()]}, tmp_path / "x.safetensors")
    with pytest.raises(TypeError, match="key"):
        volta.save({1.5: volta.ones(1)}, tmp_path / "x.safetensors")
    assert not (tmp_path / "x.safetensors").exists()
