"""One cycle up and down, of the rate and against it of the momentum."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing within a known number of steps (Smith and Topin, 2018).

    The momentum, or Adam's first beta, goes the other way, from `max_momentum` down to `base_momentum` and back, unless
    `cycle_momentum` is off. With `three_phase` the way down to where it began is as long as the way up.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | Sequence[float] = 0.85,
        max_momentum: float | Sequence[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if total_steps < 1:
            raise ValueError(f"total_steps is {total_steps}, and must be at least 1")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f'anneal_strategy is {anneal_strategy!r}: use "cos" or "linear"')
        if not 0 <= pct_start <= 1:
            raise ValueError(f"pct_start is {pct_start}, and must be between 0 and 1")
        self.total_steps, self._anneal_func_type, self.cycle_momentum = total_steps, anneal_strategy, cycle_momentum
        self._schedule_phases = _phases(total_steps, pct_start, three_phase)
        self.use_beta1 = "betas" in optimizer.defaults
        if cycle_momentum and not self.use_beta1 and "momentum" not in optimizer.defaults:
            raise ValueError(f"{type(optimizer).__name__} has neither momentum nor betas: use cycle_momentum=False")
        groups = optimizer.param_groups
        peaks = _each(max_lr, len(groups), "max_lr")
        most, least = _each(max_momentum, len(groups), "max_momentum"), _each(base_momentum, len(groups), "base_momentum")
        if last_epoch == -1:
            for g, group in enumerate(groups):
                first = peaks[g] / div_factor
                group.update(initial_lr=first, max_lr=peaks[g], min_lr=first / final_div_factor)
                if cycle_momentum:
                    group.update(max_momentum=most[g], base_momentum=least[g])
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"step {step} of a cycle of {self.total_steps}")
        rates = []
        for group in self.optimizer.param_groups:
            start = 0.0
            for phase in self._schedule_phases:
                end = phase["end_step"]
                if step <= end or phase is self._schedule_phases[-1]:
                    break
                start = end
            part = (step - start) / (end - start) if end > start else 1.0
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                momentum = self._between(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                if self.use_beta1:
                    group["betas"] = (momentum, *group["betas"][1:])
                else:
                    group["momentum"] = momentum
        return rates

    def _between(self, start: float, end: float, part: float) -> float:
        if self._anneal_func_type == "linear":
            return start + (end - start) * part
        return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


def _phases(steps: int, share: float, three: bool) -> list[dict[str, Any]]:
    """Where each phase ends, and between which numbers of a group it goes."""
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    up = (share * steps - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    if three:
        down = (2 * share * steps - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum")
        last = (steps - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum")
        rows = [up, down, last]
    else:
        rows = [up, (steps - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [dict(zip(names, row)) for row in rows]


def _each(value: float | Sequence[float], groups: int, what: str) -> list[float]:
    """One number for every group."""
    if isinstance(value, (int, float)):
        return [value] * groups
    if len(value) != groups:
        raise ValueError(f"{what} has {len(value)} numbers for {groups} groups")
    return list(value)
