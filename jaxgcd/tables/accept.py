"""Always accepted, never accepted, or waiting for the stack: suffix classes on a partially known stack.

For a parser state on top of an unknown stack, a suffix class is run on the LALR machine. The outcome is
the paper's: accepted whatever lies below (its always-accepted table `A`), rejected, or context-dependent (its
table `D`). What a context-dependent class waits for is a set of **pending** reductions: "skip `k` states, reveal
one, go to a nonterminal under a lookahead, then go on with a suffix class".
"""

from __future__ import annotations

from typing import NamedTuple

from jaxgcd.parsing.machine import Known, Machine, Pop
from jaxgcd.parsing.viability import ALIVE, MIXED, Viability
from jaxgcd.tables.spanner import SuffixClasses


class Pending(NamedTuple):
    """Skip states, reveal one, go to `nonterminal`, shift `terminal`, then continue with class `rest`."""

    skip: int
    nonterminal: int
    terminal: int
    rest: int


Outcome = frozenset[Pending] | None
"""None: accepted. Otherwise what the class waits for, any one of it; the empty set: rejected."""

REJECTED: Outcome = frozenset()


class Acceptance:
    """Runs suffix classes on partially known stacks; answers are memoised."""

    def __init__(self, machine: Machine, viability: Viability, classes: SuffixClasses):
        self._machine = machine
        self._viability = viability
        self._classes = classes
        self._outcomes: dict[tuple[int, Known], Outcome] = {}
        self._revealed: dict[tuple[Pending, int], Outcome] = {}

    def outcome(self, suffix_class: int, known: Known) -> Outcome:
        """What becomes of a suffix class on a stack whose top states are `known`, the top last."""
        key = (suffix_class, known)
        if key not in self._outcomes:
            self._outcomes[key] = self._run(suffix_class, known)
        return self._outcomes[key]

    def reveal(self, pending: Pending, state: int) -> Outcome:
        """What becomes of a `pending` with `skip == 0` when the state it waits for is `state`."""
        key = (pending, state)
        if key not in self._revealed:
            target = self._machine.table.goto[state].get(pending.nonterminal)
            known = None if target is None else self._machine.feed((state, target), pending.terminal)
            self._revealed[key] = self._then(known, pending.terminal, pending.rest)
        return self._revealed[key]

    def _run(self, suffix_class: int, known: Known) -> Outcome:
        follow, open_ = self._classes.members[suffix_class]
        waiting: set[Pending] = set()
        for boundary in open_:
            found = self._completable(boundary, known)
            if found is None:
                return None
            waiting |= found
        for terminal, rest in follow:
            found = self._then(self._machine.feed(known, terminal), terminal, rest)
            if found is None:
                return None
            waiting |= found
        return frozenset(waiting)

    def _then(self, fed: Known | Pop | None, terminal: int, rest: int) -> Outcome:
        if fed is None:
            return REJECTED
        if isinstance(fed, Pop):
            return frozenset({Pending(fed.skip, fed.nonterminal, terminal, rest)})
        return self.outcome(rest, fed)

    def _completable(self, boundary: int, known: Known) -> Outcome:
        """Whether a stack can be completed from a boundary class (see `jaxgcd.parsing.viability`)."""
        verdict = self._viability.verdict(known[-1], boundary)
        if verdict == ALIVE:
            return None
        if verdict != MIXED:
            return REJECTED
        waiting: set[Pending] = set()
        for skip, nonterminal, terminal, then in self._viability.waiting(known[-1], boundary):
            rest = self._classes.intern({}, frozenset({then}))
            found = self._then(self._machine.resume(Pop(skip, nonterminal), known[:-1], terminal), terminal, rest)
            if found is None:
                return None
            waiting |= found
        return frozenset(waiting)
