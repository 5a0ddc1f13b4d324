"""Outcomes of token sequences on stacks known in part, as numbers.

An outcome is acceptance, rejection, or it waits for the stack: for an **atom**, which is a **part** that says
what of the stack the parser needs next, and a rest that says what it reads then; or for any of several atoms.
Equal outcomes are equal numbers. The low bits count the stack states that an outcome passes over before it
needs one, so that passing over a state is a subtraction.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jaxgcd._numbering import numbered
from jaxgcd.errors import GrammarTooLarge
from jaxgcd.parsing.table import ParseTable
from jaxgcd.tables.growing import Growing
from jaxgcd.tables.views import Views

SKIP_BITS = 16
SKIP = (1 << SKIP_BITS) - 1
"""The bits of an outcome that say how many stack states it passes over first."""

REJECTED, ACCEPTED = 0, 1 << SKIP_BITS
"""Outcomes; larger numbers wait."""

UNKNOWN = -1
SEVERAL = 0
"""In place of an atom's part: any of several atoms will do; the rest is the number of the set."""

_BITS = 32


class Pending(NamedTuple):
    """Reveal a state, go to `nonterminal`, shift `terminal`.

    `sure`: every stack passed through so far can be completed, given that the first one could.
    """

    nonterminal: int
    terminal: int
    sure: bool


class Held(NamedTuple):
    """The stack must meet a condition of `Viability`."""

    condition: int


Part = Pending | Held


class Outcomes:
    """Interned outcomes, and what is known to become of each when the next state down the stack is known.

    Attributes:
        views: the ways to look at a stack state.
        parts: the parts by number.
    """

    def __init__(self, table: ParseTable):
        self.views = Views(table)
        self.parts: list[Part] = [Held(0)]  # in place of `SEVERAL`
        self._longest = max((rule.size for rule in table.rules), default=0)
        self._part_number: dict[Part, int] = {}
        self._number: dict[int, int] = {}
        self._sets: list[tuple[int, ...]] = []
        self._set_number: dict[tuple[int, ...], int] = {}
        self._part, self._rest, self._view = Growing(np.int64), Growing(np.int64), Growing(np.int64)
        self._first, self._results = Growing(np.int64), Growing(np.int64)
        nothing = np.zeros(2, np.int64)
        self._add(nothing, nothing, nothing)
        self._results.values[:] = REJECTED, ACCEPTED
        if self._longest > SKIP:
            raise GrammarTooLarge(
                f"A rule has {self._longest} symbols, more than {SKIP}; split it into several rules."
            )

    @property
    def results(self) -> np.ndarray:
        """What becomes of outcomes, at their `place`, or `UNKNOWN`."""
        return self._results.values

    def place(self, outcomes: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Where in `results` stands what becomes of outcomes that skip nothing, with `states` next."""
        numbers = outcomes >> SKIP_BITS
        return self._first.values[numbers] + self.views.classes[self._view.values[numbers], states]

    def parts_of(self, outcomes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The parts and the rests of waiting outcomes."""
        numbers = outcomes >> SKIP_BITS
        return self._part.values[numbers], self._rest.values[numbers]

    def views_of(self, outcomes: np.ndarray) -> np.ndarray:
        """How waiting outcomes that skip nothing look at the next state."""
        return self._view.values[outcomes >> SKIP_BITS]

    def members(self, outcome: int) -> tuple[int, ...]:
        """The atoms of an outcome that waits."""
        number, skip = outcome >> SKIP_BITS, outcome & SKIP
        if self._part.values[number] != SEVERAL:
            return (outcome,)
        return tuple(atom + skip for atom in self._sets[int(self._rest.values[number])])

    def part_number(self, part: Part) -> int:
        """The number of a part."""
        number = self._part_number.setdefault(part, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number

    def atoms(self, parts: np.ndarray, rests: np.ndarray, skips: np.ndarray) -> np.ndarray:
        """The outcomes that wait for one part each."""
        keys, _, which = numbered(parts << _BITS | rests)
        found = np.array([self._number.get(key, UNKNOWN) for key in keys.tolist()], np.int64)
        new = np.flatnonzero(found == UNKNOWN)
        if len(new):
            part = keys[new] >> _BITS
            kinds, kind = np.unique(part, return_inverse=True)
            views = np.array([self._view_of(self.parts[number]) for number in kinds.tolist()])
            found[new] = self._add(part, keys[new] & ((1 << _BITS) - 1), views[kind])
            self._number.update(zip(keys[new].tolist(), found[new].tolist(), strict=True))
        return found[which] << SKIP_BITS | skips

    def any_of(self, outcomes: Iterable[int]) -> int:
        """The outcome "any of several", each of which waits."""
        atoms = {atom for outcome in outcomes for atom in self.members(outcome)}
        if len(atoms) == 1:
            return atoms.pop()
        skip = min(atom & SKIP for atom in atoms)
        key = tuple(sorted(atom - skip for atom in atoms))
        if key not in self._set_number:
            looking = np.array([atom for atom in key if not atom & SKIP])
            columns = SEVERAL, len(self._sets), self.views.joined(self.views_of(looking).tolist())
            self._set_number[key] = int(self._add(*(np.array([value]) for value in columns))[0])
            self._sets.append(key)
        return self._set_number[key] << SKIP_BITS | skip

    def _view_of(self, part: Part) -> int:
        return self.views.of_state() if isinstance(part, Held) else self.views.of_goto(part.nonterminal)

    def _add(self, part: np.ndarray, rest: np.ndarray, view: np.ndarray) -> np.ndarray:
        numbers = np.arange(len(self._part), len(self._part) + len(part))
        sizes = self.views.sizes[view]
        self._part.extend(part)
        self._rest.extend(rest)
        self._view.extend(view)
        self._first.extend(len(self._results) + np.cumsum(sizes) - sizes)
        self._results.extend(np.full(int(sizes.sum()), UNKNOWN))
        return numbers
