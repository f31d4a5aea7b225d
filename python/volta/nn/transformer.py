"""The layers of transformers (Vaswani et al., 2017), with PyTorch's names, masks and defaults."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .._volta import Tensor
from . import functional as F
from .activation import Dropout
from .attention import KVCache, MultiheadAttention, Rotary
from .container import ModuleList
from .linear import Linear
from .module import Module
from .norm import LayerNorm

Activation = str | Callable[[Tensor], Tensor]


class _Layer(Module):
    """What encoder and decoder layers have in common."""

    def _parts(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int,
        dropout: float,
        activation: Activation,
        layer_norm_eps: float,
        batch_first: bool,
        norm_first: bool,
        bias: bool,
        device: Any,
        dtype: Any,
        kv_heads: int | None,
        rotary: Rotary | bool | None,
        norms: int,
    ) -> None:
        place = {"device": device, "dtype": dtype}
        # Numbers are drawn in the order of the engine's own layers.
        linear1 = Linear(d_model, dim_feedforward, bias, **place)
        linear2 = Linear(dim_feedforward, d_model, bias, **place)
        attention = {"batch_first": batch_first, **place}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, kv_heads=kv_heads, rotary=rotary, **attention
        )
        if norms == 3:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, **attention)
        self.linear1 = linear1
        self.dropout = Dropout(dropout)
        self.linear2 = linear2
        for k in range(1, norms + 1):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias, **place))
        for k in range(1, norms + 1):
            setattr(self, f"dropout{k}", Dropout(dropout))
        self.norm_first, self.batch_first = norm_first, batch_first
        named = {"relu": F.relu, "gelu": F.gelu}
        if isinstance(activation, str) and activation not in named:
            raise ValueError(f'activation is {activation!r}: use "relu", "gelu" or a function')
        self.activation = named[activation] if isinstance(activation, str) else activation

    def _residual(self, x: Tensor, k: int, part: Callable[[Tensor], Tensor]) -> Tensor:
        """One part of the layer, normalized and added to what goes in."""
        norm, dropout = getattr(self, f"norm{k}"), getattr(self, f"dropout{k}")
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear layers. With `is_causal` it is the block of a GPT."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        kv_heads: int | None = None,
        rotary: Rotary | bool | None = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        self._parts(*sizes, bias, device, dtype, kv_heads, rotary, norms=2)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """The output for a sequence of which a part may be hidden; masks are those of `MultiheadAttention`."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, src_key_padding_mask, False, src_mask, is_causal=is_causal)[0]

        x = self._residual(src, 1, attend)
        return self._residual(x, 2, self._feed_forward)

    def forward_cached(self, x: Tensor, cache: KVCache) -> Tensor:
        """The output for the next positions, (batch, length, width), which see all before them through the cache."""
        import volta

        with volta.no_grad():
            x = self._residual(x, 1, lambda y: self.self_attn.forward_cached(y, cache))
            return self._residual(x, 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to a memory (what an encoder gave), then two linear layers."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        kv_heads: int | None = None,
        rotary: Rotary | bool | None = None,
    ) -> None:
        super().__init__()
        sizes = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        self._parts(*sizes, bias, device, dtype, kv_heads, rotary, norms=3)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """The output for a sequence and a memory, each with what is hidden in it."""

        def attend(x: Tensor) -> Tensor:
            return self.self_attn(x, x, x, tgt_key_padding_mask, False, tgt_mask, is_causal=tgt_is_causal)[0]

        def look(x: Tensor) -> Tensor:
            hidden = (memory_key_padding_mask, False, memory_mask)
            return self.multihead_attn(x, memory, memory, *hidden, is_causal=memory_is_causal)[0]

        x = self._residual(tgt, 1, attend)
        x = self._residual(x, 2, look)
        return self._residual(x, 3, self._feed_forward)


class _Stack(Module):
    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.register_module("norm", norm)

    def _through(self, x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        for layer in self.layers:
            x = layer(x, *args, **kwargs)
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """Copies of an encoder layer on one another."""

    def __init__(
        self, encoder_layer: TransformerEncoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        return self._through(src, mask, src_key_padding_mask, is_causal)


class TransformerDecoder(_Stack):
    """Copies of a decoder layer on one another."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(self, tgt: Tensor, memory: Tensor, *masks: Any, **named_masks: Any) -> Tensor:
        """The output of all layers; masks are those of `TransformerDecoderLayer`."""
        return self._through(tgt, memory, *masks, **named_masks)
