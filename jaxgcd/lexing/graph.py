"""The lexer as a graph of guarded states: Lark's backtracking lexer, one symbol at a time.

A **lexer state** is a pair (guard, scanner state). The scanner state says how far the current lexeme has got;
the guard is a formula that the text to come must satisfy: that no earlier lexeme matches further than where
it was taken to end, and that lookaheads hold. A state in which a lexeme may end offers the **boundary** after
it: the pair (new guard, start of a lexeme). A reader of a symbol therefore goes to `delta[q, symbol]`, and
also, for each `(terminal, boundary)` in `accepts[q]`, emits the terminal and goes to `delta[boundary,
symbol]`; the guards make sure that at most one of all these readings survives a complete text.

Symbols are bytes and 256, the end of the text, which a boundary reads if its guard holds there; what is read
then is the terminal `$END`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.formula import FALSE, TRUE, Formulas
from jaxgcd.lexing.minimise import refine
from jaxgcd.lexing.scanner import DEAD, REJECTED, START, Scanner

INITIAL = 1
"""The lexer state before any text."""

END_OF_TEXT = 256


@dataclass(frozen=True)
class LexerGraph:
    """The guarded lexer, minimised: states with the same future are one state.

    Attributes:
        classes: `int32[257]`, symbol to symbol class; the last class is the end of the text's.
        delta: `int32[states, symbol classes]`; 0 is dead, `INITIAL` the state before any text.
        accepts: for each state the `(terminal, boundary)` pairs that can end there; terminal `IGNORED` (-1)
            for a lexeme that is dropped.
        exits: for each state all `(terminal, boundary)` pairs with which its lexeme can end, now or later.
    """

    classes: np.ndarray
    delta: np.ndarray
    accepts: tuple[tuple[tuple[int, int], ...], ...]
    exits: tuple[frozenset[tuple[int, int]], ...]

    @property
    def n_states(self) -> int:
        """Number of states, with the dead one."""
        return len(self.delta)

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The states between two lexemes, `INITIAL` first."""
        return (INITIAL, *sorted({b for pairs in self.accepts for _, b in pairs} - {INITIAL}))


def build_graph(
    formulas: Formulas, scanner: Scanner, end: int, spellable: Collection[int], *, limit: int = 20_000
) -> LexerGraph:
    """Builds the lexer of one scanner.

    Args:
        formulas: the diagram that the scanner's conditions live in.
        scanner: the scanner.
        end: the terminal `$END`.
        spellable: bytes that occur in some token; transitions on others are dropped.
        limit: the most states before minimising.

    Raises:
        GrammarTooLarge: `limit` was exceeded.
    """
    return _Builder(formulas, scanner, end, spellable, limit).build()


class _Builder:
    """States before trimming: 0 dead, 1 initial, 2 the end of the text, 3 the boundary after it."""

    _ENDED, _FINAL = 2, 3

    def __init__(
        self, formulas: Formulas, scanner: Scanner, end: int, spellable: Collection[int], limit: int
    ):
        self._formulas = formulas
        self._scanner = scanner
        self._limit = limit
        self._end = end
        # A byte that no token spells is a class of its own that leads nowhere.
        key = np.array([int(scanner.classes[b]) if b in spellable else -1 for b in range(256)])
        _, first, classes = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first)
        self._bytes = [int(b) for b in first[order]]
        self._dropped = [b not in spellable for b in self._bytes]
        self.classes = np.append(np.argsort(order)[classes.ravel()], len(order)).astype(np.int32)
        self._number: dict[tuple[int, int], int] = {
            (TRUE, START): INITIAL,
            (-1, -1): self._ENDED,
            (-2, -2): self._FINAL,
        }
        self._states: list[tuple[int, int]] = [(FALSE, DEAD), *self._number]

    def build(self) -> LexerGraph:
        width = len(self._bytes) + 1
        delta: list[list[int]] = []
        accepts: list[tuple[tuple[int, int], ...]] = []
        for number, (guard, state) in enumerate(self._states):
            if number in (DEAD, self._ENDED, self._FINAL):
                delta.append([DEAD] * width)
                accepts.append(((self._end, self._FINAL),) if number == self._ENDED else ())
                continue
            delta.append([self._read(guard, state, symbol) for symbol in range(width)])
            accepts.append(self._accepts(guard, state))
            if len(self._states) > self._limit:
                raise GrammarTooLarge(
                    f"The lexer has more than {self._limit} states: too many lexemes can be taken back at "
                    "once. Look for a terminal that begins with another one and goes on without bound."
                )
        return _minimal(self.classes, *_trim(np.array(delta, np.int32), accepts, self._FINAL))

    def _intern(self, guard: int, state: int) -> int:
        if guard == FALSE or state == DEAD:
            return DEAD
        number = self._number.setdefault((guard, state), len(self._states))
        if number == len(self._states):
            self._states.append((guard, state))
        return number

    def _read(self, guard: int, state: int, symbol: int) -> int:
        if symbol == len(self._bytes):
            return self._ENDED if state == START and self._formulas.at_end(guard) else DEAD
        if self._dropped[symbol]:
            return DEAD
        byte = self._bytes[symbol]
        after = self._scanner.trans[state][int(self._scanner.classes[byte])]
        return self._intern(self._formulas.derivative(guard, byte), after) if after else DEAD

    def _accepts(self, guard: int, state: int) -> tuple[tuple[int, int], ...]:
        formulas, found = self._formulas, []
        stays = formulas.without(guard, self._scanner.later[state])
        for label, condition in self._scanner.matches[state]:
            boundary = self._intern(formulas.both(stays, condition), START)
            if boundary and label != REJECTED:
                found.append((label, boundary))
            stays = formulas.without(stays, condition)
        return tuple(found)


def _trim(delta: np.ndarray, accepts: list[tuple[tuple[int, int], ...]], final: int):
    """Drops what cannot be followed by any complete text, even with a parser that accepts everything."""
    useful = np.zeros(len(delta), bool)
    useful[final] = True
    while True:
        ends = np.array([any(useful[boundary] for _, boundary in pairs) for pairs in accepts])
        new = useful | ends | useful[delta].any(axis=1)
        new[DEAD] = False
        if (new == useful).all():
            break
        useful = new
    useful[INITIAL] = True
    delta = np.where(useful[delta], delta, DEAD)
    delta[~useful] = DEAD
    kept = [
        tuple(pair for pair in pairs if useful[pair[1]]) if useful[q] else ()
        for q, pairs in enumerate(accepts)
    ]
    return delta, kept, final


def _minimal(classes: np.ndarray, delta: np.ndarray, accepts, final: int) -> LexerGraph:
    block = _bisimulation(delta, accepts, final)
    order, number = _breadth_first(delta, accepts, block)
    new_delta = number[block[delta[order]]]
    new_accepts = tuple(
        tuple(dict.fromkeys((terminal, int(number[block[boundary]])) for terminal, boundary in accepts[q]))
        for q in order
    )
    return LexerGraph(classes, new_delta.astype(np.int32), new_accepts, _exits(new_delta, new_accepts))


def _bisimulation(delta: np.ndarray, accepts, final: int) -> np.ndarray:
    """Blocks of states that read alike and whose accepted boundaries are alike."""
    label = np.zeros(len(delta), np.int64)
    label[final], label[INITIAL] = 1, 2
    while True:
        signatures: dict[tuple, int] = {}
        ends = [
            signatures.setdefault(
                (int(label[q]), *sorted({(t, int(label[b])) for t, b in pairs})), len(signatures)
            )
            for q, pairs in enumerate(accepts)
        ]
        new = refine(delta, np.array(ends))
        if new.max() == label.max() and len(np.unique(np.stack([new, label]), axis=1).T) == new.max() + 1:
            return new
        label = new


def _breadth_first(delta: np.ndarray, accepts, block: np.ndarray) -> tuple[list[int], np.ndarray]:
    """A representative of each reachable block, dead first, then initial, and the number of each block."""
    number = np.full(int(block.max()) + 1, -1)
    order = [DEAD, INITIAL]
    number[block[DEAD]], number[block[INITIAL]] = DEAD, INITIAL
    for state in order:
        for found in (*delta[state].tolist(), *(boundary for _, boundary in accepts[state])):
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
