"""Slots: what the mask of a lexer state is put together from.

From a lexer state, most tokens first complete one of a few terminals. Each of these is a **slot**: the
terminal is stepped on the real stack, and the tokens that complete it are then checked with the parser state
that this leads to on top. What is left (tokens that go on after an ignored lexeme, and all tokens of a state
with many terminals) shares one slot without a terminal, checked on the stack as it is.

A slot's tokens form a **group**, by the fan of what comes after the terminal, or by suffix class; states
whose slots have the same tokens share groups.
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from jaxgcd._numbering import numbered
from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.tables.spanner import Spanner, summed

_BITS = 32
_LOW = (1 << _BITS) - 1
_TOGETHER = 64
"""So many states are looked at together."""

NO_TERMINAL = 0
MAX_SLOTS = 8
"""A state in which more terminals than this can end has one slot without a terminal."""


class Slot(NamedTuple):
    """`terminal` (`NO_TERMINAL`: none) is stepped first, then `group` is checked."""

    terminal: int
    group: int


class Group(NamedTuple):
    """A set of tokens by suffix class or fan."""

    members: np.ndarray  # int64[members]
    sums: np.ndarray  # uint64[members], the sums of their tokens' random integers


class Source(NamedTuple):
    """How a group's tokens are found again: those of a lexer state, projected on a terminal."""

    state: int
    terminal: int


class _Members(NamedTuple):
    """Members of a state's slots, and what they are made of: arrays of the same length."""

    terminal: np.ndarray  # the slot's
    index: np.ndarray  # of the suffix class
    member: np.ndarray  # the fan behind the terminal; for `NO_TERMINAL`, the class without the other slots'


class _Tokens(NamedTuple):
    """What all tokens turn into from a lexer state."""

    state: int
    which: np.ndarray  # int32[size], the index of each one's suffix class
    classes: int
    members: _Members


class Slots:
    """The slots of every lexer state, the groups, and the source of every group."""

    def __init__(self, graph: LexerGraph, spanner: Spanner, size: int):
        self._graph = graph
        self._spanner = spanner
        self._size = size
        self._parts = spanner.classes.parts()
        self._numbers: dict[tuple[int, bytes, bytes], int] = {}
        self._read = self._tokens(0)
        self.groups: list[Group] = []
        self.sources: list[Source] = []
        self.of_state: list[tuple[Slot, ...]] = [()] * graph.n_states
        alike: dict[tuple[bytes, frozenset[int]], list[int]] = {}  # many states read all tokens alike
        for state in (INITIAL, *running_states(graph)):
            key = spanner.variant[state].tobytes(), _own_terminals(graph, state)
            alike.setdefault(key, []).append(state)
        firsts = [states[0] for states in alike.values()]
        pieces = (firsts[at : at + _TOGETHER] for at in range(0, len(firsts), _TOGETHER))
        found = itertools.chain.from_iterable(map(self._slots, pieces))
        for states, slots in zip(alike.values(), found, strict=True):
            for state in states:
                self.of_state[state] = tuple(slots)

    def _slots(self, states: list[int]) -> list[list[Slot]]:
        """The slots of some lexer states."""
        owner, classes, sums = self._spanner.class_sums(np.array(states))
        terminal, index, member = self._projected(classes, owner, states)
        slots = owner[index] << _BITS | terminal
        numbers, _, which = numbered(slots)
        keys, sums = summed(which << _BITS | member, sums[index])  # those of one slot after another
        ends = np.searchsorted(keys, np.arange(1, len(numbers)) << _BITS)
        groups = map(Group, np.split(keys & _LOW, ends), np.split(sums, ends))
        found: list[list[Slot]] = [[] for _ in states]
        for number, group in zip(numbers.tolist(), groups, strict=False):  # without slots, one empty group
            place = number >> _BITS
            found[place].append(self._slot(number & _LOW, group, states[place]))
        return found

    def _slot(self, terminal: int, group: Group, state: int) -> Slot:
        """The slot of some tokens of a state; groups of the same tokens are one."""
        key = (terminal, group.members.tobytes(), group.sums.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.groups)
            self.groups.append(Group(*map(np.copy, group)))
            self.sources.append(Source(state, terminal))
        return Slot(terminal, self._numbers[key])

    def token_classes(self, group: int) -> np.ndarray:
        """The suffix class or fan of every token in a group, `NOTHING` for others, `int32[size]`."""
        state, terminal = self.sources[group]
        if state != self._read.state:  # the groups of one state are mostly asked for one after another
            self._read = self._tokens(state)
        members = self._read.members
        chosen = members.terminal == terminal
        found = np.zeros(self._read.classes, np.int32)
        found[members.index[chosen]] = members.member[chosen]
        return found[self._read.which]

    def _tokens(self, state: int) -> _Tokens:
        classes, which = self._spanner.distinct_of_state(state, self._size)
        members = self._projected(classes, np.zeros(len(classes), np.int64), [state])
        return _Tokens(state, which, len(classes), members)

    def _projected(self, classes: np.ndarray, owner: np.ndarray, states: list[int]) -> _Members:
        """What suffix classes become in the slots of some states; `owner` is the index of each one's."""
        index, first, rest = self._parts.of(classes)
        own = [_own_terminals(self._graph, state) for state in states]
        belongs = _table(own, int(first.max(initial=0)))[owner[index], first]
        left = np.zeros(len(classes), np.int64)
        left[index[~belongs]] = classes[index[~belongs]]
        for mixed in np.intersect1d(index[belongs], np.flatnonzero(left)).tolist():
            left[mixed] = self._without(int(classes[mixed]), own[owner[mixed]])
        kept = np.flatnonzero(left)
        return _Members(
            np.concatenate([np.full(len(kept), NO_TERMINAL), first[belongs]]),
            np.concatenate([kept, index[belongs]]),
            np.concatenate([left[kept], rest[belongs]]),
        )

    def _without(self, suffix_class: int, own: frozenset[int]) -> int:
        follow, open_ = self._spanner.classes.members[suffix_class]
        return self._spanner.classes.intern({t: fan for t, fan in follow if t not in own}, open_)


def running_states(graph: LexerGraph) -> list[int]:
    """The lexer states in which a text can stand, `INITIAL` left out."""
    ended = set(np.unique(graph.delta[:, -1]).tolist())
    return sorted(set(np.unique(graph.delta[:, :-1]).tolist()) - ended - {0, INITIAL})


def _own_terminals(graph: LexerGraph, state: int) -> frozenset[int]:
    terminals = frozenset(terminal for terminal, _ in graph.exits[state] if terminal != IGNORED)
    return frozenset() if state == INITIAL or len(terminals) > MAX_SLOTS else terminals


def _table(sets: list[frozenset[int]], largest: int) -> np.ndarray:
    """Sets of terminals as `bool[sets, 2 + largest]`; the last column is `IGNORED`."""
    found = np.zeros((len(sets), 2 + largest), bool)
    for row, some in zip(found, sets, strict=True):
        row[[terminal for terminal in some if terminal <= largest]] = True
    return found
