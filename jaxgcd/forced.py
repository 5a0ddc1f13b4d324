"""`jump_forward`: what the grammar forces a text to go on with, found without asking a model."""

from __future__ import annotations

import functools
from typing import Literal

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec
from jaxtyping import Array, Int32

from jaxgcd.arguments import count
from jaxgcd.decoding import over_batch, unpack, viable
from jaxgcd.errors import ShapeError
from jaxgcd.meshes import batch_spec, on_any_mesh, state_specs
from jaxgcd.state import State, Status, select
from jaxgcd.stepping import look_up, row_read
from jaxgcd.tables.arrays import Tables
from jaxgcd.vocabulary import END_OF_TEXT


def jump_forward(
    tables: Tables, state: State, *, max_length: int = 32, unit: Literal["token", "byte"] = "token"
) -> tuple[State, Int32[Array, "*batch max_length"], Int32[Array, "*batch"]]:
    """Follows a text as long as there is only one way to go on.

    By tokens: as long as exactly one token is allowed. A model's distribution, masked, would leave no other
    choice, so these tokens can be put into its cache in one call.

    By bytes: as long as every text of the grammar goes on with the same byte. That is a longer run (a grammar
    may force the bytes `"name":`, but any token that begins them is allowed), and the caller splits it into
    the tokens that the model likes best. Where the vocabulary has some byte inside its tokens but not as a
    token of its own, the run may be shorter than it could be; what it says is always true.

    EOS is never part of a run, nor is what would need a deeper stack than the state has.

    Args:
        tables: the compiled grammar.
        state: any batch axes. Rows that are not running have runs of length 0.
        max_length: the longest run.
        unit: `"token"` or `"byte"`.

    Returns:
        The state behind the runs, the runs (token ids or bytes, 0 behind their ends), and their lengths.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b"ab", b"c", b""], eos=[4])
        >>> tables = jaxgcd.compile_grammar('start: "ab" ("a" | "c")', vocabulary)
        >>> _, run, length = jaxgcd.jump_forward(tables, jaxgcd.init(tables), unit="byte", max_length=4)
        >>> bytes(run[:length].tolist())
        b'ab'
    """
    max_length = count("max_length", max_length)
    if unit not in ("token", "byte"):
        raise ShapeError(f"`unit={unit!r}` must be 'token' or 'byte'.")
    return _jump_forward(tables, state, max_length=max_length, unit=unit)


def _specs(tables: Tables, state: State, **_: object):
    batch = batch_spec(state)
    return state_specs(batch), PartitionSpec(*batch), PartitionSpec(*batch)


@functools.partial(jax.jit, static_argnames=("max_length", "unit"))
@on_any_mesh(_specs)
def _jump_forward(tables: Tables, state: State, *, max_length: int, unit: str):
    def read(state, begin, end):
        return row_read(tables, state, tables.token_symbol, begin, end)

    def jump(carry):
        _, state, run, length = carry
        token, symbols = _hop(tables, state, max_length - length, unit)
        begin = tables.token_offset[token]
        more = symbols if unit == "byte" else jnp.minimum(symbols, 1)
        after = over_batch(read, state.status.ndim)(state, begin, begin + symbols)
        going = (more > 0) & (after.status == Status.RUNNING)
        place = jnp.arange(max_length, dtype=jnp.int32) - length[..., None]
        new = going[..., None] & (place >= 0) & (place < more[..., None])
        value = (
            look_up(tables.token_symbol, begin[..., None] + jnp.maximum(place, 0))
            if unit == "byte"
            else token[..., None]
        )
        run, length = jnp.where(new, value, run), length + jnp.where(going, more, 0)
        return going.any(), select(going, after, state), run, length

    running, length = state.status == Status.RUNNING, 0 * state.status
    run = jnp.broadcast_to(length[..., None], (*length.shape, max_length))
    return lax.while_loop(lambda carry: carry[0], jump, (running.any(), state, run, length))[1:]


def _hop(tables: Tables, state: State, room: Array, unit: str) -> tuple[Array, Array]:
    """An allowed token of each row, and how many of its symbols are forced; 0 for none, or for EOS."""
    words, some = viable(tables, state)
    bits = unpack(words, tables.size) & some[..., None]
    token = jnp.argmax(bits, axis=-1).astype(jnp.int32)
    only = bits.sum(axis=-1) == 1
    length = tables.token_offset[token + 1] - tables.token_offset[token]
    text = tables.token_symbol[tables.token_offset[token]] != END_OF_TEXT
    if unit == "token":
        return token, jnp.where(only & text & (room > 0), length, 0)
    first = look_up(tables.token_symbol, tables.token_offset[:-1])  # [size]
    low = jnp.where(bits, first, END_OF_TEXT).min(axis=-1)
    agree = low == jnp.where(bits, first, 0).max(axis=-1)
    # The next mask must show all that may follow the byte. A longer token, allowed here, could bring more;
    # not so if its bytes are tokens, for then they are allowed one by one.
    agree &= ((words & ~tables.bytewise) == 0).all(axis=-1)
    forced = jnp.where(only & (length <= room), length, (agree & (room > 0)).astype(jnp.int32))
    return token, jnp.where(text & some, forced, 0)
