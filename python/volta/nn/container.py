"""Modules that hold modules, or parameters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from .module import _MODULE, _PARAMETER, Module, Parameter


class Sequential(Module):
    """Modules one after the other: the output of each is the input of the next.

    `Sequential(a, b)`, or with names of one's own `Sequential({"first": a, "second": b})`.
    """

    def __init__(self, *modules: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(modules) == 1 and isinstance(modules[0], Mapping):
            for name, module in modules[0].items():
                self.register_module(name, module)
        else:
            for k, module in enumerate(modules):
                self.register_module(str(k), module)

    def forward(self, input: Any) -> Any:
        fields = self.__dict__
        for name in self._names(_MODULE):
            input = fields[name](input)
        return input

    def append(self, module: Module) -> Sequential:
        """Adds a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Sequential:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def __iter__(self) -> Iterator[Module]:
        return iter([m for _, m in self._own(_MODULE)])

    def __len__(self) -> int:
        return len(self._names(_MODULE))

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    def __getitem__(self, index: int | slice) -> Module:
        if isinstance(index, slice):
            return Sequential(dict(list(self._own(_MODULE))[index]))
        return self.__dict__[_at(self._names(_MODULE), index)]

    def __setitem__(self, index: int, module: Module) -> None:
        self.register_module(_at(self._names(_MODULE), index), module)


class ModuleList(Module):
    """A list of modules, which calls none of them."""

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        self.extend(modules)

    def append(self, module: Module) -> ModuleList:
        """Adds a module at the end."""
        self.register_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Adds modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> None:
        """Adds a module in front of another."""
        modules = list(self)
        modules.insert(index, module)
        self._replace(modules)

    def pop(self, index: int = -1) -> Module:
        """Takes a module out."""
        modules = list(self)
        module = modules.pop(index)
        self._replace(modules)
        return module

    def _replace(self, modules: list[Module]) -> None:
        for name in self._names(_MODULE):
            delattr(self, name)
        self.extend(modules)

    def __iter__(self) -> Iterator[Module]:
        return iter([m for _, m in self._own(_MODULE)])

    def __len__(self) -> int:
        return len(self._names(_MODULE))

    @overload
    def __getitem__(self, index: int) -> Module: ...
    @overload
    def __getitem__(self, index: slice) -> ModuleList: ...
    def __getitem__(self, index: int | slice) -> Module:
        if isinstance(index, slice):
            return ModuleList(list(self)[index])
        return self.__dict__[_at(self._names(_MODULE), index)]

    def __setitem__(self, index: int, module: Module) -> None:
        self.register_module(_at(self._names(_MODULE), index), module)

    def __contains__(self, module: object) -> bool:
        return any(m is module for m in self)


class ModuleDict(Module):
    """Modules by name, which calls none of them."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        self.update(modules or {})

    def update(self, modules: Mapping[str, Module]) -> None:
        """Adds modules, or exchanges those of the same names."""
        for name, module in modules.items():
            self[name] = module

    def keys(self) -> list[str]:
        """All names, in order."""
        return self._names(_MODULE)

    def values(self) -> list[Module]:
        """All modules, in order."""
        return [m for _, m in self._own(_MODULE)]

    def items(self) -> list[tuple[str, Module]]:
        """All names and modules, in order."""
        return list(self._own(_MODULE))

    def pop(self, name: str) -> Module:
        """Takes a module out."""
        module = self[name]
        del self[name]
        return module

    def __getitem__(self, name: str) -> Module:
        if name not in self:
            raise KeyError(f"there is no module {name!r}, only {', '.join(self._names(_MODULE)) or 'none'}")
        return self.__dict__[name]

    def __setitem__(self, name: str, module: Module) -> None:
        self.register_module(name, module)

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names(_MODULE))

    def __len__(self) -> int:
        return len(self._names(_MODULE))

    def __contains__(self, name: object) -> bool:
        return name in self._names(_MODULE)


class ParameterList(Module):
    """A list of parameters; tensors become parameters."""

    def __init__(self, values: Iterable[Any] = ()) -> None:
        super().__init__()
        self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Adds a parameter at the end."""
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self.register_parameter(str(len(self)), parameter)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Adds parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __iter__(self) -> Iterator[Parameter]:
        return iter([p for _, p in self._own(_PARAMETER)])

    def __len__(self) -> int:
        return len(self._names(_PARAMETER))

    def __getitem__(self, index: int) -> Parameter:
        return self.__dict__[_at(self._names(_PARAMETER), index)]

    def __setitem__(self, index: int, value: Any) -> None:
        parameter = value if isinstance(value, Parameter) else Parameter(value)
        self.register_parameter(_at(self._names(_PARAMETER), index), parameter)

    def extra_repr(self) -> str:
        return ", ".join(f"({name}): {list(p.shape)}" for name, p in self._own(_PARAMETER))


class ParameterDict(Module):
    """Parameters by name; tensors become parameters."""

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        for name, value in (parameters or {}).items():
            self[name] = value

    def keys(self) -> list[str]:
        """All names, in order."""
        return self._names(_PARAMETER)

    def values(self) -> list[Parameter]:
        """All parameters, in order."""
        return [p for _, p in self._own(_PARAMETER)]

    def items(self) -> list[tuple[str, Parameter]]:
        """All names and parameters, in order."""
        return list(self._own(_PARAMETER))

    def __getitem__(self, name: str) -> Parameter:
        if name not in self:
            raise KeyError(f"there is no parameter {name!r}, only {', '.join(self._names(_PARAMETER)) or 'none'}")
        return self.__dict__[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self.register_parameter(name, value if isinstance(value, Parameter) else Parameter(value))

    def __delitem__(self, name: str) -> None:
        if name not in self:
            raise KeyError(name)
        delattr(self, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names(_PARAMETER))

    def __len__(self) -> int:
        return len(self._names(_PARAMETER))

    def __contains__(self, name: object) -> bool:
        return name in self._names(_PARAMETER)

    def extra_repr(self) -> str:
        return ", ".join(f"({name}): {list(p.shape)}" for name, p in self._own(_PARAMETER))


def _at(names: list[str], index: int) -> str:
    try:
        return names[index]
    except IndexError:
        raise IndexError(f"index {index} of {len(names)} entries") from None
