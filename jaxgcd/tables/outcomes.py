"""Outcomes of token sequences on stacks known in part, by number.

An outcome is acceptance, rejection, or it waits for the stack: for an **atom**, which is a **part** that says
what of the stack the parser needs next, and a rest that says what it reads then; or for any of several atoms.
Equal outcomes have equal numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jaxgcd._hashing import mixed
from jaxgcd.parsing.table import ParseTable
from jaxgcd.parsing.viability import Item
from jaxgcd.tables.growing import Growing
from jaxgcd.tables.views import NO_VIEW, Views

REJECTED, ACCEPTED = 0, 1
"""Outcomes; larger numbers wait."""

UNKNOWN = -1
SEVERAL = 0
"""In place of an atom's part: any of several atoms will do; the rest is the number of the set."""

NEVER = 1 << 20
"""What outcomes that do not wait `skip`."""

_BITS = 32
_STREAM = 2 << 32  # another one than that of the tokens' random integers


class Pending(NamedTuple):
    """Skip states, reveal one, go to `nonterminal`, shift `terminal`.

    `sure`: every stack passed through so far can be completed, given that the first one could.
    """

    skip: int
    nonterminal: int
    terminal: int
    sure: bool


Part = Pending | Item


class Outcomes:
    """Interned outcomes, and what is known to become of each when the next state down the stack is known.

    Attributes:
        views: the ways to look at a stack state.
        parts: the parts by number.
    """

    def __init__(self, table: ParseTable):
        self.views = Views(table)
        self.parts: list[Part] = [Pending(NEVER, 0, 0, False)]  # in place of `SEVERAL`
        self._part_number: dict[Part, int] = {}
        self._number: dict[int, int] = {}
        self._sets: list[tuple[int, ...]] = []
        self._set_number: dict[tuple[int, ...], int] = {}
        self._part, self._rest = Growing(np.int64), Growing(np.int64)
        self._skip, self._view = Growing(np.int64), Growing(np.int64)
        self._factor, self._lowered = Growing(np.uint64), Growing(np.int64)
        self._first, self._results = Growing(np.int64), Growing(np.int64)
        none = np.zeros(2, np.int64)
        self._add(none, none, none + NEVER, none)

    @property
    def part(self) -> np.ndarray:
        """The part of each outcome."""
        return self._part.values

    @property
    def rest(self) -> np.ndarray:
        """The rest of each outcome."""
        return self._rest.values

    @property
    def skip(self) -> np.ndarray:
        """How many stack states each outcome passes over before it needs one."""
        return self._skip.values

    @property
    def view(self) -> np.ndarray:
        """How each outcome looks at the next state."""
        return self._view.values

    @property
    def factor(self) -> np.ndarray:
        """A random integer for each outcome."""
        return self._factor.values

    @property
    def results(self) -> np.ndarray:
        """What becomes of outcomes, at their `place`, or `UNKNOWN`."""
        return self._results.values

    def place(self, outcomes: np.ndarray, states: np.ndarray) -> np.ndarray:
        """Where in `results` stands what becomes of outcomes when `states` are next on the stack."""
        return self._first.values[outcomes] + self.views.classes[self.view[outcomes], states]

    def members(self, outcome: int) -> tuple[int, ...]:
        """The atoms of an outcome that waits."""
        return self._sets[int(self.rest[outcome])] if self.part[outcome] == SEVERAL else (outcome,)

    def part_number(self, part: Part) -> int:
        """The number of a part."""
        number = self._part_number.setdefault(part, len(self.parts))
        if number == len(self.parts):
            self.parts.append(part)
        return number

    def atoms(self, parts: np.ndarray, rests: np.ndarray) -> np.ndarray:
        """The outcomes that wait for one part each."""
        keys, which = np.unique(parts << _BITS | rests, return_inverse=True)
        found = np.array([self._number.get(key, UNKNOWN) for key in keys.tolist()], np.int64)
        new = np.flatnonzero(found == UNKNOWN)
        if len(new):
            part, rest = keys[new] >> _BITS, keys[new] & ((1 << _BITS) - 1)
            kinds, kind = np.unique(part, return_inverse=True)
            skips, views = np.array([self._needs(self.parts[number]) for number in kinds.tolist()]).T
            found[new] = self._add(part, rest, skips[kind], views[kind])
            self._number.update(zip(keys[new].tolist(), found[new].tolist(), strict=True))
        return found[which]

    def any_of(self, outcomes: Iterable[int]) -> int:
        """The outcome "any of several", each of which waits."""
        atoms = tuple(sorted({atom for outcome in outcomes for atom in self.members(outcome)}))
        if len(atoms) == 1:
            return atoms[0]
        if atoms not in self._set_number:
            some = np.array(atoms)
            view = self.views.joined(self.view[some].tolist())
            columns = (SEVERAL, len(self._sets), self.skip[some].min(), view)
            self._set_number[atoms] = int(self._add(*(np.array([value]) for value in columns))[0])
            self._sets.append(atoms)
        return self._set_number[atoms]

    def lowered(self, outcomes: np.ndarray, by: np.ndarray) -> np.ndarray:
        """Waiting outcomes once so many states, at most what they skip, were passed over."""
        found = outcomes.copy()
        todo = np.flatnonzero(by > 0)
        while len(todo):
            self._lower(np.unique(found[todo][self._lowered.values[found[todo]] == UNKNOWN]))
            found[todo] = self._lowered.values[found[todo]]
            by = by - 1
            todo = todo[by[todo] > 0]
        return found

    def _lower(self, outcomes: np.ndarray) -> None:
        """Finds what outcomes are once one state was passed over."""
        if not len(outcomes):
            return
        several = self.part[outcomes] == SEVERAL
        self._lowered.values[outcomes[~several]] = self._lower_atoms(outcomes[~several])
        if several.any():
            sets = [self.members(outcome) for outcome in outcomes[several].tolist()]
            atoms = np.concatenate([np.array(atoms) for atoms in sets])
            lowered = self.lowered(atoms, np.ones(len(atoms), np.int64))
            pieces = np.split(lowered, np.cumsum([len(atoms) for atoms in sets])[:-1])
            self._lowered.values[outcomes[several]] = [self.any_of(piece.tolist()) for piece in pieces]

    def _lower_atoms(self, atoms: np.ndarray) -> np.ndarray:
        kinds, kind = np.unique(self.part[atoms], return_inverse=True)
        parts = [self.parts[number] for number in kinds.tolist()]
        lower = [self.part_number(part._replace(skip=part.skip - 1)) for part in parts]
        return self.atoms(np.array(lower, np.int64)[kind], self.rest[atoms])

    def _needs(self, part: Part) -> tuple[int, int]:
        """What a part skips, and how it looks at the next state."""
        if part.skip:
            return part.skip, NO_VIEW
        return 0, self.views.of_state() if isinstance(part, Item) else self.views.of_goto(part.nonterminal)

    def _add(self, part: np.ndarray, rest: np.ndarray, skip: np.ndarray, view: np.ndarray) -> np.ndarray:
        numbers = np.arange(len(self._part), len(self._part) + len(part))
        for column, values in zip(
            (self._part, self._rest, self._skip, self._view, self._factor, self._lowered),
            (part, rest, skip, view, mixed(numbers + _STREAM), np.full(len(part), UNKNOWN)),
            strict=True,
        ):
            column.extend(values)
        # What looks at nothing stays as it is.
        sizes = self.views.sizes[view]
        self._first.extend(len(self._results) + np.cumsum(sizes) - sizes)
        self._results.extend(np.repeat(np.where(view == NO_VIEW, numbers, UNKNOWN), sizes))
        return numbers
