"""Rotary positions (Su et al. 2021, RoFormer).

The layout is that of two halves, as in transformers: component `i` of a head turns with component
`i + head_dim / 2`, by `position * frequency[i]`.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Float32, Int

from jaxgcd.errors import ModelError

_LARGEST_HEAD = 1 << 14

Rotation = tuple[Float32[Array, "batch time 1 half"], Float32[Array, "batch time 1 half"]]


@dataclass(frozen=True)
class RopeScaling:
    """How rotary positions are stretched.

    * `divisors`: what each of the `head_dim // 2` frequencies is divided by; empty for none;
    * `attention_factor`: what cosine and sine are multiplied by.
    """

    divisors: tuple[float, ...] = ()
    attention_factor: float = 1.0


NO_SCALING = RopeScaling()


def check_rope(head_dim: int, theta: float) -> None:
    """Raise `ModelError` unless heads of this size can be rotated with wavelengths of this base."""
    if not 2 <= head_dim <= _LARGEST_HEAD or head_dim % 2:
        raise ModelError(f"`head_dim` must be even, from 2 to {_LARGEST_HEAD}, not {head_dim}")
    if not theta > 1:
        raise ModelError(f"`rope_theta` must be greater than 1, not {theta}")


def frequencies(head_dim: int, theta: float) -> np.ndarray:
    """`theta ** (-2 i / head_dim)`, radians per position, `float64[head_dim // 2]`.

    >>> frequencies(4, 10000.0).round(6).tolist()
    [1.0, 0.01]
    """
    return float(theta) ** (-np.arange(0, head_dim, 2) / head_dim)


def rotation(
    positions: Int[Array, "batch time"], head_dim: int, theta: float, scaling: RopeScaling
) -> Rotation:
    """Cosine and sine of each position's angles, `float32[batch, time, 1, head_dim // 2]`."""
    # In float64 and then rounded: at position 100,000 an error of one float32 step in a frequency is 0.006.
    divisors = scaling.divisors or np.ones(head_dim // 2)
    turns = jnp.asarray(frequencies(head_dim, theta) / divisors, jnp.float32)  # [half]
    angles = positions.astype(jnp.float32)[..., None, None] * turns  # [B, T, 1, half]
    factor = jnp.float32(scaling.attention_factor)
    return jnp.cos(angles) * factor, jnp.sin(angles) * factor


def rotate(
    x: Float[Array, "batch time heads head_dim"], by: Rotation
) -> Float[Array, "batch time heads head_dim"]:
    """Turn each pair of components `(i, i + head_dim / 2)` by its angle."""
    cos, sin = by
    first, second = jnp.split(x.astype(jnp.float32), 2, axis=-1)
    turned = jnp.concatenate([first * cos - second * sin, second * cos + first * sin], axis=-1)
    return turned.astype(x.dtype)
