"""How many readings of one text can be alive at the same time.

A lexer that may have to come back to an earlier match keeps several readings. Their number is bounded by
walking the graph over sets of readings, with the parser approximated by a **context**, that is, by which
terminals its state takes after the last shift.

Readings develop independently of each other, and two of them are never in one lexer state, since at most one
can survive. So a set of readings is a set of lexer states, and for each of them a mask of the contexts that
it may be in is kept, as abstract interpretation does (Cousot and Cousot 1977). A single reading is followed
through the graph by itself; the walk over sets starts where one reading becomes two. Where there are many
sets, masks are widened to all contexts that a reading can be in there, so that the walk ends soon.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.scanner import DEAD, IGNORED


class Context(NamedTuple):
    """What the lexer can see of a parser state: its scanner, and the terminals it has an action for."""

    scanner: int
    takes: frozenset[int]


def max_runs(
    graph: LexerGraph,
    first: Context,
    after: Sequence[frozenset[Context]],
    names: Sequence[str],
    budget: Budget,
) -> int:
    """The most readings that any text can have at once.

    Args:
        graph: the lexer.
        first: the context before any text.
        after: for each terminal the contexts that shifting it may lead to.
        names: what messages call each terminal.
        budget: what may be used up.

    Raises:
        GrammarTooLarge: there are too many of them, or of their sets.
    """
    budget.work = "the lexer's readings"
    return _Search(graph, first, after, names, budget).most()


NARROW = 100
"""After looking at so many sets of readings, masks of contexts are widened."""

Readings = tuple[tuple[int, int], ...]
"""`(lexer state, mask of contexts)` pairs, sorted, one for each lexer state."""


class Branch(NamedTuple):
    """How a reading may go on if its context is one of `takers`.

    The next symbol is read from one of the lexer states in `begins`, pairs of a lexer state and the contexts
    that it may then be in. Where `keeps` is set, the reading's own context is kept.
    """

    takers: int
    begins: Readings
    keeps: bool


class _Search:
    def __init__(
        self,
        graph: LexerGraph,
        first: Context,
        after: Sequence[frozenset[Context]],
        names: Sequence[str],
        budget: Budget,
    ):
        self._names = names
        self._budget = budget
        self._exits = graph.exits
        self._delta = graph.delta[:, :-1]
        self._successors = [list(dict.fromkeys(row)) for row in self._delta.tolist()]
        self._number = {c: i for i, c in enumerate(dict.fromkeys([first, *itertools.chain(*after)]))}
        self._every = (1 << len(self._number)) - 1
        self._takers: dict[int, int] = {IGNORED: self._every}
        for context, number in self._number.items():
            for terminal in context.takes:
                self._takers[terminal] = self._takers.get(terminal, 0) | 1 << number
        known = {exits: self._contexts_with(exits) for exits in set(graph.exits)}
        self._alive = [known[exits] for exits in graph.exits]
        gates = graph.gates.tolist()
        branch = {pair: self._branch(pair[0], gates[pair[1]], after) for pair in set().union(*graph.accepts)}
        self._branches = [
            [Branch(self._every, ((state, self._every),), True), *(branch[pair] for pair in pairs)]
            for state, pairs in enumerate(graph.accepts)
        ]
        self._sets: dict[tuple[int, ...], Readings] = {}
        self._todo: dict[tuple[int, ...], None] = {}
        self._alone = self._follow()
        self._wide = False
        self._rows: dict[tuple[int, int], list[tuple[int, Readings]]] = {}
        self._columns_of: dict[int, dict[tuple[int, ...], int]] = {}

    def most(self) -> int:
        for reading in self._alone.items():
            if self._splits(reading[0]):
                self._note(self._read((reading,)))
        for count in itertools.count():
            if not self._todo:
                break
            if count == NARROW:
                self._wide = True
                self._rows.clear()
            key = next(iter(self._todo))
            del self._todo[key]
            self._note(self._read(self._sets[key]))
            self._budget.step()
            if len(self._sets) > self._budget.limits.reading_sets:
                raise self._too_many(key, "reading_sets", "sets of readings at once")
        return max((len(key) for key in self._sets), default=1)

    def _too_many(self, states: Sequence[int], limit: str, unit: str) -> GrammarTooLarge:
        """Names the terminals that most of some readings are in the middle of."""
        ends = Counter(terminal for state in states for terminal in {t for t, _ in self._exits[state]})
        names = [self._names[t] for t, _ in ends.most_common(4) if t != IGNORED]
        return self._budget.exceeded(
            limit,
            f"terminals {', '.join(names)}: a text can have",
            f"{unit}, because too many lexemes can be taken back",
            "look for terminals that begin like another one and go on without bound, and shorten them",
        )

    def _contexts_with(self, exits: frozenset[tuple[int, int]]) -> int:
        """The contexts in which a lexeme with these exits can end."""
        found = 0
        for terminal, _ in exits:
            found |= self._takers.get(terminal, 0)
        return found

    def _branch(self, terminal: int, gate: list[int], after: Sequence[frozenset[Context]]) -> Branch:
        """What a reading becomes that ends its lexeme as `terminal`."""
        ignored = terminal == IGNORED
        begins: dict[int, int] = {}
        for context in self._number if ignored else after[terminal]:
            state = gate[context.scanner]
            begins[state] = begins.get(state, 0) | 1 << self._number[context]
        return Branch(self._takers.get(terminal, 0), tuple(sorted(begins.items())), ignored)

    def _follow(self) -> dict[int, int]:
        """The lexer states that a reading can come to, and the contexts that it may be in there."""
        masks, todo = {INITIAL: 1}, [INITIAL]
        taken: set[int] = set()  # branches that lead to the same contexts from wherever they are taken
        while todo:
            state = todo.pop()
            for branch in self._branches[state]:
                takers, begins, keeps = branch
                mask = masks[state] & takers
                if not mask or id(branch) in taken:
                    continue
                if not keeps:
                    taken.add(id(branch))
                for begin, contexts in begins:
                    for new in self._successors[begin]:
                        found = (mask & contexts if keeps else contexts) & self._alive[new]
                        if new != DEAD and found & ~masks.get(new, 0):
                            masks[new] = masks.get(new, 0) | found
                            todo.append(new)
        return masks

    def _splits(self, state: int) -> bool:
        """Whether a reading in a lexer state can become two."""
        branches = self._branches[state]
        if len(branches) == 1:
            return False
        going = [self._delta[[begin for begin, _ in branch.begins]].any(axis=0) for branch in branches]
        return int(np.sum(going, axis=0).max(initial=0)) > 1

    def _note(self, sets: Iterator[Readings]) -> None:
        for new in sets:
            key = tuple(state for state, _ in new)
            if len(key) > self._budget.limits.readings:
                raise self._too_many(key, "readings", "readings at once")
            old = self._sets.get(key)
            if old is not None:
                new = tuple((state, m | n) for (state, m), (_, n) in zip(old, new, strict=True))
            if new != old:
                self._sets[key] = new
                self._todo[key] = None

    def _read(self, readings: Readings) -> Iterator[Readings]:
        """What some readings can become by one symbol, as far as it is two or more."""
        parts: list[tuple[int, Readings]] = [(-1, ())]
        most = self._budget.limits.reading_sets
        for reading in readings:
            row = self._row(reading)
            new_parts = ((s & t, found + new) for s, found in parts for t, new in row if s & t)
            parts = list(itertools.islice(new_parts, most + 1))
            if len(parts) > most:
                raise self._too_many([q for q, _ in readings], "reading_sets", "sets of readings at once")
        for _, found in parts:
            if len(found) > 1:
                yield tuple(sorted(found))

    def _row(self, reading: tuple[int, int]) -> list[tuple[int, Readings]]:
        """What one reading can become, and a mask of the symbols by which it can."""
        if reading not in self._rows:
            symbols: dict[Readings, int] = {}
            for column, mask in self._columns(reading[0]).items():
                for found in self._go(*reading, iter(column)):
                    symbols[found] = symbols.get(found, 0) | mask
            self._rows[reading] = [(mask, found) for found, mask in symbols.items()]
        return self._rows[reading]

    def _columns(self, state: int) -> dict[tuple[int, ...], int]:
        """Where the beginnings of all branches lead, and a mask of the symbols by which they do."""
        if state not in self._columns_of:
            begins = [begin for branch in self._branches[state] for begin, _ in branch.begins]
            columns = np.ascontiguousarray(self._delta[begins].T)
            found: dict[bytes, int] = {}
            for symbol, column in enumerate(map(np.ndarray.tobytes, columns)):
                found[column] = found.get(column, 0) | 1 << symbol
            self._columns_of[state] = {
                tuple(np.frombuffer(column, columns.dtype).tolist()): mask for column, mask in found.items()
            }
        return self._columns_of[state]

    def _go(self, state: int, mask: int, targets: Iterator[int]) -> list[Readings]:
        """What one reading can become, one of these; `targets` are where its branches' beginnings lead."""
        alive = self._alive
        parts: list[_Part] = [_Part(mask, (), ())]
        for branch in self._branches[state]:
            ends = zip(branch.begins, targets, strict=False)
            going = [(q, both) for (_, c), q in ends if q != DEAD and (both := c & alive[q])]
            parts = [new for part in parts for new in _split(part, branch, going)] if going else parts
        found = [(*((q, part.mask) for q in part.same), *part.other) for part in parts]
        if self._wide:
            found = [tuple((q, self._alone[q]) for q, _ in readings) for readings in found]
        return found


class _Part(NamedTuple):
    """Some contexts of a reading, and what the reading becomes in them: in lexer states with its own context,
    and otherwise.
    """

    mask: int
    same: tuple[int, ...]
    other: Readings


def _split(part: _Part, branch: Branch, going: list[tuple[int, int]]) -> Iterator[_Part]:
    """Splits contexts by whether a branch is taken, and adds what it leads to."""
    rest = part.mask
    for q, contexts in going:
        taken = part.mask & branch.takers & (contexts if branch.keeps else -1)
        rest &= ~taken
        if taken and branch.keeps:
            yield _Part(taken, (*part.same, q), part.other)
        elif taken:
            yield _Part(taken, part.same, (*part.other, (q, contexts)))
    if rest:
        yield part._replace(mask=rest)
