"""Writes the type stubs of the native module, from its signatures and documentation and the types below.

python python/tools/make_stubs.py          # writes them
python python/tools/make_stubs.py --check  # fails if they are not up to date
"""

import inspect
import re
import sys
import types
from pathlib import Path

import volta
from volta import _functions, _volta

PACKAGE = Path(volta.__file__).parent

HEAD = '''"""{title}

Written by python/tools/make_stubs.py: change that, or the documentation in Rust, and run it again.
"""

{imports}
'''
VOLTA_HEAD = '''import builtins
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, overload

import numpy as np

from . import return_types

Number: TypeAlias = builtins.float | builtins.int | builtins.bool | np.number[Any]
Operand: TypeAlias = "Tensor | Number | np.ndarray[Any, Any]"
Size: TypeAlias = builtins.int | Sequence[builtins.int]
DTypeLike: TypeAlias = "dtype | str | type"
DeviceLike: TypeAlias = "device | str"
# Tensors have properties of these names.
_DType: TypeAlias = "dtype"
_Device: TypeAlias = "device"

__version__: str

# The methods of tensors that one table makes: they are functions, too.
_ELEMENTWISE: list[str]

# The native halves of volta.nn, volta.optim, volta.parallel, volta.distributed, volta.models and volta.files, and of volta.amp and
# volta.profiler.
_nn: Any
_optim: Any
_parallel: Any
_distributed: Any
_models: Any
_files: Any
_scopes: Any
'''

INT, FLOAT, BOOL = "builtins.int", "builtins.float", "builtins.bool"

# The type of a parameter, by its name.
PARAMETERS = {
    "alpha": "Number",
    "anchor": "Tensor",
    "approximate": "str",
    "args": "Any",
    "as_tuple": BOOL,
    "beta": FLOAT,
    "chunks": INT,
    "columns": INT,
    "condition": "Tensor",
    "copy": BOOL,
    "correction": "Number",
    "create_graph": BOOL,
    "allow_unused": BOOL,
    "data": "Any",
    "descending": BOOL,
    "destination": "Size",
    "device": "DeviceLike",
    "diagonal": INT,
    "dim": INT,
    "dim0": INT,
    "dim1": INT,
    "dimension": INT,
    "dims": "Size",
    "dl_device": "tuple[builtins.int, builtins.int]",
    "dtype": "DTypeLike",
    "end": "Number",
    "end_dim": INT,
    "eps": FLOAT,
    "equation": "str",
    "exponent": "Operand",
    "ext_tensor": "Any",
    "fill_value": "Number",
    "force": BOOL,
    "grad_outputs": "Tensor | Sequence[Tensor]",
    "gradient": "Tensor",
    "high": INT,
    "index": "Tensor",
    "input": "Tensor",
    "inputs": "Tensor | Sequence[Tensor]",
    "k": INT,
    "keepdim": BOOL,
    "largest": BOOL,
    "length": INT,
    "low": INT,
    "m": INT,
    "mask": "Tensor",
    "mat2": "Tensor",
    "max": "Operand",
    "max_val": FLOAT,
    "max_version": "tuple[builtins.int, builtins.int]",
    "mean": FLOAT,
    "min": "Operand",
    "min_val": FLOAT,
    "mode": "str",
    "n": INT,
    "ndarray": "np.ndarray[Any, Any]",
    "negative_slope": FLOAT,
    "non_blocking": BOOL,
    "num_classes": INT,
    "operands": "Tensor | Sequence[Tensor]",
    "other": "Operand",
    "outputs": "Tensor | Sequence[Tensor]",
    "p": FLOAT,
    "pad": "Sequence[builtins.int]",
    "repeats": "Size",
    "requires_grad": BOOL,
    "retain_graph": BOOL,
    "rounding_mode": "str",
    "rows": INT,
    "rtol": FLOAT,
    "atol": FLOAT,
    "seed": INT,
    "shape": "Size",
    "shapes": "Size",
    "shifts": "Size",
    "size": "Size",
    "sizes": "Size",
    "sorted": BOOL,
    "source": "Size",
    "split_size_or_sections": "Size",
    "src": "Tensor",
    "stable": BOOL,
    "start": "Number",
    "start_dim": INT,
    "state": "tuple[builtins.int, builtins.int]",
    "std": FLOAT,
    "step": "Number",
    "steps": INT,
    "stream": "Any",
    "tensors": "Sequence[Tensor]",
    "threshold": FLOAT,
    "type": "DeviceLike",
    "unbiased": BOOL,
    "value": "Number",
    "vec": "Tensor",
    "vec2": "Tensor",
    "weight": "Tensor",
}

FOLDS = "sum mean prod all any amax amin var std norm logsumexp squeeze".split()

# Where a parameter's type differs from the one its name has.
DIFFERENT = {
    **{(name, "dim"): "Size" for name in FOLDS},
    ("allclose", "other"): "Tensor",
    ("broadcast_tensors", "tensors"): "Tensor",
    ("cosine_similarity", "other"): "Tensor",
    ("device", "index"): INT,
    ("gpu", "index"): INT,
    ("fill_", "value"): "Operand",
    ("index_add", "source"): "Tensor",
    ("index_add_", "source"): "Tensor",
    ("masked_fill", "value"): "Operand",
    ("masked_fill_", "value"): "Operand",
    ("dot", "other"): "Tensor",
    ("equal", "other"): "Tensor",
    ("expand_as", "other"): "Tensor",
    ("is_same", "other"): "Tensor",
    ("isclose", "other"): "Tensor",
    ("matmul", "other"): "Tensor",
    ("narrow", "start"): INT,
    ("norm", "p"): "builtins.float | str",
    ("randint", "high"): "builtins.int | Sequence[builtins.int]",
    ("realize", "tensors"): "Tensor",
    ("repeat_interleave", "repeats"): INT,
    ("reshape_as", "other"): "Tensor",
    ("rsub", "other"): "Operand",
    ("type_as", "other"): "Tensor",
    ("unfold", "size"): INT,
    ("unfold", "step"): INT,
    ("uniform_", "high"): FLOAT,
    ("uniform_", "low"): FLOAT,
    ("view_as", "other"): "Tensor",
    ("where", "condition"): "Operand",
    ("where", "input"): "Operand",
}

# What is returned, where it is not a tensor.
RETURNS = {
    "__array__": "np.ndarray[Any, Any]",
    "__dlpack__": "Any",
    "__dlpack_device__": "tuple[builtins.int, builtins.int]",
    "allclose": BOOL,
    "as_tensor": "Tensor",
    "backward": "None",
    "broadcast_shapes": "tuple[builtins.int, ...]",
    "broadcast_tensors": "list[Tensor]",
    "chunk": "list[Tensor]",
    "devices": "list[tuple[device, str]]",
    "dim": INT,
    "element_size": INT,
    "equal": BOOL,
    "get_default_device": "device",
    "get_rng_state": "tuple[builtins.int, builtins.int]",
    "grad": "tuple[Tensor, ...]",
    "is_available": BOOL,
    "is_contiguous": BOOL,
    "is_floating_point": BOOL,
    "is_grad_enabled": BOOL,
    "is_same": BOOL,
    "is_tensor": BOOL,
    "item": "builtins.float | builtins.int | builtins.bool",
    "manual_seed": "None",
    "nelement": INT,
    "nonzero": "Any",
    "numel": INT,
    "numpy": "np.ndarray[Any, Any]",
    "set_default_device": "None",
    "set_rng_state": "None",
    "size": "Any",
    "sort": "return_types.sort",
    "split": "list[Tensor]",
    "synchronize": "None",
    "tolist": "Any",
    "topk": "return_types.topk",
    "unbind": "list[Tensor]",
    "where": "Any",
}
FUNCTION_RETURNS = {"realize": "None"}

# Ops that return one thing or another.
OVERLOADS = {
    name: [
        "({self}) -> Tensor",
        f"({{self}}, dim: builtins.int, keepdim: builtins.bool = False) -> return_types.{name}",
        *(["({self}, dim: Tensor) -> Tensor"] if name != "median" else []),
    ]
    for name in ("max", "min", "median")
}

# Ops whose sizes or dimensions come one by one, or together by the name they have.
NAMED_SIZES = "broadcast_to empty expand flip ones permute rand randn repeat reshape tile view zeros".split()

PROPERTIES = {
    "T": "Tensor",
    "mT": "Tensor",
    "data": "Tensor",
    "device": "_Device",
    "dtype": "_DType",
    "grad": "Tensor | None",
    "index": "builtins.int | None",
    "is_gpu": BOOL,
    "is_leaf": BOOL,
    "is_realized": BOOL,
    "is_floating_point": BOOL,
    "itemsize": INT,
    "nbytes": INT,
    "ndim": INT,
    "requires_grad": BOOL,
    "shape": "tuple[builtins.int, ...]",
    "type": "str",
}
SETTABLE = {"data", "grad", "requires_grad"}

BINARY = "add sub mul truediv floordiv mod pow matmul and or xor".split()
DUNDERS = [
    *(f"def __{side}{name}__(self, other: Operand) -> Tensor: ..." for name in BINARY for side in ("", "r")),
    *(f"def __i{name}__(self, other: Operand) -> Tensor: ..." for name in BINARY if name != "matmul"),
    # NumPy's arrays have these too, and mypy wants to know whose are meant.
    *(f"def __{name}__(self, other: Operand) -> Tensor: ...  # type: ignore[misc]" for name in ("lt", "le", "gt", "ge")),
    *(f"def __{name}__(self, other: object) -> Any: ..." for name in ("eq", "ne")),
    *(f"def __{name}__(self) -> Tensor: ..." for name in ("neg", "pos", "abs", "invert")),
    "def __bool__(self) -> builtins.bool: ...",
    "def __float__(self) -> builtins.float: ...",
    "def __int__(self) -> builtins.int: ...",
    "def __index__(self) -> builtins.int: ...",
    "def __len__(self) -> builtins.int: ...",
    "def __hash__(self) -> builtins.int: ...",
    "def __iter__(self) -> Iterator[Tensor]: ...",
    "def __contains__(self, element: Operand) -> builtins.bool: ...",
    "def __getitem__(self, index: Any) -> Tensor: ...",
    "def __setitem__(self, index: Any, value: Any) -> None: ...",
]


def typed(owner, parameter):
    kind = DIFFERENT.get((owner, parameter.name)) or PARAMETERS.get(parameter.name, "Any")
    if parameter.default is None and kind != "Any":
        kind += " | None"
    text = f"{parameter.name}: {kind}"
    if parameter.kind is parameter.VAR_POSITIONAL:
        return f"*{text}"
    if parameter.kind is parameter.VAR_KEYWORD:
        return f"**{text}"
    return text if parameter.default is parameter.empty else f"{text} = {parameter.default!r}"


def parameters(name, member, first):
    """The parameters between the parentheses; `first` stands for the tensor."""
    listed, keyword = [], False
    for parameter in inspect.signature(member).parameters.values():
        if parameter.name == "self":
            listed.append(first)
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not keyword:
            if not any(p.startswith("*") for p in listed):
                listed.append("*")
            keyword = True
        listed.append(typed(name, parameter))
    return ", ".join(p for p in listed if p)


def documented(head, doc, indent=""):
    lines = inspect.cleandoc(doc).splitlines()
    if len(lines) == 1:
        return [f"{indent}{head}", f'{indent}    """{lines[0]}"""']
    body = [f"{indent}    {line}".rstrip() for line in lines[1:]]
    return [f"{indent}{head}", f'{indent}    """{lines[0]}', *body, f'{indent}    """']


def overloads(name, heads, doc, indent):
    out = []
    for head in heads:
        out += [f"{indent}@overload", *documented(f"def {name}{head}:", doc, indent), ""]
    return out


def function(name, member, first="self", indent="", returns=None):
    if name in OVERLOADS:
        heads = [form.format(self=first).replace("(, ", "(") for form in OVERLOADS[name]]
        return overloads(name, heads, member.__doc__, indent)
    kind = returns or RETURNS.get(name, "Tensor")
    listed = parameters(name, member, first)
    if name in NAMED_SIZES:
        by_name = re.sub(r"\*(\w+: Size)", r"*, \1", listed)
        return overloads(name, [f"({form}) -> {kind}" for form in (listed, by_name)], member.__doc__, indent)
    return [*documented(f"def {name}({listed}) -> {kind}:", member.__doc__, indent), ""]


def klass(name, cls):
    out = ["", *documented(f"class {name}:", cls.__doc__), ""]
    arguments = parameters(name, cls, "").replace("$self, ", "")
    if name != "dtype":
        out += [f"    def __init__(self, {arguments}) -> None: ..."]
    members = {n: inspect.getattr_static(cls, n) for n in sorted(vars(cls)) if not n.startswith("_")}
    if name == "Tensor":
        out += [f"    {line}" for line in DUNDERS]
        members |= {n: inspect.getattr_static(cls, n) for n in ("__array__", "__dlpack__", "__dlpack_device__")}
    if name == "device":
        out += ["    def __enter__(self) -> device: ...", "    def __exit__(self, *exception: Any) -> None: ..."]
    out.append("")
    for member_name, member in members.items():
        if isinstance(member, types.GetSetDescriptorType):
            kind = PROPERTIES[member_name]
            out += ["    @property", *documented(f"def {member_name}(self) -> {kind}:", member.__doc__, "    "), ""]
            if member_name in SETTABLE:
                taken = "Any" if kind.startswith("Tensor") else kind
                out += [f"    @{member_name}.setter", f"    def {member_name}(self, value: {taken}) -> None: ...", ""]
        elif callable(member):
            returns = "Tensor" if member_name == "where" else None
            out += function(member_name, member, indent="    ", returns=returns)
    return out


def volta_stub():
    lines = [HEAD.format(title="The native half of the package.", imports=VOLTA_HEAD)]
    names = sorted(n for n in dir(_volta) if not n.startswith("_"))
    for name in names:
        member = getattr(_volta, name)
        if inspect.isclass(member):
            if member.__module__ == "volta":
                lines += klass(name, member)
        elif isinstance(member, _volta.dtype):
            lines += [f"{name}: dtype"]
        elif callable(member):
            lines += ["", *function(name, member, returns=FUNCTION_RETURNS.get(name))]
    return "\n".join(lines).rstrip() + "\n"


def functions_stub():
    imports = "import builtins\nfrom collections.abc import Sequence\nfrom typing import Any, overload\n\n"
    imports += "from . import return_types\nfrom ._volta import DTypeLike, Number, Operand, Size, Tensor\n"
    lines = [HEAD.format(title=_functions.__doc__.splitlines()[0], imports=imports)]
    for name in sorted(_functions.__all__):
        member = getattr(_functions, name)
        lines += function(name, member, first="input: Tensor", returns=RETURNS.get(member.__name__))
    return "\n".join(lines).rstrip() + "\n"


STUBS = {"_volta.pyi": volta_stub, "_functions.pyi": functions_stub}


def stale():
    """The stubs that are not what would be written now."""
    return [name for name, write in STUBS.items() if not (PACKAGE / name).exists() or (PACKAGE / name).read_text() != write()]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"not up to date: {', '.join(stale())}" if stale() else 0)
    for name, write in STUBS.items():
        (PACKAGE / name).write_text(write())
