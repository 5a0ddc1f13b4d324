"""The parser as a JAX value, step by step: `allowed`, `mask_logits` and `advance`; `constrain` for loops.

All functions are pure and take the tables first; they are jitted, and can be called inside `jit`, `vmap` and
`scan`. States may have any leading batch axes: what happens to rows is in `stepping`, with one batch axis for
masks, and with none for steps, where `jax.vmap` adds them. Nothing here looks at the host, except `allowed`
with tables that were compiled with `check="host"`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Float, Int, Int32, UInt32

from jaxgcd.errors import ShapeError
from jaxgcd.hostcheck import add_host_words
from jaxgcd.meshes import batch_spec, on_any_mesh, state_specs, words_spec
from jaxgcd.state import State, Status, check_state, select
from jaxgcd.stepping import masks, row_advance
from jaxgcd.tables.arrays import Tables


@jax.jit
@on_any_mesh(lambda tables, state: PartitionSpec(*batch_spec(state), words_spec(tables)))
def allowed(tables: Tables, state: State) -> UInt32[Array, "*batch words"]:
    """The tokens that may come next, packed: token `i` is bit `i & 31` of word `i >> 5`.

    A token is allowed iff some continuation puts the text into the grammar's language, EOS iff the text is in
    it. A row that is not running, or to which no token is left, allows EOS only. (Behind a token that was not
    allowed and that `advance` has read all the same, a mask means nothing.)

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
    words, some = viable(tables, state)
    return jnp.where(some[..., None], words, tables.eos_words)


def viable(tables: Tables, state: State) -> tuple[UInt32[Array, "*batch words"], Bool[Array, "*batch"]]:
    """The tokens that may follow each running row, and whether there are any.

    Where there are none, or the row is not running, the words mean nothing.
    """
    check_state(tables, state)
    batch = state.status.shape
    rows = math.prod(batch)
    flat = jax.tree.map(lambda leaf: leaf.reshape(rows, *leaf.shape[len(batch) :]), state)
    words, some, top = masks(tables, flat)
    running = flat.status == Status.RUNNING
    if tables.check == "host":
        top = jnp.where(running[:, None, None], top, 0)
        words = add_host_words(tables, flat.lexer, flat.stack, flat.depth, top, words)
        some = (words != 0).any(axis=-1)
    return words.reshape(*batch, tables.words), (running & some).reshape(batch)


@on_any_mesh(lambda tables, state, logits, **_: PartitionSpec(*jax.typeof(logits).sharding.spec))
def mask_logits(
    tables: Tables, state: State, logits: Float[Array, "*batch size"], *, fill: float | None = None
) -> Float[Array, "*batch size"]:
    """Replaces the logits of tokens that are not allowed.

    Args:
        tables: the compiled grammar.
        state: batch axes as in `logits`.
        logits: as wide as the vocabulary's `size`; inside `shard_map` with a vocabulary that is split, as
            this device's part of it.
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
    if logits.shape != (*state.status.shape, tables.width):
        raise ShapeError(
            f"`logits` have the shape {logits.shape}, the state and vocabulary ask for "
            f"{(*state.status.shape, tables.width)}. If the model's head is wider than its tokenizer, "
            "compile for `Vocabulary(..., size=<width of the logits>)`."
        )
    masked = jnp.asarray(jnp.finfo(logits.dtype).min if fill is None else fill, logits.dtype)
    return jnp.where(unpack(allowed(tables, state), tables.width), logits, masked)


def unpack(words: UInt32[Array, "*batch words"], size: int) -> Bool[Array, "*batch size"]:
    """Packed token bits as booleans."""
    bits = words[..., None] >> jnp.arange(32, dtype=jnp.uint32) & jnp.uint32(1)
    return bits.reshape(*words.shape[:-1], 32 * words.shape[-1])[..., :size] != 0


@jax.jit
@on_any_mesh(lambda tables, state, token: state_specs(batch_spec(state, token)))
def advance(tables: Tables, state: State, token: Int[Array, "*batch"]) -> State:
    """The state after one more token in each row.

    A token that cannot be read makes the row STUCK, one that needs more than `max_depth` makes it OVERFLOW,
    EOS at the end of a valid text makes it FINISHED; in all three cases the row otherwise stays as it was.
    Rows that are not running do not change. Whether a token is allowed is `allowed`'s answer: one that is not
    may be found out only later, and until then the row is RUNNING and its masks mean nothing; but it is never
    FINISHED by a text that is not in the language.

    Args:
        tables: the compiled grammar.
        state: any batch axes.
        token: token ids, one for each row.
    """
    check_state(tables, state)
    token = jnp.asarray(token)
    if not jnp.issubdtype(token.dtype, jnp.integer) or token.shape not in ((), state.status.shape):
        raise ShapeError(
            f"`token` is {token.dtype}{list(token.shape)}; give integers, one for each row of the batch "
            f"{state.status.shape}, or one for all."
        )
    token = jnp.broadcast_to(int32_ids(token), state.status.shape)
    return over_batch(functools.partial(row_advance, tables), state.status.ndim)(state, token)


def constrain(
    tables: Tables,
    state: State,
    token: Int[Array, "*batch"] | None,
    logits: Float[Array, "*batch size"],
    *,
    fill: float | None = None,
) -> tuple[State, Float[Array, "*batch size"]]:
    """One call between the model and the draw, for loops that are there already: `advance`, `mask_logits`.

    A loop hands the model the token that it drew last, and gets the logits of the next one. Both go in here,
    and so the loop needs to carry nothing new but the state.

    Args:
        tables: the compiled grammar; an argument of the jitted function, read by the loop and not carried.
        state: the state before `token`, any batch axes: what `init` gave, or the last call of this function.
        token: the token that each row drew last, or -1 in a row that has drawn none yet, whose state stays as
            it is. None: no row has. The last token of a prompt was not drawn: a loop that begins with it
            gives -1 in its first step, `jnp.where(step == 0, -1, token)`.
        logits: the model's logits after `token`, batch axes as in the state.
        fill: as in `mask_logits`.

    Returns:
        The state after `token`, and the masked logits. Behind the loop, the state is that before the last
        token; `advance` reads it, where the last status is wanted.

    Raises:
        ShapeError: as in `advance` and `mask_logits`.

    Example:
        >>> import jax.numpy as jnp, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> state, token, drawn = jaxgcd.init(tables), jnp.int32(-1), []
        >>> for _ in range(3):
        ...     state, logits = jaxgcd.constrain(tables, state, token, jnp.zeros(3))
        ...     token = logits.argmax()
        ...     drawn.append(int(token))
        >>> drawn
        [0, 1, 2]
    """
    if token is not None:
        state = _advance_drawn(tables, state, token)
    return state, mask_logits(tables, state, logits, fill=fill)


@jax.jit
@on_any_mesh(lambda tables, state, token: state_specs(batch_spec(state, token)))
def _advance_drawn(tables: Tables, state: State, token: Int[Array, "*batch"]) -> State:
    """`advance`, but rows whose token is -1 stay as they are."""
    after = advance(tables, state, token)
    drawn = int32_ids(jnp.asarray(token)) != -1
    return select(jnp.broadcast_to(drawn, state.status.shape), after, state)


def int32_ids(token: Int[Array, "*batch"]) -> Int32[Array, "*batch"]:
    """Token ids as `int32`. What lies beyond is no token's id, and does not become one."""
    most, bounds = jnp.iinfo(jnp.int32), jnp.iinfo(token.dtype)
    return jnp.clip(token, max(most.min, bounds.min), min(most.max, bounds.max)).astype(jnp.int32)


def over_batch(function: Callable[..., Any], axes: int) -> Callable[..., Any]:
    """A row's function with so many batch axes in front of every argument and result."""
    for _ in range(axes):
        function = jax.vmap(function)
    return function
