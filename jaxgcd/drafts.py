"""`advance_many`: drafts of tokens, in a row or as a tree, with the state and the mask after each token."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Int, Int32, UInt32

from jaxgcd.decoding import advance, int32_ids, viable
from jaxgcd.errors import ShapeError
from jaxgcd.meshes import batch_spec, on_any_mesh, state_specs, words_spec
from jaxgcd.state import State, Status, select
from jaxgcd.tables.arrays import Tables


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["states", "words", "accepted", "count"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True)
class Trail:
    """Where `advance_many` came by. Place 0 is the state before the draft, place `i + 1` that after token `i`
    (and, in a tree, after those that it follows).
    """

    states: State
    """The states, with the batch axes `*batch draft+1`."""
    words: UInt32[Array, "*batch draft+1 words"]
    """The masks at these states, as `allowed` gives them."""
    accepted: Bool[Array, "*batch draft"]
    """Whether the grammar accepts a token and all that it follows."""
    count: Int32[Array, "*batch"]
    """How many tokens are accepted; without `parents`, the first so many."""

    def state(self, place: Int[Array, "*batch"]) -> State:
        """The state at one place of each row."""
        axis = self.count.ndim
        index = jnp.broadcast_to(jnp.asarray(place, jnp.int32), self.count.shape)
        return jax.tree.map(lambda leaf: _pick(leaf, index[..., None], axis).squeeze(axis), self.states)


def advance_many(
    tables: Tables,
    state: State,
    tokens: Int[Array, "*batch draft"],
    length: int | Int[Array, "*batch"] | None = None,
    *,
    parents: Int[Array, "*batch draft"] | None = None,
) -> tuple[State, Trail]:
    """Reads a draft: the state after each of its tokens, and how many of them the grammar accepts.

    The state that it returns is what repeated calls of `advance` lead to: a token that is not accepted makes
    the row STUCK, sooner or later. `trail.state(n)` is the state to go on with when `n` tokens were kept.

    Args:
        tables: the compiled grammar.
        state: any batch axes.
        tokens: the drafts, behind the batch axes.
        length: how many of a row's tokens count; all by default. The others are not read and not accepted.
        parents: for a tree of drafts, which token each one follows: a number below its own, or -1 for the
            state before the draft; one row for all, or one for each. By default the one before it.

    Returns:
        The state after the first `length` tokens (in a tree, after the last of these), and the `Trail`.

    Raises:
        ShapeError: the shapes do not fit, or a token does not come behind its parent.

    Example:
        >>> import jaxgcd, numpy as np
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> state, trail = jaxgcd.advance_many(tables, jaxgcd.init(tables), np.array([0, 1, 0]))
        >>> trail.accepted.tolist(), trail.words[:, 0].tolist()
        ([True, True, False], [1, 2, 4, 4])
    """
    tokens = jnp.asarray(tokens)
    batch, draft = state.status.shape, tokens.shape[-1:]
    if not jnp.issubdtype(tokens.dtype, jnp.integer) or not draft or tokens.shape[:-1] != batch:
        raise ShapeError(
            f"`tokens` is {tokens.dtype}{list(tokens.shape)}; give integers, a row of them behind the batch "
            f"axes {batch}."
        )
    length = jnp.asarray(tokens.shape[-1] if length is None else length, jnp.int32)
    follows = np.arange(*draft) - 1 if parents is None else parents
    _check_parents(follows, draft, batch)
    try:
        length = jnp.broadcast_to(length, batch)
    except ValueError:
        raise ShapeError(f"`length` has the shape {length.shape}, the state's batch is {batch}.") from None
    places = jnp.broadcast_to(jnp.asarray(follows, jnp.int32) + 1, tokens.shape)
    return _advance_many(tables, state, int32_ids(tokens), length, places)


def _check_parents(parents: Any, draft: tuple[int, ...], batch: tuple[int, ...]) -> None:
    if jnp.shape(parents) not in (draft, (*batch, *draft)):
        raise ShapeError(f"`parents` has the shape {jnp.shape(parents)}; give {draft} or {(*batch, *draft)}.")
    if isinstance(parents, Tracer):
        return
    known = np.asarray(parents)
    backwards = (known >= -1).all() and (known < np.arange(*draft)).all()
    if not np.issubdtype(known.dtype, np.integer) or not backwards:
        raise ShapeError("`parents`: each token follows one with a smaller number, or -1, the state before.")


def _trail_specs(tables: Tables, state: State, *_: Array) -> tuple[State, Trail]:
    batch = batch_spec(state)
    specs = PartitionSpec(*batch)
    words = PartitionSpec(*batch, None, words_spec(tables))
    return state_specs(batch), Trail(state_specs(batch), words, specs, specs)  # type: ignore[arg-type]


@jax.jit
@on_any_mesh(_trail_specs)
def _advance_many(tables: Tables, state: State, tokens: Array, length: Array, places: Array):
    axis, count = state.status.ndim, tokens.shape[-1]
    states = _follow(tables, state, tokens, length, places)
    words, some = viable(tables, states)
    status = lax.slice_in_dim(states.status, 1, None, axis=axis)
    fits = _pick(some, places, axis) & _bit(_pick(words, places, axis), tokens)
    fits &= (status == Status.RUNNING) | (status == Status.FINISHED)
    fits &= jnp.arange(count, dtype=jnp.int32) < length[..., None]
    fits &= (places >= 0) & (places <= jnp.arange(count, dtype=jnp.int32))
    accepted = _with_ancestors(fits, places)
    words = jnp.where(some[..., None], words, tables.eos_words)
    trail = Trail(states, words, accepted, accepted.sum(axis=-1, dtype=jnp.int32))
    return trail.state(length), trail


def _follow(tables: Tables, state: State, tokens: Array, length: Array, places: Array) -> State:
    """The states of the trail; token `i` of a row is read at its place and leads to place `i + 1`."""

    def read(states, inputs):
        i, token, place = inputs
        before = jax.tree.map(lambda leaf: _pick(leaf, jnp.clip(place, 0, i)[None], 0)[0], states)
        after = advance(tables, before, jnp.where(i < length, token, 0))
        after = select(i < length, after, before)
        put = functools.partial(lax.dynamic_update_index_in_dim, index=i + 1, axis=0)
        return jax.tree.map(put, states, after), None

    count = tokens.shape[-1]
    inputs = (jnp.arange(count, dtype=jnp.int32), jnp.moveaxis(tokens, -1, 0), jnp.moveaxis(places, -1, 0))
    states = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (count + 1, *leaf.shape)), state)
    states, _ = lax.scan(read, states, inputs)
    return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, tokens.ndim - 1), states)


def _with_ancestors(fits: Bool[Array, "*batch draft"], places: Int[Array, "*batch draft"]) -> Array:
    """Whether a token and all that it follows fit, by pointers that jump twice as far each time."""
    root = [(0, 0)] * (fits.ndim - 1) + [(1, 0)]
    fits, places = jnp.pad(fits, root, constant_values=True), jnp.pad(places, root)
    for _ in range(places.shape[-1].bit_length()):
        fits &= _pick(fits, places, -1)
        places = _pick(places, places, -1)
    return fits[..., 1:]


def _pick(leaf: Array, index: Array, axis: int) -> Array:
    """Places along one axis; `index` has the leaf's axes up to some behind that one."""
    index = index.reshape(index.shape + (1,) * (leaf.ndim - index.ndim))
    return jnp.take_along_axis(leaf, index, axis=axis, mode="clip")


def _bit(words: UInt32[Array, "*batch words"], token: Int[Array, "*batch"]) -> Bool[Array, "*batch"]:
    """Whether a token's bit is set; never for a number that is no token's."""
    word = jnp.take_along_axis(words, token[..., None] >> 5, axis=-1, mode="clip")[..., 0]
    known = (token >= 0) & (token < 32 * words.shape[-1])
    return known & (word >> (token & 31).astype(jnp.uint32) & jnp.uint32(1) > 0)
