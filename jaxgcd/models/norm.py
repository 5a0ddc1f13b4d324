"""RMSNorm (Zhang and Sennrich 2019)."""

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Array, Float


class RMSNorm(nnx.Module):
    """Divide the last axis by its root mean square, computed in float32, and scale."""

    def __init__(self, size: int, eps: float, *, dtype: DTypeLike):
        self.eps = eps
        self.scale = nnx.Param(jnp.ones((size,), dtype))

    def __call__(self, x: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
        wide = x.astype(jnp.float32)
        mean = jnp.mean(jnp.square(wide), axis=-1, keepdims=True)
        return (wide * jax.lax.rsqrt(mean + self.eps)).astype(x.dtype) * self.scale[...].astype(x.dtype)
