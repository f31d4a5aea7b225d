"""What all networks of the engine have in common: they are modules, whose parameters are the engine's own."""

from __future__ import annotations

from typing import Any, TypeVar

from .. import _volta
from .._volta import Tensor
from ..nn import Module, Parameter

Self = TypeVar("Self", bound="Network")


class _Part(Module):
    """A part of a network: it holds parameters under their names, and is computed by the whole."""

    def forward(self, *_: Any) -> Any:
        """An error: the network computes its parts itself."""
        raise NotImplementedError("this part is computed by its network: call that")


class Network(Module):
    """A network of the engine. Its parameters have the names that the files of others give them."""

    _core: Any

    def __init__(self, core: Any) -> None:
        super().__init__()
        self.__dict__["_core"] = core
        self._take_tensors()

    def _take_tensors(self) -> None:
        """Finds the parameters anew: adapters bring some, and take them away."""
        for name, _ in [*self.named_children()]:
            delattr(self, name)
        places: dict[str, Module] = {"": self}
        for path, tensor in self._core.tensors():
            *parts, name = path.split(".")
            place: Module = self
            for k, part in enumerate(parts, 1):
                whole = ".".join(parts[:k])
                if whole not in places:
                    places[whole] = _Part()
                    place.register_module(part, places[whole])
                place = places[whole]
            if isinstance(tensor, Parameter):
                place.register_parameter(name, tensor)
            else:
                place.register_buffer(name, tensor)

    def train(self: Self, mode: bool = True) -> Self:
        """Switches layers that behave differently while they train, adapters' dropout for instance, to training."""
        self._core.set_training(bool(mode))
        return super().train(mode)

    @property
    def device(self) -> Any:
        """Where its parameters are."""
        return self._core.device

    @property
    def max_tokens(self) -> int:
        """The most tokens that it sees at once."""
        return int(self._core.sizes()[0])

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self._core.sizes()[1])

    def _ids(self, tokens: Any) -> Tensor:
        """Tokens where the network is; a list of numbers, or of such lists, becomes a tensor."""
        if isinstance(tokens, Tensor):
            return tokens
        return _volta.tensor(tokens, dtype=_volta.int32, device=self.device)

    def extra_repr(self) -> str:
        """Its sizes."""
        return str(self._core.describe())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.extra_repr()})"

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(f"a {type(self).__name__} is not copied or pickled: save its state_dict()")
