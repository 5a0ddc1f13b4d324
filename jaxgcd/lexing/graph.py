"""The lexer as a graph of guarded states: Lark's backtracking lexer, one symbol at a time.

A **lexer state** is (guard, scanner state, left-context class). The scanner state says how far the current
lexeme has got; the guard is a formula that the text to come must satisfy: that no earlier lexeme matches
further than where it was taken to end, and that lookaheads hold; the left-context class is all that later
lexemes can ask about the text so far. A state between two lexemes, with a scanner at its start, is a
**boundary**.

Where a lexeme may end, the state has a **gate** for it: the boundary behind it, for each scanner that may
read on, since in contextual mode that depends on the parser state that the lexeme's terminal leads to
(behind an ignored lexeme it is the scanner that read it, as the parser has not moved).
So a reader of a symbol goes to `delta[q, symbol]`, and also, for each `(terminal, gate)` in `accepts[q]`,
emits the terminal and goes to `delta[gates[gate, scanner], symbol]`; the guards make sure that at most
one of all these readings survives a complete text.

Symbols are bytes and 256, the end of the text, which a boundary reads if its guard holds there; what is
read then is the terminal `$END`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.formula import FALSE, TRUE, Formulas
from jaxgcd.lexing.left import TEXT_START
from jaxgcd.lexing.minimise import joint_classes, refine
from jaxgcd.lexing.reach import UNREACHED, Edges, close, closure, distance, transitions
from jaxgcd.lexing.scanner import DEAD, IGNORED, REJECTED, Scanners

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
        scanner: for each state between two lexemes the scanner that reads on there.
    """

    classes: np.ndarray
    delta: np.ndarray
    gates: np.ndarray
    accepts: tuple[Accepts, ...]
    exits: tuple[frozenset[tuple[int, int]], ...]
    scanner: dict[int, int]

    @property
    def n_states(self) -> int:
        """Number of states, with the dead one."""
        return len(self.delta)

    @property
    def boundaries(self) -> tuple[int, ...]:
        """The states between two lexemes, `INITIAL` first."""
        return (INITIAL, *sorted(self.scanner.keys() - {INITIAL}))


def build_graph(
    formulas: Formulas,
    scanners: Scanners,
    first: int,
    next_scanners: Sequence[Collection[int]],
    end: int,
    spellable: Collection[int],
    names: Sequence[str],
    budget: Budget,
) -> LexerGraph:
    """Builds the lexer.

    Args:
        formulas: the diagram that the scanners' conditions live in.
        scanners: all scanners, with the left-context classes that choose between their variants.
        first: the scanner at the start of a text.
        next_scanners: for each terminal the scanners that may read on after it.
        end: the terminal `$END`.
        spellable: bytes that occur in some token; transitions on others are dropped.
        names: what messages call each terminal.
        budget: what may be used up.

    Raises:
        GrammarTooLarge: it has too many states, before minimising.
    """
    budget.work = "the lexer"
    return _Builder(formulas, scanners, first, next_scanners, end, spellable, names, budget).build()


class _Builder:
    """States before trimming: 0 dead, 1 initial, 2 the end of the text, 3 the boundary after it."""

    _ENDED, _FINAL = 2, 3

    def __init__(self, formulas, scanners, first, next_scanners, end, spellable, names, budget):
        self._formulas = formulas
        self._scanners = scanners
        self._first = first
        self._next = next_scanners
        self._names = names
        self._budget = budget
        self._taken_back: Counter[int] = Counter()  # how often a terminal's lexeme ended under a new guard
        self._end = end
        # A byte that no token spells is a class of its own that leads nowhere.
        spelled = np.array([byte in spellable for byte in range(END_OF_TEXT)])
        every = [automaton.classes for automaton in formulas.automata]
        classes, self._bytes = joint_classes([spelled, scanners.left.classes, scanners.classes, *every])
        self.classes = np.append(classes, len(self._bytes)).astype(np.int32)
        steps = np.where(spelled[self._bytes], scanners.trans[:, scanners.classes[self._bytes]], DEAD)
        self._live = [np.flatnonzero(row).tolist() for row in steps]
        self._steps = steps.tolist()
        self._left = scanners.left.trans[:, scanners.left.classes[self._bytes]].tolist()
        away = _characters_to_match(steps, scanners.matches, self._bytes)
        # Where a lexeme is too far from its end for it to matter, any left-context class will do.
        self._forgets = (away >= scanners.left.reach).tolist()
        active = {first}.union(*next_scanners)  # the others belong to parser states that follow no shift
        starts = [sorted(set(row) - {-1}) if s in active else [] for s, row in enumerate(scanners.start)]
        self._starts = {state for row in starts for state in row}
        self._readers = _readers(steps, starts)
        # A state is (guard, scanner state, left-context class).
        self._states: list[tuple[int, int, int]] = [(FALSE, DEAD, 0)]
        self._states += [(TRUE, scanners.start[first][TEXT_START], TEXT_START)]
        self._states += [(FALSE, -self._ENDED, 0), (FALSE, -self._FINAL, 0)]
        self._number = {state: number for number, state in enumerate(self._states)}
        self._gates: dict[tuple[int, ...], int] = {(DEAD,) * len(scanners.start): 0}
        self._behind: dict[tuple[int, int, int, int], int] = {}

    def build(self) -> LexerGraph:
        width = len(self._bytes) + 1
        delta: list[list[int]] = []
        accepts: list[Accepts] = []
        for number, state in enumerate(self._states):
            if number in (DEAD, self._ENDED, self._FINAL):
                delta.append([DEAD] * width)
                end = self._gates.setdefault((self._FINAL,) * len(self._scanners.start), len(self._gates))
                accepts.append(((self._end, end),) if number == self._ENDED else ())
                continue
            delta.append(self._read(*state))
            accepts.append(self._accepts(*state))
            self._budget.step()
            if len(self._states) > self._budget.limits.lexer_states:
                raise self._too_large()
        gates = np.array(list(self._gates), np.int32)
        trimmed = _trim(np.array(delta, np.int32), gates, accepts, self._FINAL)
        return _minimal(self.classes, *trimmed, self._FINAL, self._first)

    def _too_large(self) -> GrammarTooLarge:
        """Names the terminal whose lexemes can be taken back in the most ways."""
        subject, remedy = "the lexer needs", "shorten lookbehinds and bounded repeats"
        if self._taken_back:
            name = self._names[self._taken_back.most_common(1)[0][0]]
            subject = f"terminal {name}: its lexemes can be taken back in too many ways, the lexer needs"
            remedy = f"look for terminals that begin like {name} and go on without bound, and shorten them"
        return self._budget.exceeded("lexer_states", subject, "states", remedy)

    def _intern(self, guard: int, state: int, left: int) -> int:
        if guard == FALSE or state == DEAD:
            return DEAD
        number = self._number.setdefault((guard, state, left), len(self._states))
        if number == len(self._states):
            self._states.append((guard, state, left))
        return number

    def _read(self, guard: int, state: int, left: int) -> list[int]:
        row = [DEAD] * (len(self._bytes) + 1)
        if state in self._starts and self._formulas.at_end(guard):
            row[-1] = self._ENDED
        steps, lefts = self._steps[state], self._left[left]
        for symbol in self._live[state]:
            after, then = steps[symbol], guard
            if guard != TRUE:
                then = self._formulas.derivative(guard, self._bytes[symbol])
            row[symbol] = self._intern(then, after, TEXT_START if self._forgets[after] else lefts[symbol])
        return row

    def _accepts(self, guard: int, state: int, left: int) -> Accepts:
        if not self._scanners.matches[state]:
            return ()
        formulas, found = self._formulas, []
        stays = formulas.without(guard, self._scanners.later[state])
        for label, condition in self._scanners.matches[state]:
            then = formulas.both(stays, condition)
            if label != REJECTED:
                # An ignored lexeme does not move the parser, so the same scanner reads on.
                found.append((label, self._gate(label, then, left, state if label == IGNORED else DEAD)))
            stays = formulas.without(stays, condition)
        return tuple(found)

    def _gate(self, label: int, guard: int, left: int, ignored: int) -> int:
        """The gate behind a lexeme: where each scanner that may read on begins."""
        key = (label, guard, left, self._readers[ignored] if ignored else 0)
        if key not in self._behind:
            self._taken_back.update([label] if guard > TRUE and label >= 0 else ())
            after = key[-1] if ignored else sum(1 << s for s in self._next[label])
            starts = [row[left] if after >> s & 1 else DEAD for s, row in enumerate(self._scanners.start)]
            row = tuple(self._intern(guard, start, left) for start in starts)
            self._behind[key] = self._gates.setdefault(row, len(self._gates))
        return self._behind[key]


def _readers(steps: np.ndarray, starts: list[list[int]]) -> list[int]:
    """For each scanner state the scanners (bits) that can be in it."""
    reading = np.zeros((len(steps), len(starts)), bool)
    for scanner, states in enumerate(starts):
        reading[states, scanner] = True
    source, symbol = np.nonzero(steps)
    reading = closure(reading, steps[source, symbol], source)
    return [sum(1 << int(s) for s in np.flatnonzero(row)) for row in reading]


def _characters_to_match(steps: np.ndarray, matches: Sequence, firsts: list[int]) -> np.ndarray:
    """For each state of a scanner how many characters must at least begin before a lexeme can end."""
    begins = np.array([not 0x80 <= byte < 0xC0 for byte in firsts], np.int64)
    found = np.array([0 if ends else len(steps) for ends in matches])
    edges, suspects = transitions(steps), np.arange(len(steps))
    while len(suspects):
        nearer = (found[steps[suspects]] + begins).min(axis=1)
        suspects, nearer = suspects[nearer < found[suspects]], nearer[nearer < found[suspects]]
        found[suspects] = nearer
        suspects = np.unique(edges.into(suspects))
    return found


def _trim(delta: np.ndarray, gates: np.ndarray, accepts: list[Accepts], final: int):
    """Drops what cannot be followed by any complete text, even with a parser that accepts everything."""
    useful, opens = _leading_to(final, delta, gates, accepts)
    useful[INITIAL] = True
    delta = np.where(useful[delta], delta, DEAD)
    delta[~useful] = DEAD
    kept = [tuple(pair for pair in pairs if opens[pair[1]]) for pairs in accepts]
    kept = [pairs if useful[q] else () for q, pairs in enumerate(kept)]
    return delta, np.where(useful[gates], gates, DEAD), kept


def _leading_to(final: int, delta: np.ndarray, gates: np.ndarray, accepts: list[Accepts]):
    """Which states and which gates lead to state `final`."""
    source, symbol = np.nonzero(delta)
    gate, scanner = np.nonzero(gates)
    ends = np.array([(q, at) for q, pairs in enumerate(accepts) for _, at in pairs], np.int64).reshape(-1, 2)
    states = len(delta)  # gates are numbered behind them
    edges = Edges(
        np.concatenate([source, states + gate, ends[:, 0]]),
        np.concatenate([delta[source, symbol], gates[gate, scanner], states + ends[:, 1]]),
        states + len(gates),
    )
    leads = distance(edges, np.arange(states + len(gates)) == final) != UNREACHED
    return leads[:states], leads[states:].tolist()


def _minimal(
    classes: np.ndarray, delta: np.ndarray, gates: np.ndarray, accepts, final: int, first: int
) -> LexerGraph:
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
    scanner = {INITIAL: first}
    for column, states in enumerate(new_gates.T):
        scanner.update(dict.fromkeys(states[states != DEAD].tolist(), column))
    exits = _exits(new_delta, new_accepts)
    return LexerGraph(classes, new_delta, new_gates, tuple(new_accepts), exits, scanner)


def _bisimulation(delta: np.ndarray, gates: np.ndarray, accepts, final: int) -> np.ndarray:
    """Blocks of states that read alike and whose gates lead to alike boundaries of the same scanners."""
    label = np.zeros(len(delta), np.int64)
    for column, states in enumerate(gates.T):
        label[states[states != DEAD]] = 3 + column
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
        behind = gates[np.array([gate for _, gate in accepts[state]], np.int64)]
        met = np.append(delta[state], behind)
        for found in met[number[block[met]] < 0].tolist():
            if number[block[found]] < 0:
                number[block[found]] = len(order)
                order.append(found)
    return order, np.maximum(number, DEAD)


def _exits(delta: np.ndarray, accepts) -> tuple[frozenset[tuple[int, int]], ...]:
    pairs = sorted({pair for found in accepts for pair in found})
    index = {pair: i for i, pair in enumerate(pairs)}
    reach = np.zeros((len(delta), -(-len(pairs) // 8)), np.uint8)
    for q, found in enumerate(accepts):
        for i in (index[pair] for pair in found):
            reach[q, i >> 3] |= 1 << (i & 7)
    source, symbol = np.nonzero(delta)
    close(reach, source, delta[source, symbol])
    sets: dict[bytes, frozenset[tuple[int, int]]] = {}
    found = []
    for row in reach:
        key = row.tobytes()
        if key not in sets:
            sets[key] = frozenset(pairs[i] for i in np.flatnonzero(np.unpackbits(row, bitorder="little")))
        found.append(sets[key])
    return tuple(found)
