"""Random keys: typed or raw, one for all rows or one for each."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax import lax
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
    try:
        key = jnp.asarray(key)
    except (TypeError, ValueError, OverflowError):
        raise ShapeError("`key` is no PRNG key; give `jax.random.key(seed)`.") from None
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
    return _each(lambda key: jax.random.fold_in(key, step), key)


def draw(key: Array, weights: Float[Array, "*batch size"]) -> Int32[Array, "*batch"]:
    """Draws from unnormalised log-probabilities; with a key for each row, each row as if it were alone.

    The tokens are those of `jax.random.categorical`, which is the same Gumbel maximum (Gumbel 1954).
    """
    return _each(_gumbel_maximum, key, weights)


def _gumbel_maximum(key: Array, weights: Float[Array, "*batch size"]) -> Int32[Array, "*batch"]:
    return argmax(weights + jax.random.gumbel(key, weights.shape, weights.dtype))


def argmax(values: Float[Array, "*batch size"]) -> Int32[Array, "*batch"]:
    """The place of the largest value of each row, the first of equals; as `jnp.argmax`, but faster.

    XLA on CPUs takes a maximum of many values at a time, but goes through an argmax one by one: so first
    comes the maximum of each 32 values, and then the places among these and within one of them.
    """
    width = [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % 32)]
    groups = jnp.pad(values, width, constant_values=-jnp.inf)
    groups = groups.reshape(*values.shape[:-1], groups.shape[-1] // 32, 32)  # also where there are no rows
    group = jnp.argmax(groups.max(axis=-1), axis=-1).astype(jnp.int32)
    inside = jnp.take_along_axis(groups, group[..., None, None], axis=-2)[..., 0, :]
    return 32 * group + jnp.argmax(inside, axis=-1).astype(jnp.int32)


def _each(function: Callable[..., Array], key: Array, *arrays: Array) -> Array:
    """The function of each row's key and arrays; of all of them at once where there is one key.

    Bits of `rbg` and `unsafe_rbg` keys under `vmap` are made of the first row's key alone, so that with any
    but JAX's own generator rows come one after the other.
    """
    independent = str(jax.random.key_impl(key)) == "threefry2x32"
    for _ in range(key.ndim):
        function = jax.vmap(function) if independent else functools.partial(_one_by_one, function)
    return function(key, *arrays)


def _one_by_one(function: Callable[..., Array], *arrays: Array) -> Array:
    return lax.map(lambda row: function(*row), arrays)
