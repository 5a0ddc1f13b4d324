"""`check="host"`: context-dependent sequences go to the reference machine, as in the paper's own layout.

The device ships, in one callback per step, the rows that have such sequences: their lexer states, stacks and
which sequences. Each sequence is run on the whole stack, terminal by terminal, and the tokens of those that
the parser takes come back as packed bits.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.stack import step
from jaxgcd.parsing.table import ParseTable
from jaxgcd.parsing.viability import ALWAYS
from jaxgcd.tables.slots import NO_TERMINAL
from jaxgcd.tables.suffixes import SuffixClass

Condition = Any
"""What the rest of a stack must meet; None is met by all, and what is false by none."""

Tokens = Any
"""A key to some tokens."""


class Member(NamedTuple):
    """Some tokens of a slot: the fan or suffix class of what comes next, and the key to the tokens."""

    number: int
    tokens: Tokens


class Reference(Protocol):
    """What the machine must know of a grammar."""

    @property
    def table(self) -> ParseTable:
        """Lark's table."""
        ...

    @property
    def words(self) -> int:
        """Words of a packed mask."""
        ...

    def terminal(self, lexer_state: int, slot: int) -> int:
        """The terminal that is stepped before a slot is checked, or `NO_TERMINAL`."""
        ...

    def dependents(self, lexer_state: int, slot: int, top: int) -> Sequence[Member]:
        """What depends on the stack below `top`, by fan if the slot has a terminal, else by suffix class."""
        ...

    def token_words(self, tokens: Tokens) -> np.ndarray:
        """Tokens as bits, `uint32[words]`."""
        ...

    def after(self, fan: int, state: int) -> int:
        """The suffix class that goes on after a terminal was shifted into `state`, or ignored there."""
        ...

    def suffix_class(self, number: int) -> SuffixClass:
        """A suffix class."""
        ...

    def viable(self, top: int) -> bool:
        """Whether any stack with `top` just shifted can be completed."""
        ...

    def waiting(self, top: int, boundary: int) -> Condition:
        """What must hold below `top`, which was just shifted, for the stack to be completable."""
        ...

    def reveal(self, condition: Condition, state: int) -> Condition:
        """What must hold below `state` for a condition to hold of the stack with `state` on top."""
        ...


class HostMachine:
    """Checks context-dependent sequences of one grammar on the host.

    Attributes:
        reference: the grammar.
        calls: how often the device asked.
        shipped: how many sequences it asked about, all calls together.
    """

    def __init__(self, reference: Reference):
        self.reference = reference
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
        words = np.zeros((len(lexer), self.reference.words), np.uint32)
        for row, run, slot in np.argwhere(top):
            states = tuple(stack[row, run, : depth[row, run]].tolist())
            words[row] |= self._slot(int(lexer[row, run]), int(slot), states, int(top[row, run, slot]))
        return words

    def _slot(self, lexer_state: int, slot: int, states: tuple[int, ...], top: int) -> np.ndarray:
        terminal = self.reference.terminal(lexer_state, slot)
        after = states if terminal == NO_TERMINAL else step(self.reference.table, states, terminal)
        words = np.zeros(self.reference.words, np.uint32)
        for number, tokens in self.reference.dependents(lexer_state, slot, top):
            self.shipped += 1
            suffix_class = number if terminal == NO_TERMINAL else self.reference.after(number, top)
            if after is not None and self._takes(suffix_class, after):
                words |= self.reference.token_words(tokens)
        return words

    def _takes(self, suffix_class: int, states: tuple[int, ...]) -> bool:
        todo = [(suffix_class, states)]
        while todo:  # not by recursion: a class may be as deep as the longest token
            suffix_class, states = todo.pop()
            follow, open_ = self.reference.suffix_class(suffix_class)
            if any(self._completable(boundary, states) for boundary in open_):
                return True
            for terminal, fan in follow:
                after = states if terminal == IGNORED else step(self.reference.table, states, terminal)
                if after is not None and self.reference.viable(after[-1]):
                    todo.append((self.reference.after(fan, after[-1]), after))
        return False

    def _completable(self, boundary: int, states: tuple[int, ...]) -> bool:
        """Whether a stack of viable states can be completed, from the conditions that hold of any stack."""
        if boundary == ALWAYS:
            return True
        condition = self.reference.waiting(states[-1], boundary)
        for state in reversed(states[:-1]):
            if not condition:
                break
            condition = self.reference.reveal(condition, state)
        return condition is None


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


def register(reference: Reference) -> int:
    """Makes a reference machine reachable from callbacks, which can be handed numbers only; never freed."""
    return _register(HostMachine(reference))


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
