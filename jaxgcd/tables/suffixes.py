"""Suffix classes: what the rest of a token may turn into, as far as a parser can see.

A class is a small tree of terminals, interned, so that equal ones are the same number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from jaxgcd._recursion import Routine, run
from jaxgcd.lexing.scanner import DEAD, IGNORED

OPEN = 0
"""In place of a terminal in a class's parts: the text may end here."""

NOTHING = 0
"""The class of what no text can be made of."""

Fan = tuple[tuple[int, ...], int | tuple[int, ...]]
"""What comes after a terminal: some scanners, and for each the suffix class if it reads on, or the one class
of all.
"""


class SuffixClass(NamedTuple):
    """What a piece of text may turn into, as far as a parser can see.

    `follow`: pairs `(terminal, fan of what comes after it)`, one for each first terminal, and for `IGNORED`.
    `open`: the boundary classes at which the text may end having emitted nothing more.
    """

    follow: tuple[tuple[int, int], ...]
    open: frozenset[int]


class SuffixClasses:
    """Interned suffix classes and fans, closed under union and under "terminal, then class"."""

    def __init__(self, may_follow: Mapping[int, Mapping[int, frozenset[int]]]):
        """`may_follow[t][s]`: the terminals that a parser state with scanner `s` takes right after `t`, or
        after an ignored lexeme for `t = IGNORED`.
        """
        self._may_follow = may_follow
        self.members: list[SuffixClass] = []
        self.fans: list[Fan] = []
        self._number: dict[SuffixClass, int] = {}
        self._fan_number: dict[Fan, int] = {}
        self._unions: dict[tuple[int, int], int] = {}
        self._after: dict[tuple[tuple[int, frozenset[int]], ...], dict[int, int]] = {}
        self._then: dict[int, dict[int, int]] = {}
        self._bare: dict[int, int] = {}  # classes without what comes after an ignored lexeme
        self.fan({})
        self.intern({}, frozenset())

    def __len__(self) -> int:
        return len(self.members)

    def scanners(self, terminal: int) -> tuple[int, ...]:
        """The scanners that may read on after a terminal."""
        return tuple(sorted(self._may_follow[terminal]))

    def intern(self, follow: Mapping[int, int], open_: frozenset[int]) -> int:
        """The number of a class; terminals followed by nothing are left out."""
        found = SuffixClass(tuple(sorted((t, fan) for t, fan in follow.items() if fan != NOTHING)), open_)
        number = self._number.setdefault(found, len(self.members))
        if number == len(self.members):
            self.members.append(found)
        return number

    def fan(self, classes: Mapping[int, int]) -> int:
        """The number of a fan, from the class for each scanner; scanners with nothing are left out."""
        scanners = tuple(sorted(s for s, c in classes.items() if c != NOTHING))
        found = tuple(classes[s] for s in scanners)
        return self._interned_fan((scanners, found[0] if len(set(found)) == 1 else found))

    def _interned_fan(self, found: Fan) -> int:
        number = self._fan_number.setdefault(found, len(self.fans))
        if number == len(self.fans):
            self.fans.append(found)
        return number

    def fan_classes(self, fan: int) -> dict[int, int]:
        """The class of a fan for each scanner that has one."""
        scanners, classes = self.fans[fan]
        return (
            dict.fromkeys(scanners, classes)
            if isinstance(classes, int)
            else dict(zip(scanners, classes, strict=True))
        )

    def of_fan(self, fan: int, scanner: int) -> int:
        """The class that a fan has for one scanner."""
        scanners, classes = self.fans[fan]
        if scanner not in scanners:
            return NOTHING
        return classes if isinstance(classes, int) else classes[scanners.index(scanner)]

    def fan_table(self, scanners: int) -> np.ndarray:
        """The class of each fan for each scanner, `int32[fans, scanners]`."""
        table = np.full((len(self.fans), scanners), NOTHING, np.int32)
        for row, (some, classes) in zip(table, self.fans, strict=True):
            row[list(some)] = classes
        return table

    def parts(self) -> Lists:
        """The parts of all classes so far: `(terminal, fan)`, or `(OPEN, boundary)`."""
        return Lists([(*follow, *((OPEN, b) for b in sorted(open_))) for follow, open_ in self.members])

    def union(self, first: int, second: int) -> int:
        """The class of either."""
        known = self._known_union(first, second)
        return run(self._united(first, second)) if known is None else known

    def _known_union(self, first: int, second: int) -> int | None:
        if NOTHING in (first, second) or first == second:
            return first or second
        return self._unions.get((min(first, second), max(first, second)))

    def _united(self, first: int, second: int) -> Routine[int]:
        one, other = self.members[first], self.members[second]
        follow = dict(one.follow)
        for terminal, fan in other.follow:
            follow[terminal] = yield self._fan_union(follow.get(terminal, NOTHING), fan)
        found = self.intern(follow, one.open | other.open)
        self._unions[min(first, second), max(first, second)] = found
        return found

    def _fan_union(self, first: int, second: int) -> Routine[int]:
        if NOTHING in (first, second):
            return first or second
        classes = self.fan_classes(first)
        for scanner, suffix_class in self.fan_classes(second).items():
            old = classes.get(scanner, NOTHING)
            known = self._known_union(old, suffix_class)
            classes[scanner] = (yield self._united(old, suffix_class)) if known is None else known
        return self.fan(classes)

    def after(self, terminal: int, scanners: frozenset[int], rests: Iterable[int]) -> list[int]:
        """The classes "`terminal`, then `rest` by these scanners", without what can never follow there."""
        takes = self._may_follow[terminal]
        readers = tuple((scanner, takes.get(scanner, frozenset())) for scanner in sorted(scanners))
        fans = self._after.setdefault(readers, {NOTHING: NOTHING})
        classes = self._then.setdefault(terminal, {NOTHING: NOTHING})
        found = []
        for rest in rests:
            fan = fans.get(rest)
            if fan is None:
                fan = fans[rest] = self._read_by(readers, rest)
            number = classes.get(fan)
            if number is None:
                number = classes[fan] = self.intern({terminal: fan}, frozenset())
            found.append(number)
        return found

    def _read_by(self, readers: tuple[tuple[int, frozenset[int]], ...], rest: int) -> int:
        """The fan of `rest`, by scanners with the terminals that a parser state with each may take there."""
        follow, open_ = self.members[rest]
        if len(follow) == 1 and not open_ and follow[0][0] != IGNORED:  # kept as it is or not at all
            takers = tuple(scanner for scanner, takes in readers if follow[0][0] in takes)
            return self._interned_fan((takers, rest)) if takers else NOTHING
        return self.fan({scanner: self._kept(takes, self.under(rest, scanner)) for scanner, takes in readers})

    def under(self, suffix_class: int, scanner: int) -> int:
        """A class with what comes after an ignored lexeme in its place, which depends on the scanner."""
        follow, open_ = self.members[suffix_class]
        if not follow or follow[0][0] != IGNORED:
            return suffix_class
        if suffix_class not in self._bare:
            self._bare[suffix_class] = self.intern(dict(follow[1:]), open_)
        return self.union(self._bare[suffix_class], self.of_fan(follow[0][1], scanner))

    def _kept(self, takes: frozenset[int], suffix_class: int) -> int:
        """A class without the terminals that are not taken."""
        follow, open_ = self.members[suffix_class]
        kept = {terminal: fan for terminal, fan in follow if terminal in takes}
        return suffix_class if len(kept) == len(follow) else self.intern(kept, open_)

    def ending(self, exits: Iterable[tuple[int, int]], fans: Sequence[int]) -> int:
        """The class of a text that ends inside a lexeme with some exits; `fans`: what each gate leads to."""
        follow: dict[int, int] = {}
        for terminal, gate in sorted(exits):
            follow[terminal] = run(self._fan_union(follow.get(terminal, NOTHING), fans[gate]))
        return self.intern(follow, frozenset())

    def ended(self, gate: Sequence[int], ends: Mapping[int, int | None]) -> int:
        """The fan of a text that ends with a lexeme whose gate leads to some lexer states.

        `ends`: the boundary class that stands for each of these, or None if no text can go on.
        """
        fan: dict[int, int] = {}
        for scanner, boundary in enumerate(gate):
            end = None if boundary == DEAD else ends[boundary]
            if end is not None:
                fan[scanner] = self.intern({}, frozenset({end}))
        return self.fan(fan)


class Lists:
    """Lists of pairs of integers, one after another in arrays.

    Attributes:
        length: how many pairs each list has.
    """

    def __init__(self, lists: Sequence[Sequence[tuple[int, int]]]):
        self.length = np.array([len(found) for found in lists], np.int64)
        self._start = np.cumsum(self.length) - self.length
        pairs = np.array([pair for found in lists for pair in found], np.int64).reshape(-1, 2)
        self._first, self._second = np.ascontiguousarray(pairs.T)

    def of(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """All pairs of some lists: the index in `numbers` of each one's list, and its two integers."""
        length = self.length[numbers]
        owner = np.repeat(np.arange(len(numbers)), length)
        index = np.arange(len(owner)) + np.repeat(self._start[numbers] - np.cumsum(length) + length, length)
        return owner, self._first[index], self._second[index]
