"""Attention of several heads, caches and transformers, against JAX."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from nn_reference import normal

import volta
from volta import nn


def array(tensor):
    return tensor.detach().numpy()


def heads(x, n):
    return x.reshape(*x.shape[:2], n, -1).swapaxes(1, 2)


def attend(q, k, v, w, b, wo, bo, n, seen=True):
    wq, wk, wv = jnp.split(w, 3)
    bq, bk, bv = jnp.split(b, 3)
    q, k, v = heads(q @ wq.T + bq, n), heads(k @ wk.T + bk, n), heads(v @ wv.T + bv, n)
    weights = jax.nn.softmax(jnp.where(seen, q @ k.swapaxes(-1, -2) / math.sqrt(q.shape[-1]), -jnp.inf), -1)
    y = (weights @ v).swapaxes(1, 2).reshape(q.shape[0], q.shape[2], -1)
    return y @ wo.T + bo, weights


def test_attention_of_several_heads_agrees_with_jax():
    volta.manual_seed(1)
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    parameters = [array(p) for p in layer.parameters()]
    assert [p.shape for p in parameters] == [(24, 8), (24,), (8, 8), (8,)]
    q, k, v = normal(2, 3, 8), normal(2, 5, 8, seed=1), normal(2, 5, 8, seed=2)
    y, weights = layer(*map(volta.tensor, (q, k, v)))
    expected, theirs = attend(q, k, v, *parameters, 2)
    np.testing.assert_allclose(array(y), expected, atol=1e-5)
    np.testing.assert_allclose(array(weights), theirs.mean(1), atol=1e-5)
    x = volta.tensor(q).requires_grad_(True)
    layer(x, x, x, need_weights=False, is_causal=True)[0].pow(2).sum().backward()
    causal = np.tril(np.ones((3, 3), bool))
    total = jax.grad(lambda x, *p: (attend(x, x, x, *p, 2, causal)[0] ** 2).sum(), argnums=tuple(range(5)))
    gradients = jax.jit(total)(q, *parameters)
    for ours, gradient in zip([x, *layer.parameters()], gradients):
        np.testing.assert_allclose(ours.grad.numpy(), gradient, rtol=1e-3, atol=1e-4)


def test_masks_hide_where_they_are_true():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    parameters = [array(p) for p in layer.parameters()]
    x = normal(2, 4, 8)
    hidden = np.triu(np.ones((4, 4), bool), 1)
    padding = np.array([[False, False, False, True], [False, False, True, True]])
    t = volta.tensor(x)
    y, weights = layer(t, t, t, volta.tensor(padding), attn_mask=volta.tensor(hidden), average_attn_weights=False)
    seen = ~hidden & ~padding[:, None, None, :]
    expected, theirs = attend(x, x, x, *parameters, 2, seen)
    np.testing.assert_allclose(array(y), expected, atol=1e-5)
    np.testing.assert_allclose(array(weights), theirs, atol=1e-5)
    added = np.where(hidden, -np.inf, 0).astype(np.float32)
    by_sum, _ = layer(t, t, t, attn_mask=volta.tensor(added))
    by_flag, _ = layer(t, t, t, is_causal=True)
    np.testing.assert_allclose(array(by_sum), array(by_flag), atol=1e-6)
    per_head = layer(t, t, t, attn_mask=volta.tensor(np.broadcast_to(hidden, (4, 4, 4)).copy()))[0]
    np.testing.assert_allclose(array(per_head), array(by_flag), atol=1e-6)


def test_the_batch_is_the_second_axis_unless_told_otherwise():
    layer = nn.MultiheadAttention(8, 2)
    first = nn.MultiheadAttention(8, 2, batch_first=True)
    first.load_state_dict(layer.state_dict())
    x = volta.tensor(normal(5, 3, 8))
    y, weights = layer(x, x, x)
    other, same = first(*[x.transpose(0, 1)] * 3)
    np.testing.assert_allclose(array(y.transpose(0, 1)), array(other), atol=1e-6)
    np.testing.assert_allclose(array(weights), array(same), atol=1e-6)
    alone, _ = layer(x[:, 0], x[:, 0], x[:, 0])
    np.testing.assert_allclose(array(alone), array(y[:, 0]), atol=1e-5)


@pytest.mark.parametrize("options", [{}, {"rotary": True}, {"kv_heads": 1}, {"kv_heads": 2, "rotary": nn.Rotary(100.0)}])
def test_a_cache_gives_what_causal_attention_gives(options):
    layer = nn.MultiheadAttention(16, 4, batch_first=True, **options)
    x = volta.tensor(normal(2, 6, 16))
    whole, weights = layer(x, x, x, is_causal=True)
    assert weights.shape == (2, 6, 6)
    cache = layer.cache(2, 8)
    parts = [layer.forward_cached(x[:, :3], cache)] + [layer.forward_cached(x[:, k : k + 1], cache) for k in (3, 4, 5)]
    np.testing.assert_allclose(array(volta.cat(parts, 1)), array(whole), atol=1e-5)
    assert len(cache) == 6 and cache.capacity == 8 and repr(cache) == "KVCache(6 of 8 positions)"
    cache.truncate(3)
    np.testing.assert_allclose(array(layer.forward_cached(x[:, 3:4], cache)), array(whole[:, 3:4]), atol=1e-5)
    with pytest.raises(ValueError, match="no room"):
        layer.forward_cached(x, cache)


def layer_norm(x, w, b):
    return (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5) * w + b


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_agrees_with_its_formula(norm_first):
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True, norm_first=norm_first).eval()
    p = {name: array(t) for name, t in layer.named_parameters()}
    x = normal(2, 4, 8)
    attention = [p[f"self_attn.{n}"] for n in ("in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias")]
    norms = [lambda x, k=k: layer_norm(x, p[f"norm{k}.weight"], p[f"norm{k}.bias"]) for k in (1, 2)]
    look = lambda x: attend(x, x, x, *attention, 2, np.tril(np.ones((4, 4), bool)))[0]  # noqa: E731
    inner = lambda x: jax.nn.gelu(x @ p["linear1.weight"].T + p["linear1.bias"], approximate=False)  # noqa: E731
    feed = lambda x: inner(x) @ p["linear2.weight"].T + p["linear2.bias"]  # noqa: E731
    y = x
    for norm, part in zip(norms, (look, feed)):
        y = y + part(norm(y)) if norm_first else norm(y + part(y))
    np.testing.assert_allclose(array(layer(volta.tensor(x), is_causal=True)), y, atol=1e-5)
    cache = layer.self_attn.cache(2, 4)
    steps = [layer.forward_cached(volta.tensor(x[:, k : k + 1]), cache) for k in range(4)]
    np.testing.assert_allclose(array(volta.cat(steps, 1)), y, atol=1e-5)


def test_transformers_have_pytorchs_names_and_drop_only_while_training():
    decoder = nn.TransformerDecoderLayer(8, 2, 16, dropout=0.5)
    assert list(decoder.state_dict())[:5] == [
        "self_attn.in_proj_weight", "self_attn.in_proj_bias", "self_attn.out_proj.weight", "self_attn.out_proj.bias",
        "multihead_attn.in_proj_weight",
    ]  # fmt: skip
    x, memory = volta.tensor(normal(4, 2, 8)), volta.tensor(normal(6, 2, 8, seed=1))
    assert not np.array_equal(array(decoder(x, memory)), array(decoder(x, memory)))
    decoder.eval()
    assert np.array_equal(array(decoder(x, memory)), array(decoder(x, memory)))
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16), 3, norm=nn.LayerNorm(8))
    assert encoder(x).shape == (4, 2, 8) and len(encoder.layers) == 3
    assert encoder.layers[0].linear1.weight is not encoder.layers[1].linear1.weight
    stack = nn.TransformerDecoder(decoder, 2)
    assert stack(x, memory, tgt_is_causal=True).shape == (4, 2, 8)
    with pytest.raises(ValueError, match="activation"):
        nn.TransformerEncoderLayer(8, 2, activation="swish")
