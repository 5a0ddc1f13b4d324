"""Always accepted, never accepted, or waiting for the stack: suffix classes on a partially known stack.

For a parser state on top of an unknown stack, a suffix class is run on the LALR machine. The outcome is
the paper's: accepted whatever lies below (its always-accepted table `A`), rejected, or context-dependent (its
table `D`). What a context-dependent class waits for is a set of **pending** reductions: "skip `k` states, reveal
one, go to a nonterminal under a lookahead, then go on with a suffix class".
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from jaxgcd.parsing.machine import Known, Machine, Pop
from jaxgcd.parsing.viability import ALIVE, DEAD, Viability
from jaxgcd.tables.spanner import SuffixClasses


class Pending(NamedTuple):
    """Skip states, reveal one, go to `nonterminal`, shift `terminal`, then continue with class `rest`.

    `sure`: every stack passed through so far can be completed, given that the first one could.
    """

    skip: int
    nonterminal: int
    terminal: int
    rest: int
    sure: bool


Outcome = frozenset[Pending] | None
"""None: accepted. Otherwise what the class waits for, any one of it; the empty set: rejected."""

REJECTED: Outcome = frozenset()


class Acceptance:
    """Runs suffix classes on partially known stacks that can be completed; answers are memoised.

    The verdicts of `Viability` hold for terminals shifted on stacks that can be completed. Where that is not sure any
    more, because an earlier terminal of the same token led to a state whose verdict depends on the stack, the
    conditions behind the verdicts are used instead, which hold of any stack.
    """

    def __init__(self, machine: Machine, viability: Viability, classes: SuffixClasses):
        self._machine = machine
        self._viability = viability
        self._classes = classes
        self._outcomes: dict[tuple[int, Known, bool], Outcome] = {}
        self._revealed: dict[tuple[Pending, int], Outcome] = {}

    def outcome(self, suffix_class: int, known: Known, sure: bool = True) -> Outcome:
        """What becomes of a suffix class on a stack whose top states are `known`, the top last."""
        key = (suffix_class, known, sure)
        if key not in self._outcomes:
            self._outcomes[key] = self._run(*key)
        return self._outcomes[key]

    def reveal(self, pending: Pending, state: int) -> Outcome:
        """What becomes of a `pending` with `skip == 0` when the state it waits for is `state`."""
        key = (pending, state)
        if key not in self._revealed:
            target = self._machine.table.goto[state].get(pending.nonterminal)
            known = None if target is None else self._machine.feed((state, target), pending.terminal)
            self._revealed[key] = self._then(known, pending.terminal, pending.rest, pending.sure)
        return self._revealed[key]

    def _run(self, suffix_class: int, known: Known, sure: bool) -> Outcome:
        follow, open_ = self._classes.members[suffix_class]
        outcomes = [self._completable(boundary, known, sure) for boundary in sorted(open_)]
        outcomes += [self._then(self._machine.feed(known, terminal), terminal, rest, sure) for terminal, rest in follow]
        return any_of(outcomes)

    def _then(self, fed: Known | Pop | None, terminal: int, rest: int, sure: bool) -> Outcome:
        if fed is None:
            return REJECTED
        if isinstance(fed, Pop):
            return frozenset({Pending(fed.skip, fed.nonterminal, terminal, rest, sure)})
        viable = self._viability.viable(fed[-1])
        return REJECTED if viable == DEAD else self.outcome(rest, fed, sure and viable == ALIVE)

    def _completable(self, boundary: int, known: Known, sure: bool) -> Outcome:
        """Whether a stack can be completed from a boundary class (see `jaxgcd.parsing.viability`)."""
        verdict = self._viability.verdict(known[-1], boundary)
        if verdict == DEAD:
            return REJECTED
        items = self._viability.waiting(known[-1], boundary)
        if items is None or (verdict == ALIVE and sure):
            return None
        outcomes = []
        for skip, nonterminal, terminal, then in sorted(items):
            rest = self._classes.intern({}, frozenset({then}))
            fed = self._machine.resume(Pop(skip, nonterminal), known[:-1], terminal)
            outcomes.append(self._then(fed, terminal, rest, False))
        return any_of(outcomes)


def any_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Accepted if one of the outcomes is, else all that they wait for."""
    waiting: set[Pending] = set()
    for outcome in outcomes:
        if outcome is None:
            return None
        waiting |= outcome
    return frozenset(waiting)
