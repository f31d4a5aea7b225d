"""Adapters of low rank: what is trained of a large model, and PEFT's files of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .._volta import Tensor
from .._volta import _models as _native
from ..nn import Parameter
from .causal_lm import LanguageModel

# What PEFT's names of tensors begin with.
_PREFIX = "base_model.model."


class Lora:
    """The adapters of a model: they are trained, and its own weights are not.

    >>> lora = Lora.attach(llm, rank=8, alpha=16, targets=["q_proj", "v_proj"])
    >>> optimizer = optim.AdamW(lora.parameters(), lr=1e-3)
    >>> optimizer.zero_grad()
    >>> llm.loss(tokens[:, :-1], tokens[:, 1:]).backward()
    >>> optimizer.step()
    >>> lora.save("adapter")
    """

    def __init__(self, model: LanguageModel, core: Any) -> None:
        self.model, self._core = model, core
        self.rank, self.alpha, self.dropout, self.targets, self.rank_stabilized, self.dora = core.options()
        model._take_tensors()

    @classmethod
    def attach(
        cls,
        model: LanguageModel,
        rank: int = 8,
        alpha: float = 16.0,
        targets: Sequence[str] = ("q_proj", "v_proj"),
        dropout: float = 0.0,
        rank_stabilized: bool = False,
        dora: bool = False,
    ) -> Lora:
        """Gives every layer that is named an adapter that changes nothing yet. All other parameters are frozen.

        `targets` are the last parts of layers' names: `q_proj`, `down_proj` and so on. What an adapter adds is multiplied by
        `alpha` over the rank, or over its root with `rank_stabilized`. `dora` trains the
        lengths of the weights beside their directions.
        """
        _check(model)
        targets = [targets] if isinstance(targets, str) else list(targets)
        return cls(model, _native.Lora.attach(model._core, rank, alpha, dropout, targets, rank_stabilized, dora))

    @classmethod
    def load(cls, model: LanguageModel, folder: str | os.PathLike[str]) -> Lora:
        """Attaches what PEFT or `save` wrote into a folder."""
        _check(model)
        return cls(model, _native.Lora.load(model._core, os.fspath(folder)))

    def save(self, folder: str | os.PathLike[str], base: str = "") -> None:
        """Writes PEFT's files into a folder, which is made if need be. `base` is what the model that was adapted is called."""
        self._core.save(self.model._core, os.fspath(folder), base)

    def named_parameters(self) -> list[tuple[str, Parameter]]:
        """What is trained, with its names in the model."""
        return [(name, p) for name, p in self.model.named_parameters() if ".lora_" in name]

    def parameters(self) -> list[Parameter]:
        """What is trained, as an optimizer takes it."""
        return [p for _, p in self.named_parameters()]

    def state_dict(self) -> dict[str, Tensor]:
        """The adapters under PEFT's names."""
        return {f"{_PREFIX}{name}": p.detach() for name, p in self.named_parameters()}

    def merge(self) -> None:
        """Adds the adapters to the weights, and takes them off."""
        self._core.merge(self.model._core)
        self.model._take_tensors()

    def detach(self) -> None:
        """Takes the adapters off: the model is what it was."""
        self._core.detach(self.model._core)
        self.model._take_tensors()

    def __repr__(self) -> str:
        return f"Lora(rank={self.rank}, alpha={self.alpha:g}, targets={self.targets}, dropout={self.dropout:g})"


def _check(model: Any) -> None:
    if not isinstance(model, LanguageModel):
        raise TypeError(f"adapters are for volta.models.Llm and CausalLm, and this is a {type(model).__name__}")
