"""Which parser stacks can still be completed, and at which boundaries between lexemes.

"The next terminal can be produced and shifted" leaves dead ends: a conflict resolved against the rest of the
text, a terminal that no scanner emits, a lexeme that cannot directly follow another. The exact answer is
pre* of the accepting configurations of a pushdown system (Bouajjani, Esparza and Maler 1997; Büchi 1964 for
the regularity) whose control is the boundary between two lexemes and whose stack is Lark's own resolved
LALR(1) stack.

A **boundary class** `b` stands for all lexer boundaries with the same future in terminals; `exits[b]` are
the **columns** `(terminal, gate class)` that some text can spell from there, and a gate class gives the
boundary class after the terminal, by the scanner of the parser state that it is shifted into. What the
machine can do below a state is a set of **items** "skip `k` states, reveal one, go to nonterminal `N`
under the lookahead of column `c`". Sets of items are dictionaries `{(k, N): bit mask of columns}`, since
most columns go together.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from jaxgcd.lexing.boundaries import NOWHERE, Boundaries
from jaxgcd.parsing.machine import Machine, predecessors
from jaxgcd.parsing.table import START_STATE

DEAD, ALIVE, MIXED = 0, 1, 2

Items = dict[tuple[int, int], int]
"""`{(skip, nonterminal): columns}`; the key `ACCEPTED` stands for acceptance whatever lies below."""

ACCEPTED = (-1, -1)


class Item(NamedTuple):
    """Skip states, reveal one, go to `nonterminal` under lookahead `terminal`; `then` is its gate class."""

    skip: int
    nonterminal: int
    terminal: int
    then: int


class Viability:
    """Verdicts about `(top parser state, boundary class)` and what the undecided ones wait for.

    Args:
        machine: the LALR machine.
        boundaries: the boundary classes of the lexer.
        scanner_of: the scanner of each parser state.
        limit: the most stack cases to look at; beyond it `complete` is False and every verdict is
            `ALIVE`.
    """

    def __init__(
        self, machine: Machine, boundaries: Boundaries, scanner_of: Sequence[int], *, limit: int = 50_000
    ):
        self.columns = sorted(set().union(*boundaries.exits))
        self._table = machine.table
        self._boundaries = boundaries
        self._scanner_of = scanner_of
        self._exits = [self._mask(pairs) for pairs in boundaries.exits]
        self._reduces, self._shifts = self._split_actions()
        self._lifted: dict[tuple[int, int, int], Items] = {}
        self._users: dict[tuple[int, int, int], set[tuple[int, int, int]]] = {}
        self._saturate()
        self._at = self._met_boundaries()
        self._below: dict[tuple[int, int], Items] = {
            (state, b): self._outcomes(state, b, None) for state, met in self._at.items() for b in met
        }
        self._verdicts: dict[tuple[int, int], int] = {}
        self._viable: dict[int, int] = {}
        self.complete = self._visit_stacks(limit)
        self.all_viable = all(verdict == ALIVE for verdict in self._viable.values()) or not self.complete

    def verdict(self, top: int, boundary: int) -> int:
        """`DEAD`, `ALIVE` or `MIXED` (it depends on what lies below `top`), for `top` shifted on a viable
        stack.

        A **viable** stack is one that can be completed from some boundary class.
        """
        return self._verdicts.get((top, boundary), DEAD) if self.complete else ALIVE

    def viable(self, top: int) -> int:
        """The verdict whether a stack is viable, for `top` shifted on a viable stack."""
        return self._viable.get(top, DEAD) if self.complete else ALIVE

    def waiting(self, top: int, boundary: int) -> frozenset[Item] | None:
        """The items below `top`, one of which must hold, whatever the stack; None if nothing need hold."""
        return self._as_set(self._below.get((top, boundary), {}))

    def reveal(self, item: Item, state: int) -> frozenset[Item] | None:
        """What must hold below `state` for an item to hold of a stack with `state` on top."""
        column = 1 << self.columns.index((item.terminal, item.then))
        return self._as_set(self._lift(state, {(item.skip, item.nonterminal): column}, None))

    def _as_set(self, items: Items) -> frozenset[Item] | None:
        if ACCEPTED in items:
            return None
        found = []
        for (skip, nonterminal), mask in items.items():
            found += [Item(skip, nonterminal, *self.columns[i]) for i in _bits(mask)]
        return frozenset(found)

    def _mask(self, pairs) -> int:
        return sum(1 << i for i, column in enumerate(self.columns) if column in pairs)

    def _split_actions(self):
        """For each state its reductions `(size, origin, columns)` and its shifts `(target, boundary,
        columns)`.
        """
        reduces: list[list[tuple[int, int, int]]] = []
        shifts: list[list[tuple[int, int, int]]] = []
        for actions in self._table.action:
            by_rule: dict[int, int] = {}
            by_target: dict[tuple[int, int], int] = {}
            for i, (terminal, gate) in enumerate(self.columns):
                action = actions.get(terminal, 0)
                if action > 0:
                    after = self._boundaries.gates[gate][self._scanner_of[action]]
                    if after != NOWHERE:
                        by_target[action, after] = by_target.get((action, after), 0) | 1 << i
                elif action < 0:
                    by_rule[-action - 1] = by_rule.get(-action - 1, 0) | 1 << i
            rules = self._table.rules
            reduces.append([(rules[r].size, rules[r].origin, mask) for r, mask in by_rule.items()])
            shifts.append([(*target, mask) for target, mask in by_target.items()])
        return reduces, shifts

    def _met_boundaries(self) -> dict[int, list[int]]:
        """For each state that is shifted, and the start, the boundary classes that it can be met at."""
        met = {START_STATE: {self._boundaries.initial}}
        for shifts in self._shifts:
            for target, after, _ in shifts:
                met.setdefault(target, set()).add(after)
        skips = self._boundaries.skips
        return {state: sorted(found.union(*(skips[b] for b in found))) for state, found in met.items()}

    # The saturation. The unknowns are `_lifted[s, u, b]`: the items below `s` once `u` was shifted on top of
    # it at boundary class `b`; and `_lifted[s, -1 - N, c]`: those after an empty reduction to nonterminal `N`
    # on `s` under column `c`. They only grow, so a work list reaches the least solution.

    def _saturate(self) -> None:
        todo = [(s, u, b) for s, shifts in enumerate(self._shifts) for u, b, _ in shifts]
        self._lifted = {edge: {} for edge in todo}
        self._users = {edge: set() for edge in todo}
        self._unsettled, self._queued = todo, set(todo)
        self._settle()

    def _settle(self) -> None:
        while self._unsettled:
            edge = self._unsettled.pop()
            self._queued.discard(edge)
            state, target, label = edge
            empty = target < 0
            items = {(0, -1 - target): 1 << label} if empty else self._outcomes(target, label, edge)
            items = self._lift(state, items, edge)
            if items != self._lifted[edge]:
                self._lifted[edge] = items
                self._queue(self._users[edge] - self._queued)

    def _queue(self, edges: set[tuple[int, int, int]]) -> None:
        self._unsettled += sorted(edges)
        self._queued |= edges

    def _read(self, edge: tuple[int, int, int], user: tuple[int, int, int] | None) -> Items:
        if edge not in self._lifted:
            self._lifted[edge], self._users[edge] = {}, set()
            self._queue({edge})
            if user is None:
                self._settle()
        if user is not None:
            self._users[edge].add(user)
        return self._lifted[edge]

    def _outcomes(self, state: int, boundary: int, user) -> Items:
        """Items below `state`, which was just shifted at boundary class `boundary`."""
        exits, items = self._exits[boundary], {}
        if state == self._table.accept:
            return {ACCEPTED: 1}
        for size, origin, mask in self._reduces[state]:
            if not exits & mask:
                continue
            if size:
                _add(items, {(size - 1, origin): exits & mask})
            else:
                _add(items, self._lift(state, {(0, origin): exits & mask}, user))
        for target, after, mask in self._shifts[state]:
            if exits & mask:
                _add(items, self._read((state, target, after), user))
        return items

    def _lift(self, state: int, items: Items, user) -> Items:
        """Items below `state`, from `items` that hold on top of it: one state of each skip is `state`."""
        found: Items = {}
        seen: dict[int, int] = {}
        todo: list[Items] = [items]
        while todo:
            for (skip, nonterminal), mask in todo.pop().items():
                if skip:
                    _add(found, {(max(skip - 1, -1), nonterminal): mask})
                    continue
                new = mask & ~seen.get(nonterminal, 0)
                target = self._table.goto[state].get(nonterminal)
                if new and target is not None:
                    seen[nonterminal] = seen.get(nonterminal, 0) | new
                    todo += self._go(target, new, found, user)
        return found

    def _go(self, target: int, columns: int, found: Items, user) -> list[Items]:
        """What follows a `goto` to `target` under `columns`: items on the state below `target`, if any."""
        follow: list[Items] = []
        for size, origin, mask in self._reduces[target]:
            if not columns & mask:
                continue
            if size > 1:
                _add(found, {(size - 2, origin): columns & mask})
            elif size == 1:
                follow.append({(0, origin): columns & mask})
            else:
                follow += [self._read((target, -1 - origin, i), user) for i in _bits(columns & mask)]
        for state, after, mask in self._shifts[target]:
            if columns & mask:
                follow.append(self._read((target, state, after), user))
        return follow

    # The stacks, bottom up: which items hold of a stack is a function of its top state and of the items
    # that hold of the stack below, so there are finitely many cases.

    def _visit_stacks(self, limit: int) -> bool:
        asked = self._asked()
        self._judge(START_STATE, {})
        seen: set[tuple[int, tuple]] = {(START_STATE, ())}
        todo = list(seen)
        while todo:
            state, frozen = todo.pop()
            holding = self._holding(state, dict(frozen))
            relevant = {key: mask & asked[state].get(key, 0) for key, mask in holding.items()}
            frozen = tuple(sorted((key, mask) for key, mask in relevant.items() if mask))
            for case in ((target, frozen) for target in self._above(state, holding)):
                if case not in seen:
                    seen.add(case)
                    todo.append(case)
            if len(seen) > limit:
                return False
        return True

    def _above(self, state: int, holding: Items) -> list[int]:
        """Judges the states that may be shifted on `state`; the viable ones and those of gotos go on the
        stack.
        """
        shifts = {target for target, _, _ in self._shifts[state]}
        viable = {target for target in sorted(shifts) if self._judge(target, holding)}
        return sorted(viable | set(self._table.goto[state].values()))

    def _asked(self) -> list[Items]:
        """For each state the items on top of it that a verdict further up can depend on."""
        asked: list[Items] = [{} for _ in self._table.action]
        below_of = predecessors(self._table)
        todo = list(range(1, len(asked)))
        queued = set(todo)
        while todo:
            state = todo.pop()
            queued.discard(state)
            items = self._lift(state, asked[state], None)
            for boundary in self._at.get(state, ()):
                _add(items, self._below[state, boundary])
            for lower in below_of[state]:
                before = dict(asked[lower])
                _add(asked[lower], items)
                if asked[lower] != before and lower not in queued:
                    todo.append(lower)
                    queued.add(lower)
        return asked

    def _judge(self, state: int, below: Items) -> bool:
        """Notes the verdicts about `state` shifted where `below` holds; is that stack viable?"""
        alive = {b: _meets(self._below[state, b], below) for b in self._at[state]}
        for boundary, found in alive.items():
            _note(self._verdicts, (state, boundary), found)
        _note(self._viable, state, any(alive.values()))
        return any(alive.values())

    def _holding(self, state: int, below: Items) -> Items:
        holding = {(skip + 1, nonterminal): mask for (skip, nonterminal), mask in below.items()}
        gotos = self._table.goto[state]
        changed = True
        while changed:
            changed = False
            for nonterminal, target in gotos.items():
                old = holding.get((0, nonterminal), 0)
                new = old | self._held_columns(target, holding)
                if new != old:
                    holding[0, nonterminal] = new
                    changed = True
        return holding

    def _held_columns(self, target: int, holding: Items) -> int:
        """Columns under which the stack is viable with `target` put on top of the state that `holding` is
        about.
        """
        held = 0
        for size, origin, mask in self._reduces[target]:
            if size:
                held |= mask & holding.get((size - 1, origin), 0)
            else:
                for i in _bits(mask):
                    if _meets(self._lift(target, {(0, origin): 1 << i}, None), holding):
                        held |= 1 << i
        for state, after, mask in self._shifts[target]:
            if _meets(self._lifted[target, state, after], holding):
                held |= mask
        return held


def _add(items: Items, more: Items) -> None:
    for key, mask in more.items():
        items[key] = items.get(key, 0) | mask


def _note(verdicts: dict, key, alive: bool) -> None:
    new = ALIVE if alive else DEAD
    if verdicts.setdefault(key, new) != new:
        verdicts[key] = MIXED


def _meets(items: Items, holding: Items) -> bool:
    return ACCEPTED in items or any(mask & holding.get(key, 0) for key, mask in items.items())


def _bits(mask: int) -> list[int]:
    return [i for i in range(mask.bit_length()) if mask >> i & 1]
