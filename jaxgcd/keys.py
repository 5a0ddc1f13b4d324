"""Random keys: typed or raw, one for all rows or one for each."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from jaxgcd.errors import ShapeError


def typed_key(key: Array, batch: tuple[int, ...]) -> Array:
    """The same key or keys, typed; the shape is `()` or `batch`.

    Args:
        key: `jax.random.key(...)`, or what `jax.random.PRNGKey(...)` gives; one, or one for each row.
        batch: the batch axes of the rows.

    Raises:
        ShapeError: this is no key, or there are neither one nor as many as rows.
    """
    key = jnp.asarray(key)
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        key = _wrapped(key)
    if key.shape not in ((), batch):
        raise ShapeError(
            f"There are {key.shape} keys for the batch {batch}; give one `key`, or one for each row, "
            "for example `jax.random.split(key, batch)`."
        )
    return key


def _wrapped(key: Array) -> Array:
    try:
        return jax.random.wrap_key_data(key)
    except (TypeError, ValueError):
        message = f"`key` is {key.dtype}{list(key.shape)}, which is no PRNG key; give `jax.random.key(seed)`."
        raise ShapeError(message) from None


def fold(key: Array, step: int | Int32[Array, ""]) -> Array:
    """The key or keys of one step of a loop. Those of a row depend on its key and the step alone."""
    return _each(jax.random.fold_in, key.ndim, in_axes=(0, None))(key, step)


def draw(key: Array, weights: Float[Array, "*batch size"]) -> Int32[Array, "*batch"]:
    """Draws from unnormalised log-probabilities; with a key for each row, each row as if it were alone.

    The tokens are those of `jax.random.categorical`, which is the same Gumbel maximum (Gumbel 1954).
    """
    return _each(_gumbel_maximum, key.ndim, in_axes=(0, 0))(key, weights)


def _gumbel_maximum(key: Array, weights: Float[Array, "*batch size"]) -> Int32[Array, "*batch"]:
    return argmax(weights + jax.random.gumbel(key, weights.shape, weights.dtype))


def argmax(values: Float[Array, "*batch size"]) -> Int32[Array, "*batch"]:
    """The place of the largest value of each row, the first of equals; as `jnp.argmax`, but faster.

    XLA on CPUs takes a maximum of many values at a time, but goes through an argmax one by one: so first
    comes the maximum of each 32 values, and then the places among these and within one of them.
    """
    width = [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % 32)]
    groups = jnp.pad(values, width, constant_values=-jnp.inf)
    groups = groups.reshape(*values.shape[:-1], -1, 32)
    group = jnp.argmax(groups.max(axis=-1), axis=-1).astype(jnp.int32)
    inside = jnp.take_along_axis(groups, group[..., None, None], axis=-2)[..., 0, :]
    return 32 * group + jnp.argmax(inside, axis=-1).astype(jnp.int32)


def _each(function: Callable[..., Array], axes: int, in_axes: tuple[int | None, ...]) -> Callable[..., Array]:
    for _ in range(axes):
        function = jax.vmap(function, in_axes)
    return function
