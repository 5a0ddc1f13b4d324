"""What happens to one row: its mask, and reading symbols. `jax.vmap` adds the batch axes.

A row is a `State` without batch axes. All loops are `lax.while_loop`s on the device.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Int, UInt32

from jaxgcd.state import State, Status, select
from jaxgcd.tables.arrays import Tables
from jaxgcd.vocabulary import END_OF_TEXT

Runs = tuple[Array, Array, Array]
"""A row's readings: `lexer`, `stack` and `depth` as in `State`."""


class Mask(NamedTuple):
    """One row's mask, as the grammar has it: empty where no token may follow."""

    words: UInt32[Array, " words"]
    """Token bits, without the host's share."""
    some: Bool[Array, ""]
    """Whether any bit is set, in whichever shard of the vocabulary."""
    top: Int[Array, "K slots"]
    """With `check="host"`, the stack tops of slots that need the host; elsewhere 0."""


def row_mask(tables: Tables, state: State) -> Mask:
    """The tokens that may follow a row's text."""
    terminal, base = tables.slot_terminal[state.lexer], tables.slot_base[state.lexer]
    stepped = jax.vmap(jax.vmap(functools.partial(_step, tables), (None, None, 0)))
    stack, depth, ok = stepped(_with_slack(tables, state.stack), state.depth, terminal)
    position = depth - 1
    top = jnp.take_along_axis(stack, position[..., None], axis=-1)[..., 0]
    column = tables.column[top, (terminal > 0).astype(jnp.int32)]
    index = jnp.where((base > 0) & ok, base + column, 0)
    edge = tables.entry[index]
    row = tables.edge_row[edge]
    words, some = _union(tables, row), (row > 0).any()
    if tables.check == "host":
        return Mask(words, some, jnp.where(tables.dependents[index] > 0, top, 0))

    def walk(carry):
        node, position, words, some = carry
        position = position - 1 - tables.node_skip[node]
        below = jnp.take_along_axis(stack, jnp.maximum(position, 0)[..., None], axis=-1)[..., 0]
        edge = jnp.where(position >= 0, tables.node_edge[node, tables.place[below]], 0)
        row = tables.edge_row[edge]
        return tables.edge_node[edge], position, words | _union(tables, row), some | (row > 0).any()

    carry = (tables.edge_node[edge], position, words, some)
    _, _, words, some = lax.while_loop(lambda carry: (carry[0] > 0).any(), walk, carry)
    return Mask(words, some, jnp.zeros_like(top))


def _union(tables: Tables, rows: Array) -> UInt32[Array, " words"]:
    """The union of some rows. Each shard of the vocabulary has pages of its own, the last one cut off."""
    ids = tables.row_pages[rows.reshape(-1)]  # [rows, shards, pages in a shard]
    if tables.shards == 1:
        pages = tables.pages[0][ids[:, 0]][:, None]
    else:
        pages = jax.vmap(lambda own, ids: own[ids], in_axes=(0, 1), out_axes=1)(tables.pages, ids)
    union = lax.reduce(pages, jnp.uint32(0), lax.bitwise_or, (0,))
    return union.reshape(tables.shards, -1)[:, : tables.words // tables.shards].reshape(-1)


def row_advance(tables: Tables, state: State, token: Array) -> State:
    """A row after one more token."""
    begin, end = tables.token_offset[token], tables.token_offset[token + 1]
    known = (token >= 0) & (token < tables.size) & (end > begin)
    runs, deepest = _follow(tables, state, tables.token_symbol, begin, jnp.where(known, end, begin))
    is_eos = known & (tables.token_symbol[begin] == END_OF_TEXT)
    finished = is_eos & _ends(tables, runs)
    new = _settled(state, runs, deepest, known & ~is_eos)
    moving = state.status == Status.RUNNING
    return dataclasses.replace(new, status=jnp.where(finished & moving, Status.FINISHED, new.status))


def row_read(tables: Tables, state: State, symbols: Array, begin: Array, end: Array) -> State:
    """A row after `symbols[begin:end]`, none of which is the end of the text."""
    return _settled(state, *_follow(tables, state, symbols, begin, end), jnp.bool_(True))


def _settled(state: State, runs: Runs, deepest: Array, known: Array) -> State:
    """The row with new readings; or as it was, with the status that says why."""
    lexer, stack, depth = runs
    status = jnp.where(known & (lexer > 0).any(), Status.RUNNING, Status.STUCK)
    status = jnp.where(deepest > state.max_depth, Status.OVERFLOW, status)
    status = jnp.where(state.status == Status.RUNNING, status, state.status).astype(jnp.int32)
    new = State(lexer, stack[:, : state.max_depth], depth, status)
    return select(status == Status.RUNNING, new, dataclasses.replace(state, status=status))


def _follow(tables: Tables, state: State, symbols: Array, begin: Array, end: Array) -> tuple[Runs, Array]:
    """The readings after `symbols[begin:end]` if the row is running, and the deepest stack on the way."""

    def read(carry):
        at, runs, deepest = carry
        runs, depth = _read(tables, runs, tables.symbol_class[symbols[at]])
        return at + 1, runs, jnp.maximum(deepest, depth)

    # In `shard_map` a carry must vary over the same mesh axes before and after an iteration.
    begin, lexer, stack, depth = _alike(begin, state.lexer, _with_slack(tables, state.stack), state.depth)
    stop = jnp.where(state.status == Status.RUNNING, end, begin)
    # One terminal may need `slack` more than `max_depth`; beyond that the stack's array would be too short.
    _, runs, deepest = lax.while_loop(
        lambda carry: (carry[0] < stop) & (carry[2] <= state.max_depth),
        read,
        (begin, (lexer, stack, depth), jnp.zeros_like(begin)),
    )
    return runs, deepest


def _alike(*leaves: Array) -> tuple[Array, ...]:
    """Integers as they are, but each as if it depended on all the others."""
    nothing = sum(0 * leaf.reshape(-1)[0] for leaf in leaves)
    return tuple(leaf + nothing for leaf in leaves)


def _step(tables: Tables, stack: Array, depth: Array, terminal: Array) -> tuple[Array, Array, Array]:
    """Reduce, reduce, shift: one terminal on one stack `int32[depth]`; terminal 0 leaves it as it is."""

    def action(stack, depth):
        return tables.action[stack[depth - 1], terminal]

    def reduce(carry):
        stack, depth, todo = carry
        rule = -todo - 1
        depth = depth - tables.rule_size[rule]
        stack = stack.at[depth].set(tables.goto[stack[depth - 1], tables.rule_origin[rule]])
        return stack, depth + 1, action(stack, depth + 1)

    stack, depth, todo = lax.while_loop(
        lambda carry: carry[2] < 0, reduce, (stack, depth, action(stack, depth))
    )
    shifted = todo > 0
    stack = stack.at[depth].set(jnp.where(shifted, todo, stack[depth]))
    return stack, jnp.where(shifted, depth + 1, depth), shifted | (terminal == 0)


def _with_slack(tables: Tables, stack: Array) -> Array:
    """Room for what a single step may push, so that a stack at `max_depth` can still be looked at."""
    return jnp.pad(stack, [(0, 0)] * (stack.ndim - 1) + [(0, tables.slack)])


def _read(tables: Tables, runs: Runs, symbol: Array) -> tuple[Runs, Array]:
    """One symbol in all readings of a row: each may go on, and may end its lexeme and begin the next one."""
    lexer, stack, depth = runs
    gate = tables.emit_gate[lexer]
    reads = tables.gate_reads[gate, symbol] > 0
    terminal = jnp.where(reads, tables.emit_terminal[lexer], 0)
    step = jax.vmap(jax.vmap(functools.partial(_step, tables), (None, None, 0)))
    emitted_stack, emitted_depth, ok = step(stack, depth, terminal)
    emitted_top = jnp.take_along_axis(emitted_stack, emitted_depth[..., None] - 1, axis=-1)[..., 0]
    begun = tables.delta[tables.gate_state[gate, tables.scanner[emitted_top]], symbol]
    begun = jnp.where(ok & reads, begun, 0)
    lexers = jnp.concatenate([tables.delta[lexer, symbol][:, None], begun], axis=1).reshape(-1)
    stacks = jnp.concatenate([stack[:, None], emitted_stack], axis=1).reshape(len(lexers), -1)
    depths = jnp.concatenate([depth[:, None], emitted_depth], axis=1).reshape(-1)
    top = jnp.take_along_axis(stacks, depths[:, None] - 1, axis=1)[:, 0]
    alive = (lexers > 0) & (tables.can_emit[lexers] & tables.takes[top]).any(axis=1)
    deepest = jnp.where(alive, depths, 0).max()
    # The living ones move to the front; a sort would do it, more slowly.
    kept = jnp.arange(1, len(lexer) + 1, dtype=jnp.int32)
    count = jnp.cumsum(alive, dtype=jnp.int32)
    chosen = jnp.argmax(count == kept[:, None], axis=1)
    lexers = jnp.where(kept <= count[-1], lexers[chosen], 0)
    # The stack keeps its width; what overflowed it is discarded with the whole token.
    return (lexers, stacks[chosen], depths[chosen]), deepest


def _ends(tables: Tables, runs: Runs) -> Bool[Array, ""]:
    """Whether the parser accepts some reading that has read the end of the text.

    The one lexeme of such a reading is `$END`; a dead reading has the terminal 0.
    """
    lexer, stack, depth = runs
    terminal = tables.emit_terminal[lexer, 0]
    _, _, ok = jax.vmap(functools.partial(_step, tables))(stack, depth, terminal)
    return (ok & (lexer > 0)).any()
