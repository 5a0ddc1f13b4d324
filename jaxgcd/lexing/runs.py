"""How many readings of one text can be alive at the same time.

A lexer that may have to come back to an earlier match keeps several readings. Their number is bounded by
walking the graph over sets of readings, with the parser approximated by which terminals its state takes
after the last shift.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.scanner import DEAD, IGNORED


class Context(NamedTuple):
    """What the lexer can see of a parser state: its scanner, and the terminals it has an action for."""

    scanner: int
    takes: frozenset[int]


def max_runs(
    graph: LexerGraph, first: Context, after: Sequence[frozenset[Context]], *, limit: int = 100_000
) -> int:
    """The most readings that any text can have at once.

    Args:
        graph: the lexer.
        first: the context before any text.
        after: for each terminal the contexts that shifting it may lead to.
        limit: the most sets of readings to look at.

    Raises:
        GrammarTooLarge: `limit` was exceeded.
    """
    return _Search(graph, after, limit).most(first)


class _Search:
    """Readings are (lexer state, context number) pairs. They develop independently of each other."""

    def __init__(self, graph: LexerGraph, after: Sequence[frozenset[Context]], limit: int):
        self._limit = limit
        self._delta = graph.delta.tolist()
        self._gates = graph.gates.tolist()
        self._accepts = graph.accepts
        self._emits = [_bits(0 if t == IGNORED else t for t, _ in exits) for exits in graph.exits]
        self._contexts: dict[Context, int] = {}
        self._takes: list[int] = []
        self._scanner: list[int] = []
        self._after = [[self._context(c) for c in sorted(contexts, key=_key)] for contexts in after]
        self._steps: dict[tuple[int, int, int], list[list[tuple[int, int]]]] = {}

    def most(self, first: Context) -> int:
        begin: tuple[tuple[int, int], ...] = ((INITIAL, self._context(first)),)
        seen: set[tuple[tuple[int, int], ...]] = {begin}
        todo: list[tuple[tuple[int, int], ...]] = [begin]
        most = 1
        while todo:
            runs = todo.pop()
            for symbol in range(len(self._delta[0]) - 1):
                steps = [choice for run in runs for choice in self._step(*run, symbol)]
                for chosen in itertools.product(*steps):
                    key = tuple(sorted(set(chosen)))
                    if key and key not in seen:
                        seen.add(key)
                        todo.append(key)
                        most = max(most, len(key))
                if len(seen) > self._limit:
                    raise GrammarTooLarge(
                        f"The lexer's readings of one text form more than {self._limit} sets. Look for "
                        "terminals that begin with another one and go on without bound, and shorten them."
                    )
        return most

    def _step(self, state: int, context: int, symbol: int) -> list[list[tuple[int, int]]]:
        """What a reading becomes: for each reading after it a list of what it may be, one of them true."""
        key = (state, context, symbol)
        if key not in self._steps:
            found = [[(self._delta[state][symbol], context)]]
            for terminal, gate in self._accepts[state]:
                after = [context] if terminal == IGNORED else self._after[terminal]
                if terminal == IGNORED or self._takes[context] >> terminal & 1:
                    found.append(
                        [(self._delta[self._gates[gate][self._scanner[c]]][symbol], c) for c in after]
                    )
            alive = [
                [(q, c) for q, c in choice if q != DEAD and self._emits[q] & self._takes[c]]
                for choice in found
            ]
            self._steps[key] = [list(dict.fromkeys(choice)) for choice in alive if choice]
        return self._steps[key]

    def _context(self, context: Context) -> int:
        number = self._contexts.setdefault(context, len(self._takes))
        if number == len(self._takes):
            self._takes.append(_bits(context.takes) | 1)  # bit 0: an ignored lexeme
            self._scanner.append(context.scanner)
        return number


def _key(context: Context) -> tuple[int, list[int]]:
    return context.scanner, sorted(context.takes)


def _bits(numbers) -> int:
    return sum(1 << n for n in set(numbers))
