"""Blocks: the tokens that begin alike, in parts that have one suffix class each.

From most lexer states a symbol leads to one state, and a block's parts are then the suffix classes of what
its tokens go on with from there. Otherwise there is a **column** of classes for each state that it leads to,
and a part for each combination of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxgcd._hashing import mixed
from jaxgcd._numbering import numbered
from jaxgcd.tables.growing import ranges

_BITS = 32
_TOGETHER = 16
"""So many columns are looked at together."""

Reading = tuple[tuple[int, int], ...]
"""What happens at a symbol in a state: alternatives, each a label and the state behind the symbol."""

Targets = tuple[int, ...]
"""The states of a reading's alternatives."""


class Block(NamedTuple):
    """The tokens that begin with one symbol class, read from one lexer state: parts with one suffix class
    each.
    """

    part: np.ndarray  # uint16[tokens], or int32
    sums: np.ndarray  # uint64[parts], the sum of the tokens' random integers
    classes: np.ndarray  # int32[parts]


class Column(NamedTuple):
    """The tokens of a symbol class that can go on from a state, by index, and their suffix classes."""

    tokens: np.ndarray
    classes: np.ndarray


_NO_TOKENS = Column(np.zeros(0, np.int32), np.zeros(0, np.int32))
"""For a state into which only symbols lead with which no token begins."""


class Parts(NamedTuple):
    """Tokens split by their columns. Part 0 is that of the tokens that are in no column."""

    part: np.ndarray  # uint16[tokens], or int32
    sums: np.ndarray  # uint64[parts]
    members: np.ndarray  # int32[parts * columns], the columns' classes of one part after another


class Alternatives(NamedTuple):
    """What the parts of several readings may become, reading after reading and part after part."""

    label: np.ndarray
    classes: np.ndarray  # the suffix class behind the label
    owner: np.ndarray  # the part, counted through


def targets_of(reading: Reading) -> Targets:
    """The states of a reading's alternatives."""
    return tuple(target for _, target in reading)


def split_tokens(
    targets: Iterable[Targets], columns: Mapping[int, Column], random: np.ndarray, size: int
) -> dict[Targets, Parts]:
    """The parts of tokens behind each of some targets.

    Args:
        targets: each once.
        columns: of the states that some token goes on from.
        random: `uint64[size]`, the tokens' random integers.
        size: how many tokens there are.
    """
    own = {some: [columns.get(target, _NO_TOKENS) for target in some] for some in targets}
    single = [some for some in own if len(some) == 1]
    found = {some: _joint(own[some], random, size) for some in own if len(some) != 1}
    for at in range(0, len(single), _TOGETHER):
        some = single[at : at + _TOGETHER]
        found.update(zip(some, _each([own[target][0] for target in some], random, size), strict=True))
    return found


def _each(columns: Sequence[Column], random: np.ndarray, size: int) -> Iterator[Parts]:
    """The parts of tokens by each of some columns alone."""
    owner = np.repeat(np.arange(len(columns)), [len(column.tokens) for column in columns])
    tokens = np.concatenate([column.tokens for column in columns])
    nothing = np.arange(len(columns)) << _BITS  # each column's first part
    keys = owner << _BITS | np.concatenate([column.classes for column in columns])
    values, _, which = numbered(np.concatenate([nothing, keys]))
    first, which = which[: len(columns)], which[len(columns) :]
    sums = np.zeros(len(values), np.uint64)
    np.add.at(sums, which, random[tokens])
    sums[first] = random.sum() - np.add.reduceat(sums, first)
    part = np.zeros((len(columns), size), _small(int(np.diff(first, append=len(values)).max())))
    part[owner, tokens] = which - first[owner]
    members = (values & (1 << _BITS) - 1).astype(np.int32)
    return map(Parts, part, np.split(sums, first[1:]), np.split(members, first[1:]))


def _joint(columns: Sequence[Column], random: np.ndarray, size: int) -> Parts:
    """The parts of tokens by several columns together."""
    dense = np.zeros((1 + size, len(columns)), np.int32)
    keys = np.zeros(1 + size, np.uint64)
    for stream, column in enumerate(columns):
        dense[1 + column.tokens, stream] = column.classes
        keys[1 + column.tokens] += mixed(column.classes.astype(np.int64) + (stream << _BITS))
    _, first, which = numbered(keys)  # zero comes first
    sums = np.zeros(len(first), np.uint64)
    np.add.at(sums, which[1:], random)
    return Parts(which[1:].astype(_small(len(first))), sums, dense[first].ravel())


def _small(parts: int) -> type[np.uint16] | type[np.int32]:
    return np.uint16 if parts <= 1 << 16 else np.int32


def alternatives(readings: Sequence[Reading], parts: Sequence[Parts]) -> Alternatives:
    """What the parts of readings may become.

    Args:
        readings: at least one.
        parts: those of each reading's targets.
    """
    streams, count = np.array([len(r) for r in readings]), np.array([len(p.sums) for p in parts])
    labels = np.array([label for reading in readings for label, _ in reading], np.int64)
    size = streams * count
    index, stream = np.divmod(ranges(np.zeros_like(size), size), np.repeat(streams, size))
    return Alternatives(
        labels[np.repeat(np.cumsum(streams) - streams, size) + stream],
        np.concatenate([p.members for p in parts]),
        np.repeat(np.cumsum(count) - count, size) + index,
    )
