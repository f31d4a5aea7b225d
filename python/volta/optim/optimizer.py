"""What optimizers share: groups of parameters with options, steps and states, as PyTorch has them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from typing import Any

from .._volta import Tensor
from .._volta import _optim as _native

Parameters = Iterable[Tensor] | Iterable[dict[str, Any]] | Iterable[tuple[str, Tensor]]


# What a group may have beside the options: names, and what schedules keep there.
_BESIDE = {"params", "name", "initial_lr", "max_lr", "min_lr", "max_momentum", "base_momentum"}


class Optimizer:
    """Moves parameters along their gradients. All of a step, the backward pass included, is computed as one plan.

    `param_groups` are dicts with `params` and the options by name; what is changed there holds from the next step on.
    Learning rates and the like are arguments of the plan: changing them compiles nothing.
    """

    # Whether the groups have the rates of a saved state, so that schedules need not restore them.
    _has_loaded = False
    # The engine's name of the optimizer.
    _rule: str
    # The options in the order of the engine's settings: names of `param_groups`, of the engine, and the parts of pairs.
    _options: tuple[tuple[str, tuple[str, ...]], ...]

    def __init__(self, params: Parameters, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        self.param_groups: list[dict[str, Any]] = []
        self._core: Any = None
        params = list(params)
        if not params:
            raise ValueError(f"{type(self).__name__} got no parameters")
        groups = params if isinstance(params[0], dict) else [{"params": params}]
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Adds parameters with options of their own; those that are not given are the defaults."""
        given = param_group["params"]
        given = [given] if isinstance(given, Tensor) else list(given)
        params = [p[1] if isinstance(p, tuple) else p for p in given]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"an optimizer moves tensors, and got a {type(p).__name__}")
            # A frozen one may be thawed later; until then it has no gradient and stays.
            if not p.is_leaf:
                raise ValueError(
                    f"a tensor of shape {list(p.shape)} is the result of an op and no leaf: it collects no gradient to move by"
                )
        unknown = set(param_group) - set(self.defaults) - _BESIDE
        if unknown:
            raise ValueError(f"{type(self).__name__} has no option {sorted(unknown)[0]!r}")
        group = {**self.defaults, **param_group, "params": params}
        numbers = self._numbers(group)
        if self._core is None:
            self._core = _native.Optimizer(self._rule, params, numbers)
        else:
            self._core.add_group(params, numbers)
        self.param_groups.append(group)

    def _numbers(self, group: dict[str, Any]) -> list[float]:
        """The options of a group as the engine takes them."""
        numbers: list[float] = []
        for name, parts in self._options:
            value = group[name]
            if len(parts) == 1:
                numbers.append(float(value))
            else:
                numbers.extend(float(x) for x in value)
        return numbers

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Moves every parameter that has a gradient. With a closure, it is called first, and what it returned returned."""
        loss = None if closure is None else closure()
        self._core.step([self._numbers(group) for group in self.param_groups])
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets all gradients."""
        self._core.zero_grad()

    def state_dict(self) -> dict[str, Any]:
        """What it must remember to go on: `state` by the number of the parameter, and `param_groups`."""
        values, tensors = self._core.state()
        state: dict[int, dict[str, Any]] = {}
        for name, value in [*values.items(), *tensors]:
            number, _, what = name.partition(".")
            if number.isdigit():
                state.setdefault(int(number), {})[what] = value
        groups, first = [], 0
        for group in self.param_groups:
            options = {name: copy.copy(value) for name, value in group.items() if name != "params"}
            count = len(group["params"])
            groups.append({**options, "params": list(range(first, first + count))})
            first += count
        return {"state": dict(sorted(state.items())), "param_groups": groups}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave. After an error nothing has changed."""
        saved = state_dict["param_groups"]
        if len(saved) != len(self.param_groups):
            raise ValueError(
                f"the saved state has {len(saved)} groups of parameters, and there are {len(self.param_groups)}"
            )
        values: dict[str, Any] = {"groups": len(saved)}
        groups = []
        for g, (group, loaded) in enumerate(zip(self.param_groups, saved)):
            merged = {**group, **{name: value for name, value in loaded.items() if name != "params"}}
            names = [name for _, parts in self._options for name in parts]
            for name, number in zip(names, self._numbers(merged)):
                values[f"groups.{g}.{name}"] = int(number) if name in self._whole else number
            values[f"groups.{g}.parameters"] = len(loaded["params"])
            groups.append(merged)
        tensors = []
        count = sum(len(group["params"]) for group in self.param_groups)
        for number in range(count):
            # PyTorch leaves parameters out that never moved.
            entry = {"step": 0, **state_dict["state"].get(number, {})}
            for name, value in entry.items():
                if isinstance(value, Tensor):
                    tensors.append((f"{number}.{name}", value))
                elif value is not None:
                    values[f"{number}.{name}"] = value
        self._core.load_state((values, tensors))
        self.param_groups = groups
        self._has_loaded = True

    # Options that are whole numbers or flags.
    _whole = frozenset({"nesterov", "amsgrad", "centered", "iterations"})

    def __repr__(self) -> str:
        lines = []
        for g, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {g}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return f"{type(self).__name__} (\n" + "\n".join(lines) + "\n)"
