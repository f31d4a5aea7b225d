"""Learning rates that change from step to step, under PyTorch's names.

A schedule is a function of the step wherever it can be, so that it goes on exactly where it stopped.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any

from .optimizer import Optimizer

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR", "LRScheduler",
    "LambdaLR", "LinearLR", "MultiStepLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
    "WarmupLR",
]  # fmt: skip


class LRScheduler:
    """Sets the learning rates of an optimizer, each group's from the rate that it had at first.

    Subclasses define `rate(base, step)`. Call `step()` after every step of the optimizer, or every epoch, if that is what
    the schedule counts.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])
        self.last_epoch = last_epoch
        self.step()

    @property
    def base_lrs(self) -> list[float]:
        """The rate that each group started from."""
        return [group.setdefault("initial_lr", group["lr"]) for group in self.optimizer.param_groups]

    def rate(self, base: float, step: int) -> float:
        """The rate at a step, counted from 0, of a group whose own rate is `base`."""
        raise NotImplementedError(f"{type(self).__name__} defines no rate")

    def rates(self, step: int) -> list[float]:
        """The rates of all groups at a step."""
        return [self.rate(base, step) for base in self.base_lrs]

    def step(self) -> None:
        """Goes on to the next step."""
        self.last_epoch += 1
        self._apply()

    def _apply(self) -> None:
        self._last_lr = self.rates(self.last_epoch)
        for group, rate in zip(self.optimizer.param_groups, self._last_lr):
            group["lr"] = rate

    def get_last_lr(self) -> list[float]:
        """The rates of all groups now."""
        return list(self._last_lr)

    # What a state holds beside the step.
    _remembered: tuple[str, ...] = ()

    def state_dict(self) -> dict[str, Any]:
        """What it must remember to go on."""
        state = {name: getattr(self, name) for name in ("last_epoch", *self._remembered)}
        return {**state, "base_lrs": self.base_lrs}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        for name in ("last_epoch", *self._remembered):
            setattr(self, name, state_dict[name])
        for group, base in zip(self.optimizer.param_groups, state_dict["base_lrs"]):
            group["initial_lr"] = base
        self._apply()


class LambdaLR(LRScheduler):
    """The rate times what a function says for the step; one function for all groups, or one each."""

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

    def rate(self, base: float, step: int) -> float:
        return base * self.lr_lambdas[0](step)


class ConstantLR(LRScheduler):
    """The rate times `factor` for the first `total_iters` steps."""

    def __init__(self, optimizer: Optimizer, factor: float = 1 / 3, total_iters: int = 5, last_epoch: int = -1) -> None:
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * (self.factor if step < self.total_iters else 1.0)


class StepLR(LRScheduler):
    """The rate times `gamma` after every `step_size` steps."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** (step // max(self.step_size, 1))


class MultiStepLR(LRScheduler):
    """The rate times `gamma` at every one of some steps."""

    def __init__(
        self, optimizer: Optimizer, milestones: Sequence[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma ** bisect_right(self.milestones, step)


class ExponentialLR(LRScheduler):
    """The rate times `gamma` after every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * self.gamma**step


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
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        part = min(step, self.total_iters) / max(self.total_iters, 1)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * part)


class PolynomialLR(LRScheduler):
    """The rate times (1 − step/total_iters)^power, down to nothing."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return base * (1 - min(step, self.total_iters) / max(self.total_iters, 1)) ** self.power


def _cosine(base: float, minimum: float, part: float) -> float:
    return minimum + (base - minimum) * (1 + math.cos(math.pi * part)) / 2


class CosineAnnealingLR(LRScheduler):
    """Along a cosine from the rate to `eta_min` within `T_max` steps, and up again after that, as PyTorch has it."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return _cosine(base, self.eta_min, step / max(self.T_max, 1))


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down again and again; each takes `T_mult` times as many steps as the one before."""

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ValueError(f"T_0 is {T_0} and T_mult {T_mult}: both must be at least 1")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        length = self.T_0
        while step >= length:
            step -= length
            length *= self.T_mult
        return _cosine(base, self.eta_min, step / length)


class WarmupLR(LRScheduler):
    """Up to the rate in a straight line within `warmup_steps`, then another schedule, which counts its own steps.

    `then` is a scheduler of the same optimizer, or nothing for a rate that stays.
    """

    def __init__(
        self, optimizer: Optimizer, warmup_steps: int, then: LRScheduler | None = None, last_epoch: int = -1
    ) -> None:
        self.warmup_steps, self.then = warmup_steps, then
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        if step < self.warmup_steps:
            return base * (step + 1) / (self.warmup_steps + 1)
        return base if self.then is None else self.then.rate(base, step - self.warmup_steps)


class OneCycleLR(LRScheduler):
    """Up to `max_lr` and down to almost nothing within a known number of steps (Smith and Topin, 2018)."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        last_epoch: int = -1,
    ) -> None:
        if total_steps is None:
            if epochs is None or steps_per_epoch is None:
                raise ValueError("OneCycleLR needs total_steps, or epochs and steps_per_epoch")
            total_steps = epochs * steps_per_epoch
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f'anneal_strategy is {anneal_strategy!r}: use "cos" or "linear"')
        self.total_steps, self.pct_start, self.anneal_strategy = total_steps, pct_start, anneal_strategy
        self.div_factor, self.final_div_factor = div_factor, final_div_factor
        groups = optimizer.param_groups
        peaks = [max_lr] * len(groups) if isinstance(max_lr, (int, float)) else list(max_lr)
        if len(peaks) != len(groups):
            raise ValueError(f"there are {len(peaks)} largest rates for {len(groups)} groups")
        for group, peak in zip(groups, peaks):
            group["initial_lr"] = peak
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        first = base / self.div_factor
        top, end = self.pct_start * self.total_steps - 1, self.total_steps - 1
        if step > end:
            raise ValueError(f"step {step} of a cycle of {self.total_steps}")
        if step <= top:
            return self._between(first, base, step / top if top > 0 else 1.0)
        return self._between(base, first / self.final_div_factor, (step - top) / (end - top))

    def _between(self, start: float, end: float, part: float) -> float:
        if self.anneal_strategy == "linear":
            return start + (end - start) * part
        return end + (start - end) * (1 + math.cos(math.pi * part)) / 2


class SequentialLR(LRScheduler):
    """One schedule after the other: the next one begins at each milestone and counts its own steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: Sequence[LRScheduler],
        milestones: Sequence[int],
        last_epoch: int = -1,
    ) -> None:
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(f"{len(schedulers)} schedulers need {len(schedulers) - 1} milestones")
        self.schedulers, self.milestones = list(schedulers), list(milestones)
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        now = bisect_right(self.milestones, step)
        return self.schedulers[now].rate(base, step - (self.milestones[now - 1] if now else 0))


class ChainedScheduler(LRScheduler):
    """Schedules at the same time: what one gives is the base rate of the next. Their factors multiply."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self.schedulers = list(schedulers)
        super().__init__(optimizer or self.schedulers[0].optimizer)

    def rate(self, base: float, step: int) -> float:
        for scheduler in self.schedulers:
            base = scheduler.rate(base, step)
        return base


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` whenever a metric has not become better for more than `patience` steps.

    The metric comes with `step(metric)`.
    """

    _remembered = ("best", "num_bad_epochs", "cooldown_counter", "_reduced")

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f'mode is {mode!r}: use "min" or "max"')
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f'threshold_mode is {threshold_mode!r}: use "rel" or "abs"')
        if factor >= 1:
            raise ValueError(f"factor is {factor}, and must be below 1")
        self.mode, self.factor, self.patience, self.cooldown = mode, factor, patience, cooldown
        self.threshold, self.threshold_mode, self.min_lr, self.eps = threshold, threshold_mode, min_lr, eps
        self.best = math.inf if mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0
        self._reduced = [group["lr"] for group in optimizer.param_groups]
        super().__init__(optimizer)

    def rates(self, step: int) -> list[float]:
        return list(self._reduced)

    def step(self, metrics: float | None = None) -> None:
        """Goes on to the next step, and takes note of how well training goes."""
        self.last_epoch += 1
        if metrics is not None:
            self._observe(float(metrics))
        elif self.last_epoch > 0:
            raise TypeError("ReduceLROnPlateau.step needs the metric that it watches")
        self._apply()

    def is_better(self, metric: float) -> bool:
        """Whether a metric is better than the best one by the threshold."""
        sign = 1 if self.mode == "max" else -1
        if math.isinf(self.best):
            return not math.isnan(metric)
        margin = self.threshold * (self.best if self.threshold_mode == "rel" else 1)
        return sign * metric > sign * self.best + margin

    def _observe(self, metric: float) -> None:
        if self.is_better(metric):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
            for g, rate in enumerate(self._reduced):
                reduced = max(rate * self.factor, self.min_lr)
                if rate - reduced > self.eps:
                    self._reduced[g] = reduced
