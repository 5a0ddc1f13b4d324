"""Slots: what the mask of a lexer state is put together from.

From a lexer state, most tokens first complete one of a few terminals. Each of these is a **slot**: the
terminal is stepped on the real stack, and the tokens that complete it are then checked with the parser state
that this leads to on top. What is left (tokens that go on after an ignored lexeme, and all tokens of a state
with many terminals) shares one slot without a terminal, checked on the stack as it is.

A slot's tokens form a **group**, by the fan of what comes after the terminal, or by suffix class; states
whose slots have the same tokens share groups.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.tables.spanner import Spanner, summed

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
    own: frozenset[int]  # the terminals that have slots of their own in that state


Parts = tuple[np.ndarray, np.ndarray, np.ndarray]
"""The parts of some suffix classes: whose they are, the terminals, the fans behind these."""


class _Tokens(NamedTuple):
    """What all tokens turn into from a lexer state."""

    state: int
    classes: np.ndarray  # the distinct suffix classes, in order
    parts: Parts
    which: np.ndarray  # int32[size], each token's, by index


class Slots:
    """The slots of every lexer state, the groups, and the source of every group."""

    def __init__(self, graph: LexerGraph, spanner: Spanner, size: int):
        self._spanner = spanner
        self._size = size
        self._parts = spanner.classes.parts()
        self._numbers: dict[tuple[int, bytes, bytes], int] = {}
        self._read = self._tokens(0)
        self.groups: list[Group] = []
        self.sources: list[Source] = []
        self.of_state: list[tuple[Slot, ...]] = [()] * graph.n_states
        known: dict[tuple[bytes, frozenset[int]], tuple[Slot, ...]] = {}  # many states read all tokens alike
        for state in (INITIAL, *running_states(graph)):
            key = spanner.variant[state].tobytes(), _own_terminals(graph, state)
            if key not in known:
                known[key] = self._slots(state, key[1])
            self.of_state[state] = known[key]

    def _slots(self, state: int, own: frozenset[int]) -> tuple[Slot, ...]:
        classes, sums = self._spanner.class_sums(state)
        parts = self._parts.of(classes)
        slots = []
        for terminal in (NO_TERMINAL, *sorted(own)):
            index, members = self._projected(classes, parts, terminal, own)
            slots.append(self._slot(terminal, members, sums[index], Source(state, terminal, own)))
        return tuple(slot for slot in slots if slot is not None)

    def _slot(self, terminal: int, members: np.ndarray, sums: np.ndarray, source: Source) -> Slot | None:
        """The slot of some tokens, by suffix class or fan; groups of the same tokens are one."""
        members, sums = summed(members, sums)
        if not len(members):
            return None
        key = (terminal, members.tobytes(), sums.tobytes())
        if key not in self._numbers:
            self._numbers[key] = len(self.groups)
            self.groups.append(Group(members, sums))
            self.sources.append(source)
        return Slot(terminal, self._numbers[key])

    def token_classes(self, group: int) -> np.ndarray:
        """The suffix class or fan of every token in a group, `NOTHING` for others, `int32[size]`."""
        state, terminal, own = self.sources[group]
        if state != self._read.state:  # the groups of one state are mostly asked for one after another
            self._read = self._tokens(state)
        _, classes, parts, which = self._read
        index, members = self._projected(classes, parts, terminal, own)
        projected = np.zeros(len(classes), np.int32)
        projected[index] = members
        return projected[which]

    def _tokens(self, state: int) -> _Tokens:
        classes = self._spanner.of_state(state, self._size)
        present = np.flatnonzero(np.bincount(classes))
        place = np.zeros(present[-1] + 1, np.int32)
        place[present] = np.arange(len(present))
        return _Tokens(state, present, self._parts.of(present), place[classes])

    def _projected(
        self, classes: np.ndarray, parts: Parts, terminal: int, own: frozenset[int]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which of some classes have tokens in a slot, and the slot's members that these stand for.

        Members are the fans that follow `terminal`; for `NO_TERMINAL`, the classes without `own`.
        """
        owner, first, rest = parts
        if terminal != NO_TERMINAL:
            chosen = np.flatnonzero(first == terminal)
            return owner[chosen], rest[chosen]
        belongs = np.isin(first, list(own))
        found = np.zeros(len(classes), np.int64)
        found[owner[~belongs]] = classes[owner[~belongs]]
        for index in np.intersect1d(owner[belongs], owner[~belongs]).tolist():
            found[index] = self._without(int(classes[index]), own)
        left = np.flatnonzero(found)
        return left, found[left]

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
