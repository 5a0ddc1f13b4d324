"""Stop strings and stop ids: where a text ends although the grammar would let it go on.

Stop strings are found in the bytes of the text, wherever the tokens' borders lie, by the automaton of Aho and
Corasick (*Efficient string matching*, CACM 1975), made here in NumPy and run on the device.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import reprlib
from collections import deque
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Bool, Int32

from jaxgcd.errors import SamplingError
from jaxgcd.stepping import look_up
from jaxgcd.tables.arrays import Tables

MAX_STOP_BYTES = 4096
"""All stop strings of a call together; the automaton takes 1 KiB a byte."""

_START, _FOUND = 0, 1


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["next_state", "token_ids"], meta_fields=["has_strings"]
)
@dataclasses.dataclass(frozen=True)
class Stops:
    """The automaton of the stop strings (state 0 at the start, state 1 once one was found), and the stop ids.

    Both are padded to powers of two, so that other stops of about that size are not another trace.
    """

    next_state: Int32[Array, "states 256"]
    token_ids: Int32[Array, " ids"]
    """-1, which is no token, where there are fewer."""
    has_strings: bool


def make_stops(stop: str | bytes | Sequence[str | bytes], stop_ids: Sequence[int], size: int) -> Stops | None:
    """The stops of a call; None if there are none.

    Raises:
        SamplingError: a stop string is empty, or is neither `str` nor `bytes`; they are too long together; a
            stop id is no token id below `size`.
    """
    strings = [_as_bytes(text) for text in _listed("stop", [stop] if isinstance(stop, str | bytes) else stop)]
    ids = [_as_id(index, size) for index in _listed("stop_ids", stop_ids)]
    if sum(map(len, strings)) > MAX_STOP_BYTES:
        raise SamplingError(f"`stop` has more than {MAX_STOP_BYTES} bytes in all; shorten the stop strings.")
    if not strings and not ids:
        return None
    padded = np.full(1 << max(len(ids) - 1, 0).bit_length(), -1, np.int32)
    padded[: len(ids)] = ids
    return Stops(jnp.asarray(_automaton(strings)), jnp.asarray(padded), bool(strings))


def _listed(name: str, values: Any) -> list[Any]:
    try:
        return list(values)
    except TypeError:
        raise SamplingError(f"`{name}={reprlib.repr(values)}` must be a sequence.") from None


def _as_bytes(string: str | bytes) -> bytes:
    if not isinstance(string, str | bytes) or not string:
        raise SamplingError(f"`stop` holds {reprlib.repr(string)}; give strings or bytes that are not empty.")
    try:
        return string.encode() if isinstance(string, str) else string
    except UnicodeEncodeError as error:
        raise SamplingError(
            f"`stop` holds {reprlib.repr(string)}, which is no UTF-8 ({error.reason})."
        ) from None


def _as_id(index: int, size: int) -> int:
    try:
        number = operator.index(index)
    except TypeError:
        number = -1
    if not 0 <= number < size:
        raise SamplingError(f"`stop_ids` holds {reprlib.repr(index)}, which is no token id below {size}.")
    return number


def _automaton(strings: Sequence[bytes]) -> Int32[np.ndarray, "states 256"]:
    """The next state by state and byte; the states are the strings' prefixes, and `_FOUND` for whole
    strings."""
    trie: list[dict[int, int]] = [{}, {}]
    found = {_FOUND}
    for string in strings:
        state = _START
        for byte in string:
            if byte not in trie[state]:
                trie[state][byte] = len(trie)
                trie.append({})
            state = trie[state][byte]
        found.add(state)
    table = np.zeros((1 << (len(trie) - 1).bit_length(), 256), np.int32)
    _close(table, trie, found)
    table[sorted(found)] = _FOUND
    return np.where(np.isin(table, sorted(found)), np.int32(_FOUND), table)


def _close(table: np.ndarray, trie: list[dict[int, int]], found: set[int]) -> None:
    """Fills in where to go on when a prefix fails: from its longest proper suffix that is a prefix, too."""
    waiting = deque([(_START, _START)])
    while waiting:
        state, suffix = waiting.popleft()
        if suffix in found:
            found.add(state)
        inherited = table[suffix].copy() if state != _START else np.zeros(256, np.int32)
        table[state] = inherited
        for byte, child in trie[state].items():
            table[state, byte] = child
            waiting.append((child, int(inherited[byte])))


def read(
    stops: Stops, tables: Tables, state: Int32[Array, "*batch"], token: Int32[Array, "*batch"]
) -> tuple[Int32[Array, "*batch"], Bool[Array, "*batch"], Int32[Array, "*batch"]]:
    """Reads a token in each row.

    Returns:
        The automaton's states; whether the row stops here; and how many bytes of the token lie behind the end
        of the stop string, 0 if none was found.
    """
    excess = jnp.zeros_like(state)
    if stops.has_strings:
        step = functools.partial(_read_row, stops, tables)
        for _ in state.shape:
            step = jax.vmap(step)
        state, excess = step(state, token)
    by_id = (token[..., None] == stops.token_ids).any(axis=-1)
    return state, by_id | (state == _FOUND), excess


def _read_row(stops: Stops, tables: Tables, state: Array, token: Array) -> tuple[Array, Array]:
    end = tables.token_offset[token + 1]

    def going(carry: tuple[Array, Array]) -> Array:
        at, state = carry
        return (at < end) & (state != _FOUND)

    def byte(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        at, state = carry
        return at + 1, stops.next_state[state, look_up(tables.token_symbol, at)]

    at, state = lax.while_loop(going, byte, (tables.token_offset[token], state))
    return state, jnp.where(state == _FOUND, end - at, 0)
