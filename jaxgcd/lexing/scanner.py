"""All scanners as one leftmost-first automaton with a start for each.

Lark tries a scanner's terminals in order and takes the first that matches, not the longest. Each terminal's
own automaton is built once; a state here is an ordered list of their states, cut behind the first terminal
that matches for certain. Relabelling (a keyword's text matched by an identifier's regex) runs the keywords'
automata alongside. A state says all that matters of its future, so scanners share the states in which they
read on alike: a comment is one set of states however many scanners ignore it.

Where terminals look at the text left of their lexeme, a scanner has a start for each way in which that text
bears on them (see `left`).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.lexing.formula import FALSE, TRUE, Automaton
from jaxgcd.lexing.left import Tracker, joint
from jaxgcd.lexing.minimise import joint_classes, refine
from jaxgcd.lexing.reach import UNREACHED, distance, transitions
from jaxgcd.lexing.regex import advice

DEAD = 0
IGNORED = -1
"""Label of a lexeme that is dropped."""

REJECTED = 0
"""Label of a lexeme that no rule of the grammar uses: the parser rejects it wherever it occurs."""

_START = 1  # of every terminal's automaton


@dataclass(frozen=True)
class ScannerTerminal:
    """One alternative of a scanner: a terminal's regex and what its lexemes are called.

    `keywords` are `(terminal name, regex)` pairs in Lark's order: a lexeme of this terminal that one of them
    matches as a whole is emitted as the first such keyword. `ignored` lexemes are dropped whatever they
    would be called, as Lark decides that before it relabels.
    """

    name: str
    pattern: str
    ignored: bool
    keywords: tuple[tuple[str, str], ...]


class Match(NamedTuple):
    """A lexeme called `label` ends here if `condition` holds of the text that follows."""

    label: int
    condition: int


@dataclass(frozen=True)
class Scanners:
    """The automaton of all scanners; state 0 is dead, and no transition leads to a start.

    Attributes:
        left: the left-context classes.
        start: `start[scanner][state of left]`, the state in which a lexeme begins there; -1 inside a
            character, where none begins.
        classes: `uint8[256]`, byte to byte class.
        trans: `int32[states, byte classes]`, the next state.
        matches: for each state what ends there, in order of preference.
        later: for each state the formula "a match is reached later on", which overrides the earlier one.
    """

    left: Tracker
    start: list[list[int]]
    classes: np.ndarray
    trans: np.ndarray
    matches: list[tuple[Match, ...]]
    later: list[int]


class _Thread(NamedTuple):
    """A terminal's automaton on the way; `keywords` are (automaton, state, label) of those that still fit."""

    automaton: int
    state: int
    condition: int
    label: int
    keywords: tuple[tuple[int, int, int], ...]


def build_scanners(
    patterns: Patterns, scanners: Sequence[Sequence[ScannerTerminal]], labels: dict[str, int]
) -> Scanners:
    """Builds scanners, each from an ordered list of terminals.

    Args:
        patterns: makes the terminals' automata.
        scanners: the alternatives of each scanner, in Lark's order.
        labels: the parser's number of each terminal it knows.

    Raises:
        UnsupportedRegexError: a terminal's regex is not regular or not supported.
        GrammarTooLarge: a limit was exceeded.
    """
    trackers = [[patterns.tracker(t.pattern) for t in terminals] for terminals in scanners]
    names = {
        tracker: patterns.name(terminal.pattern)
        for terminals, row in zip(scanners, trackers, strict=True)
        for terminal, tracker in zip(terminals, row, strict=True)
    }
    asking = [tracker for tracker in names if tracker.asks]
    patterns.budget.work = "the scanners"
    left = joint(asking, [names[tracker] for tracker in asking], patterns.budget)
    regexes: dict[int, str] = {}
    threads: list[list[tuple[_Thread, ...] | None]] = []
    for terminals, row in zip(scanners, trackers, strict=True):
        patterns.budget.step(0)
        callings = [_calling(terminal, labels, patterns) for terminal in terminals]
        choices = [_choose(row, asking, there) for there in left.automata]
        for automata in choices:
            regexes.update(zip(automata or (), (terminal.pattern for terminal in terminals), strict=False))
        threads.append([_begin(automata, callings) for automata in choices])
    return _Builder(patterns, threads, regexes).build(left)


def _calling(terminal: ScannerTerminal, labels: dict[str, int], patterns: Patterns) -> tuple[int, tuple]:
    """What a terminal's lexemes are called, and its keywords' automata and labels."""
    if terminal.ignored:
        return IGNORED, ()
    keywords = (
        (patterns.tracker(pattern).alone[0], _START, labels.get(name, REJECTED))
        for name, pattern in terminal.keywords
    )
    return labels.get(terminal.name, REJECTED), tuple(keywords)


def _choose(
    trackers: Sequence[Tracker], asking: Sequence[Tracker], there: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """The automata of a scanner's terminals, given those of all the terminals that look left."""
    if there is None:
        return None
    known = dict(zip(asking, there, strict=True))
    return tuple(known[tracker] if tracker.asks else tracker.alone[0] for tracker in trackers)


def _begin(automata: tuple[int, ...] | None, callings: Sequence[tuple]) -> tuple[_Thread, ...] | None:
    """The threads of a scanner at the start of a lexeme."""
    if automata is None:
        return None
    return tuple(_Thread(a, _START, TRUE, *calling) for a, calling in zip(automata, callings, strict=True))


class _Builder:
    def __init__(
        self, patterns: Patterns, starts: list[list[tuple[_Thread, ...] | None]], regexes: dict[int, str]
    ):
        self._patterns = patterns
        self._formulas = patterns.formulas
        self._starts = starts
        self._regexes = regexes  # of the terminals' automata
        read = [self._formulas.automata[i] for i in self._used()]
        classes, self._bytes = joint_classes([automaton.classes for automaton in read])
        self.classes = classes.astype(np.uint8)
        self._live: dict[tuple[int, int], list[tuple[int, int]]] = {}

    def _used(self) -> list[int]:
        """The automata that are read: the terminals', the keywords', and those that conditions watch."""
        threads = {thread for row in self._starts for start in row for thread in start or ()}
        used = {thread.automaton for thread in threads}
        used |= {automaton for thread in threads for automaton, _, _ in thread.keywords}
        todo = list(used)
        while todo:
            for formula in self._formulas.automata[todo.pop()].accept:
                watched = {automaton for automaton, _ in self._formulas.atoms(formula)} - used
                used |= watched
                todo += watched
        return sorted(used)

    def build(self, left: Tracker) -> Scanners:
        # Starts are not in `number`: met again within a lexeme, the same threads are another state.
        todo: list[tuple[_Thread, ...]] = []
        start = [self._number_starts(row, todo) for row in self._starts]
        starts = len(todo)
        number: dict[tuple[_Thread, ...], int] = {}
        trans = [[DEAD] * len(self._bytes)]
        matches: list[tuple[Match, ...]] = [()]
        limits, steps = self._patterns.budget.limits, 0
        for threads in todo:
            steps += sum(len(self._read(thread.automaton, thread.state)) for thread in threads)
            if steps > limits.scanner_steps:
                raise self._too_large(todo, "scanner_steps", "steps")
            row = [DEAD] * len(self._bytes)
            for symbol, found in self._step(threads).items():
                after = tuple(found)
                if after not in number:
                    todo.append(after)
                    number[after] = len(todo)
                row[symbol] = number[after]
            trans.append(row)
            matches.append(tuple(self._matches(threads)))
            self._patterns.budget.step()
            if len(todo) > limits.lexer_states:
                raise self._too_large(todo, "lexer_states", "states")
        return self._minimal(left, start, starts, np.array(trans, np.int32), matches)

    def _number_starts(self, row: list[tuple[_Thread, ...] | None], todo: list) -> list[int]:
        """A scanner's start for each left context; equal ones are one state."""
        own: dict[tuple[_Thread, ...] | None, int] = {None: -1}
        for threads in row:
            if threads is not None and threads not in own:
                todo.append(threads)
                own[threads] = len(todo)
        return [own[threads] for threads in row]

    def _too_large(self, states: Sequence[tuple[_Thread, ...]], limit: str, unit: str) -> GrammarTooLarge:
        """Names the terminals that are read, side by side, in more states than any others are."""
        read = Counter(frozenset(self._regexes[thread.automaton] for thread in found) for found in states)
        regexes = sorted(read.most_common(1)[0][0])
        names, more = [self._patterns.name(regex) for regex in regexes[:4]], len(regexes) - 4
        subject, remedy = f"terminal {names[0]}: for it, the scanners need", advice(regexes[0])
        if len(regexes) > 1:
            others = f" and {more} more" if more > 0 else ""
            subject = f"terminals {', '.join(names)}{others}: to tell them apart, the scanners need"
            remedy = "bound their repeats, or let them begin differently"
        return self._patterns.budget.exceeded(limit, subject, unit, remedy)

    def _step(self, threads: tuple[_Thread, ...]) -> dict[int, list[_Thread]]:
        """The threads after each symbol that some thread reads."""
        formulas, found = self._formulas, {}
        earlier: dict[int, int] = {}  # one of the threads before this one matches after the symbol
        for automaton, state, condition, label, keywords in threads:
            accept, kept = formulas.automata[automaton].accept, self._keywords(keywords)
            for symbol, after in self._read(automaton, state):
                before = earlier.get(symbol, FALSE)
                if before == TRUE:
                    continue
                then = formulas.without(formulas.derivative(condition, self._bytes[symbol]), before)
                if then == FALSE:
                    continue
                found.setdefault(symbol, []).append(
                    _Thread(automaton, after, then, label, tuple(kept.get(symbol, ())))
                )
                earlier[symbol] = formulas.either(before, formulas.both(then, accept[after]))
        return found

    def _keywords(self, keywords: tuple[tuple[int, int, int], ...]) -> dict[int, list[tuple[int, int, int]]]:
        """The keywords that still fit after each symbol."""
        kept: dict[int, list[tuple[int, int, int]]] = {}
        for automaton, state, label in keywords:
            for symbol, after in self._read(automaton, state):
                kept.setdefault(symbol, []).append((automaton, after, label))
        return kept

    def _read(self, automaton: int, state: int) -> list[tuple[int, int]]:
        """The symbols that an automaton reads in a state, with the states behind them."""
        key = (automaton, state)
        if key not in self._live:
            read = self._formulas.automata[automaton]
            row = read.trans[state, read.classes[self._bytes]]
            symbols = np.flatnonzero(row)
            self._live[key] = list(zip(symbols.tolist(), row[symbols].tolist(), strict=True))
        return self._live[key]

    def _matches(self, threads: tuple[_Thread, ...]) -> Iterator[Match]:
        for thread in threads:
            accept = self._formulas.automata[thread.automaton].accept[thread.state]
            condition = self._formulas.both(thread.condition, accept)
            if condition != FALSE:
                yield Match(self._label(thread), condition)

    def _label(self, thread: _Thread) -> int:
        for automaton, state, label in thread.keywords:
            if self._formulas.automata[automaton].accept[state] == TRUE:
                return label
        return thread.label

    def _minimal(self, left: Tracker, start: list[list[int]], starts: int, trans: np.ndarray, matches):
        """Merges states with the same future; starts stay apart."""
        label: dict[tuple[Match, ...], int] = {(): 0}
        kinds = [label.setdefault(found, len(label)) for found in matches]
        kinds[1 : starts + 1] = range(len(label), len(label) + starts)
        block = refine(trans, np.array(kinds))
        _, first = np.unique(block, return_index=True)
        order = np.sort(first)  # dead, the starts, and the others as they were found
        number = np.zeros(len(first), np.int32)
        number[block[order]] = np.arange(len(order), dtype=np.int32)
        trans, matches = number[block[trans[order]]], [matches[state] for state in order.tolist()]
        return Scanners(left, start, self.classes, trans, matches, self._later(trans, matches))

    def _later(self, trans: np.ndarray, matches: list[tuple[Match, ...]]) -> list[int]:
        """Registers the automaton of "a match is reached" and gives its atom for each state.

        Only the first certain match counts, so all transitions into one lead to one absorbing state; that
        makes far fewer states differ than in the scanners themselves.
        """
        formulas = self._formulas
        accept = [functools.reduce(formulas.either, (m.condition for m in found), FALSE) for found in matches]
        certain = np.array(accept) == TRUE
        matched = len(trans)
        watch = np.vstack([np.where(certain[trans], matched, trans), np.full(trans.shape[1], matched)])
        outcome = np.append(np.where(certain, FALSE, accept), TRUE)
        block = refine(watch, outcome)
        _, first = np.unique(block, return_index=True)
        quotient = block[watch[first]].astype(np.int32)
        accepts = [int(formula) for formula in outcome[first]]
        reaching = distance(transitions(watch), outcome != FALSE) != UNREACHED
        alive = reaching[watch[first]].any(axis=1)  # by at least one more byte
        automaton = formulas.register(Automaton(self.classes, quotient, accepts, alive))
        return [formulas.atom(automaton, int(block[state])) for state in range(len(trans))]
