"""Schedules along a cosine."""

from __future__ import annotations

import math

from ..optimizer import Optimizer
from .base import LRScheduler


def _cosine(base: float, minimum: float, part: float) -> float:
    return minimum + (base - minimum) * (1 + math.cos(math.pi * part)) / 2


class CosineAnnealingLR(LRScheduler):
    """Along a cosine from the rate to `eta_min` within `T_max` steps, and up again after that, as PyTorch has it."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def rate(self, base: float, step: int) -> float:
        return _cosine(base, self.eta_min, step / max(self.T_max, 1))

    def get_lr(self) -> list[float]:
        step, least, whole = self.last_epoch, self.eta_min, max(self.T_max, 1)
        if self._is_initial:
            return self._now()
        if (step - 1 - whole) % (2 * whole) == 0:
            # At the bottom the rate says no more how far it is to the top.
            up = (1 - math.cos(math.pi / whole)) / 2
            return [rate + (base - least) * up for rate, base in zip(self._now(), self.base_lrs)]
        height = [1 + math.cos(math.pi * at / whole) for at in (step, step - 1)]
        return [height[0] / height[1] * (rate - least) + least for rate in self._now()]


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine down again and again; each takes `T_mult` times as many steps as the one before.

    `step(epoch + part)` goes to a place between two epochs.
    """

    def __init__(
        self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        if T_0 < 1 or T_mult < 1:
            raise ValueError(f"T_0 is {T_0} and T_mult {T_mult}: both must be at least 1")
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        # How long this half is, and how far it is done.
        self.T_i: int = T_0
        self.T_cur: float = last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[float]:
        return [_cosine(base, self.eta_min, self.T_cur / self.T_i) for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on to the next step, or to a place that may lie between two."""
        place = self.last_epoch + 1 if epoch is None else epoch
        self.last_epoch = math.floor(place)
        self.T_i = self.T_0
        while place >= self.T_i:
            place -= self.T_i
            self.T_i *= self.T_mult
        self.T_cur = place
        self._step_count += 1
        self._set(self.get_lr())
