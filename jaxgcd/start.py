"""`init`: the state at the beginning of a text, or behind one that is already there."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Int

from jaxgcd.errors import ShapeError
from jaxgcd.meshes import on_any_mesh, state_specs
from jaxgcd.prefix import Texts, encoded, read_prefix
from jaxgcd.state import State, Status
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.options import MOST_DEPTH


def init(
    tables: Tables,
    batch_shape: int | tuple[int, ...] = (),
    *,
    grammar: int | Sequence[int] | Int[Array, "*batch"] | None = None,
    prefix: str | bytes | Sequence[str | bytes] = b"",
    max_depth: int | None = None,
) -> State:
    """The state of the empty text, or of one that is already there.

    Args:
        tables: the compiled grammar, or several (see `concatenate`).
        batch_shape: leading axes of every leaf. May be left out where `grammar` or `prefix` has one entry for
            each row.
        grammar: the number of the grammar, for all rows or for each. What `compile_grammar` returns holds one
            grammar, number 0, which need not be given. In joined tables number 0 is "unconstrained", the
            grammars are numbered from 1 on, and none is the default. A number that is not known before the
            jitted function runs, and that no grammar has, makes the row STUCK.
        prefix: text that is already written, for all rows or for each (then there is one batch axis): a
            prefilled answer, or the end of a prompt that belongs to the structure. It is read byte by byte,
            so it need not end where a token does; a byte that is in no token cannot be read.
        max_depth: the most parser states that a stack of this state may hold; by default that of the tables.

    Returns:
        The state. Inside a jitted function, a row whose prefix is not legal is STUCK or OVERFLOW.

    Raises:
        ShapeError: there is no such grammar, or it has to be said which one; the shapes differ.
        PrefixError: no text of the grammar begins with the prefix; says from which byte on.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> jaxgcd.init(tables, (8,)).status.shape
        (8,)
        >>> jaxgcd.allowed(tables, jaxgcd.init(tables, prefix="a")).tolist()
        [2]
    """
    ids = _grammar_ids(tables, grammar)
    texts = encoded(prefix)
    own = _common(ids.shape, _shape_of(texts))
    shape = _common(_batch_shape(batch_shape), own)
    depth = tables.max_depth if max_depth is None else max_depth
    if not isinstance(depth, (int, np.integer)) or isinstance(depth, bool) or not 2 <= depth <= MOST_DEPTH:
        raise ShapeError(f"`max_depth={max_depth!r}` must be an integer from 2 to {MOST_DEPTH}.")
    if not any(texts):
        return _empty_text(tables, jnp.broadcast_to(ids, shape), int(depth))
    state = read_prefix(tables, _empty_text(tables, jnp.broadcast_to(ids, own), int(depth)), texts)
    return jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (*shape, *leaf.shape[len(own) :])), state)


@functools.partial(jax.jit, static_argnums=2)
@on_any_mesh(lambda tables, ids, _: state_specs(tuple(jax.typeof(ids).sharding.spec)))
def _empty_text(tables: Tables, ids: Int[Array, "*batch"], max_depth: int) -> State:
    exists = (ids >= 0) & (ids < tables.grammars)
    lexer = jnp.where(exists, tables.start_lexer[ids], 0).astype(jnp.int32)
    parser = jnp.where(exists, tables.start_parser[ids], 0).astype(jnp.int32)
    return State(
        _first_of(tables.runs, lexer),
        _first_of(tables.runs, _first_of(max_depth, parser), axis=-2),
        _first_of(tables.runs, jnp.ones_like(lexer)),
        jnp.where(lexer > 0, Status.RUNNING, Status.STUCK).astype(jnp.int32),
    )


def _first_of(size: int, value: Array, axis: int = -1) -> Array:
    """A new axis with the value at its first place and zeros behind."""
    value = jnp.expand_dims(value, axis)
    width = [(0, 0)] * value.ndim
    width[axis] = (0, size - 1)
    return jnp.pad(value, width)


def _grammar_ids(tables: Tables, grammar: int | Sequence[int] | Array | None) -> Array:
    if grammar is None and tables.grammars > 1:
        raise ShapeError(
            f"These tables hold {tables.grammars} grammars: say which one each row follows, with `grammar` "
            f"from 0 (unconstrained) to {tables.grammars - 1}."
        )
    ids = jnp.asarray(0 if grammar is None else grammar)
    if not jnp.issubdtype(ids.dtype, jnp.integer):
        raise ShapeError(f"`grammar` is {ids.dtype}; give the integers of grammars.")
    if not isinstance(ids, Tracer) and ids.size and ids.is_fully_addressable:
        low, high = int(np.min(ids)), int(np.max(ids))
        if low < 0 or high >= tables.grammars:
            held = "one grammar, number 0" if tables.grammars == 1 else f"grammars 0 to {tables.grammars - 1}"
            raise ShapeError(f"`grammar={low if low < 0 else high}`: these tables hold {held}.")
    return ids.astype(jnp.int32)


def _shape_of(texts: Texts) -> tuple[int, ...]:
    return () if isinstance(texts, bytes) else (len(texts),)


def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
    """The batch shape of two arguments, of which one may have none."""
    if one and other and one != other:
        raise ShapeError(
            f"`batch_shape`, `grammar` and `prefix` ask for the different batch shapes {one} and {other}."
        )
    return one or other


def _batch_shape(batch_shape: int | tuple[int, ...]) -> tuple[int, ...]:
    try:
        axes = tuple(batch_shape) if isinstance(batch_shape, (tuple, list)) else (batch_shape,)
        shape = tuple(operator.index(axis) for axis in axes)
    except TypeError:
        shape = (-1,)
    if min(shape, default=0) < 0:
        raise ShapeError(f"`batch_shape={batch_shape!r}` must be a size or a tuple of sizes, none below 0.")
    return shape
