"""Recurrent networks, and single steps of them for loops of one's own."""

from __future__ import annotations

from typing import Any

from .._volta import Tensor
from .._volta import _nn as _native
from .linear import _by_fan_in
from .module import Module

_GATES = {"RNN_TANH": 1, "RNN_RELU": 1, "LSTM": 4, "GRU": 3}


def _kind(nonlinearity: str) -> str:
    if nonlinearity not in ("tanh", "relu"):
        raise ValueError(f'nonlinearity is {nonlinearity!r}: use "tanh" or "relu"')
    return f"RNN_{nonlinearity.upper()}"


class _Recurrent(Module):
    """What recurrent networks have in common."""

    def __init__(
        self,
        kind: str,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        bias: bool,
        batch_first: bool,
        dropout: float,
        bidirectional: bool,
        device: Any,
        dtype: Any,
    ) -> None:
        super().__init__()
        if num_layers < 1 or hidden_size < 1:
            raise ValueError(f"{num_layers} layers of {hidden_size} hidden elements: both must be at least 1")
        self.mode, self.input_size, self.hidden_size, self.num_layers = kind, input_size, hidden_size, num_layers
        self.bias, self.batch_first, self.dropout, self.bidirectional = bias, batch_first, dropout, bidirectional
        directions = 2 if bidirectional else 1
        rows = _GATES[kind] * hidden_size
        self._suffixes = []
        for layer in range(num_layers):
            inputs = input_size if layer == 0 else hidden_size * directions
            for direction in range(directions):
                suffix = f"_l{layer}" + ("_reverse" if direction else "")
                self._suffixes.append(suffix)
                shapes = {"weight_ih": [rows, inputs], "weight_hh": [rows, hidden_size]}
                if bias:
                    shapes |= {"bias_ih": [rows], "bias_hh": [rows]}
                for name, shape in shapes.items():
                    setattr(self, name + suffix, _by_fan_in(shape, hidden_size, device, dtype))

    def _run(self, input: Tensor, states: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
        own = self.__dict__
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        weights = [tuple(own.get(name + suffix) for name in names) for suffix in self._suffixes]
        dropout = self.dropout if self.training else 0.0
        options = (self.num_layers, self.batch_first, dropout, self.bidirectional)
        return _native.recurrent(self.mode, input, states, weights, *options)

    def flatten_parameters(self) -> None:
        """Nothing: the weights lie as they should."""

    def extra_repr(self) -> str:
        parts = [f"{self.input_size}, {self.hidden_size}"]
        usual = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        parts += [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join(parts)


class _Simple(_Recurrent):
    """A network whose state is one tensor."""

    def forward(self, input: Tensor, hx: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The output of every step, and the last state of every layer and direction."""
        output, (state,) = self._run(input, [] if hx is None else [hx])
        return output, state


class RNN(_Simple):
    """h' = tanh(W·x + b + U·h + c), step by step along (length, batch, inputs)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__(_kind(nonlinearity), input_size, hidden_size, *options)


class GRU(_Simple):
    """Gated recurrent units (Cho et al., 2014) along (length, batch, inputs)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__("GRU", input_size, hidden_size, *options)


class LSTM(_Recurrent):
    """Long short-term memory (Hochreiter and Schmidhuber, 1997) along (length, batch, inputs)."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        options = (num_layers, bias, batch_first, dropout, bidirectional, device, dtype)
        super().__init__("LSTM", input_size, hidden_size, *options)

    def forward(
        self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The output of every step, and the last output and cell of every layer and direction."""
        output, (state, cell) = self._run(input, [] if hx is None else list(hx))
        return output, (state, cell)


class _Cell(Module):
    """What single steps have in common."""

    def __init__(self, kind: str, input_size: int, hidden_size: int, bias: bool, device: Any, dtype: Any) -> None:
        super().__init__()
        self.mode, self.input_size, self.hidden_size = kind, input_size, hidden_size
        rows = _GATES[kind] * hidden_size
        self.weight_ih = _by_fan_in([rows, input_size], hidden_size, device, dtype)
        self.weight_hh = _by_fan_in([rows, hidden_size], hidden_size, device, dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, _by_fan_in([rows], hidden_size, device, dtype) if bias else None)

    def _run(self, input: Tensor, states: list[Tensor]) -> list[Tensor]:
        weights = (self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        return _native.recurrent_cell(self.mode, input, states, weights)

    def extra_repr(self) -> str:
        return f"{self.input_size}, {self.hidden_size}" + ("" if self.bias_ih is not None else ", bias=False")


class RNNCell(_Cell):
    """One step of an `RNN`: the next state from an input of (batch, inputs) and a state."""

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(_kind(nonlinearity), input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run(input, [] if hx is None else [hx])[0]


class GRUCell(_Cell):
    """One step of a `GRU`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__("GRU", input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        return self._run(input, [] if hx is None else [hx])[0]


class LSTMCell(_Cell):
    """One step of an `LSTM`; the state is a pair: the output and the cell."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__("LSTM", input_size, hidden_size, bias, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        output, cell = self._run(input, [] if hx is None else list(hx))
        return output, cell
