"""Arguments that can be anything: numbers, counts and arrays, checked and converted."""

from __future__ import annotations

import operator
import reprlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array

from jaxgcd.errors import ShapeError

_INT32 = np.iinfo(np.int32)


def count(name: str, value: Any) -> int:
    """A size that shapes a program, as an `int`; `ShapeError` unless it is an integer of at least 1."""
    try:
        number = 0 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = 0
    if not 1 <= number <= _INT32.max:
        raise ShapeError(f"`{name}={reprlib.repr(value)}` must be an integer of at least 1, below 2**31.")
    return number


def integers(name: str, value: ArrayLike) -> Array:
    """Integers of any shape as int32, those beyond it as its ends; `ShapeError` for anything else."""
    if isinstance(value, int):
        value = min(max(value, _INT32.min), _INT32.max)  # "all" is often written as a huge number
    array = _array(value)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ShapeError(f"`{name}={reprlib.repr(value)}` must be an integer, or an array of integers.")
    if isinstance(array, np.ndarray):
        array = np.clip(array.astype(np.float64), _INT32.min, _INT32.max).astype(np.int32)
    return jnp.asarray(array).astype(jnp.int32)


def floats(name: str, value: ArrayLike) -> Array:
    """Real numbers of any shape as float32; `ShapeError` for anything else."""
    array = _array(value)
    if not any(jnp.issubdtype(array.dtype, kind) for kind in (jnp.integer, jnp.floating, jnp.bool_)):
        raise ShapeError(f"`{name}={reprlib.repr(value)}` must be a number, or an array of numbers.")
    if isinstance(array, np.ndarray):
        with np.errstate(over="ignore"):
            array = array.astype(np.float32)
    return jnp.asarray(array).astype(jnp.float32)


def per_row(name: str, array: Array, batch: tuple[int, ...]) -> Array:
    """The same array; `ShapeError` unless it is one number, or one for each row."""
    if array.shape not in ((), batch):
        rows = f", or one for each row of the batch {batch}" if batch else ""
        raise ShapeError(f"`{name}` has the shape {array.shape}; give one number{rows}.")
    return array


def _array(value: Any) -> Array | np.ndarray:
    """An array of JAX where there is one inside, else of NumPy: of objects, where these are no numbers."""
    try:
        if any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
            return jnp.asarray(value)
        return np.asarray(value)
    except (TypeError, ValueError, OverflowError):
        return np.array(None)
