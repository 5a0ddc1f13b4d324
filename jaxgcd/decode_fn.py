"""The model's side of the loops: what a `decode_fn` is, and what to say of one that is none.

Shapes are known while a loop is traced, so a model that does not fit is found before anything runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int32

from jaxgcd.errors import ShapeError

Cache = TypeVar("Cache")
DecodeFn = Callable[[Array, Cache], tuple[Array, Cache]]
"""`(last_token int32[*batch], cache) -> (logits float[*batch, size], cache)`, one step of a language model.
"""


def as_partial(decode_fn: DecodeFn) -> jax.tree_util.Partial:
    """A `decode_fn` that can be an argument of a jitted function."""
    if not callable(decode_fn):
        raise ShapeError(
            f"`decode_fn` is {_kind(decode_fn)}; give a function `(last_token, cache) -> (logits, cache)`."
        )
    return decode_fn if isinstance(decode_fn, jax.tree_util.Partial) else jax.tree_util.Partial(decode_fn)


def decode(
    decode_fn: DecodeFn, last_token: Int32[Array, "*batch"], cache: Any, size: int
) -> tuple[Float[Array, "*batch size"], Any]:
    """One step of the model in each row; `size` is the width of the vocabulary.

    Raises:
        ShapeError: it does not return `(logits, cache)`, the logits are not `[*batch, size]`, or the cache
            is not like the one it was given, as a loop on the device needs it.
    """
    output = decode_fn(last_token, cache)
    if not isinstance(output, tuple | list) or len(output) != 2:
        raise ShapeError(f"`decode_fn` returned {_kind(output)}; it must return `(logits, cache)`.")
    logits, after = output
    _check_logits(logits, (*last_token.shape, size))
    _check_cache(cache, after)
    return jnp.asarray(logits), after


def _kind(value: Any) -> str:
    """What something is, shortly."""
    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return f"an array {value.dtype}{list(value.shape)}"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _check_logits(logits: Any, wanted: tuple[int, ...]) -> None:
    shape, dtype = getattr(logits, "shape", None), getattr(logits, "dtype", None)
    if shape is None or dtype is None:
        raise ShapeError(
            f"`decode_fn` returned {_kind(logits)} as logits; return `(logits, cache)`, in this order."
        )
    if not jnp.issubdtype(dtype, jnp.floating):
        raise ShapeError(
            f"`decode_fn` returned logits of {dtype}; return floating-point scores of all tokens, from which "
            "jaxgcd draws."
        )
    if shape != wanted:
        raise ShapeError(
            f"`decode_fn` returned logits of the shape {shape}, where {wanted} is needed. "
            f"{_remedy(shape, wanted)}"
        )


def _remedy(shape: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """What makes logits of one shape logits of the other."""
    *batch, size = wanted
    if len(shape) == len(wanted) + 1 and [*shape[:-2]] == batch:
        return "Leave out the axis of positions: `logits[..., -1, :]`."
    if [*shape[:-1]] != batch:
        return f"Give one row of logits for each `last_token`, whose batch axes are {tuple(batch)}."
    if shape[-1] > size:
        return (
            f"The model's head is wider than its tokenizer: compile for `Vocabulary(..., size={shape[-1]})`."
        )
    return f"The vocabulary has {size - shape[-1]} ids more than the model: use the model's own tokenizer."


def _check_cache(before: Any, after: Any) -> None:
    """The loop carries the cache, so all of its leaves keep their places, shapes and dtypes."""
    old, new = _leaves(before), _leaves(after)
    if old.keys() != new.keys() or jax.tree.structure(before) != jax.tree.structure(after):
        changes = [f"{name} is new" for name in new.keys() - old] + [
            f"{name} is gone" for name in old.keys() - new
        ]
        raise ShapeError(
            "`decode_fn` returned a cache of another structure than it was given "
            f"({', '.join(sorted(changes)[:3]) or 'its containers differ'}); return the same pytree, filled."
        )
    for name, leaf in old.items():
        known, found = jax.typeof(leaf), jax.typeof(new[name])
        # A Python number takes the dtype of what comes back, as in `lax.while_loop`.
        same_dtype = known.weak_type or known.dtype == found.dtype
        if known.shape != found.shape or not same_dtype:
            raise ShapeError(
                f"`decode_fn` made of the cache's leaf {name}, {_kind(known)}, {_kind(found)}; it must "
                "keep its shape and dtype. Allocate it for all positions; convert what is written into it."
            )


def _leaves(tree: Any) -> dict[str, Any]:
    """The leaves by their places, as `cache['k'][0]`."""
    return {
        f"cache{jax.tree_util.keystr(path)}": leaf for path, leaf in jax.tree_util.tree_leaves_with_path(tree)
    }
