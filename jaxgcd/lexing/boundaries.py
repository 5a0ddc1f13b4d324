"""Boundary classes: the places between two lexemes, up to what the parser can see of their future.

Two boundaries are in one class iff the same terminals, after any ignored lexemes, can be spelled from
both and lead to the same classes again (a bisimulation). Where some ignored text separates everything,
the boundaries of a scanner are all in one class, and the lexer puts no constraint on the parser beyond
the scanner's.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxgcd._budget import Budget
from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.scanner import DEAD, IGNORED

NOWHERE = -1
"""In a gate class: that scanner cannot be next."""


@dataclass(frozen=True)
class Boundaries:
    """The partition.

    Attributes:
        of: the class of each lexer state that is a boundary.
        exits: for each class its `(terminal, gate class after it)` pairs, `$END` among the terminals.
        gates: for each gate class the boundary class for each scanner, or `NOWHERE`.
        skips: for each class those that ignored lexemes can lead to from it.
        initial: the class before any text.
    """

    of: dict[int, int]
    exits: tuple[frozenset[tuple[int, int]], ...]
    gates: tuple[tuple[int, ...], ...]
    skips: tuple[frozenset[int], ...]
    initial: int


def boundary_classes(graph: LexerGraph, budget: Budget) -> Boundaries:
    """Partitions the boundaries of a lexer by bisimulation over terminals."""
    states = graph.boundaries
    skips = _past_ignored(graph, states)
    emits = {
        q: {pair for after in skips[q] for pair in graph.exits[after] if pair[0] != IGNORED} for q in states
    }
    of = dict.fromkeys(states, 0)
    while True:
        budget.step()
        rows = [tuple(of.get(state, NOWHERE) for state in row) for row in graph.gates.tolist()]
        signature = {q: frozenset((terminal, rows[gate]) for terminal, gate in emits[q]) for q in states}
        number: dict[tuple, int] = {}
        new = {q: number.setdefault((of[q], signature[q]), len(number)) for q in states}
        if len(number) == len(set(of.values())):
            break
        of = new
    gates: dict[tuple[int, ...], int] = {}
    exits: list[frozenset[tuple[int, int]]] = [frozenset()] * len(number)
    skipped: list[set[int]] = [set() for _ in number]
    for q in states:
        pairs = ((terminal, rows[gate]) for terminal, gate in sorted(emits[q]))
        exits[of[q]] = frozenset((terminal, gates.setdefault(row, len(gates))) for terminal, row in pairs)
        skipped[of[q]] |= {of[after] for after in skips[q]}
    return Boundaries(of, tuple(exits), tuple(gates), tuple(frozenset(s) for s in skipped), of[INITIAL])


def _past_ignored(graph: LexerGraph, states: tuple[int, ...]) -> dict[int, set[int]]:
    """Each boundary with those that ignored lexemes can lead to from it."""
    behind = {
        q: {int(graph.gates[gate, graph.scanner[q]]) for t, gate in graph.exits[q] if t == IGNORED}
        for q in states
    }
    skips = {q: {q} | behind[q] - {DEAD} for q in states}
    changed = True
    while changed:
        changed = False
        for q in states:
            more = set().union(*(skips[after] for after in skips[q]))
            if not more <= skips[q]:
                skips[q] |= more
                changed = True
    return skips
