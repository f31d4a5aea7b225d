"""Language models with their tokenizers, as files of others hold them."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, overload

from .._volta import _models as _native
from .causal_lm import LanguageModel
from .streaming import StopTexts, TextStream

Prompt = str | Sequence[int]


class Llm(LanguageModel):
    """A language model of others with its tokenizer, its template of chats, where it ends and how it samples.

    >>> llm = Llm.load("SmolLM2-135M-Instruct")
    >>> llm.generate("The capital of France is", max_new_tokens=8)
    >>> llm.chat([{"role": "user", "content": "What is the capital of France?"}])

    It is a module: called with tokens it gives logits, and its parameters are trained like others.
    """

    @classmethod
    def load(cls, path: str | os.PathLike[str], device: Any = None) -> Llm:
        """Reads a folder as Hugging Face has it, or a GGUF file, to a device."""
        return cls(_native.Network.load_llm(os.fspath(path), device))

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        """The tokens of a text; with `add_special_tokens`, with those that the tokenizer puts around it."""
        return list(self._core.encode(text, add_special_tokens))

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens."""
        return str(self._core.decode([int(token) for token in tokens]))

    @property
    def sampling(self) -> dict[str, float]:
        """How its makers pick tokens: what `generate` does unless told otherwise."""
        names = ("temperature", "top_k", "top_p", "repetition_penalty")
        return dict(zip(names, self._core.sampling()))

    @property
    def has_chat_template(self) -> bool:
        """Whether it was trained to chat, and says how."""
        return bool(self._core.chats())

    def apply_chat_template(self, messages: Sequence[Mapping[str, str]], add_generation_prompt: bool = True) -> str:
        """The text of a chat in the model's own template, up to where an answer begins. Messages have `role` and `content`."""
        said = []
        for message in messages:
            if set(message) != {"role", "content"}:
                raise ValueError(f"a message has a role and a content, and this one {sorted(message)}")
            said.append((message["role"], message["content"]))
        return str(self._core.render(said, add_generation_prompt))

    @overload
    def generate(
        self,
        prompt: Prompt,
        max_new_tokens: int = 256,
        *,
        stream: Literal[False] = False,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
    ) -> str: ...
    @overload
    def generate(
        self,
        prompt: Prompt,
        max_new_tokens: int = 256,
        *,
        stream: Literal[True],
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
    ) -> Iterator[str]: ...
    def generate(
        self,
        prompt: Prompt,
        max_new_tokens: int = 256,
        *,
        stream: bool = False,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int | None = None,
        stop: str | Sequence[str] = (),
    ) -> str | Iterator[str]:
        """What the model writes behind a text, or behind tokens, until it ends, or before one of the texts in `stop`.

        A temperature of 0 takes the likeliest token; `top_k` and `top_p` leave out those that are not likely. What is not given
        is as the model's makers have it. The same seed writes the same; without one it is drawn from Python's own generator.
        With `stream` it gives pieces of text as they are written.
        """
        tokens = self._core.prompt(prompt) if isinstance(prompt, str) else [int(token) for token in prompt]
        if max_new_tokens < 0:
            raise ValueError(f"max_new_tokens is {max_new_tokens}, and must be 0 or more")
        if not tokens:
            raise ValueError("there are no tokens to go on from: give one at least")
        known = self.sampling
        given = (temperature, top_k, top_p, repetition_penalty)
        options = tuple(old if new is None else new for old, new in zip(known.values(), given))
        seed = random.getrandbits(64) if seed is None else seed
        stops = StopTexts([stop] if isinstance(stop, str) else list(stop))
        # Read now, so that what is wrong is raised here.
        was_training = self.training
        text = _native.Generation(self._core, tokens, options, seed)
        pieces = self._pieces(text, max_new_tokens, stops, was_training)
        return pieces if stream else "".join(pieces)

    def _pieces(self, text: Any, count: int, stops: StopTexts, was_training: bool) -> Iterator[str]:
        decoded = TextStream(self.decode)
        try:
            for _ in range(count):
                token = text.write()
                if self._core.ends(token):
                    break
                yield from stops.push(decoded.push(token))
                if stops.found:
                    return
            yield from stops.push(decoded.finish())
            yield from stops.finish()
        finally:
            # Writing switches the network to evaluation.
            self._core.set_training(was_training)

    @overload
    def chat(
        self,
        messages: Sequence[Mapping[str, str]],
        max_new_tokens: int = 1024,
        *,
        stream: Literal[False] = False,
        **options: Any,
    ) -> str: ...
    @overload
    def chat(
        self, messages: Sequence[Mapping[str, str]], max_new_tokens: int = 1024, *, stream: Literal[True], **options: Any
    ) -> Iterator[str]: ...
    def chat(
        self, messages: Sequence[Mapping[str, str]], max_new_tokens: int = 1024, *, stream: bool = False, **options: Any
    ) -> str | Iterator[str]:
        """The model's answer in a chat, by its own template; options are those of `generate`.

        >>> llm.chat([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello!"}])
        """
        tokens = self.encode(self.apply_chat_template(messages))
        if len(tokens) >= self.max_tokens:
            raise ValueError(f"this chat has {len(tokens)} tokens, and the model sees {self.max_tokens}: leave out its first turns")
        return self.generate(tokens, max_new_tokens, stream=stream, **options)  # type: ignore[call-overload,no-any-return]
