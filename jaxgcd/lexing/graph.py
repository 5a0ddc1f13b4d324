"""The lexer as a graph of guarded states: Lark's backtracking lexer, one symbol at a time.

A **lexer state** is (guard, scanner state, left-context class). The scanner state says how far the current
lexeme has got; the guard is a formula that the text to come must satisfy: that no earlier lexeme matches
further than where it was taken to end, and that lookaheads hold; the left-context class is all that later
lexemes can ask about the text so far. A state between two lexemes, with a scanner at its start, is a
**boundary**.

Where a lexeme may end, the state has a **gate** for it: the boundary behind it, for each scanner that may
read on, since in contextual mode that depends on the parser state that the lexeme's terminal leads to.
So a reader of a symbol goes to `delta[q, symbol]`, and also, for each `(terminal, gate)` in `accepts[q]`,
emits the terminal and goes to `delta[gates[gate, scanner], symbol]`; the guards make sure that at most
one of all these readings survives a complete text.

Symbols are bytes and 256, the end of the text, which a boundary reads if its guard holds there; what is
read then is the terminal `$END`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.formula import FALSE, TRUE, Formulas
from jaxgcd.lexing.left import TEXT_START
from jaxgcd.lexing.minimise import joint_classes, refine
from jaxgcd.lexing.scanner import DEAD, IGNORED, REJECTED, START, Scanner, Scanners

INITIAL = 1
"""The lexer state before any text."""

END_OF_TEXT = 256

Accepts = tuple[tuple[int, int], ...]
"""`(terminal, gate)` pairs; the terminal `IGNORED` (-1) for a lexeme that is dropped."""


@dataclass(frozen=True)
class LexerGraph:
    """The guarded lexer, minimised: states with the same future are one state.

    Attributes:
        classes: `int32[257]`, symbol to symbol class; the last class is the end of the text's.
        delta: `int32[states, symbol classes]`; 0 is dead, `INITIAL` the state before any text.
        gates: `int32[gates, scanners]`, the boundary behind a lexeme; 0 where that scanner cannot be next.
            Gate 0 leads nowhere.
        accepts: for each state the terminals that can end there, with their gates.
        exits: for each state all `(terminal, gate)` pairs with which its lexeme can end, now or later.
    """

    classes: np.ndarray
    delta: np.ndarray
    gates: np.ndarray
    accepts: tuple[Accepts, ...]
    exits: tuple[frozenset[tuple[int, int]], ...]

    @property
    def n_states(self) -> int:
        """Number of states, with the dead one."""
        return len(self.delta)

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The states between two lexemes, `INITIAL` first."""
        return (INITIAL, *sorted(set(self.gates.ravel().tolist()) - {DEAD, INITIAL}))


def build_graph(
    formulas: Formulas,
    scanners: Scanners,
    first: int,
    next_scanners: Sequence[Collection[int]],
    end: int,
    spellable: Collection[int],
    *,
    limit: int = 50_000,
) -> LexerGraph:
    """Builds the lexer.

    Args:
        formulas: the diagram that the scanners' conditions live in.
        scanners: all scanners, with the left-context classes that choose between their variants.
        first: the scanner at the start of a text.
        next_scanners: for each terminal the scanners that may read on after it.
        end: the terminal `$END`.
        spellable: bytes that occur in some token; transitions on others are dropped.
        limit: the most states before minimising.

    Raises:
        GrammarTooLarge: `limit` was exceeded.
    """
    return _Builder(formulas, scanners, first, next_scanners, end, spellable, limit).build()


class _Builder:
    """States before trimming: 0 dead, 1 initial, 2 the end of the text, 3 the boundary after it."""

    _ENDED, _FINAL = 2, 3

    def __init__(self, formulas, scanners, first, next_scanners, end, spellable, limit):
        self._formulas = formulas
        self._scanners = scanners
        self._next = next_scanners
        self._limit = limit
        self._end = end
        # A byte that no token spells is a class of its own that leads nowhere.
        spelled = np.array([byte in spellable for byte in range(END_OF_TEXT)])
        every = [automaton.classes for automaton in formulas.automata]
        classes, self._bytes = joint_classes([spelled, scanners.left.classes, *every])
        self._dropped = [not spelled[byte] for byte in self._bytes]
        self.classes = np.append(classes, len(self._bytes)).astype(np.int32)
        self._steps = [
            [[row[c] for c in scanner.classes[self._bytes].tolist()] for row in scanner.trans]
            for scanner in scanners.variants
        ]
        self._left = scanners.left.trans[:, scanners.left.classes[self._bytes]].tolist()
        self._forgets = [
            [
                distance >= scanners.left.reach
                for distance in _characters_to_match(steps, scanner, self._bytes)
            ]
            for steps, scanner in zip(self._steps, scanners.variants, strict=True)
        ]
        # A state is (guard, variant of a scanner, its state, left-context class).
        self._states: list[tuple[int, int, int, int]] = [(FALSE, 0, DEAD, 0)]
        self._states += [(TRUE, scanners.choice[first][TEXT_START], START, TEXT_START)]
        self._states += [(FALSE, 0, -self._ENDED, 0), (FALSE, 0, -self._FINAL, 0)]
        self._number = {state: number for number, state in enumerate(self._states)}
        self._gates: dict[tuple[int, ...], int] = {(DEAD,) * len(scanners.choice): 0}

    def build(self) -> LexerGraph:
        width = len(self._bytes) + 1
        delta: list[list[int]] = []
        accepts: list[Accepts] = []
        for number, state in enumerate(self._states):
            if number in (DEAD, self._ENDED, self._FINAL):
                delta.append([DEAD] * width)
                accepts.append(((self._end, self._gate(self._FINAL)),) if number == self._ENDED else ())
                continue
            delta.append([self._read(*state, symbol) for symbol in range(width)])
            accepts.append(self._accepts(*state))
            if len(self._states) > self._limit:
                raise GrammarTooLarge(
                    f"The lexer has more than {self._limit} states: too many lexemes can be taken back at "
                    "once. Look for a terminal that begins with another one and goes on without bound."
                )
        gates = np.array(list(self._gates), np.int32)
        trimmed = _trim(np.array(delta, np.int32), gates, accepts, self._FINAL)
        return _minimal(self.classes, *trimmed, self._FINAL)

    def _intern(self, guard: int, variant: int, state: int, left: int) -> int:
        if guard == FALSE or state == DEAD:
            return DEAD
        number = self._number.setdefault((guard, variant, state, left), len(self._states))
        if number == len(self._states):
            self._states.append((guard, variant, state, left))
        return number

    def _boundary(self, guard: int, scanner: int, left: int) -> int:
        return self._intern(guard, self._scanners.choice[scanner][left], START, left)

    def _gate(self, *boundaries: int) -> int:
        """The gate with one boundary for each scanner, or the same for all."""
        row = boundaries if len(boundaries) > 1 else boundaries * len(self._scanners.choice)
        return self._gates.setdefault(row, len(self._gates))

    def _read(self, guard: int, variant: int, state: int, left: int, symbol: int) -> int:
        if symbol == len(self._bytes):
            return self._ENDED if state == START and self._formulas.at_end(guard) else DEAD
        if self._dropped[symbol]:
            return DEAD
        after = self._steps[variant][state][symbol]
        guard = self._formulas.derivative(guard, self._bytes[symbol]) if after else FALSE
        # Where a lexeme is too far from its end for it to matter, any left-context class will do.
        left = TEXT_START if self._forgets[variant][after] else self._left[left][symbol]
        return self._intern(guard, variant, after, left)

    def _accepts(self, guard: int, variant: int, state: int, left: int) -> Accepts:
        formulas, found = self._formulas, []
        scanner, same = self._scanners.variants[variant], self._scanners.scanner_of[variant]
        stays = formulas.without(guard, scanner.later[state])
        for label, condition in scanner.matches[state]:
            then = formulas.both(stays, condition)
            if label == IGNORED:  # the parser has not moved, so the same scanner reads on
                found.append((label, self._gate(self._boundary(then, same, left))))
            elif label != REJECTED:
                after = self._next[label]
                every = range(len(self._scanners.choice))
                row = [self._boundary(then, s, left) if s in after else DEAD for s in every]
                found.append((label, self._gate(*row)))
            stays = formulas.without(stays, condition)
        return tuple(found)


def _characters_to_match(steps: list[list[int]], scanner: Scanner, firsts: list[int]) -> list[int]:
    """For each state of a scanner how many characters must at least begin before a lexeme can end."""
    starts = np.array([not 0x80 <= byte < 0xC0 for byte in firsts], np.int64)
    found = np.array([0 if matches else len(steps) for matches in scanner.matches])
    trans = np.array(steps, np.int64)
    while True:
        nearer = np.minimum(found, (found[trans] + starts).min(axis=1))
        if (nearer == found).all():
            return found.tolist()
        found = nearer


def _trim(delta: np.ndarray, gates: np.ndarray, accepts: list[Accepts], final: int):
    """Drops what cannot be followed by any complete text, even with a parser that accepts everything."""
    useful = np.zeros(len(delta), bool)
    useful[final] = True
    while True:
        opens = np.any(useful[gates], axis=1).tolist()
        ends = np.array([any(opens[gate] for _, gate in pairs) for pairs in accepts])
        new = useful | ends | np.any(useful[delta], axis=1)
        new[DEAD] = False
        if (new == useful).all():
            break
        useful = new
    useful[INITIAL] = True
    delta = np.where(useful[delta], delta, DEAD)
    delta[~useful] = DEAD
    kept = [tuple(pair for pair in pairs if opens[pair[1]]) for pairs in accepts]
    kept = [pairs if useful[q] else () for q, pairs in enumerate(kept)]
    return delta, np.where(useful[gates], gates, DEAD), kept


def _minimal(classes: np.ndarray, delta: np.ndarray, gates: np.ndarray, accepts, final: int) -> LexerGraph:
    block = _bisimulation(delta, gates, accepts, final)
    order, number = _breadth_first(delta, gates, accepts, block)
    new_delta = number[block[delta[order]]].astype(np.int32)
    rows = number[block[gates]]
    gate_number = {(DEAD,) * gates.shape[1]: 0}
    new_accepts = []
    for q in order:
        pairs = dict.fromkeys((terminal, tuple(rows[gate].tolist())) for terminal, gate in accepts[q])
        new_accepts.append(tuple((t, gate_number.setdefault(row, len(gate_number))) for t, row in pairs))
    new_gates = np.array(list(gate_number), np.int32)
    return LexerGraph(classes, new_delta, new_gates, tuple(new_accepts), _exits(new_delta, new_accepts))


def _bisimulation(delta: np.ndarray, gates: np.ndarray, accepts, final: int) -> np.ndarray:
    """Blocks of states that read alike and whose gates lead to alike boundaries."""
    label = np.zeros(len(delta), np.int64)
    label[final], label[INITIAL] = 1, 2
    while True:
        rows = [tuple(row) for row in label[gates].tolist()]
        signatures: dict[tuple, int] = {}
        ends = [
            signatures.setdefault(
                (label[q], *sorted({(t, rows[gate]) for t, gate in pairs})), len(signatures)
            )
            for q, pairs in enumerate(accepts)
        ]
        new = refine(delta, np.array(ends))
        if new.max() == label.max() and len(np.unique(np.stack([new, label]), axis=1).T) == new.max() + 1:
            return new
        label = new


def _breadth_first(delta: np.ndarray, gates: np.ndarray, accepts, block: np.ndarray):
    """A representative of each reachable block, dead first, then initial, and the number of each block."""
    number = np.full(int(block.max()) + 1, -1)
    order = [DEAD, INITIAL]
    number[block[DEAD]], number[block[INITIAL]] = DEAD, INITIAL
    for state in order:
        behind = [boundary for _, gate in accepts[state] for boundary in gates[gate].tolist()]
        for found in (*delta[state].tolist(), *behind):
            if number[block[found]] < 0:
                number[block[found]] = len(order)
                order.append(found)
    return order, np.maximum(number, DEAD)


def _exits(delta: np.ndarray, accepts) -> tuple[frozenset[tuple[int, int]], ...]:
    pairs = sorted({pair for found in accepts for pair in found})
    index = {pair: i for i, pair in enumerate(pairs)}
    reach = np.zeros((len(delta), len(pairs)), bool)
    for q, found in enumerate(accepts):
        reach[q, [index[pair] for pair in found]] = True
    successors = [np.unique(row[row != DEAD]) for row in delta]
    changed = True
    while changed:
        changed = False
        for q in range(len(delta) - 1, 0, -1):
            new = reach[q] | reach[successors[q]].any(axis=0)
            if (new != reach[q]).any():
                reach[q] = new
                changed = True
    return tuple(frozenset(pairs[i] for i in np.flatnonzero(row)) for row in reach)
