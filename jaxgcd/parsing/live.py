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
    """Runs "reduce, reduce, shift" from the viable stacks."""

    def __init__(self, table: ParseTable, stacks: Stacks, budget: Budget):
        self._table = table
        self._machine = Machine(table, budget)
        self._budget = budget
        self._stacks = stacks
        self._taken: set[tuple[int, int]] = set()
        self._revealed: set[tuple[Case, int, int]] = set()
        self._deeper: dict[tuple[Case, int], set[Case]] = {}

    def taken(self) -> set[tuple[int, int]]:
        """The `(state, terminal)` pairs whose actions are taken."""
        first = self._stacks.first
        todo = [(first, (first[0],), terminal) for terminal in self._stacks.begins]
        for (above, below), terminals in self._stacks.next.items():
            todo += [(below, (below[0], above[0]), terminal) for terminal in terminals]
        while todo:
            self._budget.step()
            bottom, known, terminal = todo.pop()
            fed = self._machine.feed(known, terminal)
            self._mark(known, terminal)
            if isinstance(fed, Pop):
                todo += self._reveal(bottom, fed, terminal)
        return self._taken

    def _reveal(self, bottom: Case, pop: Pop, terminal: int) -> list[tuple[Case, Known, int]]:
        """What to run where a reduction pops more than is known above and with `bottom`."""
        found = []
        for case in self._below(bottom, pop.skip + 1):
            target = self._table.goto[case[0]].get(pop.nonterminal)
            key = (case, pop.nonterminal, terminal)
            if target is not None and key not in self._revealed:
                self._revealed.add(key)
                found.append((case, (case[0], target), terminal))
        return found

    def _below(self, case: Case, depth: int) -> set[Case]:
        """The cases so far below a case."""
        found = {case}
        for step in range(1, depth + 1):
            if (case, step) not in self._deeper:
                lower = (self._stacks.below.get(higher, ()) for higher in found)
                self._deeper[case, step] = set().union(*lower)
            found = self._deeper[case, step]
        return found

    def _mark(self, known: Known, terminal: int) -> None:
        """Marks the actions of a step, which comes to an end."""
        while (action := self._table.action[known[-1]].get(terminal, 0)) != 0:
            self._taken.add((known[-1], terminal))
            rule = self._table.rules[-action - 1] if action < 0 else None
            if rule is None or rule.size >= len(known):
                break
            known = known[: len(known) - rule.size]
            known = (*known, self._table.goto[known[-1]].get(rule.origin, 0))  # 0 has no action
