"""Always accepted, never accepted, or waiting for the stack: suffix classes on a partially known stack.

For a parser state on top of an unknown stack, a suffix class is run on the LALR machine. The outcome is
the paper's: accepted whatever lies below (its always-accepted table `A`), rejected, or context-dependent (its
table `D`). What a context-dependent class waits for is a set of **pending** reductions: "skip `k` states,
reveal one, go to a nonterminal under a lookahead, then go on with a suffix class".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.machine import Known, Machine, Pop
from jaxgcd.parsing.viability import ALIVE, DEAD, Item, Viability
from jaxgcd.tables.spanner import SuffixClasses


class Pending(NamedTuple):
    """Skip states, reveal one, go to `nonterminal`, shift `terminal`, then continue with fan `rest`.

    `sure`: every stack passed through so far can be completed, given that the first one could.
    """

    skip: int
    nonterminal: int
    terminal: int
    rest: int
    sure: bool


Waiting = Pending | Item
"""A suffix class that waits for a reduction, or a condition of `Viability` on the rest of the stack."""

Outcome = frozenset[Waiting] | None
"""None: accepted. Otherwise what the class waits for, any one of it; the empty set: rejected."""

REJECTED: Outcome = frozenset()


class Acceptance:
    """Runs suffix classes on partially known stacks that can be completed; answers are memoised.

    The verdicts of `Viability` hold for terminals shifted on stacks that can be completed. Where that is not
    sure any more, because an earlier terminal of the same token led to a state whose verdict depends on the
    stack, the conditions behind the verdicts are used instead, which hold of any stack.
    """

    def __init__(
        self,
        machine: Machine,
        viability: Viability,
        classes: SuffixClasses,
        scanner_of: Sequence[int],
        runs: int,
    ):
        self._machine = machine
        self._viability = viability
        self._classes = classes
        self._scanner_of = scanner_of
        # With several readings of one text, the text may be viable through another one. Shifts into states
        # that are dead on every stack are not in the device's tables, so only a mixed verdict leaves a doubt.
        self._trusted = runs == 1 or viability.all_viable
        self._outcomes: dict[tuple[int, Known, bool], Outcome] = {}
        self._revealed: dict[tuple[Waiting, int], Outcome] = {}

    def entry(self, suffix_class: int, top: int) -> Outcome:
        """What becomes of a suffix class in a row's state, with `top` just shifted or standing there."""
        if self._viability.viable(top) == DEAD:
            return REJECTED
        return self.outcome(suffix_class, (top,), self.trusts(top))

    def trusts(self, top: int) -> bool:
        """Whether every stack that a row can have with `top` on top can be completed."""
        return self._trusted and self._viability.viable(top) == ALIVE

    def outcome(self, suffix_class: int, known: Known, sure: bool) -> Outcome:
        """What becomes of a suffix class on a stack whose top states are `known`, the top last."""
        key = (suffix_class, known, sure)
        if key not in self._outcomes:
            self._outcomes[key] = self._run(*key)
        return self._outcomes[key]

    def after(self, fan: int, state: int) -> int:
        """The suffix class that goes on after a terminal was shifted into `state`, or ignored there."""
        return self._classes.of_fan(fan, self._scanner_of[state])

    def reveal(self, waiting: Waiting, state: int) -> Outcome:
        """What becomes of something that waits when the next state down the stack is `state`."""
        if waiting.skip:
            return frozenset({waiting._replace(skip=waiting.skip - 1)})
        key = (waiting, state)
        if key not in self._revealed:
            self._revealed[key] = self._reveal(waiting, state)
        return self._revealed[key]

    def _reveal(self, waiting: Waiting, state: int) -> Outcome:
        if isinstance(waiting, Item):
            return self._viability.reveal(waiting, state)
        target = self._machine.table.goto[state].get(waiting.nonterminal)
        known = None if target is None else self._machine.feed((state, target), waiting.terminal)
        return self._then(known, waiting.terminal, waiting.rest, waiting.sure)

    def _run(self, suffix_class: int, known: Known, sure: bool) -> Outcome:
        follow, open_ = self._classes.members[suffix_class]
        outcomes = [self.completable(boundary, known, sure) for boundary in sorted(open_)]
        for terminal, rest in follow:
            if terminal == IGNORED:
                outcomes.append(self.outcome(self.after(rest, known[-1]), known, sure))
            else:
                outcomes.append(self._then(self._machine.feed(known, terminal), terminal, rest, sure))
        return any_of(outcomes)

    def _then(self, fed: Known | Pop | None, terminal: int, rest: int, sure: bool) -> Outcome:
        if fed is None:
            return REJECTED
        if isinstance(fed, Pop):
            return frozenset({Pending(fed.skip, fed.nonterminal, terminal, rest, sure)})
        viable = self._viability.viable(fed[-1])
        suffix_class = self.after(rest, fed[-1])
        return REJECTED if viable == DEAD else self.outcome(suffix_class, fed, sure and viable == ALIVE)

    def completable(self, boundary: int, known: Known, sure: bool) -> Outcome:
        """Whether a stack can be completed from a boundary class (see `jaxgcd.parsing.viability`)."""
        verdict = self._viability.verdict(known[-1], boundary)
        if verdict == DEAD:
            return REJECTED
        if verdict == ALIVE and sure:
            return None
        return below(self._viability.waiting(known[-1], boundary), known[:-1], self._viability.reveal)


def below(outcome: Outcome, known: Known, reveal: Callable[[Any, int], Outcome]) -> Outcome:
    """What an outcome comes to when the next states down the stack are `known`, the top last."""
    for state in reversed(known):
        if outcome is None:
            return None
        outcome = any_of(reveal(waiting, state) for waiting in outcome)
    return outcome


def any_of(outcomes: Iterable[Outcome]) -> Outcome:
    """Accepted if one of the outcomes is, else all that they wait for."""
    waiting: set[Waiting] = set()
    for outcome in outcomes:
        if outcome is None:
            return None
        waiting |= outcome
    return frozenset(waiting)
