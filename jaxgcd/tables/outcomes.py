"""Outcomes of many suffix classes at once, as numbers.

`Acceptance` runs one class on one partially known stack. Most of what it finds is the same for many classes:
a stack's top states and the next terminal decide whether the terminal is rejected, shifted, or waits for a
reduction; the rest of the class only comes in after that. So outcomes are codes here, `part << 32 | rest`:
the part says what the parser waits for, the rest (a fan) what follows. Tables give the code of each (state,
terminal) and of each (part, state revealed), and only where a terminal is really shifted is a class run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.machine import Known, Machine, Pop
from jaxgcd.parsing.viability import ALIVE, DEAD, Item, Viability
from jaxgcd.tables.accept import Acceptance, Outcome, Pending, any_of
from jaxgcd.tables.spanner import NOTHING, SuffixClasses

REJECTED, ACCEPTED = 0, 1
REST_BITS = 32
_SET = 1  # the part of outcomes that wait for any of several things; their rest is a number
_UNKNOWN = np.iinfo(np.int64).min


class _Part(NamedTuple):
    """What a waiting outcome has besides its rest: a `Pending` without it, or an `Item` of `Viability`."""

    skip: int
    waits: tuple[int, int, bool] | Item


class Outcomes:
    """Codes of outcomes: 0 rejected, 1 accepted, others wait for the stack. Equal outcomes, equal codes."""

    def __init__(
        self,
        acceptance: Acceptance,
        machine: Machine,
        viability: Viability,
        classes: SuffixClasses,
        scanner_of: Sequence[int],
    ):
        self._acceptance = acceptance
        self._machine = machine
        self._viability = viability
        self._scanner_of = scanner_of
        self._n_states = machine.table.n_states
        self._classes = classes
        self._fans = _fan_table(classes, max(scanner_of) + 1)
        self._flat = _Flat(classes)
        self._parts: list[_Part] = [_Part(0, (0, 0, False)), _Part(0, (0, 0, False))]
        self._part_number: dict[_Part, int] = {}
        self._sets: list[frozenset] = []
        self._set_number: dict[frozenset, int] = {}
        self._unions: dict[tuple[int, ...], int] = {}
        self._stacks: list[tuple[Known, bool]] = []
        self._stack_number: dict[tuple[Known, bool], int] = {}
        self._shifted: dict[int, int] = {}
        self._revealed = np.full((64, self._n_states), _UNKNOWN)
        self._revealed_sets: dict[tuple[int, int], int] = {}
        self._first: dict[int, np.ndarray] = {}
        self._open: dict[tuple[int, int], int] = {}

    def entries(self, members: np.ndarray, tops: Sequence[int], fans: bool) -> np.ndarray:
        """What becomes of suffix classes, or of fans once a terminal was shifted, on each of some stack tops.

        Args:
            members: `int[members]`, classes, or fans.
            tops: parser states.
            fans: what the members are.

        Returns:
            Codes, `int64[tops, members]`.
        """
        found = np.zeros((len(tops), len(members)), np.int64)
        by_scanner: dict[int, list[int]] = {}
        for row, top in enumerate(tops):
            if self._viability.viable(top) != DEAD:
                by_scanner.setdefault(self._scanner_of[top], []).append(row)
        for scanner, rows in by_scanner.items():
            parts = self._flat.parts(self._fans[members, scanner] if fans else members)
            owner, terminal, rest = self._past_ignored(parts, scanner)
            if len(owner):
                codes = self._begin([tops[row] for row in rows], terminal, rest)
                found[rows] = self._united(codes, owner, len(members))
        return found

    def reveal(self, codes: np.ndarray, states: np.ndarray) -> np.ndarray:
        """What becomes of waiting outcomes with skip 0 when the next state down the stack is known.

        Args:
            codes: `int64[codes]`.
            states: `int[states]`, each a possible next state.

        Returns:
            Codes, `int64[states, codes]`.
        """
        part, rest = codes >> REST_BITS, codes & ((1 << REST_BITS) - 1)
        distinct, which = np.unique(part, return_inverse=True)
        steps = self._steps(distinct, states)[:, which]
        found = self._continued(steps, np.broadcast_to(rest, steps.shape))
        for column in np.flatnonzero(part == _SET).tolist():
            found[:, column] = [self._reveal_set(int(rest[column]), state) for state in states.tolist()]
        return found

    def skips(self, codes: np.ndarray) -> np.ndarray:
        """How many stack states each waiting outcome passes over before it needs one, `int64[codes]`."""
        distinct, which = np.unique(codes >> REST_BITS, return_inverse=True)
        skips = np.array([self._parts[part].skip for part in distinct.tolist()], np.int64)[which]
        for index in np.flatnonzero(codes >> REST_BITS == _SET).tolist():
            found = self._sets[int(codes[index]) & ((1 << REST_BITS) - 1)]
            skips[index] = min(waiting.skip for waiting in found)
        return skips

    def lowered(self, codes: np.ndarray, skip: int) -> np.ndarray:
        """Waiting outcomes once `skip` states were passed over."""
        if not skip:
            return codes
        part = codes >> REST_BITS
        distinct, which = np.unique(part, return_inverse=True)
        lower = [self._lower(int(number), skip) for number in distinct.tolist()]
        found = np.array(lower, np.int64)[which] << REST_BITS | codes & ((1 << REST_BITS) - 1)
        for index in np.flatnonzero(part == _SET).tolist():
            members = self._sets[int(codes[index]) & ((1 << REST_BITS) - 1)]
            found[index] = self._code(frozenset(w._replace(skip=w.skip - skip) for w in members))
        return found

    # Codes of single outcomes.

    def _lower(self, part: int, skip: int) -> int:
        return part if part == _SET else self._part(self._parts[part]._replace(skip=self._parts[part].skip - skip))

    def _part(self, part: _Part) -> int:
        number = self._part_number.setdefault(part, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
            if number >= len(self._revealed):
                self._revealed = np.vstack([self._revealed, np.full_like(self._revealed, _UNKNOWN)])
        return number

    def _code(self, outcome: Outcome) -> int:
        if outcome is None:
            return ACCEPTED
        if len(outcome) > 1:
            number = self._set_number.setdefault(outcome, len(self._sets))
            if number == len(self._sets):
                self._sets.append(outcome)
            return _SET << REST_BITS | number
        for waiting in outcome:
            if isinstance(waiting, Item):
                return self._part(_Part(waiting.skip, waiting._replace(skip=0))) << REST_BITS
            skip, nonterminal, terminal, rest, sure = waiting
            return self._part(_Part(skip, (nonterminal, terminal, sure))) << REST_BITS | rest
        return REJECTED

    def _outcome(self, code: int) -> Outcome:
        if code <= ACCEPTED:
            return None if code == ACCEPTED else frozenset()
        part, rest = code >> REST_BITS, code & ((1 << REST_BITS) - 1)
        if part == _SET:
            return self._sets[rest]
        skip, waits = self._parts[part]
        if isinstance(waits, Item):
            return frozenset({waits._replace(skip=skip)})
        nonterminal, terminal, sure = waits
        return frozenset({Pending(skip, nonterminal, terminal, rest, sure)})

    # Steps of the parser: the code of what it waits for, without a rest; or, below 0, the number of the stack
    # that a terminal was shifted on.

    def _step(self, fed: Known | Pop | None, terminal: int, sure: bool) -> int:
        if fed is None:
            return REJECTED
        if isinstance(fed, Pop):
            return self._part(_Part(fed.skip, (fed.nonterminal, terminal, sure))) << REST_BITS
        viable = self._viability.viable(fed[-1])
        if viable == DEAD:
            return REJECTED
        stack = (fed, sure and viable == ALIVE)
        number = self._stack_number.setdefault(stack, len(self._stacks))
        if number == len(self._stacks):
            self._stacks.append(stack)
        return -1 - number

    def _continued(self, steps: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The outcomes of some steps that have a rest each."""
        found = np.where(steps > ACCEPTED, steps | rest, steps)
        shifted = steps < 0
        if shifted.any():
            keys = (-1 - steps[shifted]) << REST_BITS | rest[shifted]
            distinct, which = np.unique(keys, return_inverse=True)
            found[shifted] = np.array([self._shift(key) for key in distinct.tolist()], np.int64)[which]
        return found

    def _shift(self, key: int) -> int:
        if key not in self._shifted:
            known, sure = self._stacks[key >> REST_BITS]
            fan = key & ((1 << REST_BITS) - 1)
            suffix_class = int(self._fans[fan, self._scanner_of[known[-1]]])
            self._shifted[key] = self._code(self._acceptance.outcome(suffix_class, known, sure))
        return self._shifted[key]

    def _begin(self, tops: Sequence[int], terminal: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The outcomes of parts of classes on each top: a terminal and a rest, or `_OPEN` and a boundary."""
        steps = np.stack([self._first_steps(top)[terminal] for top in tops])
        found = self._continued(steps, np.broadcast_to(rest, steps.shape))
        for column in np.flatnonzero(terminal == _OPEN).tolist():
            boundary = int(rest[column])
            found[:, column] = [self._opened(top, boundary) for top in tops]
        return found

    def _first_steps(self, top: int) -> np.ndarray:
        if top not in self._first:
            sure, row = self._acceptance.trusts(top), np.zeros(len(self._machine.table.terminals), np.int64)
            for terminal in self._machine.table.action[top]:
                row[terminal] = self._step(self._machine.feed((top,), terminal), terminal, sure)
            self._first[top] = row
        return self._first[top]

    def _opened(self, top: int, boundary: int) -> int:
        key = (top, boundary)
        if key not in self._open:
            sure = self._acceptance.trusts(top)
            self._open[key] = self._code(self._acceptance.completable(boundary, (top,), sure))
        return self._open[key]

    def _steps(self, parts: np.ndarray, states: np.ndarray) -> np.ndarray:
        """`int64[states, parts]`."""
        steps = self._revealed[parts][:, states]
        unknown = np.argwhere(steps == _UNKNOWN).tolist()
        for i, j in unknown:
            part, state = int(parts[i]), int(states[j])
            value = self._reveal_part(self._parts[part], state) if part != _SET else REJECTED
            steps[i, j] = self._revealed[part, state] = value
        return steps.T

    def _reveal_part(self, part: _Part, state: int) -> int:
        if part.skip:
            return self._part(part._replace(skip=part.skip - 1)) << REST_BITS
        if isinstance(part.waits, Item):
            return self._code(self._viability.reveal(part.waits, state))
        nonterminal, terminal, sure = part.waits
        target = self._machine.table.goto[state].get(nonterminal)
        fed = None if target is None else self._machine.feed((state, target), terminal)
        return self._step(fed, terminal, sure)

    def _reveal_set(self, number: int, state: int) -> int:
        key = (number, state)
        if key not in self._revealed_sets:
            reveal: Callable = self._acceptance.reveal
            self._revealed_sets[key] = self._code(any_of(reveal(w, state) for w in self._sets[number]))
        return self._revealed_sets[key]

    # Classes in parts.

    def _past_ignored(self, parts: tuple, scanner: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parts with those behind an ignored lexeme in its place, sorted by owner."""
        owner, terminal, rest = parts
        ignored = terminal == IGNORED
        if not ignored.any():
            return parts
        inner, *behind = self._flat.parts(self._fans[rest[ignored], scanner])
        owner = np.concatenate([owner[~ignored], owner[ignored][inner]])
        order = np.argsort(owner, kind="stable")
        joined = (np.concatenate([a[~ignored], b])[order] for a, b in zip((terminal, rest), behind, strict=True))
        return owner[order], *joined

    def _united(self, codes: np.ndarray, owner: np.ndarray, members: int) -> np.ndarray:
        """One code for each member from those of its parts, which are in order."""
        found = np.zeros((len(codes), members), np.int64)
        owners, first = np.unique(owner, return_index=True)
        if len(owners) == len(owner):
            found[:, owner] = codes
            return found
        top = np.maximum.reduceat(codes, first, axis=1)
        count = np.add.reduceat((codes != REJECTED).astype(np.int64), first, axis=1)
        accepted = np.logical_or.reduceat(codes == ACCEPTED, first, axis=1)
        united = np.where(accepted, ACCEPTED, top)
        ends = np.append(first[1:], len(owner))
        for row, i in np.argwhere((count > 1) & ~accepted).tolist():
            several = codes[row, first[i] : ends[i]]
            united[row, i] = self._union(tuple(np.unique(several[several > ACCEPTED]).tolist()))
        found[:, owners] = united
        return found

    def _union(self, codes: tuple[int, ...]) -> int:
        if len(codes) == 1:
            return codes[0]
        if codes not in self._unions:
            self._unions[codes] = self._code(any_of(map(self._outcome, codes)))
        return self._unions[codes]


_OPEN = 0  # in place of a terminal: the text may end here, at a boundary


class _Flat:
    """Suffix classes as lists of parts: `(terminal, fan)`, or `(_OPEN, boundary)`."""

    def __init__(self, classes: SuffixClasses):
        parts = [
            (*follow, *((_OPEN, boundary) for boundary in sorted(open_))) for follow, open_ in classes.members
        ]
        self._length = np.array([len(found) for found in parts], np.int64)
        self._start = np.cumsum(self._length) - self._length
        pairs = np.array([pair for found in parts for pair in found], np.int64).reshape(-1, 2)
        self._terminal, self._rest = np.ascontiguousarray(pairs.T)

    def parts(self, classes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each part of some classes: the class's index, the terminal, the rest."""
        length = self._length[classes]
        owner = np.repeat(np.arange(len(classes)), length)
        index = np.arange(len(owner)) - np.repeat(np.cumsum(length) - length, length)
        index += self._start[classes][owner]
        return owner, self._terminal[index], self._rest[index]


def _fan_table(classes: SuffixClasses, scanners: int) -> np.ndarray:
    """The class of each fan for each scanner, `int32[fans, scanners]`."""
    table = np.full((len(classes.fans), scanners), NOTHING, np.int32)
    length = [len(fan) for fan in classes.fans]
    pairs = np.array([pair for fan in classes.fans for pair in fan], np.int64).reshape(-1, 2)
    table[np.repeat(np.arange(len(length)), length), pairs[:, 0]] = pairs[:, 1]
    return table
