"""Causal attention over the cache, with rotary positions and grouped key-value heads.

Rotary embeddings: Su et al. 2021 (RoFormer), in the layout of two halves that transformers uses:
component `i` turns with component `i + head_dim / 2`. Grouped heads: Ainslie et al. 2023 (GQA).
"""

import math
from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Array, Bool, Float, Float32, Int

from .cache import Cache
from .config import LlamaConfig

Rotation = tuple[Float32[Array, "batch time 1 half"], Float32[Array, "batch time 1 half"]]


def rotation(positions: Int[Array, "batch time"], head_dim: int, theta: float) -> Rotation:
    """Cosine and sine of each position's angles, `position * theta ** (-2 i / head_dim)`."""
    exponents = jnp.arange(0, head_dim, 2, dtype=jnp.float32) / jnp.float32(head_dim)
    frequencies = jnp.float32(theta) ** -exponents  # [half]
    angles = positions.astype(jnp.float32)[..., None, None] * frequencies  # [B, T, 1, half]
    return jnp.cos(angles), jnp.sin(angles)


def rotate(
    x: Float[Array, "batch time heads head_dim"], by: Rotation
) -> Float[Array, "batch time heads head_dim"]:
    """Turn each pair of components `(i, i + head_dim / 2)` by its angle."""
    cos, sin = by
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x.dtype)


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


class Attention(nnx.Module):
    """Self-attention of one layer, through the cache."""

    def __init__(self, config: LlamaConfig, *, dtype: DTypeLike, rngs: nnx.Rngs):
        linear = partial(nnx.Linear, use_bias=False, dtype=dtype, param_dtype=dtype, rngs=rngs)
        self.head_dim = config.head_dim
        self.query = linear(config.hidden_size, config.num_heads * config.head_dim)
        self.key = linear(config.hidden_size, config.num_kv_heads * config.head_dim)
        self.value = linear(config.hidden_size, config.num_kv_heads * config.head_dim)
        self.output = linear(config.num_heads * config.head_dim, config.hidden_size)

    def __call__(
        self,
        x: Float[Array, "batch time hidden"],
        cache: Cache,
        layer: int,
        positions: Int[Array, "batch time"],
        by: Rotation,
    ) -> tuple[Float[Array, "batch time hidden"], Cache]:
        """Write this layer's keys and values at `positions`, then let each position read all up to itself."""
        heads = (*x.shape[:2], -1, self.head_dim)
        q = rotate(self.query(x).reshape(heads), by)
        k = rotate(self.key(x).reshape(heads), by)
        cache = cache.write(layer, positions, k, self.value(x).reshape(heads))
        keys = jnp.arange(cache.max_length, dtype=positions.dtype)
        visible = keys <= positions[..., None]  # [B, T, max_length]
        mixed = attend(q, cache.k[layer].astype(q.dtype), cache.v[layer].astype(q.dtype), visible)
        return self.output(mixed.reshape(*x.shape[:2], -1)), cache
