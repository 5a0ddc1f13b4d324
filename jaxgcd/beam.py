"""`beam_search`: the likeliest texts of the grammar, in one `lax.while_loop` on the device.

Every row keeps `beams` texts that go on and the best `beams` that have ended. A score is the logarithm of the
probability that the model itself, without the grammar, gives a text: the grammar only takes away the others.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Float32, Int, Int32

from jaxgcd.arguments import count
from jaxgcd.decode_fn import DecodeFn, as_partial, decode
from jaxgcd.decoding import advance, unpack, viable
from jaxgcd.errors import ShapeError
from jaxgcd.loop import Finish
from jaxgcd.meshes import on_any_mesh
from jaxgcd.plan import check_arguments, padding
from jaxgcd.state import State, Status
from jaxgcd.tables.arrays import Tables


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["tokens", "length", "score", "finish"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True)
class Beams:
    """What `beam_search` returns: texts that have ended before others, and then the best score first."""

    tokens: Int32[Array, "*batch beams max_new_tokens"]
    """Token ids; behind a text's end `pad_id`. The EOS token itself is not among them."""
    length: Int32[Array, "*batch beams"]
    """How many tokens each text has, EOS not counted."""
    score: Float32[Array, "*batch beams"]
    """Log-probability, that of EOS included, divided by the number of tokens to the power of
    `length_penalty`; -inf where there are fewer texts than beams.
    """
    finish: Int32[Array, "*batch beams"]
    """`EOS`, or `LENGTH` for a text that is not complete; where there is none, `STUCK` or `OVERFLOW`."""


class _Texts(NamedTuple):
    """Some texts of each row, `[rows, beams]`."""

    score: Array  # float32, -inf for none
    tokens: Array  # int32[..., max_new_tokens]
    length: Array  # int32


class _Beam(NamedTuple):
    """What is known of all beams between two steps."""

    state: State  # [rows, beams]
    live: _Texts
    ended: _Texts
    overflowed: Array  # bool[rows], whether some text needed a deeper stack


def beam_search(
    decode_fn: DecodeFn,
    cache: Any,
    tables: Tables,
    state: State,
    last_token: Int[Array, "*batch"],
    *,
    beams: int,
    max_new_tokens: int,
    length_penalty: float | Array = 1.0,
    pad_id: int | Array | None = None,
    cache_axes: Any = 0,
) -> Beams:
    """Finds the likeliest texts of the grammar, a beam at a time.

    Args:
        decode_fn: one step of the model for all beams at once, `int32[rows * beams]` tokens to
            `float[rows * beams, size]` logits; see `generate`.
        cache: the model's state after all of the prompt but its last token, for `rows` rows (the batch axes
            as one). It is repeated for each beam, and reordered as beams are.
        tables: the compiled grammar.
        state: the grammar's state, any batch axes.
        last_token: the last token of each row's prompt.
        beams: how many texts to keep in each row.
        max_new_tokens: the most tokens to draw.
        length_penalty: scores are divided by the number of tokens, EOS included, to this power; 0 compares
            probabilities as they are.
        pad_id: what stands behind the end of a text; by default the vocabulary's lowest EOS id.
        cache_axes: where the rows are in the cache's leaves: an integer, or a pytree of integers as in
            `jax.vmap`; for `jaxgcd.models.Cache` it is `Cache(k=1, v=1, length=0)`.

    Returns:
        `Beams`. A beam whose stack would overflow is dropped.

    Raises:
        ShapeError: an argument is out of range, the cache has no such axis with an entry for each row, or
            what `decode_fn` returns does not fit.

    Example:
        >>> import jax.numpy as jnp, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" | "b" "b"', vocabulary)
        >>> def likes_b(last_token, cache):
        ...     return jnp.tile(jnp.array([0.0, 2.0, 0.0]), (len(last_token), 1)), cache
        >>> state = jaxgcd.init(tables)
        >>> found = jaxgcd.beam_search(likes_b, (), tables, state, 0, beams=2, max_new_tokens=4)
        >>> found.tokens.tolist(), found.length.tolist()
        ([[1, 1, 2, 2], [0, 2, 2, 2]], [2, 1])
    """
    beams, batch = count("beams", beams), state.status.shape
    last_token, max_new_tokens = check_arguments(state, last_token, max_new_tokens)
    axes = _leaf_axes(cache_axes, cache, math.prod(batch))
    arrays = (last_token, length_penalty, padding(tables, pad_id))
    options = {"beams": beams, "steps": max_new_tokens, "axes": axes}
    return _beam_search(as_partial(decode_fn), cache, tables, state, *arrays, **options)


@functools.partial(jax.jit, static_argnames=("beams", "steps", "axes"))
def _beam_search(
    decode_fn, cache, tables, state, last_token, length_penalty, pad_id, *, beams, steps, axes
) -> Beams:
    batch, penalty = state.status.shape, jnp.asarray(length_penalty, jnp.float32)
    if len(batch) != 1:
        state = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[len(batch) :]), state)

    def going(carry):
        i, _, _, beam = carry
        longest = jnp.asarray(steps, jnp.float32)
        best = jnp.maximum(beam.live.score / longest**penalty, _normal(beam.live, 1, penalty)).max(axis=1)
        return (i < steps) & (best > beam.ended.score.min(axis=1)).any()

    def step(carry):
        i, cache, last_token, beam = carry
        logits, cache = decode(decode_fn, last_token, cache, tables.size)
        beam, parent, token = _grown(tables, beam, logits, i, penalty)
        return i + 1, _reordered(cache, axes, parent, beams), token, beam

    beam, parent, last_token = _begun(state, last_token.reshape(-1), pad_id, beams, steps)
    carry = (jnp.int32(0), _reordered(cache, axes, parent, 1), last_token, beam)
    beam = lax.while_loop(going, step, carry)[-1]
    found = _result(beam, state.status, penalty, pad_id)
    if len(batch) == 1:
        return found
    return jax.tree.map(lambda leaf: leaf.reshape(*batch, *leaf.shape[1:]), found)


def _rows_spec(rows: Array) -> PartitionSpec:
    """How rows are laid out, which is how all that has rows is laid out."""
    return PartitionSpec(*jax.typeof(rows).sharding.spec[:1])


@on_any_mesh(lambda state, *_: (_rows_spec(state.status),) * 3)
def _begun(
    state: State, last_token: Array, pad_id: Array, beams: int, steps: int
) -> tuple[_Beam, Array, Array]:
    """All beams of a row are the empty text, which counts once; the row of each, and its last token."""
    nothing = jnp.broadcast_to(0 * state.status[:, None], (len(last_token), beams))  # as rows are laid out
    first = (state.status == Status.RUNNING)[:, None] & (jnp.arange(beams) == 0)
    live = _Texts(
        jnp.where(first, 0.0, -jnp.inf).astype(jnp.float32),
        nothing[..., None] + jnp.full(steps, pad_id, jnp.int32),
        nothing,
    )
    ended = live._replace(score=jnp.full_like(live.score, -jnp.inf))
    state = _take(jax.tree.map(lambda leaf: leaf[:, None], state), nothing)
    return _Beam(state, live, ended, nothing[:, 0] > 0), nothing, jnp.repeat(last_token, beams)


@on_any_mesh(lambda tables, beam, *_: (_rows_spec(beam.state.status),) * 3)
def _grown(
    tables: Tables, beam: _Beam, logits: Array, step: Array, penalty: Array
) -> tuple[_Beam, Array, Array]:
    """The beams with one more token; the beams that they come from, and the tokens as one axis."""
    rows, beams = beam.live.score.shape
    logits = logits.reshape(rows, beams, tables.size).astype(jnp.float32)
    going_on, ending = _continuations(tables, beam.state, beam.live.score, logits)
    over = _Texts(_normal(beam.live._replace(score=ending), 1, penalty), *beam.live[1:])
    score, parent, token = _best(going_on, beams)
    live = _take(beam.live, parent)
    tokens = lax.dynamic_update_index_in_dim(live.tokens, token, step, axis=2)
    after = advance(tables, _take(beam.state, parent), token)
    deep = (after.status == Status.OVERFLOW) & (score > -jnp.inf)
    live = _Texts(jnp.where(after.status == Status.RUNNING, score, -jnp.inf), tokens, live.length + 1)
    ended = _joined(beam.ended, over)
    ended = _take(ended, lax.top_k(ended.score, beams)[1])
    return _Beam(after, live, ended, beam.overflowed | deep.any(axis=1)), parent, token.reshape(-1)


def _continuations(tables: Tables, state: State, score: Array, logits: Array) -> tuple[Array, Array]:
    """Scores of all texts that go on, `[rows, beams, size]`, and of those that end, `[rows, beams]`."""
    words, some = viable(tables, state)
    bits = unpack(words, tables.size) & some[..., None]
    total = score[..., None] + jnp.where(bits, jax.nn.log_softmax(logits), -jnp.inf)
    ends = unpack(tables.eos_words, tables.size)
    return jnp.where(ends, -jnp.inf, total), jnp.where(ends, total, -jnp.inf).max(axis=-1)


def _best(score: Array, beams: int) -> tuple[Array, Array, Array]:
    """The best texts that go on: score, beam that they come from, token; `[rows, beams]` each."""
    size = score.shape[-1]
    found, index = lax.top_k(score.reshape(len(score), -1), beams)
    return found, index // size, index % size


def _normal(texts: _Texts, more: int, penalty: Array) -> Array:
    """Scores as if the texts had `more` tokens, divided by the length to the power of the penalty."""
    return texts.score / jnp.maximum(texts.length + more, 1).astype(jnp.float32) ** penalty


def _take(tree, index: Array):
    """Beams of each row, by their places `[rows, beams]`."""
    return jax.tree.map(
        lambda leaf: jnp.take_along_axis(leaf, index.reshape(index.shape + (1,) * (leaf.ndim - 2)), axis=1),
        tree,
    )


def _joined(one: _Texts, other: _Texts) -> _Texts:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves, axis=1), one, other)


@on_any_mesh(lambda cache, *_: jax.tree.map(lambda leaf: jax.typeof(leaf).sharding.spec, cache))
def _reordered(cache, axes: tuple[int | None, ...], parent: Array, per_row: int):
    """The cache of beams that come from others; the beams of a row follow one another, `per_row` of them."""
    leaves, structure = jax.tree.flatten(cache)
    index = (jnp.arange(len(parent), dtype=jnp.int32)[:, None] * per_row + parent).reshape(-1)

    def take(leaf: Array, axis: int | None) -> Array:
        if axis is None:
            return leaf
        return jnp.take(leaf, index, axis=axis)

    return jax.tree.unflatten(structure, map(take, leaves, axes))


@on_any_mesh(lambda beam, *_: _rows_spec(beam.state.status))
def _result(beam: _Beam, begun: Array, penalty: Array, pad_id: Array) -> Beams:
    """Texts that have ended, then those that have not, and then nothing."""
    beams = beam.live.score.shape[1]
    texts = _joined(beam.ended, beam.live._replace(score=_normal(beam.live, 0, penalty)))
    ended = jnp.broadcast_to(jnp.arange(2 * beams) < beams, texts.score.shape)
    there = texts.score > -jnp.inf
    order = jnp.argsort(-texts.score, axis=1, stable=True)
    rank = jnp.where(there, jnp.where(ended, 0, 1), 2)
    order = jnp.take_along_axis(order, jnp.argsort(jnp.take_along_axis(rank, order, axis=1), axis=1), axis=1)
    none = jnp.where(beam.overflowed, Finish.OVERFLOW, Finish.STUCK)
    none = jnp.where(begun == Status.RUNNING, none, begun)[:, None]
    finish = jnp.where(there, jnp.where(ended, Finish.EOS, Finish.LENGTH), none).astype(jnp.int32)
    tokens = jnp.where(there[..., None], texts.tokens, pad_id)
    found = Beams(tokens, jnp.where(there, texts.length, 0), texts.score, finish)
    return _take(found, order[:, :beams])


def _leaf_axes(cache_axes: Any, cache: Any, rows: int) -> tuple[int | None, ...]:
    """The axis of rows in each leaf of the cache."""

    def of_part(axis: int | None, part: Any) -> list[int | None]:
        for leaf in jax.tree.leaves(part):
            if axis is not None and jnp.shape(leaf)[axis : axis + 1] != (rows,):
                raise ShapeError(
                    f"A leaf of the cache has the shape {jnp.shape(leaf)} and no axis {axis} with {rows} "
                    "rows; say with `cache_axes` where they are (None: in no axis)."
                )
        return [axis] * len(jax.tree.leaves(part))

    parts = jax.tree.map(of_part, cache_axes, cache, is_leaf=lambda axis: axis is None)
    lists = jax.tree.leaves(parts, is_leaf=lambda part: isinstance(part, list))
    return tuple(axis for part in lists for axis in part)
