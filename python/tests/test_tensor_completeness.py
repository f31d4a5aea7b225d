"""Every public op of the Rust side has a name in Python."""

import re
from pathlib import Path

import pytest

import volta
import volta.profiler

SOURCES = Path(__file__).parents[2] / "crates" / "volta" / "src" / "tensor"

# What is called otherwise, after PyTorch or because Python writes it so.
RENAMED = {
    "recip": "reciprocal",
    "where_": "where",
    "to_dtype": "to",
    "to_device": "to",
    "log_sigmoid": "logsigmoid",
    "gelu_tanh": "gelu",
    "squeeze_all": "squeeze",
    "split_sizes": "split",
    "slice": "__getitem__",
    "max_with_index": "max",
    "min_with_index": "min",
    "max_dim": "amax",
    "min_dim": "amin",
    "windows": "unfold",
    "arange_step": "arange",
    "full_of": "full",
    "from_vec": "tensor",
    "from_slice": "tensor",
    "vector": "tensor",
    "new": "tensor",
    "new_on_device": "tensor",
    "scalar": "tensor",
    "from_foreign": "from_numpy",
    "host_memory": "numpy",
    "rank": "ndim",
    "is_tracked": "requires_grad",
    "assign": "copy_",
    "update": "copy_",
    "assignable": "clone",
    "is_assignable": "is_leaf",
    "variable": "clone",
    "set_requires_grad": "requires_grad_",
    "set_grad": "grad",
    "zero_grad": "grad",
    "to_vec": "tolist",
    "to_vec_async": "tolist",
    "item_async": "item",
    "to_device_async": "to",
    "realize_all": "realize",
    "save": "get_rng_state",
    "restore": "set_rng_state",
    "backward_with": "backward",
}
# Layers and losses: `volta.nn.functional` has them, under these names.
IN_NN = {
    "batch_norm_train": "batch_norm",
    "batch_norm_eval": "batch_norm",
    "bce_loss": "binary_cross_entropy",
    "bce_with_logits": "binary_cross_entropy_with_logits",
    "interpolate_scale": "interpolate",
    "assume_computed": None,
    "autocast": None,
    "autocast_types": None,
    "as_wide_integers": None,
    "holds_wide_integers": None,
    "set_autocast": None,
}


def rust_ops():
    """The public ops and functions that the sources declare."""
    found = set()
    for path in SOURCES.rglob("*.rs"):
        # Matrices of quantised weights are Rust's alone so far.
        if path.parent.name == "quantized":
            continue
        text = path.read_text().split("#[cfg(test)]")[0]
        found |= set(re.findall(r"^\s*#\[op\]\n\s*pub fn try_(\w+)", text, re.M))
        found |= set(re.findall(r"^\s*fn (\w+) \| try_\w+", text, re.M))
        found |= set(re.findall(r"^\s*try_(\w+) = ", text, re.M))
        found |= set(re.findall(r"^\s*pub (?:async |unsafe )?fn (\w+)", text, re.M))
    table = (SOURCES.parents[2] / "ir" / "src" / "op" / "unary.rs").read_text()
    found |= set(re.findall(r"^\s*\w+: (\w+) try_\w+, ", table, re.M))
    # Methods of others than tensors.
    methods = {"as_ptr", "bytes", "is_writable", "by", "heads", "of", "result", "everywhere"}
    # For exporters of graphs.
    methods.add("recorded")
    return sorted({re.sub("^try_", "", name) for name in found} - methods)


def python_name(name):
    name = RENAMED.get(name, name)
    for suffix in ("_dim", "_with"):
        if not hasattr(volta.Tensor, name) and not hasattr(volta, name):
            name = name.removesuffix(suffix)
    return name


@pytest.mark.parametrize("name", rust_ops())
def test_every_op_has_a_name_in_python(name):
    own = python_name(name)
    if any(hasattr(place, own) for place in (volta.Tensor, volta, volta.profiler)):
        return
    layer = IN_NN.get(name.removesuffix("_with"), own)
    functional = pytest.importorskip("volta.nn.functional")
    assert layer is None or hasattr(functional, layer), f"{name} has no name in Python"


def test_the_list_of_ops_is_not_empty():
    assert len(rust_ops()) > 150
