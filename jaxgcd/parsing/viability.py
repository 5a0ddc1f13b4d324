"""Which parser stacks can still be completed, and at which boundaries between lexemes.

"The next terminal can be produced and shifted" leaves dead ends: a conflict resolved against the rest of the
text, a terminal that no scanner emits, a lexeme that cannot directly follow another. The exact answer is
pre* of the accepting configurations of a pushdown system (Bouajjani, Esparza and Maler 1997; Büchi 1964 for
the regularity) whose control is the boundary between two lexemes and whose stack is Lark's own resolved
LALR(1) stack.

A **boundary class** `b` stands for all lexer boundaries with the same future in terminals; `exits[b]` are
the **columns** `(terminal, gate class)` that some text can spell from there, and a gate class gives the
boundary class after the terminal, by the scanner of the parser state that it is shifted into. What a state
that was just shifted at a boundary class needs of the stack below it is a condition
(`jaxgcd.parsing.summaries`).

Whether a condition holds is found by walking down: a condition on a stack with state `p` on top is one on the
stack below `p`, whatever that is. So the pairs (state, condition) form a finite graph whose paths are the
stacks, read from the top, and a verdict asks whether its conditions reach acceptance, rejection or both.
A **viable** stack is one that can be completed from some boundary class, and only viable stacks count.
Shifts that lead to no viable stack are left out of the graph and the rest is judged again. If then every
other shift leads to viable stacks only, all paths of the graph are viable stacks, and the verdicts are
exact. If not, the stacks are visited from the bottom up, as pairs of the top state and the set of undecided
conditions that hold; what holds of a stack follows from what holds of the stack below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from jaxgcd._budget import Budget
from jaxgcd.lexing.boundaries import Boundaries
from jaxgcd.parsing.conditions import ACCEPTED, REJECTED
from jaxgcd.parsing.machine import Machine
from jaxgcd.parsing.summaries import Summaries
from jaxgcd.parsing.table import START_STATE, ParseTable

DEAD, ALIVE, MIXED = 0, 1, 2

ALWAYS = -1
"""In place of a boundary class: every viable stack that occurs there can be completed."""

Pair = tuple[int, int]
"""A state on top of a stack, and a condition on that stack."""

Case = tuple[int, frozenset[int]]
"""A state on top of a stack, and the undecided conditions that hold of that stack."""


class Stacks(NamedTuple):
    """The viable stacks as the paths of a graph that begin at `first`.

    `above` is the case with a state put on top of a case, and `next` the terminals that can be spelled next,
    somewhere, where the first case of a pair was just shifted on top of the second one. Not every case need
    be one that some text leads to.
    """

    first: Case
    begins: frozenset[int]
    above: dict[tuple[Case, int], Case]
    next: dict[tuple[Case, Case], frozenset[int]]


class Item(NamedTuple):
    """Skip states, then the stack must meet a condition."""

    skip: int
    condition: int


class TooMany(Exception):
    """A limit was met."""


class Viability:
    """Verdicts about `(top parser state, boundary class)` and what the undecided ones wait for.

    Args:
        machine: the LALR machine.
        boundaries: the boundary classes of the lexer.
        scanner_of: the scanner of each parser state.

    Beyond the limit `stack_cases` on (state, condition) pairs, and on cases of stacks, `complete` is False
    and every verdict is `ALIVE`.

    Attributes:
        columns: all `(terminal, gate class)` pairs that the lexer can spell.
        complete: no limit was met.
        all_viable: no verdict of `viable` is `MIXED`. Then stacks whose states were all shifted with the
            verdict `ALIVE` are viable.
    """

    def __init__(self, machine: Machine, boundaries: Boundaries, scanner_of: Sequence[int]):
        self._summaries = Summaries(machine.table, boundaries, scanner_of, machine.budget)
        self.columns = self._summaries.columns
        self._machine, self._lexer = machine, boundaries
        self._boundaries = len(boundaries.exits)
        self._verdicts: dict[tuple[int, int | None], int] = {}
        self.complete = self._judge()
        mixed = {boundary for (_, boundary), verdict in self._verdicts.items() if verdict == MIXED}
        self.all_viable = None not in mixed or not self.complete

    def verdict(self, top: int, boundary: int) -> int:
        """`DEAD`, `ALIVE` or `MIXED` (it depends on what lies below `top`), for `top` shifted on a viable
        stack.
        """
        return self._verdicts.get((top, boundary), DEAD) if self.complete else ALIVE

    def viable(self, top: int) -> int:
        """The verdict whether a stack is viable, for `top` shifted on a viable stack."""
        return self._verdicts.get((top, None), DEAD) if self.complete else ALIVE

    def merged(self) -> list[int | None]:
        """For each boundary class the first one from which the same stacks can be completed.

        `ALWAYS` if all can that occur there, None if none can.
        """
        if not self.complete:
            return [ALWAYS] * self._boundaries
        needs: list[set[tuple[int, int]]] = [set() for _ in range(self._boundaries)]
        always = [self.all_viable] * self._boundaries
        for (top, boundary), verdict in self._verdicts.items():
            if boundary is not None:
                # A verdict that does not depend on the stack holds if the stack is sure to be viable.
                settled = verdict if verdict != MIXED and self.all_viable else None
                always[boundary] &= settled == ALIVE
                if settled != DEAD:
                    need = ACCEPTED if settled == ALIVE else self._summaries.outcome(top, boundary)
                    needs[boundary].add((top, need))
        first: dict[frozenset[tuple[int, int]], int | None] = {frozenset(): None}
        return [
            ALWAYS if every else first.setdefault(frozenset(need), boundary)
            for boundary, (every, need) in enumerate(zip(always, needs, strict=True))
        ]

    def waiting(self, top: int, boundary: int) -> frozenset[Item] | None:
        """The items below `top`, one of which must hold, whatever the stack; None if nothing need hold."""
        return self._as_set(self._summaries.outcome(top, boundary))

    def reveal(self, item: Item, state: int) -> frozenset[Item] | None:
        """What must hold below `state` for an item to hold of a stack with `state` on top."""
        if item.skip:
            return frozenset({Item(item.skip - 1, item.condition)})
        return self._as_set(self._summaries.lift(state, item.condition))

    def stacks(self) -> Stacks:
        """The viable stacks.

        Raises:
            TooMany: a limit was met.
        """
        return _Stacks(self._machine.table, self._summaries, self._lexer, self._machine.budget).graph()

    def _as_set(self, condition: int) -> frozenset[Item] | None:
        if condition in (REJECTED, ACCEPTED):
            return None if condition == ACCEPTED else frozenset()
        skip = self._summaries.conditions.skips(condition)
        return frozenset({Item(skip, self._summaries.conditions.skip(condition, skip))})

    def _judge(self) -> bool:
        try:
            stacks = _Stacks(self._machine.table, self._summaries, self._lexer, self._machine.budget)
            for top, boundary, found in stacks.judgements():
                new = ALIVE if found else DEAD
                if self._verdicts.setdefault((top, boundary), new) != new:
                    self._verdicts[top, boundary] = MIXED
        except TooMany:
            return False
        return True


class _Stacks:
    """The graph of (state, condition) pairs, and the stacks in it that are viable.

    `_needs[s]` are the conditions below `s` for each boundary class that it can be met at, and under the key
    None the condition that `s` is viable.
    """

    def __init__(self, table: ParseTable, summaries: Summaries, boundaries: Boundaries, budget: Budget):
        self._summaries = summaries
        self._budget = budget
        self._gotos = [sorted(set(gotos.values())) for gotos in table.goto]
        self._shifted = [sorted({shift.target for shift in shifts}) for shifts in summaries.shifts]
        self._exits = boundaries.exits
        self._needs = self._all_needs(boundaries)
        self._dead: set[tuple[int, int]] = set()
        self._settle()

    def judgements(self) -> Iterator[tuple[int, int | None, bool]]:
        """`(top, boundary class or None, does it hold)`, each possible one at least once."""
        for boundary, condition in self._needs[START_STATE].items():
            yield START_STATE, boundary, condition == ACCEPTED
        if any(self._mixed(state, need) for state in self._reached for need in self._shift_needs(state)):
            yield from self._visit()
            return
        for state in self._reached:
            for target in self._shifted[state]:
                for boundary, condition in self._needs[target].items():
                    if (state, condition) in self._accepting:
                        yield target, boundary, True
                    if (state, condition) in self._rejecting:
                        yield target, boundary, False

    def _all_needs(self, boundaries: Boundaries) -> dict[int, dict[int | None, int]]:
        met = {START_STATE: {boundaries.initial}}
        for shifts in self._summaries.shifts:
            for shift in shifts:
                met.setdefault(shift.target, set()).add(shift.boundary)
        needs: dict[int, dict[int | None, int]] = {}
        for state, found in met.items():
            classes = sorted(found.union(*(boundaries.skips[b] for b in found)))
            outcomes: dict[int | None, int] = {b: self._summaries.outcome(state, b) for b in classes}
            needs[state] = {**outcomes, None: self._summaries.conditions.either(list(outcomes.values()))}
        return needs

    def _shift_needs(self, state: int) -> list[int]:
        return [self._needs[target][None] for target in self._shifted[state]]

    def _settle(self) -> None:
        """Builds the graph, and again without shifts that are never viable, until there are none."""
        while True:
            self._reached = self._reach()
            self._build()
            dead = {
                (state, target)
                for state in self._reached
                for target in self._above(state)
                if target in self._needs and (state, self._needs[target][None]) not in self._accepting
            }
            if not dead:
                return
            self._dead |= dead

    def _above(self, state: int) -> list[int]:
        shifted = [target for target in self._shifted[state] if (state, target) not in self._dead]
        return shifted + self._gotos[state]

    def _reach(self) -> list[int]:
        met, todo = {START_STATE}, [START_STATE]
        while todo:
            new = set(self._above(todo.pop())) - met
            met |= new
            todo += sorted(new)
        return sorted(met)

    def _build(self) -> None:
        """Follows all conditions down the stack; finds the pairs from which they can be met, and fail."""
        below: dict[int, list[int]] = {state: [] for state in self._reached}
        for state in self._reached:
            for target in self._above(state):
                below[target].append(state)
        todo = [
            (state, condition)
            for state in self._reached
            for target in self._shifted[state]
            for condition in self._needs[target].values()
        ]
        self._lifted: dict[Pair, int] = {}
        ends: dict[bool, list[Pair]] = {True: [], False: []}
        while todo:
            pair = todo.pop()
            if pair in self._lifted:
                continue
            state, condition = pair
            lifted = self._lifted[pair] = self._summaries.lift(state, condition)
            if lifted in (ACCEPTED, REJECTED) or state == START_STATE:
                ends[lifted == ACCEPTED].append(pair)
            else:
                todo += [(lower, lifted) for lower in below[state] if (lower, lifted) not in self._lifted]
            self._budget.step()
            if len(self._lifted) > self._budget.limits.stack_cases:
                raise TooMany
        # Every path comes to an end, at the start state if not before.
        self._accepting, self._rejecting = set(self._lifted), set()
        if ends[False]:
            above = self._users(below, {*ends[True], *ends[False]})
            self._accepting, self._rejecting = (_closure(ends[end], above) for end in (True, False))

    def _users(self, below: dict[int, list[int]], ends: set[Pair]) -> dict[Pair, list[Pair]]:
        """For each pair those that lead to it."""
        users: dict[Pair, list[Pair]] = {}
        for pair, lifted in self._lifted.items():
            for lower in below[pair[0]] if pair not in ends else ():
                users.setdefault((lower, lifted), []).append(pair)
        return users

    def _mixed(self, state: int, condition: int) -> bool:
        return (state, condition) in self._accepting and (state, condition) in self._rejecting

    # Some shifts are viable on some stacks only.

    def graph(self) -> Stacks:
        """See `Stacks`."""
        first: Case = (START_STATE, frozenset())
        found = Stacks(first, self._next(first, START_STATE), {}, {})
        for case, higher in self._cases():
            for above in higher:
                found.above[case, above[0]] = above
                if above[0] in self._shifted[case[0]]:
                    found.next[above, case] = self._next(case, above[0])
        return found

    def _next(self, case: Case, state: int) -> frozenset[int]:
        """The terminals that can be spelled where `state` is put on a stack that can then be completed."""
        needs = self._needs[state].items()
        met = (boundary for boundary, condition in needs if self._holds(case, condition))
        return frozenset(t for boundary in met if boundary is not None for t, _ in self._exits[boundary])

    def _visit(self) -> Iterator[tuple[int, int | None, bool]]:
        for case, _ in self._cases():
            for target in self._shifted[case[0]]:
                for boundary, condition in self._needs[target].items():
                    yield target, boundary, self._holds(case, condition)

    def _cases(self) -> Iterator[tuple[Case, list[Case]]]:
        """All cases of viable stacks, from the bottom up, and the cases with one more state."""
        asked: dict[int, list[int]] = {}
        for state, condition in self._accepting & self._rejecting:
            asked.setdefault(state, []).append(condition)
        first: Case = (START_STATE, frozenset())
        seen: set[Case] = {first}
        todo: list[Case] = [first]
        while todo:
            case = todo.pop()
            higher = []
            for target in sorted({*self._gotos[case[0]], *self._viable_shifts(case)}):
                lifted = ((c, self._lifted[target, c]) for c in asked.get(target, ()))
                new = (target, frozenset(c for c, below in lifted if self._holds(case, below)))
                higher.append(new)
                if new not in seen:
                    seen.add(new)
                    todo.append(new)
            yield case, higher
            self._budget.step()
            if len(seen) > self._budget.limits.stack_cases:
                raise TooMany

    def _viable_shifts(self, case: Case) -> list[int]:
        shifted = self._shifted[case[0]]
        return [target for target in shifted if self._holds(case, self._needs[target][None])]

    def _holds(self, case: Case, condition: int) -> bool:
        """Does a condition hold of the stacks of a case?"""
        state, held = case
        if condition in (ACCEPTED, REJECTED):
            return condition == ACCEPTED
        return condition in held if self._mixed(state, condition) else (state, condition) in self._accepting


def _closure(pairs: list[Pair], users: dict[Pair, list[Pair]]) -> set[Pair]:
    """All pairs from which one of some pairs is reached."""
    found, todo = set(pairs), list(pairs)
    while todo:
        for user in users.get(todo.pop(), ()):
            if user not in found:
                found.add(user)
                todo.append(user)
    return found
