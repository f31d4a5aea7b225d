"""Saving and loading: safetensors, with everything else that a checkpoint holds beside its tensors."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from ._volta import Tensor
from ._volta import _files as _native
from .nn import Module

__all__ = ["inspect", "load", "save"]

Path = str | os.PathLike[str]

# Where a file keeps the structure of what was saved, if it was more than tensors by name.
_STRUCTURE = "volta.structure"


def save(obj: Any, path: Path, metadata: Mapping[str, str] | None = None) -> None:
    """Writes a module, tensors by name, or a whole checkpoint to a safetensors file: whole, or not at all.

    A module, an optimizer and whatever else has a `state_dict()` is saved as that; a module's tensor that has two names is
    written once. A checkpoint is any nesting of dicts, lists and tuples of tensors, numbers,
    texts and `None`: its tensors get their paths as names (`model.hidden.weight`), so that every program reads them, and
    the rest stands in the file's header.

    >>> volta.save(model, "model.safetensors")
    >>> volta.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, "last.safetensors")
    """
    if isinstance(obj, Module):
        obj = _once_each(obj.state_dict(keep_vars=True))
    elif hasattr(obj, "state_dict"):
        obj = obj.state_dict()
    header = dict(metadata or {})
    if isinstance(obj, Mapping) and all(isinstance(k, str) and isinstance(t, Tensor) for k, t in obj.items()):
        tensors = list(obj.items())
    else:
        found: dict[str, Tensor] = {}
        header[_STRUCTURE] = json.dumps(_taken_apart(obj, "", found), separators=(",", ":"))
        tensors = list(found.items())
    _native.save(path, tensors, header)


def load(path: Path, device: Any = None) -> Any:
    """What `save` wrote, or the tensors by name of any safetensors or PyTorch file, or of a folder from Hugging Face.

    Tensors are copied to `device`, or else to the default device. Of PyTorch's files nothing is run; a state within one
    has names that begin with its key (`state_dict.…`).
    """
    tensors, header = _native.load(path, device)
    named = dict(tensors)
    structure = header.get(_STRUCTURE)
    return named if structure is None else _put_together(json.loads(structure), named)


def inspect(path: Path) -> str:
    """A table of the tensors in a file: names, types, shapes and sizes."""
    return _native.inspect(path)


def _once_each(state: dict[str, Tensor]) -> dict[str, Tensor]:
    """Every tensor once, under its first name."""
    seen: set[int] = set()
    return {name: t for name, t in state.items() if not (id(t) in seen or seen.add(id(t)))}


def _taken_apart(obj: Any, path: str, found: dict[str, Tensor]) -> Any:
    """`obj` as JSON, with the names of its tensors, which go into `found`."""
    if isinstance(obj, Tensor):
        name = path or "tensor"
        while name in found:
            name += "_"
        found[name] = obj
        return {"tensor": name}
    if isinstance(obj, Mapping):
        inside = []
        for key, value in obj.items():
            if not isinstance(key, (str, int)):
                raise TypeError(f"the key {key!r} at {path or 'the top'} is neither a text nor a whole number")
            inside.append([key, _taken_apart(value, f"{path}.{key}" if path else str(key), found)])
        return {"dict": inside}
    if isinstance(obj, (list, tuple)):
        kind = "tuple" if isinstance(obj, tuple) else "list"
        return {kind: [_taken_apart(x, f"{path}.{k}" if path else str(k), found) for k, x in enumerate(obj)]}
    if obj is None or isinstance(obj, (bool, int, float, str)):
        return obj
    raise TypeError(
        f"a {type(obj).__name__} at {path or 'the top'} cannot be saved: only tensors, numbers, texts, None, and dicts, "
        "lists and tuples of these"
    )


def _put_together(json_: Any, named: dict[str, Tensor]) -> Any:
    if not isinstance(json_, dict):
        return json_
    ((kind, inside),) = json_.items()
    if kind == "tensor":
        return named[inside]
    if kind == "dict":
        return {key: _put_together(value, named) for key, value in inside}
    return (tuple if kind == "tuple" else list)(_put_together(x, named) for x in inside)
