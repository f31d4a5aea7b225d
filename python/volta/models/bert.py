"""Encoders: tokens in, a vector for each out; and vectors of sentences."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from .. import _volta
from .._volta import Tensor
from .._volta import _models as _native
from .causal_lm import Tokens
from .network import Network


class Encoder(Network):
    """What encoders with and without a tokenizer have in common."""

    def forward(self, tokens: Tokens, attention_mask: Any = None) -> Tensor:
        """Vectors (batch, length, width) for tokens (batch, length); the mask is 0 where a text is filled up."""
        ids = self._ids(tokens)
        if attention_mask is None:
            seen = _volta.ones(ids.shape, dtype=_volta.bool, device=ids.device)
        else:
            seen = self._ids(attention_mask) != 0
        return self._core.vectors(ids, seen)  # type: ignore[no-any-return]


class Bert(Encoder):
    """BERT with small random values, in the shape that a Hugging Face `config.json` says; without a pooler."""

    def __init__(self, config: Mapping[str, Any] | str, device: Any = None) -> None:
        text = config if isinstance(config, str) else json.dumps(dict(config))
        super().__init__(_native.Network.bert(text, device))


class Embedder(Encoder):
    """Makes vectors of sentences, which lie near each other if they mean alike.

    >>> embedder = Embedder.load("all-MiniLM-L6-v2")
    >>> vectors = embedder.embed(["A man eats.", "Somebody has lunch."])
    >>> likeness = vectors[0] @ vectors[1]

    It is a module: called with tokens it gives a vector for each, and its parameters are trained like others.
    """

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: Any = None) -> Embedder:
        """Reads a folder as Hugging Face has it, with what sentence-transformers puts beside, to a device."""
        return cls(_native.Network.load_embedder(os.fspath(path), device))

    def embed(self, texts: Sequence[str]) -> Tensor:
        """One vector a text, as the rows of a matrix on the CPU."""
        if isinstance(texts, str):
            raise TypeError("embed takes a list of texts, and this is one text")
        was_training = self.training
        try:
            return self._core.embed(list(texts))  # type: ignore[no-any-return]
        finally:
            self._core.set_training(was_training)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, with those around it, and no more than the encoder sees."""
        return list(self._core.sentence_tokens(text))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens."""
        return str(self._core.decode([int(token) for token in tokens]))

    @property
    def pooling(self) -> str:
        """How the vectors of a text's tokens become one: `mean`, `cls` or `max`."""
        return str(self._core.pooling()[0])

    @property
    def normalized(self) -> bool:
        """Whether vectors get the length 1."""
        return bool(self._core.pooling()[1])
