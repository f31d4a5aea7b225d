"""What schedules share: steps, the rates of groups, and states as PyTorch has them."""

from __future__ import annotations

import copy
from typing import Any

from ..optimizer import Optimizer


class LRScheduler:
    """Sets the learning rates of an optimizer's groups.

    Subclasses define `rate(base, step)`, the rate at a step of a group that started from `base`; or, as in PyTorch, `get_lr()`,
    the rates of all groups at `last_epoch`, which may go from the rates that they have now. Call `step()` after every step
    of the optimizer, or every epoch, if that is what the schedule counts.
    """

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        for g, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", group["lr"])
            elif "initial_lr" not in group:
                raise KeyError(f"group {g} has no 'initial_lr', which a schedule needs to go on from step {last_epoch}")
        # The rate that each group started from.
        self.base_lrs: list[float] = [group["initial_lr"] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self._step_count = 0
        self._last_lr: list[float] = []
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self.step()

    @property
    def _is_initial(self) -> bool:
        """Whether this step is the one that it was made with: groups that come from a checkpoint have their rates."""
        return self._step_count == 1

    def _take_back(self) -> None:
        """Forgets the last step, which another schedule decides on; the rates stay."""
        self.last_epoch -= 1

    def _rewind(self) -> None:
        """Goes back before the first step; the rates stay."""
        self.last_epoch = -1

    def rate(self, base: float, step: int) -> float:
        """The rate at a step, counted from 0, of a group whose own rate is `base`."""
        raise NotImplementedError(f"{type(self).__name__} defines neither rate nor get_lr")

    def rates(self, step: int) -> list[float]:
        """The rates of all groups at a step, by what they started from."""
        return [self.rate(base, step) for base in self.base_lrs]

    def get_lr(self) -> list[float]:
        """The rates of all groups at `last_epoch`."""
        return self.rates(self.last_epoch)

    def step(self, epoch: int | None = None) -> None:
        """Goes on to the next step, or to the step `epoch`."""
        self._step_count += 1
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        knows_any_step = type(self).rate is not LRScheduler.rate
        self._set(self.rates(self.last_epoch) if epoch is not None and knows_any_step else self.get_lr())

    def _now(self) -> list[float]:
        return [group["lr"] for group in self.optimizer.param_groups]

    def _set(self, rates: list[float]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates):
            group["lr"] = rate
        self._last_lr = self._now()

    def get_last_lr(self) -> list[float]:
        """The rates of all groups after the last step."""
        return list(self._last_lr)

    # What is no part of the state.
    _left_out: tuple[str, ...] = ("optimizer",)

    def state_dict(self) -> dict[str, Any]:
        """What it must remember to go on."""
        return {name: copy.deepcopy(value) for name, value in vars(self).items() if name not in self._left_out}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave, here or in PyTorch.

        The groups get the rates of that time, unless the optimizer has loaded a state of its own, which knows them.
        """
        own = vars(self)
        own.update((name, copy.deepcopy(x)) for name, x in state_dict.items() if name in own and name not in self._left_out)
        if not self.optimizer._has_loaded:
            for group, rate in zip(self.optimizer.param_groups, self._last_lr):
                group["lr"] = rate
