"""Prefixes: texts that are already there when generation begins, read byte by byte with the device tables."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Int

from jaxgcd.decoding import over_batch, viable
from jaxgcd.errors import PrefixError, ShapeError
from jaxgcd.meshes import batch_spec, on_any_mesh, state_specs
from jaxgcd.state import State, Status
from jaxgcd.stepping import row_read
from jaxgcd.tables.arrays import Tables

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
        stuck = ~legal & (after.status == Status.RUNNING)
        return State(after.lexer, after.stack, after.depth, jnp.where(stuck, Status.STUCK, after.status))
    if not np.asarray(legal).all():
        raise _refusal(tables, state, symbols, length, each)
    return after


def _read_specs(tables: Tables, state: State, *_: Array):
    batch = batch_spec(state)
    return state_specs(batch), PartitionSpec(*batch)


@jax.jit
@on_any_mesh(_read_specs)
def _read(
    tables: Tables, state: State, symbols: Int[Array, "*batch bytes"], length: Int[Array, "*batch"]
) -> tuple[State, Bool[Array, "*batch"]]:
    """The states after so many symbols, and whether some text of the grammar begins so."""
    read = functools.partial(row_read, tables)
    after = over_batch(read, state.status.ndim)(state, symbols, jnp.zeros_like(length), length)
    return after, viable(tables, after)[1]


def _refusal(
    tables: Tables, state: State, symbols: np.ndarray, length: np.ndarray, texts: Sequence[bytes]
) -> PrefixError:
    """Names the first illegal byte of the first row that has one, by bisection."""
    low, high = np.zeros_like(length), length + 1
    while (high - low > 1).any():
        middle = (low + high) // 2
        legal = np.asarray(_read(tables, state, symbols, middle)[1])
        low, high = np.where(legal, middle, low), np.where(legal, high, middle)
    row = int(np.flatnonzero(low.reshape(-1) < length.reshape(-1))[0])
    position, text = int(low.reshape(-1)[row]), texts[row]
    status = _read(tables, state, symbols, np.minimum(low + 1, length))[0].status
    where = f" of row {row}" if len(texts) > 1 else ""
    message = f"Byte {position} of the prefix{where}, {text[position : position + 1]!r}, "
    if int(status.reshape(-1)[row]) == Status.OVERFLOW:
        message += f"needs a stack of more than {state.max_depth} parser states: raise `max_depth`."
    else:
        message += (
            f"cannot follow {text[max(position - 20, 0) : position]!r}: no text of the grammar that the "
            "vocabulary can spell goes on so. Cut the prefix off there, or correct it."
        )
    return PrefixError(message, position, row)
