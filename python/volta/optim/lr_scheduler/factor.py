"""Schedules that multiply the rate: by steps, along lines and powers, by a function."""

from __future__ import annotations

import copy
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler


class LambdaLR(LRScheduler):
    """The first rate times what a function says for the step; one function for all groups, or one each."""

    _left_out = ("optimizer", "lr_lambdas")

    def __init__(
        self,
        optimizer: Optimizer,
        lr_lambda: Callable[[int], float] | Sequence[Callable[[int], float]],
        last_epoch: int = -1,
    ) -> None:
        groups = len(optimizer.param_groups)
        self.lr_lambdas = [lr_lambda] * groups if callable(lr_lambda) else list(lr_lambda)
        if len(self.lr_lambdas) != groups:
            raise ValueError(f"there are {len(self.lr_lambdas)} functions for {groups} groups")
        super().__init__(optimizer, last_epoch)

    def rates(self, step: int) -> list[float]:
        return [base * f(step) for base, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self) -> dict[str, Any]:
        """What it must remember to go on. Of functions nothing is kept, of other objects that are called their attributes."""
        kept = [None if isinstance(f, types.FunctionType) else copy.deepcopy(vars(f)) for f in self.lr_lambdas]
        return {**super().state_dict(), "lr_lambdas": kept}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        for f, kept in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ())):
            if kept is not None:
                vars(f).update(copy.deepcopy(kept))


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` steps."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * (self.factor if step < self.total_iters else 1.0)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.factor for rate in self._now()]
        if self.last_epoch == self.total_iters:
            return [rate / self.factor for rate in self._now()]
        return self._now()


class StepLR(LRScheduler):
    """The rate times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** (step // max(self.step_size, 1))

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0 or self.last_epoch % max(self.step_size, 1):
            return self._now()
        return [rate * self.gamma for rate in self._now()]


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at every one of some steps."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        # How often the rate falls at a step: one that is there twice counts twice.
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), step)

    def get_lr(self) -> list[float]:
        return [rate * self.gamma ** self.milestones[self.last_epoch] for rate in self._now()]

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        saved: Mapping[int, int] | Iterable[int] = self.milestones
        self.milestones = Counter(saved)


class ExponentialLR(LRScheduler):
    """The rate times `gamma` after every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma**step

    def get_lr(self) -> list[float]:
        if self._is_initial:
            return self._now()
        return [rate * self.gamma for rate in self._now()]


class LinearLR(LRScheduler):
    """The rate times a factor that goes from one number to another in a straight line, and stays there."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(f"start_factor is {start_factor}, and must be above 0 and at most 1")
        if not 0 <= end_factor <= 1:
            raise ValueError(f"end_factor is {end_factor}, and must be between 0 and 1")
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        part = min(step, self.total_iters) / max(self.total_iters, 1)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * part)

    def get_lr(self) -> list[float]:
        if self.last_epoch == 0:
            return [rate * self.start_factor for rate in self._now()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        climb = self.end_factor - self.start_factor
        growth = 1 + climb / (self.total_iters * self.start_factor + (self.last_epoch - 1) * climb)
        return [rate * growth for rate in self._now()]


class PolynomialLR(LRScheduler):
    """The rate times (1 − step/total_iters)^power, down to nothing."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * (1 - min(step, self.total_iters) / max(self.total_iters, 1)) ** self.power

    def get_lr(self) -> list[float]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._now()
        left = self.total_iters - self.last_epoch
        return [rate * (left / (left + 1)) ** self.power for rate in self._now()]
