"""The LALR(1) machine on a stack of which only the top is known.

`feed` runs "reduce, reduce, shift" for one terminal on the known states. Where a reduction pops more than is
known, the answer is a `Pop`: how many unknown states to skip and which nonterminal to go to from the one
then revealed. Everything that is precomputed about stacks is built from this one function.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import NamedTuple

from jaxgcd._budget import Budget
from jaxgcd.errors import GrammarError
from jaxgcd.parsing.table import ParseTable


class EndlessReductions(GrammarError):
    """Some reductions never end: Lark itself would hang."""


class Pop(NamedTuple):
    """Skip `skip` unknown states, reveal the next one and go from it to `nonterminal`."""

    skip: int
    nonterminal: int


Known = tuple[int, ...]
"""Known parser states at the top of a stack, the top last."""


class Machine:
    """Lark's LALR(1) machine over partially known stacks; answers are memoised."""

    def __init__(self, table: ParseTable, budget: Budget | None = None):
        self.table = table
        self.budget = budget or Budget()
        self._memo: dict[tuple[Known, int], tuple[Known | Pop | None, int]] = {}
        # More known states than this come from empty reductions that repeat a state: they never end.
        self._longest = table.n_states + max((rule.size for rule in table.rules), default=0) + 2

    def feed(self, known: Known, terminal: int) -> Known | Pop | None:
        """The known states after shifting `terminal`; or a `Pop` that needs the stack below; or None, an
        error.

        Raises:
            EndlessReductions: the reductions never end.
        """
        return self._cached(known, terminal)[0]

    def peak(self, known: Known, terminal: int) -> int:
        """The most known states there are at any time during `feed(known, terminal)`."""
        return self._cached(known, terminal)[1]

    def _cached(self, known: Known, terminal: int) -> tuple[Known | Pop | None, int]:
        key = (known, terminal)
        if key not in self._memo:
            self.budget.step(0)
            self._memo[key] = self._run(known, terminal)
        return self._memo[key]

    def _run(self, known: Known, terminal: int) -> tuple[Known | Pop | None, int]:
        table, seen, bottom = self.table, set(), len(known)
        peak = bottom
        while True:
            action = table.action[known[-1]].get(terminal, 0)
            if action == 0:
                return None, peak
            if action > 0:
                return (*known, action), max(peak, len(known) + 1)
            rule = table.rules[-action - 1]
            if rule.size >= len(known):
                return Pop(rule.size - len(known), rule.origin), peak
            known = known[: len(known) - rule.size]
            target = table.goto[known[-1]].get(rule.origin)
            if target is None:  # these known states do not occur on a stack
                return None, peak
            known = (*known, target)
            peak = max(peak, len(known))
            if known in seen or len(known) > bottom + self._longest:
                raise EndlessReductions(
                    f"The reductions by rule `{rule.text}` before terminal {table.terminals[terminal]} never "
                    "end (a cycle of rules, resolved by priority); Lark would hang there. Remove the cycle."
                )
            seen.add(known)


def predecessors(table: ParseTable) -> list[tuple[int, ...]]:
    """For each parser state, the states that may lie directly below it on a stack."""
    below: list[set[int]] = [set() for _ in table.action]
    for state, (actions, gotos) in enumerate(zip(table.action, table.goto, strict=True)):
        for target in (*(a for a in actions.values() if a > 0), *gotos.values()):
            below[target].add(state)
    return [tuple(sorted(states)) for states in below]


def shift_targets(table: ParseTable) -> list[tuple[int, ...]]:
    """For each terminal, the states that shifting it can lead to."""
    targets: list[set[int]] = [set() for _ in table.terminals]
    for actions in table.action:
        for terminal, action in actions.items():
            if action > 0:
                targets[terminal].add(action)
    return [tuple(sorted(states)) for states in targets]


def reductions(table: ParseTable, actions: Mapping[int, int]) -> dict[tuple[int, int], tuple[int, ...]]:
    """The terminals before which some actions of a state reduce, by the size and origin of the rule."""
    found: dict[int, list[int]] = {}
    for terminal, action in actions.items():
        if action < 0:
            found.setdefault(action, []).append(terminal)
    by_rule: dict[tuple[int, int], tuple[int, ...]] = {}
    for action, terminals in found.items():
        rule = table.rules[-action - 1]
        key = (rule.size, rule.origin)
        by_rule[key] = (*by_rule.get(key, ()), *terminals)
    return by_rule


def step_slack(machine: Machine, terminals: list[int]) -> int:
    """How far a stack may grow above its height, at most, while one terminal is stepped on it.

    Runs every step that can occur: from each state for each of `terminals`, and from each state that a
    reduction can reveal. Finds reductions that never end, too.

    Raises:
        EndlessReductions: some never end, whether a text leads there or not (see `jaxgcd.parsing.live`).
    """
    return _Slack(machine, terminals).most()


class _Slack:
    """Steps sets of terminals, as bit masks. Only what empty reductions do is left to the machine.

    `_popped[n]`: the terminals before which a reduction to nonterminal `n` pops more than is known;
    `_seen[s, n]`: those for which the goto on `n` was looked at with `s` below.
    """

    def __init__(self, machine: Machine, terminals: list[int]):
        self._machine = machine
        self._table = machine.table
        self._slack = 1
        self._wanted = sum(1 << terminal for terminal in set(terminals))
        self._reduces, self._shifts = self._split_actions()
        self._circular = self._circular_nonterminals()
        self._popped = [0] * len(self._table.nonterminals)
        self._seen: dict[tuple[int, int], int] = {}
        self._todo: list[int] = []

    def most(self) -> int:
        for state, reduces in enumerate(self._reduces):
            for size, origin, mask in reduces:
                if size:
                    self._pop(origin, mask)
                else:
                    self._feed((state,), mask)
        states: list[list[int]] = [[] for _ in self._table.nonterminals]
        for state, gotos in enumerate(self._table.goto):
            for nonterminal in gotos:
                states[nonterminal].append(state)
        while self._todo:
            nonterminal = self._todo.pop()
            self._machine.budget.step(0)
            for state in states[nonterminal]:
                self._reveal(state, nonterminal, self._popped[nonterminal])
        return self._slack

    def _pop(self, nonterminal: int, mask: int) -> None:
        if mask & ~self._popped[nonterminal]:
            self._popped[nonterminal] |= mask
            self._todo.append(nonterminal)

    def _reveal(self, state: int, nonterminal: int, mask: int) -> None:
        """A reduction to `nonterminal` under the terminals of `mask` reveals `state`, or there is no such."""
        todo = [(nonterminal, mask)]
        while todo:
            nonterminal, mask = todo.pop()
            target = self._table.goto[state].get(nonterminal)
            new = mask & ~self._seen.get((state, nonterminal), 0)
            if target is None or not new:
                continue
            self._seen[state, nonterminal] = mask | self._seen.get((state, nonterminal), 0)
            if nonterminal in self._circular:
                self._feed((state, target), new)
                continue
            if self._shifts[target] & new:
                self._slack = max(self._slack, 2)
            for size, origin, under in self._reduces[target]:
                if size == 0:
                    self._feed((state, target), under & new)
                elif size > 1:
                    self._pop(origin, under & new)
                elif under & new:
                    todo.append((origin, under & new))

    def _feed(self, known: Known, mask: int) -> None:
        for terminal in range(mask.bit_length()):
            if mask >> terminal & 1:
                result = self._machine.feed(known, terminal)
                self._slack = max(self._slack, self._machine.peak(known, terminal) - 1)
                if isinstance(result, Pop):
                    self._pop(result.nonterminal, 1 << terminal)

    def _split_actions(self) -> tuple[list[list[tuple[int, int, int]]], list[int]]:
        """For each state its reductions `(size, origin, terminals)` and the terminals that it shifts."""
        reduces, shifts = [], []
        bits = functools.cache(lambda terminals: sum(1 << terminal for terminal in terminals))
        for actions in self._table.action:
            self._machine.budget.step()
            by_rule: dict[tuple[int, int], int] = {}
            for rule, terminals in reductions(self._table, actions).items():
                if mask := bits(terminals) & self._wanted:
                    by_rule[rule] = by_rule.get(rule, 0) | mask
            reduces.append([(*rule, mask) for rule, mask in by_rule.items()])
            shifts.append(bits(tuple(t for t, action in actions.items() if action > 0)) & self._wanted)
        return reduces, shifts

    def _circular_nonterminals(self) -> set[int]:
        """Nonterminals from which reductions of size one might never end."""
        becomes: dict[int, set[int]] = {}
        for gotos in self._table.goto:
            for nonterminal, target in gotos.items():
                ones = {origin for size, origin, _ in self._reduces[target] if size == 1}
                becomes.setdefault(nonterminal, set()).update(ones)
        while ends := [n for n, after in becomes.items() if not after & becomes.keys()]:
            for nonterminal in ends:
                del becomes[nonterminal]
        return set(becomes)
