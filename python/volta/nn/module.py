"""What every layer and network is: tensors found by attribute, and a `forward`."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from .. import _volta
from .._volta import Tensor
from .._volta import _nn as _native

if TYPE_CHECKING:

    class Parameter(Tensor):
        """A tensor that a module trains: assigned to an attribute of a module, it is found by `parameters()`."""

        def __init__(self, data: Tensor, requires_grad: bool = True) -> None: ...

else:
    Parameter = _native.Parameter

__all__ = ["IncompatibleKeys", "Module", "Parameter", "RemovableHandle"]

_PARAMETER, _BUFFER, _LOOSE_BUFFER, _MODULE = "parameter", "buffer", "buffer that is not saved", "module"
_BUFFERS = (_BUFFER, _LOOSE_BUFFER)

Self = TypeVar("Self", bound="Module")


class IncompatibleKeys(NamedTuple):
    """What a state and a module did not have in common."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class RemovableHandle:
    """Takes a hook away again: `handle.remove()`, or the end of a `with` block."""

    _ids = itertools.count(1)

    def __init__(self, hooks: dict[int, Any]) -> None:
        self._hooks = hooks
        # No two hooks have one, also not of a module from elsewhere: a handle that is removed twice takes nobody else's away.
        self.id = next(k for k in RemovableHandle._ids if k not in hooks)

    def remove(self) -> None:
        """Takes the hook away; doing so twice does no harm."""
        self._hooks.pop(self.id, None)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *_: object) -> None:
        self.remove()


class Module:
    """A network, or a part of one. Subclasses assign parameters and modules to attributes and define `forward`.

    >>> class Net(volta.nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.hidden = volta.nn.Linear(4, 8)
    ...         self.output = volta.nn.Linear(8, 2)
    ...
    ...     def forward(self, x):
    ...         return self.output(self.hidden(x).relu())
    """

    training: bool

    def __init__(self) -> None:
        fields = self.__dict__
        fields["training"] = True
        # What the attributes are that belong to the network, by name, in the order of their first assignment.
        fields["_kinds"] = {}
        fields["_forward_hooks"] = {}
        fields["_forward_pre_hooks"] = {}

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The output for an input: what a subclass defines, and what calling the module calls."""
        raise NotImplementedError(f"{type(self).__name__} defines no forward")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        before, after = self._forward_pre_hooks, self._forward_hooks
        if not before and not after:
            return self.forward(*args, **kwargs)
        for hook, with_kwargs in tuple(before.values()):
            if with_kwargs:
                changed = hook(self, args, kwargs)
                if changed is not None:
                    args, kwargs = changed
            else:
                changed = hook(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        output = self.forward(*args, **kwargs)
        for hook, with_kwargs in tuple(after.values()):
            changed = hook(self, args, kwargs, output) if with_kwargs else hook(self, args, output)
            if changed is not None:
                output = changed
        return output

    # Attributes

    def __setattr__(self, name: str, value: Any) -> None:
        kinds = self.__dict__.get("_kinds")
        if isinstance(value, (Parameter, Module)):
            if kinds is None:
                raise AttributeError(
                    f"{type(self).__name__} must call super().__init__() before it assigns {name!r}"
                )
            kinds[name] = _PARAMETER if isinstance(value, Parameter) else _MODULE
        elif kinds and name in kinds and value is not None:
            kind = kinds[name]
            if kind not in _BUFFERS or not isinstance(value, Tensor):
                raise TypeError(
                    f"{name!r} is a {kind} of {type(self).__name__} and cannot become a {type(value).__name__}; "
                    "delete it first"
                    + (", or wrap the tensor in nn.Parameter" if kind == _PARAMETER and isinstance(value, Tensor) else "")
                )
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        self._kinds.pop(name, None)

    def register_parameter(self, name: str, parameter: Parameter | None) -> None:
        """Adds a parameter under a name; `None` is a parameter that is left out, such as a bias."""
        self._check_name(name)
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(f"{name!r} is a {type(parameter).__name__}, and a Parameter or None is needed")
        self._kinds[name] = _PARAMETER
        object.__setattr__(self, name, parameter)

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is not trained but moves with the module and, if `persistent`, is saved with it."""
        self._check_name(name)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(f"{name!r} is a {type(tensor).__name__}, and a Tensor or None is needed")
        self._kinds[name] = _BUFFER if persistent else _LOOSE_BUFFER
        object.__setattr__(self, name, tensor)

    def register_module(self, name: str, module: Module | None) -> None:
        """Adds a module under a name."""
        self._check_name(name)
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{name!r} is a {type(module).__name__}, and a Module or None is needed")
        self._kinds[name] = _MODULE
        object.__setattr__(self, name, module)

    add_module = register_module

    def _check_name(self, name: str) -> None:
        if "_kinds" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__} must call super().__init__() before it assigns {name!r}")
        if not isinstance(name, str) or not name or "." in name:
            raise KeyError(f"{name!r} cannot name a part of a module: use a text without dots")
        if hasattr(self, name) and name not in self._kinds:
            raise KeyError(f"{type(self).__name__} has an attribute {name!r} already")

    # Walking

    def _own(self, *kinds: str) -> Iterator[tuple[str, Any]]:
        """The attributes of some kinds that are there."""
        fields = self.__dict__
        for name, kind in self._kinds.items():
            if kind in kinds:
                value = fields[name]
                if value is not None:
                    yield name, value

    def _names(self, kind: str) -> list[str]:
        """The names of one kind, in order; what is registered as `None` has one too."""
        return [name for name, own in self._kinds.items() if own == kind]

    def named_children(self) -> Iterator[tuple[str, Module]]:
        """The modules directly inside, with their names; one that has two names comes once."""
        seen = set()
        for name, module in self._own(_MODULE):
            if module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Module]:
        """The modules directly inside."""
        return (module for _, module in self.named_children())

    def named_modules(
        self, memo: set[Module] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Module]]:
        """This module and all inside it, with their full names (`blocks.0.norm`)."""
        memo = set() if memo is None else memo
        if remove_duplicate and self in memo:
            return
        memo.add(self)
        yield prefix, self
        for name, module in self._own(_MODULE):
            yield from module.named_modules(memo, _joined(prefix, name), remove_duplicate)

    def modules(self) -> Iterator[Module]:
        """This module and all inside it."""
        return (module for _, module in self.named_modules())

    def _named(
        self, kinds: tuple[str, ...], prefix: str, recurse: bool, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        seen: set[int] = set()
        # A module that stands in two places has all of its names, if all are asked for.
        every = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in every:
            for name, tensor in module._own(*kinds):
                if not remove_duplicate or id(tensor) not in seen:
                    seen.add(id(tensor))
                    yield _joined(path, name), tensor

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """All parameters with their full names; one that has two names comes once, under the first."""
        return self._named((_PARAMETER,), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters, as an optimizer takes them."""
        return (p for _, p in self.named_parameters(recurse=recurse))

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """All tensors that are kept but not trained, with their full names."""
        return self._named(_BUFFERS, prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All tensors that are kept but not trained."""
        return (b for _, b in self.named_buffers(recurse=recurse))

    def get_submodule(self, target: str) -> Module:
        """The module of a full name; the empty one is this module's."""
        found: Any = self
        for name in target.split(".") if target else []:
            if found._kinds.get(name) != _MODULE:
                raise AttributeError(f"{type(found).__name__} has no module {name!r}")
            found = found.__dict__[name]
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a full name."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if module._kinds.get(name) != _PARAMETER:
            raise AttributeError(f"{type(module).__name__} has no parameter {name!r}")
        return module.__dict__[name]

    def apply(self: Self, f: Callable[[Module], Any]) -> Self:
        """Calls `f` with every module inside and at last with this one."""
        for module in self.children():
            module.apply(f)
        f(self)
        return self

    # Modes, places and gradients

    def train(self: Self, mode: bool = True) -> Self:
        """Switches layers that behave differently while they train (dropout, batch norm) to training.

        It calls `train` of the modules inside, so that a subclass may keep some of them from it.
        """
        self.training = bool(mode)
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Switches them to evaluation."""
        return self.train(False)

    def to(self: Self, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False) -> Self:
        """Moves every parameter and buffer to a device, and floats to a type, in place.

        `to("gpu")`, `to(volta.float16)`, `to("gpu", volta.float16)` or `to(tensor)`, where and what that is. Optimizers
        that hold the parameters go on with the moved ones. `non_blocking` has no effect: nothing waits for a copy.
        """
        for given in args:
            if isinstance(given, Tensor):
                device, dtype = given.device, given.dtype
            elif given is None or isinstance(given, bool):
                pass  # no device, and PyTorch's third argument, which is `non_blocking`
            elif _is_dtype(given):
                dtype = given
            else:
                device = given
        own = [*self.parameters(), *self.buffers()]
        _native.move_tensors(own, device, dtype)
        return self

    def cpu(self: Self) -> Self:
        """Moves everything to the CPU."""
        return self.to(device="cpu")

    def gpu(self: Self, index: int = 0) -> Self:
        """Moves everything to a GPU."""
        return self.to(device=f"gpu:{index}")

    def float(self: Self) -> Self:
        """Makes all floats 32 bits wide."""
        return self.to(dtype="float32")

    def double(self: Self) -> Self:
        """Makes all floats 64 bits wide."""
        return self.to(dtype="float64")

    def half(self: Self) -> Self:
        """Makes all floats 16 bits wide."""
        return self.to(dtype="float16")

    def bfloat16(self: Self) -> Self:
        """Makes all floats bfloat16."""
        return self.to(dtype="bfloat16")

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Makes every parameter collect gradients, or freezes them all."""
        for parameter in self.parameters():
            _native.set_requires_grad(parameter, requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets all gradients."""
        _native.zero_grad(list(self.parameters()))

    # State

    def state_dict(self, *, prefix: str = "", keep_vars: bool = False) -> dict[str, Tensor]:
        """Every parameter and buffer under its full name, as it is now.

        The tensors keep these values when the module goes on training. With `keep_vars` they are the module's own.
        """
        return {name: t if keep_vars else t.detach() for name, t in self._state(prefix)}

    def _state(self, prefix: str = "") -> Iterator[tuple[str, Tensor]]:
        for path, module in self.named_modules(remove_duplicate=False):
            for name, tensor in module._own(_PARAMETER, _BUFFER):
                yield prefix + _joined(path, name), tensor

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> IncompatibleKeys:
        """Copies the values of `state_dict`, tensors or NumPy arrays, moved and converted as the module's are.

        If `strict`, names that are missing on either side are an error; shapes that differ always are. After an error
        nothing has changed. A tensor that has two names needs only one of them.
        """
        given = [(name, _as_tensor(value)) for name, value in state_dict.items()]
        return IncompatibleKeys(*_native.load_tensors(list(self._state()), given, strict))

    # Hooks

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args, output)` after every `forward`; what it returns, if anything, is the output.

        With `with_kwargs` it is `hook(module, args, kwargs, output)`.
        """
        return _registered(self._forward_hooks, (hook, with_kwargs), prepend)

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Calls `hook(module, args)` before every `forward`; what it returns, if anything, are the arguments.

        With `with_kwargs` it is `hook(module, args, kwargs)`, which returns both.
        """
        return _registered(self._forward_pre_hooks, (hook, with_kwargs), prepend)

    # Printing

    def extra_repr(self) -> str:
        """What stands in the parentheses of the module's `repr`."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self) -> str:
        extra = self.extra_repr()
        inside = []
        for name, module in self._own(_MODULE):
            inside.append(f"({name}): " + repr(module).replace("\n", "\n  "))
        if not inside:
            return f"{self._get_name()}({extra})"
        lines = ([extra] if extra else []) + inside
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    # Copying

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)


def _joined(prefix: str, name: str) -> str:
    return f"{prefix}.{name}" if prefix else name


def _registered(hooks: dict[int, Any], entry: Any, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    if prepend:
        later = dict(hooks)
        hooks.clear()
        hooks[handle.id] = entry
        hooks.update(later)
    else:
        hooks[handle.id] = entry
    return handle


def _is_dtype(value: Any) -> bool:
    """Whether it names an element type; any other text is taken for a device, which says what is wrong with it."""
    if isinstance(value, str):
        return isinstance(getattr(_volta, value, None), _volta.dtype)
    return not isinstance(value, _volta.device)


def _as_tensor(value: Any) -> Tensor:
    if isinstance(value, Tensor):
        return value
    import volta

    return volta.as_tensor(value)
