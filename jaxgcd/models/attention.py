"""Causal attention over the cache, with rotary positions and grouped key-value heads.

Grouped heads: Ainslie et al. 2023 (GQA). Sliding windows: Beltagy et al. 2020 (Longformer), as in Mistral 7B.
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Int

from .cache import Cache
from .config import LlamaConfig
from .norm import RMSNorm
from .rope import Rotation, rotate


def attend(
    q: Float[Array, "batch time heads head_dim"],
    k: Float[Array, "batch keys kv_heads head_dim"],
    v: Float[Array, "batch keys kv_heads head_dim"],
    visible: Bool[Array, "batch time keys"],
) -> Float[Array, "batch time heads head_dim"]:
    """Scaled dot-product attention; query head `h` reads key-value head `h // (heads / kv_heads)`."""
    batch, time, _, head_dim = q.shape
    q = q.reshape(batch, time, k.shape[2], -1, head_dim)  # [B, T, KV, G, D]
    scores = jnp.einsum("btkgd,bskd->bkgts", q, k).astype(jnp.float32) / math.sqrt(head_dim)
    scores = jnp.where(visible[:, None, None], scores, jnp.finfo(jnp.float32).min)
    weights = jax.nn.softmax(scores, axis=-1).astype(v.dtype)
    return jnp.einsum("bkgts,bskd->btkgd", weights, v).reshape(batch, time, -1, head_dim)


def visible_keys(
    positions: Int[Array, "batch time"], max_length: int, window: int | None
) -> Bool[Array, "batch time max_length"]:
    """Which cached positions each token may look at: up to itself, and at most `window` of them.

    >>> visible_keys(jnp.asarray([[2]]), 5, 2)[0, 0].tolist()
    [False, True, True, False, False]
    """
    keys = jnp.arange(max_length, dtype=positions.dtype)
    here = positions[..., None]  # [B, T, 1]
    return keys <= here if window is None else (keys <= here) & (keys > here - window)


class Attention(nnx.Module):
    """Self-attention of one layer, through the cache."""

    def __init__(self, config: LlamaConfig, layer: int, *, dtype: DTypeLike, rngs: nnx.Rngs):
        linear = partial(nnx.Linear, dtype=dtype, param_dtype=dtype, rngs=rngs)
        inner, shared = config.num_heads * config.head_dim, config.num_kv_heads * config.head_dim
        self.layer, self.head_dim, self.window = layer, config.head_dim, config.window(layer)
        self.query = linear(config.hidden_size, inner, use_bias=config.qkv_bias)
        self.key = linear(config.hidden_size, shared, use_bias=config.qkv_bias)
        self.value = linear(config.hidden_size, shared, use_bias=config.qkv_bias)
        self.output = linear(inner, config.hidden_size, use_bias=config.output_bias)
        norm = partial(RMSNorm, config.head_dim, config.rms_eps, dtype=dtype)
        self.query_norm, self.key_norm = (norm(), norm()) if config.qk_norm else (None, None)

    def __call__(
        self,
        x: Float[Array, "batch time hidden"],
        cache: Cache,
        positions: Int[Array, "batch time"],
        by: Rotation,
    ) -> tuple[Float[Array, "batch time hidden"], Cache]:
        """Write this layer's keys and values at `positions`, then let each position read what it may see."""
        heads = (*x.shape[:2], -1, self.head_dim)
        q, k, v = (project(x).reshape(heads) for project in (self.query, self.key, self.value))
        if self.query_norm is not None and self.key_norm is not None:
            q, k = self.query_norm(q), self.key_norm(k)
        cache = cache.write(self.layer, positions, rotate(k, by), v)
        k, v = cache.k[self.layer].astype(q.dtype), cache.v[self.layer].astype(q.dtype)
        mixed = attend(rotate(q, by), k, v, visible_keys(positions, cache.max_length, self.window))
        return self.output(mixed.reshape(*x.shape[:2], -1)), cache
