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
from jaxgcd.tables.spanner import HASH_MASK, NOTHING, Spanner, SuffixClasses
from jaxgcd.tables.walk import Walk

NO_TERMINAL = 0
MAX_SLOTS = 8
"""A state in which more terminals than this can end has one slot without a terminal."""


class Slot(NamedTuple):
    """`terminal` (`NO_TERMINAL`: none) is stepped first, then `group` is checked."""

    terminal: int
    group: int


class Source(NamedTuple):
    """How a group's tokens are found again: those of a lexer state, projected on a terminal."""

    state: int
    terminal: int
    own: frozenset[int]  # the terminals that have slots of their own in that state


class Slots:
    """The slots of every lexer state, and the source of every group."""

    def __init__(self, graph: LexerGraph, spanner: Spanner, walk: Walk, size: int):
        self._spanner = spanner
        self._size = size
        self._walk = walk
        self._numbers: dict[tuple[int, frozenset[tuple[int, int]]], int] = {}
        self.sources: list[Source] = []
        self.of_state: list[tuple[Slot, ...]] = [()] * graph.n_states
        for state in (INITIAL, *running_states(graph)):
            self.of_state[state] = self._slots(state, _own_terminals(graph, state))

    def _slots(self, state: int, own: frozenset[int]) -> tuple[Slot, ...]:
        by_class = self._spanner.class_sums(state)
        slots = []
        for terminal in (NO_TERMINAL, *sorted(own)):
            group: dict[int, int] = {}
            for suffix_class, value in by_class.items():
                rest = project(self._spanner.classes, suffix_class, terminal, own)
                if rest != NOTHING:
                    group[rest] = group.get(rest, 0) + value & HASH_MASK
            if group:
                slots.append(Slot(terminal, self._group(group, Source(state, terminal, own))))
        return tuple(slots)

    def _group(self, hashes: dict[int, int], source: Source) -> int:
        key = (source.terminal, frozenset(hashes.items()))
        if key not in self._numbers:
            self._numbers[key] = self._walk.group(dict(sorted(hashes.items())))
            self.sources.append(source)
        return self._numbers[key]

    def token_classes(self, group: int) -> np.ndarray:
        """The suffix class or fan of every token in a group, `NOTHING` for others, `int32[size]`."""
        state, terminal, own = self.sources[group]
        classes = self._spanner.of_state(state, self._size)
        projected = np.zeros(int(classes.max()) + 1, np.int32)
        for present in np.flatnonzero(np.bincount(classes)).tolist():
            projected[present] = project(self._spanner.classes, present, terminal, own)
        return projected[classes]


def project(classes: SuffixClasses, suffix_class: int, terminal: int, own: frozenset[int]) -> int:
    """The fan that follows `terminal` in a class; for `NO_TERMINAL`, the class without those in `own`."""
    follow, open_ = classes.members[suffix_class]
    if terminal == NO_TERMINAL:
        return classes.intern({t: c for t, c in follow if t not in own}, open_)
    return next((c for t, c in follow if t == terminal), NOTHING)


def running_states(graph: LexerGraph) -> list[int]:
    """The lexer states in which a text can stand, `INITIAL` left out."""
    ended = set(np.unique(graph.delta[:, -1]).tolist())
    return sorted(set(np.unique(graph.delta[:, :-1]).tolist()) - ended - {0, INITIAL})


def _own_terminals(graph: LexerGraph, state: int) -> frozenset[int]:
    terminals = frozenset(terminal for terminal, _ in graph.exits[state] if terminal != IGNORED)
    return frozenset() if state == INITIAL or len(terminals) > MAX_SLOTS else terminals
