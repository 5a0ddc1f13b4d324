"""What happens to rows: their masks, for a batch at once, and reading symbols, for one row.

All loops are `lax.while_loop`s on the device.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
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
    """The masks of some rows, as the grammar has them: empty where no token may follow."""

    words: UInt32[Array, "rows words"]
    """Token bits, without the host's share."""
    some: Bool[Array, " rows"]
    """Whether any bit is set, in whichever shard of the vocabulary."""
    top: Int[Array, "rows K slots"]
    """With `check="host"`, the stack tops of slots that need the host; elsewhere 0."""


class Stepped(NamedTuple):
    """A stack after a step: its lowest states as they were, and new ones on them. The stack is not copied."""

    kept: Int[Array, ""]
    """How many states are as they were."""
    new: Int[Array, " slack"]
    count: Int[Array, ""]
    """How many of `new` there are."""
    ok: Bool[Array, ""]
    """Whether the terminal was shifted, or there was none."""

    def state(self, stack: Array, position: Array) -> Array:
        """The state at some height; `stack` is the one that was stepped."""
        new = self.new[jnp.clip(position - self.kept, 0, len(self.new) - 1)]
        return jnp.where(position >= self.kept, new, stack[jnp.maximum(position, 0)])

    def top(self, stack: Array) -> Array:
        """The state on top."""
        return self.state(stack, self.kept + self.count - 1)


def look_up(array: Array, *index: Array | int) -> Array:
    """Elements of a table as `int32`: it may be stored in fewer bits, in which places must not be added."""
    return array[index].astype(jnp.int32)


def masks(tables: Tables, state: State) -> Mask:
    """The tokens that may follow the texts of some rows; the state has one batch axis."""
    terminal, base = look_up(tables.slot_terminal, state.lexer), look_up(tables.slot_base, state.lexer)
    stepped = jax.vmap(functools.partial(_stepped, tables))(state.stack, state.depth, terminal)
    top = jax.vmap(_each(Stepped.top))(stepped, state.stack)
    column = look_up(tables.column, top, (terminal > 0).astype(jnp.int32))
    index = jnp.where((base > 0) & stepped.ok, base + column, 0)
    edge = look_up(tables.entry, index)
    row = look_up(tables.edge_row, edge)
    words = _union(tables, row)
    if tables.check == "host":
        needs = jnp.where(tables.dependents[index] > 0, top, 0)
        return Mask(_joined(tables, words), (row > 0).any(axis=(1, 2)), needs)

    def behind(edge, position):
        """The node behind an edge, and the height of the state that it reads."""
        return look_up(tables.edge_node, edge), position - 1 - tables.edge_skip[edge]

    def walk(carry):
        node, position, words, some = carry
        below = jax.vmap(_each(Stepped.state))(stepped, state.stack, position)
        edge = look_up(tables.node_edge, node, look_up(tables.place, below))
        edge = jnp.where(position >= 0, edge, 0)
        row = look_up(tables.edge_row, edge)
        return *behind(edge, position), _union(tables, row, words), some | (row > 0)

    carry = (*behind(edge, stepped.kept + stepped.count - 1), words, row > 0)
    _, _, words, some = lax.while_loop(lambda carry: (carry[0] > 0).any(), walk, carry)
    return Mask(_joined(tables, words), some.any(axis=(1, 2)), jnp.zeros_like(top))


def _stepped(tables: Tables, stack: Array, depth: Array, terminal: Array) -> Stepped:
    """Terminals `[K, n]` of one row, each stepped on its reading's stack."""
    return jax.vmap(jax.vmap(functools.partial(_step, tables), (None, None, 0)))(stack, depth, terminal)


def _each(function: Callable[..., Array]) -> Callable[..., Array]:
    """A function of one `Stepped`, its reading's stack, and maybe more, for all `[K, n]` of one row."""

    def of_all(stepped: Stepped, stack: Array, *more: Array) -> Array:
        return jax.vmap(jax.vmap(function, (0, None, *(0 for _ in more))))(stepped, stack, *more)

    return of_all


def _union(tables: Tables, rows: Array, words: Array | None = None) -> Array:
    """The union of some table rows for each row of the batch, and of `words` if there are any already; both
    as pages of token bits, `uint32[rows, shards, pages in a shard, words in a page]`.

    Most slots have no table row or the same one, so the distinct ones are looked at, one after another, the
    largest number first.
    """
    left = rows.reshape(len(rows), math.prod(rows.shape[1:]))  # there may be no rows

    def add(carry):
        left, words = carry
        row = left.max(axis=1)
        return jnp.where(left == row[:, None], 0, left), words | _pages(tables, row)

    if words is None:
        row = left.max(axis=1)
        left, words = jnp.where(left == row[:, None], 0, left), _pages(tables, row)
    return lax.while_loop(lambda carry: (carry[0] > 0).any(), add, (left, words))[1]


def _pages(tables: Tables, row: Array) -> Array:
    """The pages of table rows. Each shard of the vocabulary has pages of its own."""
    ids = look_up(tables.row_pages, row)  # [rows, shards, pages in a shard]
    if tables.shards == 1:
        return tables.pages[0][ids[:, 0]][:, None]
    return jax.vmap(lambda own, ids: own[ids], in_axes=(0, 1), out_axes=1)(tables.pages, ids)


def _joined(tables: Tables, pages: Array) -> UInt32[Array, "rows words"]:
    """Pages behind one another, each shard's last one cut off."""
    words = pages.reshape(*pages.shape[:2], math.prod(pages.shape[2:]))[:, :, : tables.words // tables.shards]
    return words.reshape(len(pages), tables.words)


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
        runs, depth = _read(tables, runs, look_up(tables.symbol_class, look_up(symbols, at)))
        return at + 1, runs, jnp.maximum(deepest, depth)

    # In `shard_map` a carry must vary over the same mesh axes before and after an iteration.
    # One terminal may need `slack` more than `max_depth`; beyond that the stack's array would be too short.
    stack = jnp.pad(state.stack, [(0, 0), (0, tables.slack)])
    begin, lexer, stack, depth = _alike(begin, state.lexer, stack, state.depth)
    stop = jnp.where(state.status == Status.RUNNING, end, begin)
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


def _step(tables: Tables, stack: Array, depth: Array, terminal: Array) -> Stepped:
    """Reduce, reduce, shift: one terminal on one stack `int32[depth]`; terminal 0 leaves it as it is."""
    place = jnp.arange(max(tables.slack, 1), dtype=jnp.int32)

    def reduce(carry):
        step, todo = carry
        rule = -todo - 1
        size = tables.rule_size[rule]
        popped = jnp.minimum(size, step.count)
        step = step._replace(kept=step.kept - (size - popped), count=step.count - popped)
        revealed = step.top(stack)
        goto = look_up(tables.goto, revealed, look_up(tables.rule_origin, rule))
        target = look_up(tables.landing, goto, terminal)
        step = step._replace(new=jnp.where(place == step.count, target, step.new), count=step.count + 1)
        return step, look_up(tables.action, target, terminal)

    todo = look_up(tables.action, stack[depth - 1], terminal)
    zero = 0 * todo
    step = Stepped(depth + zero, jnp.zeros_like(place) + zero, zero, zero > 0)
    step, todo = lax.while_loop(lambda carry: carry[1] < 0, reduce, (step, todo))
    shifted = todo > 0
    return Stepped(
        step.kept,
        jnp.where((place == step.count) & shifted, todo, step.new),
        step.count + shifted.astype(jnp.int32),
        shifted | (terminal == 0),
    )


def _read(tables: Tables, runs: Runs, symbol: Array) -> tuple[Runs, Array]:
    """One symbol in all readings of a row: each may go on, and may end its lexeme and begin the next one."""
    lexer, stack, depth = runs
    gate = look_up(tables.emit_gate, lexer)
    reads = tables.gate_reads[gate, symbol] > 0
    terminal = jnp.where(reads, look_up(tables.emit_terminal, lexer), 0)
    step = _stepped(tables, stack, depth, terminal)
    top = _each(Stepped.top)(step, stack)
    begun = look_up(tables.gate_state, gate, look_up(tables.scanner, top))
    begun = jnp.where(step.ok & reads, look_up(tables.delta, begun, symbol), 0)
    # Each reading as it goes on, and then as it ends its lexeme in one way or another.
    lexers = jnp.concatenate([look_up(tables.delta, lexer, symbol)[:, None], begun], axis=1)
    old = jnp.take_along_axis(stack, depth[:, None] - 1, axis=1)
    tops = jnp.concatenate([old, top], axis=1)
    depths = jnp.concatenate([depth[:, None], step.kept + step.count], axis=1)
    alive = ((lexers > 0) & (tables.can_emit[lexers] & tables.takes[tops]).any(axis=2)).reshape(-1)
    deepest = jnp.where(alive, depths.reshape(-1), 0).max()
    # The living ones move to the front; a sort would do it, more slowly.
    kept = jnp.arange(1, len(lexer) + 1, dtype=jnp.int32)
    count = jnp.cumsum(alive, dtype=jnp.int32)
    chosen = jnp.argmax(count == kept[:, None], axis=1)
    run, way = jnp.divmod(chosen, lexers.shape[1])
    ended = jax.tree.map(lambda leaf: leaf[run, jnp.maximum(way - 1, 0)], step)
    stacks = jnp.where((way == 0)[:, None], stack[run], jax.vmap(_written)(ended, stack[run]))
    lexers = jnp.where(kept <= count[-1], lexers[run, way], 0)
    return (lexers, stacks, depths[run, way]), deepest


def _written(step: Stepped, stack: Array) -> Array:
    """The stack after a step. It keeps its width: what overflows it is discarded with the whole token."""
    return step.state(stack, jnp.arange(len(stack), dtype=jnp.int32))


def _ends(tables: Tables, runs: Runs) -> Bool[Array, ""]:
    """Whether the parser accepts some reading that has read the end of the text.

    The one lexeme of such a reading is `$END`; a dead reading has the terminal 0.
    """
    lexer, stack, depth = runs
    terminal = look_up(tables.emit_terminal, lexer, 0)
    step = jax.vmap(functools.partial(_step, tables))(stack, depth, terminal)
    return (step.ok & (lexer > 0)).any()
