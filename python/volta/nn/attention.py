"""Multi-head attention."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from .._volta import Tensor
from .._volta import _nn as _native
from . import functional as F
from .linear import Linear
from .module import Module, Parameter

if TYPE_CHECKING:

    class KVCache:
        """Keys and values of the positions that were generated so far, for a fixed number of positions."""

        capacity: int

        def __len__(self) -> int: ...
        def truncate(self, length: int) -> None: ...

else:
    KVCache = _native.KVCache


class Rotary(NamedTuple):
    """Positions as rotations of queries and keys (Su et al., 2021), for `MultiheadAttention`."""

    base: float = 10_000.0
    """The base of the frequencies."""
    interleaved: bool = False
    """Pairs are neighbours, rather than elements half a width apart."""

    def __call__(self, x: Tensor, start: int = 0) -> Tensor:
        """`x`, of shape (…, length, width), with the first vector at position `start`."""
        return _native.rotary(x, start, self.base, self.interleaved)


class MultiheadAttention(Module):
    """Attention of several heads, with PyTorch's parameters, masks and result.

    Beyond PyTorch's options there are `kv_heads`, heads of keys and values that groups of heads of queries share, and
    `rotary` positions. `cache` and `forward_cached` generate text token by token.

    >>> attention = volta.nn.MultiheadAttention(32, 4, batch_first=True)
    >>> y, _ = attention(x, x, x, is_causal=True, need_weights=False)
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        *,
        batch_first: bool = False,
        kv_heads: int | None = None,
        rotary: Rotary | bool | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        kv_heads = num_heads if kv_heads is None else kv_heads
        if num_heads < 1 or embed_dim % num_heads:
            raise ValueError(f"a width of {embed_dim} does not divide into {num_heads} heads")
        if kv_heads < 1 or num_heads % kv_heads:
            raise ValueError(f"{num_heads} heads cannot share {kv_heads} heads of keys and values evenly")
        self.embed_dim, self.num_heads, self.kv_heads = embed_dim, num_heads, kv_heads
        self.head_dim = embed_dim // num_heads
        self.dropout, self.batch_first = dropout, batch_first
        self.rotary = Rotary() if rotary is True else (rotary or None)
        if self.rotary and self.head_dim % 2:
            raise ValueError(f"heads of width {self.head_dim} cannot be rotated: it must be even")
        rows = embed_dim + 2 * kv_heads * self.head_dim
        # Numbers are drawn in the order of the engine's own layer.
        out_proj = Linear(embed_dim, embed_dim, bias, device, dtype)
        if bias:
            out_proj.bias = Parameter(_native.init_constant([embed_dim], 0.0, device, dtype))
        bound = math.sqrt(6 / (embed_dim + rows))
        self.in_proj_weight = Parameter(_native.init_uniform([rows, embed_dim], bound, device, dtype))
        zeros = _native.init_constant([rows], 0.0, device, dtype)
        self.register_parameter("in_proj_bias", Parameter(zeros) if bias else None)
        self.out_proj = out_proj

    def _heads(self, dropout: float) -> tuple[Any, ...]:
        rotary = None if self.rotary is None else tuple(self.rotary)
        out = self.out_proj
        parts = (self.in_proj_weight, self.in_proj_bias, out.weight, out.bias)
        return (*parts, self.num_heads, self.kv_heads, dropout, rotary)

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """What each query finds among the keys, and the weights of the keys.

        Attention itself never stores the weights. They are computed if they are read, or still held when a step runs:
        `need_weights=False` makes none.

        Inputs are (length, batch, width), (batch, length, width) with `batch_first`, or (length, width). In masks of
        bools, as in PyTorch's, true means that a key is hidden: `key_padding_mask` is (batch, keys), `attn_mask`
        (queries, keys) or (batch·heads, queries, keys), or numbers to add to the scores. `is_causal` needs no mask.
        """
        turned = not self.batch_first and query.ndim == 3
        if turned:
            same_key, same_value = key is query, value is key
            query = query.transpose(0, 1)
            key = query if same_key else key.transpose(0, 1)
            value = key if same_value else value.transpose(0, 1)
        mask, keys = self._masks(query, attn_mask, key_padding_mask)
        heads = self._heads(self.dropout if self.training else 0.0)
        output = _native.multi_head_attention(heads, query, key, value, is_causal, mask, keys)
        weights = None
        if need_weights:
            weights = self._weights(query, key, mask, keys, is_causal, average_attn_weights)
        return (output.transpose(0, 1) if turned else output), weights

    def _masks(
        self, query: Tensor, attn_mask: Tensor | None, key_padding_mask: Tensor | None
    ) -> tuple[Tensor | None, Tensor | None]:
        """The masks as the engine has them: true means that a key is seen, and heads are an axis of their own."""
        mask, keys = attn_mask, key_padding_mask
        if mask is not None:
            mask = mask.logical_not() if _is_bool(mask) else mask
            if mask.ndim == 3:
                mask = mask.reshape(-1, self.num_heads, *mask.shape[1:])
        if keys is not None:
            keys = keys.logical_not() if _is_bool(keys) else keys >= 0
            if query.ndim == 2:
                keys = keys.reshape(1, -1)
        return mask, keys

    def _weights(
        self, query: Tensor, key: Tensor, mask: Tensor | None, keys: Tensor | None, causal: bool, average: bool
    ) -> Tensor:
        alone = query.ndim == 2
        if alone:
            query, key = query.unsqueeze(0), key.unsqueeze(0)
        width, h, g = self.head_dim, self.num_heads, self.kv_heads

        def part(x: Tensor, first: int, heads: int) -> Tensor:
            rows = slice(first * width, (first + heads) * width)
            bias = None if self.in_proj_bias is None else self.in_proj_bias[rows]
            y = _native.linear(x, self.in_proj_weight[rows], bias)
            y = y.reshape(*x.shape[:-1], heads, width).transpose(1, 2)
            return y if self.rotary is None else self.rotary(y)

        q, k = part(query, 0, h), part(key, h, g)
        if g != h:
            k = k.repeat_interleave(h // g, 1)
        scores = (q @ k.transpose(-2, -1)) * (1 / math.sqrt(width))
        if mask is not None:
            scores = scores.masked_fill(mask.logical_not(), -math.inf) if _is_bool(mask) else scores + mask
        if keys is not None:
            scores = scores.masked_fill(keys.logical_not().reshape(keys.shape[0], 1, 1, -1), -math.inf)
        if causal:
            import volta

            hidden = volta.ones(scores.shape[-2], scores.shape[-1], device=scores.device).tril() == 0
            scores = scores.masked_fill(hidden, -math.inf)
        weights = F.softmax(scores, -1)
        weights = weights.mean(1) if average else weights
        return weights.squeeze(0) if alone else weights

    def cache(self, batch: int, capacity: int) -> KVCache:
        """Room for the keys and values of `capacity` positions, where the parameters are."""
        return _native.attention_cache(self._heads(0.0), batch, capacity)

    def forward_cached(self, x: Tensor, cache: KVCache) -> Tensor:
        """Causal attention of the next positions, (batch, length, width), to themselves and to those in the cache.

        For generation: nothing is recorded for gradients, and every token replays one plan.
        """
        return _native.attend_cached(self._heads(0.0), x, cache)

    def extra_repr(self) -> str:
        parts = [f"embed_dim={self.embed_dim}, num_heads={self.num_heads}"]
        if self.kv_heads != self.num_heads:
            parts.append(f"kv_heads={self.kv_heads}")
        if self.rotary is not None:
            parts.append("rotary")
        if self.dropout:
            parts.append(f"dropout={self.dropout}")
        return ", ".join(parts)


MultiHeadAttention = MultiheadAttention


def _is_bool(tensor: Tensor) -> bool:
    import volta

    return tensor.dtype == volta.bool
