"""What conditions become further down the stack.

`Summaries` computes two functions. `outcome(u, b)` is the condition on the stack below a state `u` that was
just shifted at boundary class `b`; `lift(s, x)` is the condition on the stack below `s` that is equivalent to
`x` of the stack with `s` on top. They are the least solution of the equations that saturation solves for
pushdown systems (Bouajjani, Esparza and Maler 1997), by summaries as in Reps, Horwitz and Sagiv (1995). For
each state and column, LR determinism leaves one thing that can happen with the state on top: one item for the
stack below, or a shift, after which the column does not matter any more. So the **transfer** of a state is a
partition of its columns, and the transfers of all states are swept to a fixed point, those of states further
up the stack first.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from heapq import heappop, heappush
from typing import NamedTuple

from jaxgcd._budget import Budget
from jaxgcd.lexing.boundaries import NOWHERE, Boundaries
from jaxgcd.parsing.conditions import ACCEPTED, ALL, ANYWAY, REJECTED, Conditions, add
from jaxgcd.parsing.machine import reductions
from jaxgcd.parsing.table import ParseTable


class Transfer(NamedTuple):
    """What can happen with a state on top: columns that hand on an item, columns that leave a condition."""

    items: dict[int, int]
    conditions: dict[int, int]


class Shift(NamedTuple):
    """Under `columns` a state shifts `target`, which begins at boundary class `boundary`."""

    target: int
    boundary: int
    columns: int


class Summaries:
    """What must hold below each state.

    Attributes:
        columns: all `(terminal, gate class)` pairs that the lexer can spell.
        shifts: for each state what can be shifted on it.
        conditions: the conditions, by number.
    """

    def __init__(self, table: ParseTable, boundaries: Boundaries, scanner_of: Sequence[int], budget: Budget):
        self._budget = budget
        self.columns = sorted(set().union(*boundaries.exits))
        self.conditions = Conditions(len(table.nonterminals))
        self._table = table
        number = {column: i for i, column in enumerate(self.columns)}
        self._exits = [sum(1 << number[pair] for pair in pairs) for pairs in boundaries.exits]
        self._reduces, self.shifts = self._split_actions(boundaries, scanner_of)
        self._transfers = [Transfer({}, {}) for _ in table.action]
        self._outcomes: list[dict[int, int]] = [{} for _ in table.action]
        self._lifts = [self._fresh_lift(gotos) for gotos in table.goto]
        self._sweep()

    def outcome(self, state: int, boundary: int) -> int:
        """The condition on the stack below `state`, which was just shifted at boundary class `boundary`."""
        known = self._outcomes[state]
        if boundary not in known:
            known[boundary] = self._outcome(state, self._exits[boundary])
        return known[boundary]

    def lift(self, state: int, condition: int) -> int:
        """The condition on the stack below `state` for a condition on the stack with `state` on top."""
        return self._lifts[state].lift(condition)

    def _split_actions(self, boundaries: Boundaries, scanner_of: Sequence[int]):
        """For each state its reductions `(size, origin, columns)` and its shifts."""
        by_terminal: dict[int, list[tuple[int, int]]] = {}
        for i, (terminal, gate) in enumerate(self.columns):
            by_terminal.setdefault(terminal, []).append((1 << i, gate))

        @functools.cache
        def columns(terminals: tuple[int, ...]) -> int:
            return sum(bit for terminal in terminals for bit, _ in by_terminal.get(terminal, ()))

        @functools.cache
        def shifted(terminal: int, target: int) -> list[Shift]:
            begins: dict[int, int] = {}
            for bit, gate in by_terminal.get(terminal, ()):
                add(begins, ((boundaries.gates[gate][scanner_of[target]], bit),))
            return [Shift(target, after, mask) for after, mask in begins.items() if after != NOWHERE]

        reduces: list[list[tuple[int, int, int]]] = []
        shifts: list[list[Shift]] = []
        for actions in self._table.action:
            self._budget.step()
            rules = ((rule, columns(t)) for rule, t in reductions(self._table, actions).items())
            reduces.append([(*rule, mask) for rule, mask in rules if mask])
            found = (shifted(terminal, target) for terminal, target in actions.items() if target > 0)
            shifts.append([shift for some in found for shift in some])
        return reduces, shifts

    def _outcome(self, state: int, exits: int) -> int:
        if state == self._table.accept:
            return ACCEPTED
        transfer = self._transfers[state]
        found = {item: mask & exits for item, mask in transfer.items.items() if mask & exits}
        for condition, mask in transfer.conditions.items():
            if mask & exits:
                add(found, self.conditions.items(condition))
        return self.conditions.intern(found)

    def _sweep(self) -> None:
        """Sweeps over the states, those first that lie higher on the stack, until no transfer changes."""
        above = [
            sorted({shift.target for shift in shifts}.union(gotos.values()))
            for shifts, gotos in zip(self.shifts, self._table.goto, strict=True)
        ]
        order = _postorder(above)
        rank = {state: i for i, state in enumerate(order)}
        below: list[list[int]] = [[] for _ in above]
        for state, targets in enumerate(above):
            for target in targets:
                below[target].append(rank[state])
        todo = set(range(len(order)))
        while todo:
            heap, todo, now = sorted(todo), set(), todo
            while heap:
                i = heappop(heap)
                if self._changes(order[i]):
                    todo.update(j for j in below[order[i]] if j <= i)
                    for j in below[order[i]]:
                        if j > i and j not in now:
                            heappush(heap, j)
                            now.add(j)
                now.discard(i)

    def _changes(self, state: int) -> bool:
        """Computes the transfer of a state anew; has it changed?"""
        self._budget.step()
        new = self._transfer(state)
        changed = new != self._transfers[state]
        if changed:
            self._transfers[state] = new
            self._outcomes[state] = {}
        return changed

    def _transfer(self, state: int) -> Transfer:
        lift = self._lifts[state] = self._fresh_lift(self._table.goto[state])
        new = Transfer({}, {})
        for size, origin, columns in self._reduces[state]:
            if size:
                add(new.items, (((size - 1) * self.conditions.nonterminals + origin, columns),))
                continue
            empty = lift.through(origin)
            add(new.items, empty.items.items(), columns)
            add(new.conditions, ((lift.lift(c), mask) for c, mask in empty.conditions.items()), columns)
        for target, boundary, columns in self.shifts[state]:
            add(new.conditions, ((lift.lift(self.outcome(target, boundary)), columns),))
        new.conditions.pop(REJECTED, None)
        return new

    def _fresh_lift(self, gotos: dict[int, int]) -> _Lift:
        return _Lift(self.conditions, self._transfers, gotos, self._budget)


class _Lift:
    """Lifts conditions over one state, by the transfers of the states that its gotos lead to."""

    def __init__(
        self, conditions: Conditions, transfers: list[Transfer], gotos: dict[int, int], budget: Budget
    ):
        self._budget = budget
        self._conditions = conditions
        self._transfers = transfers
        self._gotos = gotos
        self._through: dict[int, Transfer] = {}
        self._lifted = {REJECTED: REJECTED, ACCEPTED: ACCEPTED}

    def lift(self, condition: int) -> int:
        if condition not in self._lifted:
            found, more = self._once(condition)
            for lifted in {self._close(other) for other in more}:
                add(found, self._conditions.items(lifted))
            self._lifted[condition] = self._conditions.intern(found)
        return self._lifted[condition]

    def _close(self, condition: int) -> int:
        """Lifts a condition that others may come to, and that may come to itself."""
        if condition not in self._lifted:
            found: dict[int, int] = {}
            seen, todo = {condition}, [condition]
            while todo:
                at = todo.pop()
                if at in self._lifted:
                    add(found, self._conditions.items(self._lifted[at]))
                    continue
                items, more = self._once(at)
                add(found, items.items())
                todo += more - seen
                seen |= more
            self._lifted[condition] = self._conditions.intern(found)
        return self._lifted[condition]

    def through(self, nonterminal: int) -> Transfer:
        """What can happen once this state's goto on `nonterminal` is on top of it.

        The items are of the stack below this state, the conditions of the stack with this state on top.
        """
        if nonterminal in self._through:
            return self._through[nonterminal]
        found, seen, todo = Transfer({}, {}), {}, [(nonterminal, ALL)]
        while todo:
            at, columns = todo.pop()
            columns &= ~seen.get(at, 0)
            if not columns or at not in self._gotos:
                continue
            if at in self._through:
                add(found.items, self._through[at].items.items(), columns)
            else:
                transfer = self._transfers[self._gotos[at]]
                todo += self._pass(transfer.items, columns, found.items)
            add(seen, ((at, columns),))
            same = self._through[at] if at in self._through else transfer
            add(found.conditions, same.conditions.items(), columns)
        self._through[nonterminal] = found
        return found

    def _pass(self, items: dict[int, int], columns: int, found: dict[int, int]) -> list[tuple[int, int]]:
        """Passes items over this state; those that reveal it are returned."""
        here, n = [], self._conditions.nonterminals
        for item, mask in items.items():
            if mask & columns:
                if item < n:
                    here.append((item, mask & columns))
                else:
                    add(found, ((item - n, mask & columns),))
        return here

    def _once(self, condition: int) -> tuple[dict[int, int], set[int]]:
        """The items below this state, and the conditions with this state on top that may hold instead."""
        self._budget.step(0)
        found: dict[int, int] = {}
        more: set[int] = set()
        n = self._conditions.nonterminals
        for item, mask in self._conditions.items(condition):
            if item >= n or item == ANYWAY:
                add(found, ((item - n if item >= n else item, mask),))
                continue
            through = self.through(item)
            add(found, through.items.items(), mask)
            for other, columns in through.conditions.items():
                if columns & mask:
                    more.add(other)
        return found, more


def _postorder(above: Sequence[Sequence[int]]) -> list[int]:
    """The states in the order in which a depth-first search leaves them."""
    order, met = [], set()
    for root in range(1, len(above)):
        path = [(root, iter(above[root]))] if root not in met else []
        met.add(root)
        while path:
            target = next((t for t in path[-1][1] if t not in met), None)
            if target is None:
                order.append(path.pop()[0])
            else:
                met.add(target)
                path.append((target, iter(above[target])))
    return order
