"""Language models: tokens in, the next token's logits out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .._volta import Tensor
from .._volta import _models as _native
from .network import Network

Tokens = Tensor | Sequence[Any]


class LanguageModel(Network):
    """What language models with and without a tokenizer have in common."""

    def forward(self, tokens: Tokens) -> Tensor:
        """Logits (batch, length, vocabulary) for tokens (batch, length)."""
        return self._core.forward(self._ids(tokens))  # type: ignore[no-any-return]

    def loss(self, tokens: Tokens, next: Tokens) -> Tensor:
        """The mean cross-entropy of every next token; both are (batch, length).

        It needs a part of the memory that `cross_entropy` of the logits takes.
        """
        return self._core.loss(self._ids(tokens), self._ids(next))  # type: ignore[no-any-return]


class CausalLm(LanguageModel):
    """A model of Llama's family with small random values, in the shape that a Hugging Face `config.json` says.

    >>> model = CausalLm({"model_type": "llama", "vocab_size": 256, "hidden_size": 64, ...})
    >>> logits = model([[1, 2, 3]])
    """

    def __init__(self, config: Mapping[str, Any] | str, device: Any = None) -> None:
        text = config if isinstance(config, str) else json.dumps(dict(config))
        super().__init__(_native.Network.causal_lm(text, device))
