"""Lark's table without the actions that no viable text comes to.

A cycle of rules, resolved by priority, can make Lark reduce for ever. That matters only if a text leads there
that the masks let through: one that leaves a viable stack, at a boundary from which that stack can be
completed, with the endless reductions under a terminal that can be spelled next. So every step from such a
place is run, down all stacks that may lie below; the actions that none of them takes are left out.
"""

from __future__ import annotations

import dataclasses

from jaxgcd._budget import Budget
from jaxgcd.parsing.machine import Known, Machine, Pop
from jaxgcd.parsing.table import ParseTable
from jaxgcd.parsing.viability import Case, Stacks


def live_table(table: ParseTable, stacks: Stacks, budget: Budget) -> ParseTable:
    """The table with the actions that are taken on viable stacks.

    Raises:
        EndlessReductions: some of them never end.
    """
    taken = _Steps(table, stacks, budget).taken()
    action = tuple(
        {terminal: action for terminal, action in actions.items() if (state, terminal) in taken}
        for state, actions in enumerate(table.action)
    )
    return dataclasses.replace(table, action=action)


class _Steps:
    """Runs "reduce, reduce, shift" from the viable stacks that some text leads to."""

    def __init__(self, table: ParseTable, stacks: Stacks, budget: Budget):
        self._table = table
        self._machine = Machine(table, budget)
        self._budget = budget
        self._stacks = stacks
        self._taken: set[tuple[int, int]] = set()
        self._below: dict[Case, set[Case]] = {}  # what was found to lie directly below a case
        self._waiting: dict[Case, set[tuple[int, int, int]]] = {}  # depth, nonterminal, terminal
        self._met: set[tuple[Case, int, int]] = set()
        self._todo: list[tuple[Case, Known, int]] = []

    def taken(self) -> set[tuple[int, int]]:
        """The `(state, terminal)` pairs whose actions are taken."""
        first = self._stacks.first
        self._todo += [(first, (first[0],), terminal) for terminal in self._stacks.begins]
        while self._todo:
            self._budget.step()
            bottom, known, terminal = self._todo.pop()
            fed = self._machine.feed(known, terminal)
            self._mark(known, terminal)
            if isinstance(fed, Pop):
                self._wait(bottom, fed.skip + 1, fed.nonterminal, terminal)
            elif fed:
                self._climb(bottom, fed)
        return self._taken

    def _climb(self, bottom: Case, known: Known) -> None:
        """A terminal was shifted, and now `known` lies from `bottom` on."""
        case, lower = bottom, bottom
        for state in known[1:]:
            above = self._stacks.above.get((case, state))
            if above is None:  # not viable
                return
            self._lay(above, case)
            case, lower = above, case
        for terminal in self._stacks.next.get((case, lower), ()):
            self._plan(lower, case[0], terminal)

    def _lay(self, above: Case, lower: Case) -> None:
        """`lower` may lie directly below `above`."""
        if lower not in self._below.setdefault(above, set()):
            self._below[above].add(lower)
            for depth, nonterminal, terminal in list(self._waiting.get(above, ())):
                self._arrive(lower, depth - 1, nonterminal, terminal)

    def _wait(self, case: Case, depth: int, nonterminal: int, terminal: int) -> None:
        """A reduction goes on from the state so far below `case`."""
        waiting = self._waiting.setdefault(case, set())
        if (depth, nonterminal, terminal) not in waiting:
            waiting.add((depth, nonterminal, terminal))
            for lower in list(self._below.get(case, ())):
                self._arrive(lower, depth - 1, nonterminal, terminal)

    def _arrive(self, case: Case, depth: int, nonterminal: int, terminal: int) -> None:
        target = self._table.goto[case[0]].get(nonterminal)
        if depth:
            self._wait(case, depth, nonterminal, terminal)
        elif target is not None:
            self._plan(case, target, terminal)

    def _plan(self, lower: Case, state: int, terminal: int) -> None:
        """To be run: a terminal with `state` on top of `lower`."""
        if (lower, state, terminal) not in self._met:
            self._met.add((lower, state, terminal))
            self._todo.append((lower, (lower[0], state), terminal))

    def _mark(self, known: Known, terminal: int) -> None:
        """Marks the actions of a step, which comes to an end."""
        while (action := self._table.action[known[-1]].get(terminal, 0)) != 0:
            self._taken.add((known[-1], terminal))
            rule = self._table.rules[-action - 1] if action < 0 else None
            if rule is None or rule.size >= len(known):
                break
            known = known[: len(known) - rule.size]
            known = (*known, self._table.goto[known[-1]].get(rule.origin, 0))  # 0 has no action
