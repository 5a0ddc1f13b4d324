"""Which parser states can be on top of the stack where a slot is checked, and where their entries stand.

Between two lexemes a gate leads to where the scanner of the state on top begins, and inside a lexeme the
stack does not change. So a lexer state is met only under parser states whose scanner can get there from a
gate of its own. No lexeme leads to the start state: it is on top only from the beginning on, which makes it a
kind of its own, and the only one in the lexer state before any text. Beyond that state, a text is only
followed as long as the state on top takes one of the terminals that its lexeme can end with.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.reach import closure
from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.machine import shift_targets
from jaxgcd.parsing.table import START_STATE, ParseTable
from jaxgcd.tables.slots import NO_TERMINAL, Slot


class Tops:
    """The parser states that are on top once the terminals of slots were stepped.

    Args:
        table: Lark's table.
        graph: the lexer.
        scanner_of: the scanner of each parser state.
        of_state: the slots of each lexer state.

    Attributes:
        column: `int32[parser states, 2]`, each state's place among those that can be on top without, and with
            a terminal stepped. Without one, states with the same scanner stand together.
    """

    def __init__(
        self,
        table: ParseTable,
        graph: LexerGraph,
        scanner_of: Sequence[int],
        of_state: Sequence[Iterable[Slot]],
    ):
        self._after = [np.array(states, np.int64) for states in shift_targets(table)]
        running = np.array(sorted({START_STATE, *np.concatenate(self._after).tolist()} - {table.accept}))
        scanners = np.array(scanner_of)
        self._running = running[np.argsort(scanners[running], kind="stable")]
        self._without: dict[Slot, np.ndarray] = {}  # which of the running ones
        meetings = _Meetings(table, graph, scanners, self._running)
        for state, slots in enumerate(of_state):
            for slot in slots:
                if slot.terminal == NO_TERMINAL:
                    self._without[slot] = self._without.get(slot, False) | meetings.on_top(state)
        self.column = np.zeros((table.n_states, 2), np.int32)
        self.column[self._running, 0] = np.arange(len(self._running))
        for states in self._after:
            self.column[states, 1] = np.arange(len(states))

    def of(self, slot: Slot) -> np.ndarray:
        """The states that can be on top once a slot's terminal was stepped, in the order of their columns."""
        if slot.terminal != NO_TERMINAL:
            return self._after[slot.terminal]
        return self._running[self._without[slot]]


class _Meetings:
    """Which parser states can be on top in a lexer state."""

    def __init__(self, table: ParseTable, graph: LexerGraph, scanners: np.ndarray, running: np.ndarray):
        start_kind = graph.gates.shape[1]
        self._exits = graph.exits
        self._kind = np.where(running == START_STATE, start_kind, scanners[running])
        self._kinds = _kinds_met(graph, int(scanners[START_STATE]))
        self._takers: dict[int, list[int]] = {}
        for index, state in enumerate(running.tolist()):
            for terminal in table.action[state]:
                self._takers.setdefault(terminal, []).append(index)

    def on_top(self, lexer_state: int) -> np.ndarray:
        """Which of the running states can be on top, `bool[running]`."""
        found = self._kinds[lexer_state][self._kind]
        ends = {terminal for terminal, _ in self._exits[lexer_state]}
        if lexer_state == INITIAL or IGNORED in ends:
            return found
        takes = np.zeros(len(found), bool)
        for terminal in ends:
            takes[self._takers.get(terminal, [])] = True
        return found & takes


def _kinds_met(graph: LexerGraph, first: int) -> np.ndarray:
    """For each lexer state in which a text can stand the scanners of the states that can be on top there.

    Returns:
        `bool[lexer states, scanners + 1]`; the last column is that of the start state, with scanner `first`.
    """
    states, scanners = graph.n_states, graph.gates.shape[1]
    # The states before a symbol is read, which are between lexemes, and then those behind it.
    found = np.zeros((2 * states, scanners + 1), bool)
    gate, scanner = np.nonzero(graph.gates)
    found[graph.gates[gate, scanner], scanner] = True
    found[:, -1] = found[:, first]
    found[[INITIAL, states + INITIAL], -1] = True
    source, symbol = np.nonzero(graph.delta)
    target = states + graph.delta[source, symbol]
    return closure(found, np.tile(target, 2), np.concatenate([source, states + source]))[states:]
