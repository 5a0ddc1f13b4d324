"""A preallocated key-value cache: a pytree of fixed shape, so that it can be a loop carry."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Int32

from .config import LlamaConfig


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Cache:
    """Keys and values of the tokens that a model has read.

    * `k`, `v`: `[layers, batch, max_length, kv_heads, head_dim]`;
    * `length`: `[batch]`, how many tokens each row holds. What lies behind it is never attended to.
    """

    k: Float[Array, "layers batch max_length kv_heads head_dim"]
    v: Float[Array, "layers batch max_length kv_heads head_dim"]
    length: Int32[Array, " batch"]

    @property
    def max_length(self) -> int:
        """How many tokens each row can hold."""
        return self.k.shape[2]

    @property
    def batch(self) -> int:
        """How many rows there are."""
        return self.k.shape[1]

    def write(
        self,
        layer: int,
        positions: Int[Array, "batch time"],
        k: Float[Array, "batch time kv_heads head_dim"],
        v: Float[Array, "batch time kv_heads head_dim"],
    ) -> "Cache":
        """Store keys and values of one layer at `positions`; positions past the end are dropped."""
        rows = jnp.arange(self.batch, dtype=positions.dtype)[:, None]  # [B, 1]
        return replace(
            self,
            k=self.k.at[layer, rows, positions].set(k.astype(self.k.dtype), mode="drop"),
            v=self.v.at[layer, rows, positions].set(v.astype(self.v.dtype), mode="drop"),
        )

    def extend(self, lengths: Int[Array, " batch"]) -> "Cache":
        """Count `lengths` more tokens as read."""
        return replace(self, length=self.length + lengths.astype(jnp.int32))

    def repeat(self, count: int) -> "Cache":
        """Each row `count` times, one behind the other."""
        return Cache(
            k=jnp.repeat(self.k, count, axis=1),
            v=jnp.repeat(self.v, count, axis=1),
            length=jnp.repeat(self.length, count),
        )


def empty_cache(config: LlamaConfig, batch: int, max_length: int, dtype: DTypeLike) -> Cache:
    """A cache of `batch` rows with room for `max_length` tokens each."""
    shape = (config.num_layers, batch, max_length, config.num_kv_heads, config.head_dim)
    return Cache(
        k=jnp.zeros(shape, dtype),
        v=jnp.zeros(shape, dtype),
        length=jnp.zeros((batch,), jnp.int32),
    )
