"""Boundary classes: the places between two lexemes, up to what the parser can see of their future.

Two boundaries are in one class iff the same terminals, after any ignored lexemes, can be spelled from both
and lead to the same classes again (a bisimulation). Where some ignored text separates everything, all
boundaries are one class and the lexer puts no constraint on the parser at all.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.scanner import IGNORED


@dataclass(frozen=True)
class Boundaries:
    """Attributes:
    of: the class of each lexer state that is a boundary.
    exits: for each class its `(terminal, class after it)` pairs, `$END` among the terminals.
    initial: the class before any text.
    """

    of: dict[int, int]
    exits: tuple[frozenset[tuple[int, int]], ...]
    initial: int


def boundary_classes(graph: LexerGraph) -> Boundaries:
    """Partitions the boundaries of a lexer by bisimulation over terminals."""
    states = graph.boundaries
    emits = _past_ignored(graph, states)
    of = dict.fromkeys(states, 0)
    while True:
        signature = {q: frozenset((terminal, of[after]) for terminal, after in emits[q]) for q in states}
        number: dict[tuple, int] = {}
        new = {q: number.setdefault((of[q], signature[q]), len(number)) for q in states}
        if len(number) == len(set(of.values())):
            break
        of = new
    exits: dict[int, frozenset[tuple[int, int]]] = {of[q]: signature[q] for q in states}
    return Boundaries(of, tuple(exits[b] for b in range(len(exits))), of[INITIAL])


def _past_ignored(graph: LexerGraph, states: tuple[int, ...]) -> dict[int, set[tuple[int, int]]]:
    """The `(terminal, boundary)` pairs that each boundary can spell, ignored lexemes skipped."""
    emits = {q: {pair for pair in graph.exits[q] if pair[0] != IGNORED} for q in states}
    skips = {q: [after for terminal, after in graph.exits[q] if terminal == IGNORED] for q in states}
    # The end of the text is one more symbol that only a boundary reads; `exits` follows it like any other.
    changed = True
    while changed:
        changed = False
        for q in states:
            for after in skips[q]:
                if not emits[after] <= emits[q]:
                    emits[q] |= emits[after]
                    changed = True
    return emits
