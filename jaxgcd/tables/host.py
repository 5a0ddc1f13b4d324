"""`check="host"`: context-dependent sequences go to the reference machine, as in the paper's own layout.

The device ships, in one callback per step, the rows that have such sequences: their lexer states, stacks and
which sequences. Each sequence is run on the whole stack, terminal by terminal, and the tokens of those that
the parser takes come back as packed bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.stack import step
from jaxgcd.tables.compiled import Compiled
from jaxgcd.tables.rows import pack_bits
from jaxgcd.tables.slots import NO_TERMINAL
from jaxgcd.tables.walk import Entry


class HostMachine:
    """Checks context-dependent sequences of one grammar on the host.

    Attributes:
        calls: how often the device asked.
        shipped: how many sequences it asked about, all calls together.
    """

    def __init__(self, compiled: Compiled):
        self._compiled = compiled
        self._table = compiled.machine.table
        self._words: dict[tuple[int, int], np.ndarray] = {}
        self.calls = 0
        self.shipped = 0

    def check(self, lexer: np.ndarray, stack: np.ndarray, depth: np.ndarray, top: np.ndarray) -> np.ndarray:
        """The tokens whose context-dependent sequences the parser takes.

        Args:
            lexer: `int32[rows, K]`.
            stack: `int32[rows, K, depth]`.
            depth: `int32[rows, K]`.
            top: `int32[rows, K, slots]`, the parser state on top once a slot's terminal was stepped; 0 where
            the
                slot has no context-dependent sequences.

        Returns:
            `uint32[rows, words]`.
        """
        self.calls += 1
        words = np.zeros((len(lexer), self._compiled.vocabulary.words), np.uint32)
        for row, run, slot in np.argwhere(top):
            states = tuple(stack[row, run, : depth[row, run]].tolist())
            words[row] |= self._slot(int(lexer[row, run]), int(slot), states, int(top[row, run, slot]))
        return words

    def _slot(self, lexer_state: int, slot: int, states: tuple[int, ...], top: int) -> np.ndarray:
        terminal, group = self._compiled.slots.of_state[lexer_state][slot]
        after = states if terminal == NO_TERMINAL else step(self._table, states, terminal)
        words = np.zeros(self._compiled.vocabulary.words, np.uint32)
        for member in self._compiled.walk.dependents(Entry(group, top, terminal != NO_TERMINAL)):
            self.shipped += 1
            suffix_class = member if terminal == NO_TERMINAL else self._after(member, top)
            if after is not None and self._takes(suffix_class, after):
                words |= self._member_words(group, member)
        return words

    def _takes(self, suffix_class: int, states: tuple[int, ...]) -> bool:
        follow, open_ = self._compiled.spanner.classes.members[suffix_class]
        if any(self._completable(boundary, states) for boundary in open_):
            return True
        for terminal, fan in follow:
            after = states if terminal == IGNORED else step(self._table, states, terminal)
            if after is not None and self._takes(self._after(fan, after[-1]), after):
                return True
        return False

    def _completable(self, boundary: int, states: tuple[int, ...]) -> bool:
        """Whether a stack can be completed, from the conditions that hold of any stack."""
        if not self._compiled.viability.complete:
            return True
        viability = self._compiled.viability
        items = viability.waiting(states[-1], boundary)
        for state in reversed(states[:-1]):
            if items is None:
                return True
            revealed = [viability.reveal(item, state) for item in items]
            items = None if None in revealed else frozenset().union(*(found or () for found in revealed))
        return items is None

    def _after(self, fan: int, state: int) -> int:
        """The suffix class that goes on after a terminal was shifted into `state`, or ignored there."""
        return self._compiled.spanner.classes.of_fan(fan, self._compiled.grammar.scanner_of[state])

    def _member_words(self, group: int, member: int) -> np.ndarray:
        key = (group, member)
        if key not in self._words:
            tokens = self._compiled.slots.token_classes(group) == member
            self._words[key] = pack_bits(tokens, self._compiled.vocabulary.words)
        return self._words[key]


class JointMachine:
    """The machines of joined tables, each for the states that its grammars have there.

    Args:
        machines: one for each of the tables that were joined.
        bases: how much larger their lexer states and parser states are in the joined tables.
        words: words in a row of token bits.
    """

    def __init__(self, machines: Sequence[Machine], bases: Sequence[tuple[int, int]], words: int):
        self._machines = machines
        self._bases = bases
        self._words = words
        self._first = np.array([lexer for lexer, _ in bases])

    def check(self, lexer: np.ndarray, stack: np.ndarray, depth: np.ndarray, top: np.ndarray) -> np.ndarray:
        """As `HostMachine.check`. All readings of a row belong to one grammar."""
        owner = np.searchsorted(self._first, lexer.max(axis=1), side="left") - 1
        found = np.zeros((len(lexer), self._words), np.uint32)
        for number in np.unique(owner[(top > 0).any(axis=(1, 2))]).tolist():
            rows, (more_lexer, more_parser) = owner == number, self._bases[number]
            found[rows] = self._machines[number].check(
                np.maximum(lexer[rows] - more_lexer, 0),
                np.maximum(stack[rows] - more_parser, 0),
                depth[rows],
                np.maximum(top[rows] - more_parser, 0),
            )
        return found


Machine = HostMachine | JointMachine

_MACHINES: dict[int, Machine] = {}
_NUMBERS = itertools.count(1)


def register(compiled: Compiled) -> int:
    """Makes a reference machine reachable from callbacks, which can be handed numbers only; never freed."""
    return _register(HostMachine(compiled))


def register_joint(numbers: Sequence[int], bases: Sequence[tuple[int, int]], words: int) -> int:
    """The same for the machines of tables that were joined; see `JointMachine`."""
    return _register(JointMachine([host_machine(number) for number in numbers], bases, words))


def _register(machine: Machine) -> int:
    number = next(_NUMBERS)
    _MACHINES[number] = machine
    return number


def host_machine(number: int) -> Machine:
    """The reference machine of tables whose leaf `host` is `number`."""
    return _MACHINES[number]
