"""Running averages of parameters, which often do better than the parameters themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from .._volta import Tensor
from .._volta import _optim as _native


class EMA:
    """average ← decay·average + (1 − decay)·parameter, after every step.

    >>> ema = volta.optim.EMA(model.parameters(), decay=0.999)
    >>> ema.update()            # after optimizer.step()
    >>> with ema.applied():     # the parameters are the averages here
    ...     evaluate(model)
    """

    def __init__(self, parameters: Iterable[Tensor], decay: float = 0.999) -> None:
        self.decay = decay
        self._core = _native.Ema(list(parameters), decay)

    def update(self) -> None:
        """Takes in what the parameters are now: once a step."""
        self._core.update()

    def swap(self) -> None:
        """Exchanges parameters and averages. Nothing is copied."""
        self._core.swap()

    @contextmanager
    def applied(self) -> Iterator[None]:
        """The averages stand in for the parameters inside the `with` block."""
        self._core.swap()
        try:
            yield
        finally:
            self._core.swap()

    def averages(self) -> list[Tensor]:
        """The averages, in the order of the parameters."""
        return self._core.averages()

    def copy_to(self, parameters: Iterable[Tensor]) -> None:
        """Gives other tensors, such as the parameters of a second network, the values of the averages."""
        self._core.copy_to(list(parameters))

    def state_dict(self) -> dict[str, Any]:
        """What it must remember to go on."""
        values, tensors = self._core.state()
        return {"decay": values["decay"], "averages": [t for _, t in tensors]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on from what `state_dict` gave."""
        named = [(str(k), t) for k, t in enumerate(state_dict["averages"])]
        self._core.load_state(({"decay": float(state_dict["decay"])}, named))
        self.decay = float(state_dict["decay"])
