"""The loop on the device that writes texts: all of one for `generate`, a few steps of one for `stream`."""

from __future__ import annotations

import dataclasses
import enum
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float32, Int, Int32

from jaxgcd import keys
from jaxgcd.decode_fn import DecodeFn, decode
from jaxgcd.plan import Plan
from jaxgcd.sampling import Draw, draw_token
from jaxgcd.state import State, Status
from jaxgcd.stops import read
from jaxgcd.tables.arrays import Tables


class Finish(enum.IntEnum):
    """Why a row of `generate` ended; `EOS`, `STUCK` and `OVERFLOW` have the values of `Status`."""

    LENGTH = 0
    """`max_new_tokens` were drawn, and the text may not be complete."""
    EOS = Status.FINISHED
    """The text is complete."""
    STUCK = Status.STUCK
    """No token could be drawn."""
    OVERFLOW = Status.OVERFLOW
    """The text needed a deeper parser stack than `max_depth`."""
    STOP = 4
    """A stop string or a stop id was drawn; the text may not be complete."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["step", "last_token", "cache", "state", "matched", "length", "excess"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Progress:
    """What one step hands to the next. In the loop a row that a stop ended has the status `Finish.STOP`,
    which is none of `Status`: like all but RUNNING, it makes a row stay as it is."""

    step: Int32[Array, ""]
    last_token: Int32[Array, "*batch"]
    cache: Any
    state: State
    matched: Int32[Array, "*batch"]
    """The state of the stop strings' automaton."""
    length: Int32[Array, "*batch"]
    excess: Int32[Array, "*batch"]


@functools.partial(jax.tree_util.register_dataclass, data_fields=["tokens", "draws"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Record:
    """What some steps drew: tokens `int32[*batch, steps]`, and a `Draw` of `float32[*batch, steps]`."""

    tokens: Int32[Array, "*batch steps"]
    draws: Draw


def begin(cache: Any, state: State, last_token: Int[Array, "*batch"]) -> Progress:
    """Before the first step."""
    # Made from the state, so that on many devices they are laid out as it is.
    zero = 0 * state.status
    last_token = jnp.asarray(last_token).astype(jnp.int32)
    return Progress(jnp.int32(0), last_token, cache, state, matched=zero, length=zero, excess=zero)


def run(
    key: Array,
    decode_fn: DecodeFn,
    tables: Tables,
    plan: Plan,
    progress: Progress,
    *,
    steps: int,
) -> tuple[Progress, Record]:
    """Up to `steps` further steps; fewer if all rows end, or `plan.max_new_tokens` is reached before."""
    first = progress.step
    limit = jnp.minimum(first + steps, plan.max_new_tokens)

    def going(carry: tuple[Progress, Record]) -> Bool[Array, ""]:
        progress, _ = carry
        return (progress.step < limit) & (progress.state.status == Status.RUNNING).any()

    def step(carry: tuple[Progress, Record]) -> tuple[Progress, Record]:
        progress, record = carry
        after, token, draw = _step(key, decode_fn, tables, plan, progress)
        return after, _written(record, progress.step - first, token, draw)

    return lax.while_loop(going, step, (progress, _blank(plan, progress.state, steps)))


def _step(
    key: Array, decode_fn: DecodeFn, tables: Tables, plan: Plan, progress: Progress
) -> tuple[Progress, Int32[Array, "*batch"], Draw]:
    """One step of all rows: the progress, the tokens (`pad_id` where none was added), the draw."""
    logits, cache = decode(decode_fn, progress.last_token, progress.cache, tables.width)
    early = None if plan.min_new_tokens is None else progress.length < plan.min_new_tokens
    drawing = keys.fold(key, progress.step)
    token, state, draw = draw_token(drawing, tables, progress.state, logits, plan.settings, early)
    added = state.status == Status.RUNNING
    matched, excess = progress.matched, progress.excess
    if plan.stops is not None:
        state_of, stopped, behind = read(plan.stops, tables, matched, token)
        matched, excess = jnp.where(added, state_of, matched), jnp.where(added, behind, excess)
        status = jnp.where(added & stopped, jnp.int32(Finish.STOP), state.status)
        state = dataclasses.replace(state, status=status)
    token = jnp.where(added, token, plan.pad_id)
    length = progress.length + added.astype(jnp.int32)
    return Progress(progress.step + 1, token, cache, state, matched, length, excess), token, draw


def _blank(plan: Plan, state: State, steps: int) -> Record:
    shape = (*state.status.shape, steps)
    zero = (0 * state.status)[..., None]
    tokens = jnp.broadcast_to(zero + plan.pad_id, shape)
    nothing: Float32[Array, "*batch steps"] = jnp.broadcast_to(zero.astype(jnp.float32), shape)
    return Record(tokens, Draw(nothing, nothing, nothing))


def _written(record: Record, index: Int32[Array, ""], token: Int32[Array, "*batch"], draw: Draw) -> Record:
    return jax.tree.map(
        lambda whole, new: lax.dynamic_update_index_in_dim(whole, new.astype(whole.dtype), index, axis=-1),
        record,
        Record(token, draw),
    )


def resumable(state: State) -> State:
    """Rows that a stop ended are RUNNING again: the grammar would let them go on."""
    running = state.status == Finish.STOP
    return dataclasses.replace(state, status=jnp.where(running, jnp.int32(Status.RUNNING), state.status))
