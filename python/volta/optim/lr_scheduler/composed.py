"""Schedules made of schedules: one after the other, or at the same time."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from ..optimizer import Optimizer
from .base import LRScheduler
from .factor import ConstantLR
from .plateau import ReduceLROnPlateau


class _Composed(LRScheduler):
    """Schedules of one optimizer; the state holds theirs."""

    _left_out = ("optimizer", "_schedulers")
    _schedulers: list[LRScheduler]

    def _take(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None) -> None:
        if not schedulers:
            raise ValueError(f"{type(self).__name__} needs at least one schedule")
        self.optimizer = schedulers[0].optimizer if optimizer is None else optimizer
        for scheduler in schedulers:
            if scheduler.optimizer is not self.optimizer:
                raise ValueError(f"{type(self).__name__} is made of schedules of one optimizer")
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(f"ReduceLROnPlateau needs metrics, which {type(self).__name__} does not pass on")
        self._schedulers = list(schedulers)

    def _take_back(self) -> None:
        for scheduler in self._schedulers:
            scheduler._take_back()

    def _rewind(self) -> None:
        for scheduler in self._schedulers:
            scheduler._rewind()

    def _back_to_first_rates(self) -> None:
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"]

    def state_dict(self) -> dict[str, Any]:
        """What it must remember to go on, and what its schedules must."""
        return {**super().state_dict(), "_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave, here or in PyTorch."""
        saved = state_dict["_schedulers"]
        if len(saved) != len(self._schedulers):
            raise ValueError(f"the saved state has {len(saved)} schedules, and there are {len(self._schedulers)}")
        for scheduler, state in zip(self._schedulers, saved):
            scheduler.load_state_dict(state)
        super().load_state_dict(state_dict)


class SequentialLR(_Composed):
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
        self._take(schedulers, optimizer)
        self._milestones = list(milestones)
        self.last_epoch = last_epoch + 1
        # All of them have made their first step: it is taken back, and only the first schedule makes it again.
        self._back_to_first_rates()
        super()._take_back()
        self._turn()._initial_step()
        self._last_lr = self._now()

    def _take_back(self) -> None:
        super()._take_back()
        self.last_epoch -= 1

    def _rewind(self) -> None:
        super()._rewind()
        self.last_epoch = -1

    def _initial_step(self) -> None:
        self.last_epoch += 1
        self._turn()._initial_step()
        self._last_lr = self._now()

    def _turn(self) -> LRScheduler:
        """The schedule whose turn it is."""
        return self._schedulers[bisect_right(self._milestones, self.last_epoch)]

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step; within another sequence, back to step 0 when its turn comes."""
        if epoch is not None and epoch != 0:
            raise ValueError(f"{type(self).__name__} goes step by step, and not to step {epoch}")
        self.last_epoch = self.last_epoch + 1 if epoch is None else 0
        begins = self.last_epoch in self._milestones or epoch == 0
        self._turn().step(0 if begins else None)
        self._last_lr = self._now()


class _Ramp(LRScheduler):
    """Up to the rate in a straight line, which it reaches one step after the last."""

    def __init__(self, optimizer: Optimizer, length: int) -> None:
        self.length = length
        super().__init__(optimizer)

    def rate(self, base: float, step: int) -> float:
        return base * (step + 1) / (self.length + 1)


class WarmupLR(SequentialLR):
    """Up to the rate in a straight line within `warmup_steps`, then another schedule, which counts its own steps.

    `then` is a scheduler of the same optimizer, or nothing for a rate that stays.
    """

    def __init__(
        self, optimizer: Optimizer, warmup_steps: int, then: LRScheduler | None = None, last_epoch: int = -1
    ) -> None:
        then = ConstantLR(optimizer, 1.0) if then is None else then
        super().__init__(optimizer, [_Ramp(optimizer, warmup_steps), then], [warmup_steps], last_epoch)


class ChainedScheduler(_Composed):
    """Schedules at the same time: each goes from the rate that the one before has set. Their factors multiply."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        self._take(schedulers, optimizer)
        self._last_lr = self._now()

    def step(self, epoch: int | None = None) -> None:
        """Lets all of them go on to the next step; within a sequence, begin at step 0 when its turn comes."""
        if epoch is not None and epoch != 0:
            raise ValueError(f"{type(self).__name__} goes step by step, and not to step {epoch}")
        if epoch == 0:
            # Each multiplies what the ones before have set.
            self._back_to_first_rates()
        for scheduler in self._schedulers:
            if epoch == 0:
                scheduler._rewind()
                scheduler._initial_step()
            else:
                scheduler.step()
        self._last_lr = self._now()

    def _initial_step(self) -> None:
        for scheduler in self._schedulers:
            scheduler._initial_step()
        self._last_lr = self._now()
