"""Boolean formulas over what is still to be read: reduced ordered binary decision diagrams.

Whether a lexeme ends here may depend on text that has not been read yet (a lookahead, `$`, `\\b`).
That is a Boolean formula over *atoms*. The atom `(A, s)` says: automaton `A`, now in state `s`, will
report a match after at least one more byte. Reading a byte rewrites the formula (`derivative`, after
Brzozowski 1964); at the end of the text every atom is false (`at_end`).

Formulas are node numbers of one shared diagram (Bryant 1986), so formulas that are equal as Boolean
functions of their atoms are the same `int`. `FALSE` is 0 and `TRUE` is 1.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

import numpy as np

from jaxgcd._budget import Budget

FALSE = 0
TRUE = 1

_LAST = sys.maxsize

LOOK_AFTER = 100
"""How many nodes are added before the time is looked at again."""


@dataclass(frozen=True, eq=False)
class Automaton:
    """A deterministic automaton over bytes whose acceptance may hang on the text to come.

    Attributes:
        classes: `uint8[256]`, byte to byte class.
        trans: `int32[states, classes]`; state 0 is dead, state 1 is the start.
        accept: a formula for each state: does a match end here?
        alive: `bool[states]`: some longer text has an `accept` other than `FALSE`.
    """

    classes: np.ndarray
    trans: np.ndarray
    accept: list[int]
    alive: np.ndarray

    def step(self, state: int, byte: int) -> int:
        """The state after one more byte."""
        return int(self.trans[state, self.classes[byte]])


class Formulas:
    """A shared diagram, and the automata that its atoms talk about."""

    def __init__(self, budget: Budget | None = None) -> None:
        self._budget = budget or Budget()
        self.automata: list[Automaton] = []
        self._registered: dict[tuple, int] = {}
        self._atoms: list[tuple[int, int]] = []
        self._levels: dict[tuple[int, int], int] = {}
        # Node n is (level, node if the atom is false, node if it is true). Constants sort last.
        self._nodes: list[tuple[int, int, int]] = [(_LAST, FALSE, FALSE), (_LAST, TRUE, TRUE)]
        self._unique: dict[tuple[int, int, int], int] = {}
        self._choices: dict[tuple[int, int, int], int] = {}
        self._derivatives: dict[tuple[int, int], int] = {}

    def __len__(self) -> int:
        """The number of diagram nodes in use."""
        return len(self._nodes)

    def register(self, automaton: Automaton) -> int:
        """The number of `automaton`; equal automata share one."""
        shape = automaton.trans.shape
        key = (shape, automaton.classes.tobytes(), automaton.trans.tobytes(), tuple(automaton.accept))
        number = self._registered.setdefault(key, len(self.automata))
        if number == len(self.automata):
            self.automata.append(automaton)
        return number

    def atom(self, automaton_id: int, state: int) -> int:
        """Automaton `automaton_id`, now in `state`, will report a match after at least one more byte."""
        if not self.automata[automaton_id].alive[state]:
            return FALSE
        level = self._levels.setdefault((automaton_id, state), len(self._atoms))
        if level == len(self._atoms):
            self._atoms.append((automaton_id, state))
        return self._node(level, FALSE, TRUE)

    def negate(self, formula: int) -> int:
        """Not `formula`."""
        return self.choose(formula, FALSE, TRUE)

    def both(self, first: int, second: int) -> int:
        """`first` and `second`."""
        return self.choose(first, second, FALSE)

    def either(self, first: int, second: int) -> int:
        """`first` or `second`."""
        return self.choose(first, TRUE, second)

    def without(self, first: int, second: int) -> int:
        """`first` and not `second`."""
        return self.choose(second, FALSE, first)

    def choose(self, test: int, then: int, otherwise: int) -> int:
        """If `test` then `then` else `otherwise` (Bryant's ITE)."""
        if test <= TRUE:
            return then if test else otherwise
        if then == otherwise:
            return then
        if then == TRUE and otherwise == FALSE:
            return test
        key = (test, then, otherwise)
        known = self._choices.get(key)
        if known is None:
            nodes = self._nodes
            level = min(nodes[test][0], nodes[then][0], nodes[otherwise][0])
            low, high = (
                self.choose(
                    self._branch(test, level, side),
                    self._branch(then, level, side),
                    self._branch(otherwise, level, side),
                )
                for side in (1, 2)
            )
            known = self._choices[key] = self._node(level, low, high)
        return known

    def derivative(self, formula: int, byte: int) -> int:
        """What `formula` says once `byte` has been read."""
        if formula <= TRUE:
            return formula
        key = (formula, byte)
        known = self._derivatives.get(key)
        if known is None:
            level, low, high = self._nodes[formula]
            test = self._atom_derivative(*self._atoms[level], byte)
            known = self.choose(test, self.derivative(high, byte), self.derivative(low, byte))
            self._derivatives[key] = known
        return known

    def at_end(self, formula: int) -> bool:
        """Whether `formula` holds when the text ends here: no atom comes true any more."""
        while formula > TRUE:
            formula = self._nodes[formula][1]
        return formula == TRUE

    def atoms(self, formula: int) -> list[tuple[int, int]]:
        """The atoms that `formula` depends on, in the diagram's order."""
        seen, todo, levels = {FALSE, TRUE}, [formula], set()
        while todo:
            node = todo.pop()
            if node not in seen:
                seen.add(node)
                level, low, high = self._nodes[node]
                levels.add(level)
                todo += [low, high]
        return [self._atoms[level] for level in sorted(levels)]

    def _atom_derivative(self, automaton_id: int, state: int, byte: int) -> int:
        automaton = self.automata[automaton_id]
        after = automaton.step(state, byte)
        return self.either(automaton.accept[after], self.atom(automaton_id, after))

    def _branch(self, formula: int, level: int, side: int) -> int:
        node = self._nodes[formula]
        return node[side] if node[0] == level else formula

    def _node(self, level: int, low: int, high: int) -> int:
        if low == high:
            return low
        key = (level, low, high)
        number = self._unique.setdefault(key, len(self._nodes))
        if number == len(self._nodes):
            self._check(number)
            self._nodes.append(key)
        return number

    def _check(self, nodes: int) -> None:
        """Bounds memory and time, which diagrams with many variables need without end."""
        if nodes % LOOK_AFTER == 0:
            self._budget.step(0)
        if nodes > self._budget.limits.formulas:
            subject = f"{self._budget.work}: what lookarounds and earlier lexemes wait for needs"
            remedy = "use fewer lookarounds, and terminals that are clearly told apart"
            raise self._budget.exceeded("formulas", subject, "nodes of a decision diagram", remedy)
