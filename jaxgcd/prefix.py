"""Prefixes: texts that are already there when generation begins, read byte by byte with the device tables."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.core import Tracer
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Int

from jaxgcd.decoding import over_batch, viable
from jaxgcd.errors import PrefixError, ShapeError
from jaxgcd.meshes import batch_spec, on_any_mesh, state_specs
from jaxgcd.state import State, Status
from jaxgcd.stepping import row_read
from jaxgcd.tables.arrays import Tables
from jaxgcd.vocabulary import END_OF_TEXT

Texts = bytes | list[bytes]
"""One text for all rows, or one for each."""

_SHORTEST = 16
"""Texts are filled up to a power of two, at least to this, so that few lengths are traced."""


def encoded(prefix: str | bytes | Sequence[str | bytes]) -> Texts:
    """Texts as UTF-8."""
    if not isinstance(prefix, (str, bytes)):
        if not isinstance(prefix, Sequence) or not all(isinstance(text, (str, bytes)) for text in prefix):
            raise ShapeError("`prefix` must be a `str`, `bytes`, or a list of them, one for each row.")
        return [_utf8(text) for text in prefix]
    return _utf8(prefix)


def _utf8(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        position = len(text[: error.start].encode())
        raise PrefixError(
            f"The prefix has a lone surrogate at byte {position}, which is no character; no text has any.",
            position,
        ) from None


def read_prefix(tables: Tables, state: State, texts: Texts) -> State:
    """The states behind some texts; see `init`."""
    batch = state.status.shape
    rows = math.prod(batch)
    each = [texts] * rows if isinstance(texts, bytes) else texts
    longest = max(map(len, each), default=0)
    symbols = np.zeros((rows, max(_SHORTEST, 1 << (longest - 1).bit_length())), np.int32)
    for row, text in zip(symbols, each, strict=True):
        row[: len(text)] = np.frombuffer(text, np.uint8)
    length = np.array([len(text) for text in each], np.int32).reshape(batch)
    symbols = symbols.reshape(*batch, -1)
    after, legal = _read(tables, state, symbols, length)
    if isinstance(legal, Tracer):
        stuck = (legal < length) & (after.status == Status.RUNNING)
        return dataclasses.replace(after, status=jnp.where(stuck, Status.STUCK, after.status))
    if (np.asarray(legal) < length).any():
        raise _refusal(after, np.asarray(legal), length, each)
    return after


def _read_specs(tables: Tables, state: State, *_: Array):
    batch = batch_spec(state)
    return state_specs(batch), PartitionSpec(*batch)


@jax.jit
@on_any_mesh(_read_specs)
def _read(
    tables: Tables, state: State, symbols: Int[Array, "*batch bytes"], length: Int[Array, "*batch"]
) -> tuple[State, Int[Array, "*batch"]]:
    """The states after so many symbols, and with how many of them some text of the grammar begins.

    Masks are right behind a text with which one of the grammar begins, and one symbol further; so each symbol
    is looked at before the next one is read. Only where the next one is no token can a mask be empty although
    the text goes on, within a longer token.
    """
    alone, most = _alone(tables), length.max(initial=0)

    def step(carry):
        place, state, legal, going = carry
        some = viable(tables, state)[1]
        legal = jnp.where(going & some & (place <= length), place, legal)
        symbol = jnp.take(symbols, place, axis=-1, mode="clip")
        going &= (place < length) & (some | ~alone[symbol])
        end = place + going.astype(jnp.int32)
        return place + 1, read(state, symbols, jnp.broadcast_to(place, end.shape), end), legal, going

    read = over_batch(functools.partial(row_read, tables), state.status.ndim)
    carry = jnp.int32(0), state, 0 * state.status, state.status == Status.RUNNING
    _, state, legal, _ = lax.while_loop(lambda carry: carry[0] <= most, step, carry)
    return state, legal


def _alone(tables: Tables) -> Bool[Array, " symbols"]:
    """The symbols that are tokens."""
    begin, end = tables.token_offset[:-1], tables.token_offset[1:]
    return jnp.zeros(END_OF_TEXT + 1, bool).at[tables.token_symbol[begin]].max(end - begin == 1)


def _refusal(after: State, legal: np.ndarray, length: np.ndarray, texts: Sequence[bytes]) -> PrefixError:
    """Names the first illegal byte of the first row that has one."""
    row = int(np.flatnonzero((legal < length).reshape(-1))[0])
    position, text = int(legal.reshape(-1)[row]), texts[row]
    where = f" of row {row}" if len(texts) > 1 else ""
    message = f"Byte {position} of the prefix{where}, {text[position : position + 1]!r}, "
    if int(np.asarray(after.status).reshape(-1)[row]) == Status.OVERFLOW:
        message += f"needs a stack of more than {after.max_depth} parser states: raise `max_depth`."
    else:
        message += (
            f"cannot follow {text[max(position - 20, 0) : position]!r}: no text of the grammar that the "
            "vocabulary can spell goes on so. Cut the prefix off there, or correct it."
        )
    return PrefixError(message, position, row)
