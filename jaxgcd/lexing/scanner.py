"""A scanner: the ordered alternation of its terminals as one leftmost-first automaton.

Lark tries a scanner's terminals in order and takes the first that matches, not the longest. Each terminal's
own automaton is built once; the scanner's states are ordered lists of their states, cut behind the first
terminal that matches for certain. Relabelling (a keyword's text matched by an identifier's regex) runs the
keywords' automata alongside.

Where terminals look at the text left of their lexeme, a scanner has a variant for each way in which that
text bears on them (see `left`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.automaton import compile_pattern
from jaxgcd.lexing.formula import FALSE, TRUE, Automaton, Formulas
from jaxgcd.lexing.left import Tracker, joint
from jaxgcd.lexing.minimise import joint_classes, refine

DEAD, START = 0, 1
IGNORED = -1
"""Label of a lexeme that is dropped."""

REJECTED = 0
"""Label of a lexeme that no rule of the grammar uses: the parser rejects it wherever it occurs."""


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
class Scanner:
    """A scanner's automaton over bytes; state 0 is dead, 1 the start of a lexeme.

    Attributes:
        classes: `uint8[256]`, byte to byte class.
        trans: `trans[state][byte class]`, the next state.
        matches: for each state what ends there, in order of preference.
        later: for each state the formula "a match is reached later on", which overrides the earlier one.
    """

    classes: np.ndarray
    trans: list[list[int]]
    matches: list[tuple[Match, ...]]
    later: list[int]


@dataclass(frozen=True)
class Scanners:
    """All scanners, each in one variant or more.

    Attributes:
        left: the left-context classes.
        variants: the automata.
        scanner_of: for each variant the scanner that it is one of.
        choice: `choice[scanner][state of left]`, the variant that reads a lexeme which begins there; -1
            inside a character, where none begins.
    """

    left: Tracker
    variants: list[Scanner]
    scanner_of: list[int]
    choice: list[list[int]]


class _Thread(NamedTuple):
    terminal: int
    state: int
    condition: int
    keywords: tuple[tuple[int, int], ...]  # (index, state) of the keywords that still fit


def build_scanners(
    formulas: Formulas,
    scanners: Sequence[Sequence[ScannerTerminal]],
    labels: dict[str, int],
    *,
    limit: int = 20_000,
) -> Scanners:
    """Builds scanners, each from an ordered list of terminals, whose automata they share.

    Args:
        formulas: where automata are registered.
        scanners: the alternatives of each scanner, in Lark's order.
        labels: the parser's number of each terminal it knows.
        limit: the most states of a scanner.

    Raises:
        UnsupportedRegexError: a terminal's regex is not regular or not supported.
        GrammarTooLarge: `limit` was exceeded.
    """

    @functools.cache
    def compiled(pattern: str, name: str) -> Tracker:
        return compile_pattern(formulas, pattern, name)

    trackers = [[compiled(t.pattern, t.name) for t in terminals] for terminals in scanners]
    asking = list(dict.fromkeys(tracker for row in trackers for tracker in row if tracker.asks))
    result = Scanners(joint(asking), [], [], [])
    for number, (terminals, row) in enumerate(zip(scanners, trackers, strict=True)):
        keywords = [[compiled(p, n).alone[0] for n, p in t.keywords] for t in terminals]
        variant: dict[tuple[int, ...] | None, int] = {None: -1}
        choices = [_choose(row, asking, there) for there in result.left.automata]
        for automata in choices:
            if automata is not None and automata not in variant:
                variant[automata] = len(result.variants)
                builder = _Builder(formulas, terminals, labels, automata, keywords, limit)
                result.variants.append(builder.build())
                result.scanner_of.append(number)
        result.choice.append([variant[automata] for automata in choices])
    return result


def _choose(
    trackers: Sequence[Tracker], asking: Sequence[Tracker], there: tuple[int, ...] | None
) -> tuple[int, ...] | None:
    """The automata of a scanner's terminals, given those of all the terminals that look left."""
    if there is None:
        return None
    known = dict(zip(asking, there, strict=True))
    return tuple(known[tracker] if tracker.asks else tracker.alone[0] for tracker in trackers)


class _Builder:
    def __init__(
        self,
        formulas: Formulas,
        terminals: Sequence[ScannerTerminal],
        labels: dict[str, int],
        automata: Sequence[int],
        keywords: Sequence[Sequence[int]],
        limit: int,
    ):
        self._formulas = formulas
        self._terminals = terminals
        self._limit = limit
        self._automata = automata
        self._keywords = keywords
        self._labels = [IGNORED if t.ignored else labels.get(t.name, REJECTED) for t in terminals]
        self._keyword_labels = [[labels.get(name, REJECTED) for name, _ in t.keywords] for t in terminals]
        used = self._used()
        read = [formulas.automata[i] for i in used]
        classes, self._bytes = joint_classes([automaton.classes for automaton in read])
        self.classes = classes.astype(np.uint8)
        self._steps = {
            i: automaton.trans[:, automaton.classes[self._bytes]].tolist()
            for i, automaton in zip(used, read, strict=True)
        }

    def _used(self) -> list[int]:
        """The automata that are read: the terminals', the keywords', and those that conditions watch."""
        used = {*self._automata, *(keyword for keywords in self._keywords for keyword in keywords)}
        todo = list(used)
        while todo:
            for formula in self._formulas.automata[todo.pop()].accept:
                watched = {automaton for automaton, _ in self._formulas.atoms(formula)} - used
                used |= watched
                todo += watched
        return sorted(used)

    def build(self) -> Scanner:
        start = tuple(
            _Thread(i, START, TRUE, tuple((k, START) for k in range(len(keywords))))
            for i, keywords in enumerate(self._keywords)
        )
        # The start is not in `number`: met again within a lexeme, the same threads are another state.
        number: dict[tuple[_Thread, ...], int] = {(): DEAD}
        todo, trans = [start], [[DEAD] * len(self._bytes)]
        matches: list[tuple[Match, ...]] = [()]
        for threads in todo:
            matches.append(self._matches(threads))
            row = []
            for symbol in range(len(self._bytes)):
                after = self._step(threads, symbol)
                if after not in number:
                    number[after] = len(todo) + 1
                    todo.append(after)
                row.append(number[after])
            trans.append(row)
            if len(todo) > self._limit:
                names = ", ".join(self._terminals[t.terminal].name for t in threads[:4])
                raise GrammarTooLarge(
                    f"The scanner has more than {self._limit} states; the terminals {names} overlap in too "
                    "many ways. Bound their repetitions or make them disjoint."
                )
        return Scanner(self.classes, trans, matches, self._later(np.array(trans, np.int32), matches))

    def _step(self, threads: tuple[_Thread, ...], symbol: int) -> tuple[_Thread, ...]:
        formulas, byte, found = self._formulas, self._bytes[symbol], []
        earlier = FALSE  # one of the terminals before this one matches here
        for terminal, state, condition, keywords in threads:
            automaton = self._automata[terminal]
            after = self._steps[automaton][state][symbol]
            condition = formulas.without(formulas.derivative(condition, byte), earlier)
            if not after or condition == FALSE:
                continue
            alive = tuple(
                (k, s) for k, old in keywords if (s := self._steps[self._keyword(terminal, k)][old][symbol])
            )
            found.append(_Thread(terminal, after, condition, alive))
            accept = formulas.both(condition, formulas.automata[automaton].accept[after])
            earlier = formulas.either(earlier, accept)
            if earlier == TRUE:
                break
        return tuple(found)

    def _keyword(self, terminal: int, index: int) -> int:
        return self._keywords[terminal][index]

    def _matches(self, threads: tuple[_Thread, ...]) -> tuple[Match, ...]:
        found = []
        for thread in threads:
            accept = self._formulas.automata[self._automata[thread.terminal]].accept[thread.state]
            condition = self._formulas.both(thread.condition, accept)
            if condition != FALSE:
                found.append(Match(self._label(thread), condition))
        return tuple(found)

    def _label(self, thread: _Thread) -> int:
        label = self._labels[thread.terminal]
        if label != IGNORED:
            for index, state in thread.keywords:
                if self._formulas.automata[self._keyword(thread.terminal, index)].accept[state] == TRUE:
                    return self._keyword_labels[thread.terminal][index]
        return label

    def _later(self, trans: np.ndarray, matches: list[tuple[Match, ...]]) -> list[int]:
        """Registers the automaton of "a match is reached" and gives its atom for each state.

        Only the first certain match counts, so all transitions into one lead to one absorbing state; that
        makes far fewer states differ than in the scanner itself.
        """
        formulas = self._formulas
        accept = []
        for found in matches:
            formula = FALSE
            for match in found:
                formula = formulas.either(formula, match.condition)
            accept.append(formula)
        certain = np.array(accept) == TRUE
        matched = len(trans)
        watch = np.vstack([np.where(certain[trans], matched, trans), np.full(trans.shape[1], matched)])
        outcome = np.append(np.where(certain, FALSE, accept), TRUE)
        block = refine(watch, outcome)
        _, first = np.unique(block, return_index=True)
        quotient = block[watch[first]].astype(np.int32)
        accepts = [int(formula) for formula in outcome[first]]
        alive = _reaching(quotient, np.array(accepts) != FALSE)
        automaton = formulas.register(Automaton(self.classes, quotient, accepts, alive))
        return [formulas.atom(automaton, int(block[state])) for state in range(len(trans))]


def _reaching(trans: np.ndarray, goal: np.ndarray) -> np.ndarray:
    """Which states reach one of `goal` by at least one more byte."""
    reaching = np.zeros(len(trans), bool)
    while True:
        new: np.ndarray = np.any((goal | reaching)[trans], axis=1)
        if (new == reaching).all():
            return reaching
        reaching = new
