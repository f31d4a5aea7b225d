"""A schedule that waits for a metric to become better."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..optimizer import Optimizer
from .base import LRScheduler


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` whenever a metric has not become better for more than `patience` steps.

    The metric comes with `step(metric)`. The rates are touched only when they are reduced, from what they are then.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float | Sequence[float] = 0.0,
        eps: float = 1e-8,
    ) -> None:
        if mode not in ("min", "max"):
            raise ValueError(f'mode is {mode!r}: use "min" or "max"')
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f'threshold_mode is {threshold_mode!r}: use "rel" or "abs"')
        if factor >= 1:
            raise ValueError(f"factor is {factor}, and must be below 1")
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        self.default_min_lr = min_lr if isinstance(min_lr, (int, float)) else None
        self.min_lrs = [min_lr] * groups if isinstance(min_lr, (int, float)) else list(min_lr)
        if len(self.min_lrs) != groups:
            raise ValueError(f"min_lr has {len(self.min_lrs)} rates for {groups} groups")
        self.mode, self.factor, self.patience, self.cooldown = mode, factor, patience, cooldown
        self.threshold, self.threshold_mode, self.eps = threshold, threshold_mode, eps
        self.last_epoch = 0
        self._last_lr = self._now()
        self._reset()

    def _reset(self) -> None:
        """Forgets all metrics."""
        self.best = math.inf if self.mode == "min" else -math.inf
        self.num_bad_epochs = self.cooldown_counter = 0

    def step(self, metrics: float, epoch: int | None = None) -> None:  # type: ignore[override]
        """Goes on to the next step, and takes note of how well training goes."""
        metric = float(metrics)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if self.is_better(metric, self.best):
            self.best, self.num_bad_epochs = metric, 0
        else:
            self.num_bad_epochs += 1
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter, self.num_bad_epochs = self.cooldown, 0
        self._last_lr = self._now()

    def is_better(self, metric: float, best: float) -> bool:
        """Whether a metric is better than the best one by the threshold."""
        sign = -1 if self.mode == "min" else 1
        bound = best * (1 + sign * self.threshold) if self.threshold_mode == "rel" else best + sign * self.threshold
        return sign * metric > sign * bound

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(f"min_lr has {len(self.min_lrs)} rates, and there are {len(groups)} groups by now")
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs):
            reduced = max(group["lr"] * self.factor, least)
            if group["lr"] - reduced > self.eps:
                group["lr"] = reduced
