"""Determinising ordered lists of threads, with formulas for what is still to be read (see `automaton`).

A state of the automaton is a list of threads `(node, formula)` and what the lookbehinds have seen.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd.lexing.charset import COMPLETE
from jaxgcd.lexing.context import KINDS, Contexts
from jaxgcd.lexing.formula import FALSE, TRUE, Formulas
from jaxgcd.lexing.minimise import minimise
from jaxgcd.lexing.nfa import NOWHERE, Kind, Nfa

Threads = tuple[tuple[int, int], ...]

_NOTHING = (NOWHERE, FALSE)

LOOK_AFTER = 1000
"""How many steps go by before the time is looked at again."""


class State(NamedTuple):
    """A state while determinising; `context` is an index into `Determiniser.contexts`."""

    threads: Threads
    accept: int
    context: int


_DEAD = State((), FALSE, 0)
_MATCHED = State((), TRUE, 0)
"""Where a program that is only asked whether it matches stays once it has."""


class Determiniser:
    """Makes the automata of one pattern's programs."""

    def __init__(self, nfa: Nfa, formulas: Formulas, name: str, advice: str, budget: Budget) -> None:
        self.nfa = nfa
        self.formulas = formulas
        self.name = name
        self.advice = advice
        self.budget = budget
        self.limits = budget.limits
        self.looked = 0
        self.classes, self.firsts = _byte_classes(nfa)
        self.contexts = Contexts(nfa, formulas, self.firsts, self.automaton)
        self._interned: dict[tuple, int] = {}
        self._thread_rows: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        self._automata: dict[tuple[int, int, bool], int] = {}

    def automaton(self, program: int, context: int | None, ordered: bool) -> int:
        """Registers the automaton of `program`, begun in `context`, and gives its number.

        Args:
            program: the node that enters it.
            context: what lies left of it; `None` if nothing is known.
            ordered: whether it matters which of several matches has priority.
        """
        narrowed = self.contexts.narrow(program, context)
        key = (program, narrowed, ordered)
        if key not in self._automata:
            trans, accept = self.determinise(program, narrowed, ordered)
            automaton = minimise(np.array(self.classes, np.uint8), trans, accept)
            self._automata[key] = self.formulas.register(automaton)
        return self._automata[key]

    def determinise(self, program: int, context: int, ordered: bool) -> tuple[np.ndarray, list[int]]:
        """The transitions and accepting formulas of `program`: state 0 is dead, 1 the start."""
        found = [_DEAD, self.closure(((program, TRUE),), context, ordered)]
        numbers = {_DEAD: 0, found[1]: 1}
        known: dict[tuple[Threads, int], int] = {}
        table: list[list[int]] = []
        for number, state in enumerate(found):
            row, seeds = [], {}
            for symbol, column in enumerate(self.columns(state)):
                if column not in seeds:
                    seeds[column] = tuple(pair for pair in column if pair is not _NOTHING)
                if not seeds[column]:
                    row.append(0)
                    continue
                step = (seeds[column], self.contexts.after(state.context, symbol))
                if step not in known:
                    target = self.closure(step[0], step[1], ordered)
                    known[step] = numbers.setdefault(target, len(found))
                    if known[step] == len(found):
                        found.append(target)
                row.append(known[step])
            table.append([number] * len(row) if state == _MATCHED and not ordered else row)
            looks = self.contexts.width(state.context) * len(self.firsts)
            self.check(len(found), len(state.threads) + looks)
        return np.array(table, np.int32), [state.accept for state in found]

    def columns(self, state: State) -> list[tuple]:
        """For each byte class what becomes of each thread."""
        if not state.threads:
            return [()] * len(self.firsts)
        return list(zip(*(self.thread_row(*thread) for thread in state.threads), strict=True))

    def closure(self, seeds: Threads, context: int, ordered: bool) -> State:
        """The threads that are ready to read a byte, in order, and under what formula there is a match.

        A node is visited once for each set of the repeats that were tried at this position; a later
        visit counts only where the formula of the earlier ones is false.
        """
        formulas = self.formulas
        threads: list[tuple[int, int]] = []
        emitted: dict[int, int] = {}
        seen: dict[tuple[int, int], int] = {}
        accept = FALSE
        stack = [(node, 0, formula) for node, formula in reversed(seeds)]
        while stack:
            node, tried, formula = stack.pop()
            self.check(0, 0)
            before = seen.get((node, tried), FALSE)
            formula = formulas.without(formula, formulas.either(before, accept) if ordered else before)
            if formula == FALSE:
                continue
            seen[node, tried] = formulas.either(before, formula)
            kind = self.nfa.kinds[node]
            if kind == Kind.ACCEPT:
                accept = formulas.either(accept, formula)
                if accept == TRUE:
                    break
                continue
            if kind in (Kind.CHAR, Kind.INSIDE):
                fresh = formulas.without(formula, emitted.get(node, FALSE))
                emitted[node] = formulas.either(emitted.get(node, FALSE), fresh)
                _append(threads, node, fresh, formulas)
            if kind != Kind.CHAR:
                stack += reversed(self.follow(node, tried, formula, context))
        if not ordered and accept == TRUE:
            return _MATCHED
        threads = threads if ordered else sorted(emitted.items())
        return State(tuple(threads), accept, context if threads else 0)

    def follow(self, node: int, tried: int, formula: int, context: int) -> list[tuple[int, int, int]]:
        """Where a thread goes on without reading a byte, as `(node, repeats tried, formula)`, in order."""
        kind, args = self.nfa.kinds[node], self.nfa.args[node]
        if kind == Kind.SPLIT:
            return [(target, tried, formula) for target in args]
        if kind == Kind.ENTER:
            return [(args[1], tried & ~(1 << args[0]), formula)]
        if kind == Kind.LOOP:
            return [(target, after, formula) for target, after in _iterate(args, tried)]
        if kind == Kind.LOOK:
            positive, program, behind, target = args
            holds = self.look(program, behind, context)
            keep = self.formulas.both if positive else self.formulas.without
            return [(target, tried, keep(formula, holds))]
        if kind == Kind.ATOMIC:
            program, target = args
            inside = self.automaton(program, context, ordered=True)
            return [(self.intern(Kind.INSIDE, inside, 1, target), tried, formula)]
        if kind == Kind.INSIDE:
            automaton_id, state, target = args
            return [(target, tried, self.formulas.both(formula, self.last_match(automaton_id, state)))]
        return []

    def look(self, program: int, behind: int, context: int) -> int:
        """The formula of a lookaround at this position."""
        if behind < 0:
            automaton_id = self.automaton(program, context, ordered=False)
            now = self.formulas.automata[automaton_id].accept[1]
            return self.formulas.either(now, self.formulas.atom(automaton_id, 1))
        return self.contexts.holds(behind, context)

    def last_match(self, automaton_id: int, state: int) -> int:
        """An atomic group ends where its automaton matches for the last time."""
        accept = self.formulas.automata[automaton_id].accept[state]
        return self.formulas.without(accept, self.formulas.atom(automaton_id, state))

    def thread_row(self, node: int, formula: int) -> tuple[tuple[int, int], ...]:
        """For each byte class what becomes of a thread: its node before the closure, and its formula."""
        key = (node, formula)
        row = self._thread_rows.get(key)
        if row is None:
            derivative = self.formulas.derivative
            nodes = zip(self.read(node), self.firsts, strict=True)
            pairs = [(after, derivative(formula, byte)) if after else _NOTHING for after, byte in nodes]
            row = tuple(pair if pair[1] != FALSE else _NOTHING for pair in pairs)
            self._thread_rows[key] = row
        return row

    def read(self, node: int) -> list[int]:
        """For each byte class the node after reading one of its bytes at `node`."""
        if self.nfa.kinds[node] == Kind.INSIDE:
            automaton_id, state, target = self.nfa.args[node]
            automaton = self.formulas.automata[automaton_id]
            states = [automaton.step(state, byte) for byte in self.firsts]
            return [self.intern(Kind.INSIDE, automaton_id, s, target) if s else NOWHERE for s in states]
        automaton, state, target = self.nfa.args[node]
        row = [NOWHERE] * len(self.firsts)
        for low, high, inner in automaton.edges[state]:
            after = target if inner == COMPLETE else self.intern(Kind.CHAR, automaton, inner, target)
            span = range(self.classes[low], self.classes[high] + 1)
            row[span.start : span.stop] = [after] * len(span)
        return row

    def intern(self, kind: Kind, *args: object) -> int:
        """The node for a place inside a character or an atomic group."""
        key = (kind, *args)
        if key not in self._interned:
            self._interned[key] = self.nfa.add(kind, *args)
        return self._interned[key]

    def check(self, states: int, work: int) -> None:
        """Bounds memory and time."""
        self.budget.regex_steps += work + 1
        if self.budget.regex_steps - self.looked > LOOK_AFTER:
            self.looked = self.budget.regex_steps
            self.budget.step(0)
        if states > self.limits.regex_states:
            subject = f"terminal {self.name}: its automaton needs"
            raise self.budget.exceeded("regex_states", subject, "states", self.advice)
        if self.budget.regex_steps > self.limits.regex_steps:
            subject = f"terminal {self.name}: with it, the automata of terminals need"
            raise self.budget.exceeded("regex_steps", subject, "steps to make", self.advice)


def _append(threads: list[tuple[int, int]], node: int, formula: int, formulas: Formulas) -> None:
    """Adds a thread; neighbours at the same node are one thread."""
    if threads and threads[-1][0] == node:
        formula = formulas.either(threads.pop()[1], formula)
    if formula != FALSE:
        threads.append((node, formula))


def _iterate(args: tuple, tried: int) -> list[tuple[int, int]]:
    """The choices of a repeat: another iteration, unless one was tried at this position, or the tail."""
    repeat, lazy, body, tail = args
    bit = 1 << repeat
    leave = (tail, tried & ~bit)
    if body == NOWHERE or tried & bit:
        return [leave]
    again = (body, tried | bit)
    return [leave, again] if lazy else [again, leave]


def _byte_classes(nfa: Nfa) -> tuple[list[int], list[int]]:
    """The class of each byte, and the first byte of each class, such that no node tells a class apart."""
    characters = (args[0] for kind, args in zip(nfa.kinds, nfa.args, strict=True) if kind == Kind.CHAR)
    cuts = {0}.union(*(automaton.cuts for automaton in dict.fromkeys(characters)))
    if nfa.lookbehinds:
        cuts.update(KINDS)
    firsts = sorted(cut for cut in cuts if cut < 256)
    classes = [number for number, cut in enumerate(firsts) for _ in range(cut, [*firsts, 256][number + 1])]
    return classes, firsts
