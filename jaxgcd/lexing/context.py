"""What the lookbehinds of a pattern have seen, as part of a state while determinising (see `determinise`).

A lookbehind of width `w` runs its own automaton from each of the last `w` characters; where it is
evaluated, the run that began `w` characters ago answers. A run that began left of the lexeme is in any
of several states, or does not exist because the text begins later; if something depends on it, contexts
have to be followed from the start of the text (see `left`), where every run is known.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from jaxgcd.lexing.formula import FALSE, Formulas
from jaxgcd.lexing.nfa import Nfa

LEADS = (0xC2, 0xE0, 0xF0)
"""The first bytes of characters with two, three and four bytes."""

KINDS = (0x80, 0xC0, *LEADS, 0xF5)
"""Where kinds of bytes begin: those that go on with a character, no bytes at all, first bytes, no bytes."""


class Run(NamedTuple):
    """A run of a lookbehind's automaton: in the one state of `states`, or, if not `known`, in any or none."""

    automaton_id: int
    states: tuple[int, ...]
    known: bool


_NO_RUN = 0
"""The number of a run that is over, or never was."""


class Context(NamedTuple):
    """What the lookbehinds have seen.

    Attributes:
        pending: how many bytes of the current character are still to come.
        runs: for each lookbehind the numbers of its runs, youngest first; empty where the program at hand
            does not use the lookbehind.
    """

    pending: int
    runs: tuple[tuple[int, ...], ...]


class Contexts:
    """Numbers the contexts of one pattern. Number 0 is that of a program without lookbehinds.

    Once `asked_left` is true, what was made from contexts of which nothing is known on the left is void.

    Args:
        nfa: the pattern.
        formulas: where the lookbehinds' automata are registered.
        firsts: the first byte of each byte class.
        automaton: gives the automaton of (program, context it begins in, ordered).
    """

    def __init__(
        self,
        nfa: Nfa,
        formulas: Formulas,
        firsts: Sequence[int],
        automaton: Callable[[int, int | None, bool], int],
    ) -> None:
        self._nfa = nfa
        self._formulas = formulas
        self._firsts = firsts
        self._automaton = automaton
        self.asked_left = False
        self._contexts = [Context(0, ())]
        self._numbers = {self._contexts[0]: 0}
        self._runs = [Run(0, (0,), True)]
        self._run_number = {self._runs[0]: _NO_RUN}
        self._run_after: dict[int, dict[int, int]] = {}  # by byte; each of many contexts has the same runs
        self._after: dict[tuple[int, int], int] = {}

    def narrow(self, program: int, context: int | None) -> int:
        """The part of a context that `program` can ask about; nothing is known if it is `None`."""
        used = self._nfa.lookbehinds_of[program]
        if not used:
            return 0
        runs = []
        for index in range(len(self._nfa.lookbehinds)):
            if index not in used:
                runs.append(())
            else:
                runs.append(self._unknown(index) if context is None else self._contexts[context].runs[index])
        return self._number(Context(0, tuple(runs)))

    def before_text(self, program: int) -> int:
        """The context of `program` at the start of the text, where no lookbehind can have begun."""
        used = self._nfa.lookbehinds_of[program]
        widths = (
            lookbehind.width if index in used else 0 for index, lookbehind in enumerate(self._nfa.lookbehinds)
        )
        return self._number(Context(0, tuple((_NO_RUN,) * width for width in widths)))

    def inside_character(self, context: int) -> bool:
        """Whether only a part of a character has been read."""
        return self._contexts[context].pending > 0

    def width(self, context: int) -> int:
        """How many runs a context consists of."""
        return sum(map(len, self._contexts[context].runs))

    def holds(self, behind: int, context: int) -> int:
        """The formula of lookbehind number `behind` at this position."""
        number = self._contexts[context].runs[behind][-1]
        if number == _NO_RUN:
            return FALSE
        run = self._runs[number]
        accept = [self._formulas.automata[run.automaton_id].accept[state] for state in run.states]
        if run.known or not any(accept):
            return accept[0]
        self.asked_left = True
        return FALSE

    def after(self, context: int, symbol: int) -> int:
        """The context after reading a byte of class number `symbol`, which stays where none can follow."""
        if context == 0 or not self._can_follow(context, self._firsts[symbol]):
            return context
        key = (context, symbol)
        if key not in self._after:
            self._after[key] = self._number(self._step(context, self._firsts[symbol]))
        return self._after[key]

    def _can_follow(self, context: int, byte: int) -> bool:
        """Whether a byte can be the next one of well-formed UTF-8."""
        if self.inside_character(context):
            return 0x80 <= byte < 0xC0
        return byte < 0x80 or LEADS[0] <= byte <= 0xF4

    def _number(self, context: Context) -> int:
        number = self._numbers.setdefault(context, len(self._contexts))
        if number == len(self._contexts):
            self._contexts.append(context)
        return number

    def _step(self, context: int, byte: int) -> Context:
        pending, runs = self._contexts[context]
        if pending == 0:
            runs = tuple(self._begin(index, old, context) for index, old in enumerate(runs))
            pending = 1 + _continuations(byte)
        after = self._run_after.setdefault(byte, {_NO_RUN: _NO_RUN})
        for run in set().union(*runs) - after.keys():
            after[run] = self._run(self._runs[run], byte)
        return Context(pending - 1, tuple(tuple(map(after.__getitem__, old)) for old in runs))

    def _begin(self, behind: int, runs: tuple[int, ...], context: int) -> tuple[int, ...]:
        """A new character begins: so does a run, and the oldest one is over."""
        if not runs:
            return ()
        program = self._nfa.lookbehinds[behind].program
        return (self._number_run(self._automaton(program, context, False), {1}, True), *runs[:-1])

    def _unknown(self, behind: int) -> tuple[int, ...]:
        """The runs of a lookbehind at the start of the lexeme."""
        lookbehind = self._nfa.lookbehinds[behind]
        number = self._automaton(lookbehind.program, None, False)
        states, runs = {1}, []
        for _ in range(lookbehind.width):
            states = self._read_any(number, states)
            runs.append(self._number_run(number, states, False))
        return tuple(runs)

    def _read_any(self, automaton_id: int, states: set[int]) -> set[int]:
        """The states in which some character takes an automaton from one of `states`."""
        step = self._formulas.automata[automaton_id].step
        layers = [{step(state, lead) for state in states for lead in self._leads(n)} for n in range(4)]
        for more in (3, 2, 1):
            layers[more - 1] |= {
                step(s, byte) for s in layers[more] for byte in self._firsts if 0x80 <= byte < 0xC2
            }
        return layers[0] - {0}

    def _leads(self, more: int) -> list[int]:
        return [byte for byte in self._firsts if not 0x80 <= byte < 0xC2 and _continuations(byte) == more]

    def _run(self, run: Run, byte: int) -> int:
        step = self._formulas.automata[run.automaton_id].step
        # Where no state is left, the lexeme itself contradicts whatever stood on its left.
        return self._number_run(
            run.automaton_id, {step(state, byte) for state in run.states} - {0}, run.known
        )

    def _number_run(self, automaton_id: int, states: set[int], known: bool) -> int:
        """The number of the run that may be in any of `states`; it is over if there are none."""
        if not states:
            return _NO_RUN
        run = Run(automaton_id, tuple(sorted(states)), known)
        number = self._run_number.setdefault(run, len(self._runs))
        if number == len(self._runs):
            self._runs.append(run)
        return number


def _continuations(lead: int) -> int:
    """How many bytes follow the first byte of a character."""
    return sum(lead >= first for first in LEADS)
