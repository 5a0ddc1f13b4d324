"""The parser as a JAX value: `State`, `init`, `allowed`, `mask_logits` and `advance`.

All functions are pure and take the tables first; they are jitted, and can be called inside `jit`, `vmap` and
`scan`. States may have any leading batch axes: what happens to one row is written once, and `jax.vmap` adds
the axes. Nothing here looks at the host, except `allowed` with tables that were compiled with `check="host"`.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
import operator

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Bool, Float, Int, Int32, UInt32

from jaxgcd.errors import ShapeError
from jaxgcd.hostcheck import add_host_words
from jaxgcd.tables.arrays import Tables
from jaxgcd.vocabulary import END_OF_TEXT

_INITIAL = 1
_START_STATE = 1


class Status(enum.IntEnum):
    """What has become of a row. Every status but `RUNNING` allows EOS only; such a row changes no more."""

    RUNNING = 0
    """More tokens may follow."""
    FINISHED = 1
    """EOS was read, and the text is in the language."""
    STUCK = 2
    """The last token was not allowed, or none was."""
    OVERFLOW = 3
    """The last token needed a deeper stack than `max_depth`."""


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["lexer", "stack", "depth", "status"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True)
class State:
    """Where each row's text stands. Every leaf has the batch axes in front.

    A row has up to `K` readings of its text, each with a lexer state and a parser stack; in most grammars `K`
    is 1. Beams and forks are `jax.tree.map(lambda leaf: leaf[parents], state)`. A row that is not running
    stands where it was before its last token.
    """

    lexer: Int32[Array, "*batch K"]
    """Lexer states; 0 marks an unused reading, 1 is the state before any text."""
    stack: Int32[Array, "*batch K max_depth"]
    """Parser states from the bottom up; what lies above `depth` means nothing."""
    depth: Int32[Array, "*batch K"]
    """How many parser states are on the stack."""
    status: Int32[Array, "*batch"]
    """A `Status`."""


def init(tables: Tables, batch_shape: int | tuple[int, ...] = (), *, grammar: int = 0) -> State:
    """The state of the empty text.

    Args:
        tables: the compiled grammar.
        batch_shape: leading axes of every leaf.
        grammar: which grammar of the tables; they hold one, number 0.

    Raises:
        ShapeError: there is no such grammar.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> jaxgcd.init(tables, (8,)).status.shape
        (8,)
    """
    if grammar != 0:
        raise ShapeError(f"`grammar={grammar}`: these tables hold one grammar, number 0.")
    shape = _batch_shape(batch_shape)
    first = jnp.zeros((*shape, tables.runs), jnp.int32).at[..., 0]
    return State(
        first.set(_INITIAL),
        jnp.zeros((*shape, tables.runs, tables.max_depth), jnp.int32).at[..., 0, 0].set(_START_STATE),
        first.set(1),
        jnp.full(shape, Status.RUNNING, jnp.int32),
    )


@jax.jit
def allowed(tables: Tables, state: State) -> UInt32[Array, "*batch words"]:
    """The tokens that may come next, packed: token `i` is bit `i & 31` of word `i >> 5`.

    A token is allowed iff some continuation puts the text into the grammar's language, EOS iff the text is in
    it. A row that is not running, or to which no token is left, allows EOS only.

    Args:
        tables: the compiled grammar.
        state: any batch axes.

    Returns:
        `uint32[*batch, ceil(size / 32)]`.

    Source: the online part of Park, Zhou and D'Antoni 2025; see `docs/paper.md`.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> jaxgcd.allowed(tables, jaxgcd.init(tables)).tolist()
        [1]
    """
    _check_state(tables, state)
    batch = state.status.shape
    rows = math.prod(batch)
    flat = jax.tree.map(lambda leaf: leaf.reshape(rows, *leaf.shape[len(batch) :]), state)
    words, top = jax.vmap(functools.partial(_row_words, tables))(flat)
    running = flat.status == Status.RUNNING
    if tables.check == "host":
        top = jnp.where(running[:, None, None], top, 0)
        words = add_host_words(tables, flat.lexer, flat.stack, flat.depth, top, words)
    usable = running & (words != 0).any(axis=-1)
    words = jnp.where(usable[:, None], words, tables.eos_words)
    return words.reshape(*batch, tables.words)


def mask_logits(
    tables: Tables, state: State, logits: Float[Array, "*batch size"], *, fill: float | None = None
) -> Float[Array, "*batch size"]:
    """Replaces the logits of tokens that are not allowed.

    Args:
        tables: the compiled grammar.
        state: batch axes as in `logits`.
        logits: as wide as the vocabulary's `size`.
        fill: what to put there; by default the lowest finite number of the dtype, so that gradients of
            log-probabilities stay finite.

    Returns:
        The logits, same shape and dtype.

    Raises:
        ShapeError: the logits are wider or narrower than the vocabulary, or the batch axes differ.
    """
    logits = jnp.asarray(logits)  # NumPy's float64 becomes what JAX computes with
    if not jnp.issubdtype(logits.dtype, jnp.floating):
        raise ShapeError(f"`logits` are {logits.dtype}; give floating-point numbers.")
    if logits.shape != (*state.status.shape, tables.size):
        raise ShapeError(
            f"`logits` have the shape {logits.shape}, the state and vocabulary ask for "
            f"{(*state.status.shape, tables.size)}. If the model's head is wider than its tokenizer, "
            "compile for `Vocabulary(..., size=<width of the logits>)`."
        )
    masked = jnp.asarray(jnp.finfo(logits.dtype).min if fill is None else fill, logits.dtype)
    return jnp.where(unpack(allowed(tables, state), tables.size), logits, masked)


def unpack(words: UInt32[Array, "*batch words"], size: int) -> Bool[Array, "*batch size"]:
    """Packed token bits as booleans."""
    bits = words[..., None] >> jnp.arange(32, dtype=jnp.uint32) & jnp.uint32(1)
    return bits.reshape(*words.shape[:-1], 32 * words.shape[-1])[..., :size] != 0


@jax.jit
def advance(tables: Tables, state: State, token: Int[Array, "*batch"]) -> State:
    """The state after one more token in each row.

    A token that cannot be read makes the row STUCK, one that needs more than `max_depth` makes it OVERFLOW,
    EOS at the end of a valid text makes it FINISHED; in all three cases the row otherwise stays as it was.
    Rows that are not running do not change. Whether a token is allowed is `allowed`'s answer: one that is not
    may be found out only later.

    Args:
        tables: the compiled grammar.
        state: any batch axes.
        token: token ids, one for each row.
    """
    _check_state(tables, state)
    token = jnp.asarray(token)
    if not jnp.issubdtype(token.dtype, jnp.integer) or token.shape not in ((), state.status.shape):
        raise ShapeError(
            f"`token` is {token.dtype}{list(token.shape)}; give integers, one for each row of the batch "
            f"{state.status.shape}, or one for all."
        )
    token = jnp.broadcast_to(token.astype(jnp.int32), state.status.shape)
    step = functools.partial(_row_advance, tables)
    for _ in state.status.shape:
        step = jax.vmap(step)
    return step(state, token)


def _batch_shape(batch_shape: int | tuple[int, ...]) -> tuple[int, ...]:
    try:
        axes = tuple(batch_shape) if isinstance(batch_shape, (tuple, list)) else (batch_shape,)
        shape = tuple(operator.index(axis) for axis in axes)
    except TypeError:
        shape = (-1,)
    if min(shape, default=0) < 0:
        raise ShapeError(f"`batch_shape={batch_shape!r}` must be a size or a tuple of sizes, none below 0.")
    return shape


def _check_state(tables: Tables, state: State) -> None:
    shape = (*state.status.shape, tables.runs, tables.max_depth)
    if state.stack.shape != shape:
        raise ShapeError(
            f"The state's stack has the shape {state.stack.shape}, these tables ask for {shape}: it was "
            "made by `init` for other tables, or its leaves have lost their batch axes."
        )


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


def _row_words(tables: Tables, state: State) -> tuple[Array, Array]:
    """One row's mask without the host's share, and the stack tops of slots that need the host, `int32[K,
    slots]`.
    """
    terminal, base = tables.slot_terminal[state.lexer], tables.slot_base[state.lexer]
    stepped = jax.vmap(jax.vmap(functools.partial(_step, tables), (None, None, 0)))
    stack, depth, ok = stepped(_with_slack(tables, state.stack), state.depth, terminal)
    position = depth - 1
    top = jnp.take_along_axis(stack, position[..., None], axis=-1)[..., 0]
    column = jnp.where(terminal == 0, tables.column[0, top], tables.column[1, top])
    index = jnp.where((base > 0) & ok, base + column, 0)
    edge = tables.entry[index]
    words = _rows(tables, tables.edge_row[edge])
    if tables.check == "host":
        return words, jnp.where(tables.dependents[index] > 0, top, 0)

    def walk(carry):
        node, position, words = carry
        position = position - 1 - tables.node_skip[node]
        below = jnp.take_along_axis(stack, jnp.maximum(position, 0)[..., None], axis=-1)[..., 0]
        edge = jnp.where(position >= 0, tables.node_edge[node, below], 0)
        return tables.edge_node[edge], position, words | _rows(tables, tables.edge_row[edge])

    carry = (tables.edge_node[edge], position, words)
    _, _, words = lax.while_loop(lambda carry: (carry[0] > 0).any(), walk, carry)
    return words, jnp.zeros_like(top)


def _rows(tables: Tables, rows: Array) -> UInt32[Array, " words"]:
    """The union of some rows."""
    pages = tables.pages[tables.row_pages[rows.reshape(-1)]]
    union = lax.reduce(pages, jnp.uint32(0), lax.bitwise_or, (0,))
    return union.reshape(-1)[: tables.words]


def _row_advance(tables: Tables, state: State, token: Array) -> State:
    begin, end = tables.token_offset[token], tables.token_offset[token + 1]
    known = (token >= 0) & (token < tables.size) & (end > begin)

    def read(carry):
        at, runs, deepest = carry
        symbol = tables.symbol_class[tables.token_symbol[at]]
        runs, depth = _read(tables, runs, symbol)
        return at + 1, runs, jnp.maximum(deepest, depth)

    runs = (state.lexer, _with_slack(tables, state.stack), state.depth)
    stop = jnp.where(known & (state.status == Status.RUNNING), end, begin)
    # One terminal may need `slack` more than `max_depth`; beyond that the stack's array would be too short.
    _, runs, deepest = lax.while_loop(
        lambda carry: (carry[0] < stop) & (carry[2] <= tables.max_depth), read, (begin, runs, jnp.int32(0))
    )
    lexer, stack, depth = runs
    is_eos = known & (tables.token_symbol[begin] == END_OF_TEXT)
    finished = is_eos & _ends(tables, lexer, stack, depth)
    status = jnp.where(known & (lexer > 0).any() & ~is_eos, Status.RUNNING, Status.STUCK)
    status = jnp.where(deepest > tables.max_depth, Status.OVERFLOW, status)
    status = jnp.where(finished, Status.FINISHED, status)
    status = jnp.where(state.status == Status.RUNNING, status, state.status).astype(jnp.int32)
    new = State(lexer, stack[:, : tables.max_depth], depth, status)
    moved = status == Status.RUNNING
    old = dataclasses.replace(state, status=status)
    return jax.tree.map(lambda new, old: jnp.where(moved, new, old), new, old)


def _read(tables: Tables, runs: tuple[Array, Array, Array], symbol: Array):
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
    chosen = jnp.argsort(~alive, stable=True)[: len(lexer)]
    lexers = jnp.where(alive, lexers, 0)
    # The stack keeps its width; what overflowed it is discarded with the whole token.
    return (lexers[chosen], stacks[chosen], depths[chosen]), deepest


def _ends(tables: Tables, lexer: Array, stack: Array, depth: Array) -> Bool[Array, ""]:
    """Whether some reading that has read the end of the text is accepted by the parser."""
    terminal = jnp.where(lexer > 0, tables.end, 0)
    _, _, ok = jax.vmap(functools.partial(_step, tables))(stack, depth, terminal)
    return (ok & (lexer > 0)).any()
