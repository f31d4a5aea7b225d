"""Text as it is written: whole characters only, and nothing of a text that ends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence


class TextStream:
    """Text of tokens as they come. A character may take several."""

    def __init__(self, decode: Callable[[Sequence[int]], str]) -> None:
        self._decode = decode
        self._tokens: list[int] = []
        # Texts are decoded from here, so that each token sees the one before it, and what was shown ends there.
        self._begin, self._shown = 0, 0

    def push(self, token: int) -> str:
        """The text that this token completes."""
        self._tokens.append(token)
        piece = self._rest()
        if not piece or piece.endswith("\ufffd"):
            return ""
        self._begin, self._shown = self._shown, len(self._tokens)
        return piece

    def finish(self) -> str:
        """What is left."""
        return self._rest()

    def _rest(self) -> str:
        before = self._decode(self._tokens[self._begin : self._shown])
        return self._decode(self._tokens[self._begin :])[len(before) :]


class StopTexts:
    """Lets text through up to where one of some texts begins."""

    def __init__(self, stops: Sequence[str]) -> None:
        if not all(stops):
            raise ValueError("an empty text cannot end what is written")
        self._stops = stops
        self._held = ""
        self.found = False

    def push(self, piece: str) -> Iterator[str]:
        """What is sure to be no part of a stop."""
        self._held += piece
        places = [at for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if places:
            self.found = True
            sure, self._held = self._held[: min(places)], ""
        else:
            held = max((_overlap(self._held, stop) for stop in self._stops), default=0)
            sure, self._held = self._held[: len(self._held) - held], self._held[len(self._held) - held :]
        if sure:
            yield sure

    def finish(self) -> Iterator[str]:
        """What was held back, since a stop might have begun there."""
        if self._held:
            yield self._held
            self._held = ""


def _overlap(text: str, stop: str) -> int:
    """How much of the text's end is a beginning of the stop."""
    return next((k for k in range(min(len(text), len(stop) - 1), 0, -1) if text.endswith(stop[:k])), 0)
