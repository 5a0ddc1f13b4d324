"""Always accepted, never accepted, or waiting for the stack: suffix classes on stacks known in part.

For a parser state on top of an unknown stack, a suffix class is run on the LALR machine. The **outcome** is
the paper's: accepted whatever lies below (its always-accepted table `A`), rejected, or context-dependent (its
table `D`). What a context-dependent class waits for is a pending reduction, "skip `k` states, reveal one, go
to a nonterminal under a lookahead, then go on with what follows", or several, any one of which will do; or a
condition of `Viability` on the rest of the stack.

Many classes are run at once, as numbers. An outcome's **code** is `part << 32 | rest`: the part says what the
parser waits for, the rest (a fan) what follows then. Tables give the step from a state under a terminal, and
of a part when a state is revealed. Where a terminal is shifted, what follows is run with nothing known but
the state shifted into, which many stacks share; the states known below it are then revealed to the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.machine import Known, Machine, Pop
from jaxgcd.parsing.viability import ALIVE, DEAD, MIXED, Item, Viability
from jaxgcd.tables.suffixes import OPEN, SuffixClasses

REJECTED, ACCEPTED = 0, 1
"""Codes; larger ones are of outcomes that wait."""

_BITS = 32
_REST = (1 << _BITS) - 1
_ANY = 1  # the part of outcomes that wait for any of several; their rest is the number of a set of codes
_UNKNOWN = np.iinfo(np.int64).min


class _Pending(NamedTuple):
    """Skip states, reveal one, go to `nonterminal`, shift `terminal`.

    `sure`: every stack passed through so far can be completed, given that the first one could.
    """

    skip: int
    nonterminal: int
    terminal: int
    sure: bool


_Part = _Pending | Item


class Acceptance:
    """Outcomes of suffix classes on stacks that can be completed. Equal codes, equal outcomes.

    The verdicts of `Viability` hold for terminals shifted on stacks that can be completed. Where that is not
    sure any more, because an earlier terminal of the same token led to a state whose verdict depends on the
    stack, the conditions behind the verdicts are used instead, which hold of any stack.
    """

    def __init__(
        self,
        machine: Machine,
        viability: Viability,
        classes: SuffixClasses,
        scanner_of: Sequence[int],
        runs: int,
    ):
        self._machine = machine
        self._viability = viability
        self._scanner_of = np.array(scanner_of)
        self._fans = classes.fan_table(max(scanner_of) + 1)
        self._flat = classes.parts()
        # With several readings of one text, the text may be viable through another one. A reading that
        # shifts into a state that is dead on every stack is dropped, so only a mixed verdict leaves a doubt.
        trusted = runs == 1 or viability.all_viable
        viable = np.array([viability.viable(state) for state in range(machine.table.n_states)])
        self._dead, self._sure = viable == DEAD, (viable == ALIVE) & trusted
        nothing = _Pending(0, 0, 0, False)
        self._parts: list[_Part] = [nothing, nothing]  # part 0 is not used, part 1 is `_ANY`
        self._part_number: dict[_Part, int] = {}
        self._sets: list[tuple[int, ...]] = []
        self._set_number: dict[tuple[int, ...], int] = {}
        self._stacks = _Stacks()
        n_states = machine.table.n_states
        self._begun = np.full((2 * n_states, len(machine.table.terminals)), _UNKNOWN)
        self._revealed = np.full((64, n_states), _UNKNOWN)
        self._open: dict[tuple[int, bool, int], int] = {}
        self._shifted = _Memo()

    def entries(self, tops: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """What becomes of suffix classes with states on top that were just shifted, or stand there.

        Args:
            tops: `int[n]`, parser states.
            classes: `int[n]`.

        Returns:
            Codes, `int64[n]`.
        """
        owner, terminal, rest = self._flat.of(classes)
        owner, terminal, rest = self._past_ignored(owner, terminal, rest, self._scanner_of[tops])
        codes = self._begin((2 * tops + self._sure[tops])[owner], terminal, rest)
        return np.where(self._dead[tops], REJECTED, self._united(codes, owner, len(tops)))

    def after(self, fans: np.ndarray, tops: np.ndarray) -> np.ndarray:
        """The suffix classes that go on after terminals were shifted into states, `int[n]` each."""
        return self._fans[fans, self._scanner_of[tops]]

    def reveal(self, codes: np.ndarray, states: np.ndarray) -> np.ndarray:
        """What becomes of waiting outcomes when the next state down the stack is known.

        Args:
            codes: `int64[n]`.
            states: `int[n]`, a possible next state for each.

        Returns:
            Codes, `int64[n]`.
        """
        part, rest = codes >> _BITS, codes & _REST
        several = part == _ANY
        if not several.any():
            return self._continued(self._steps(part, states), rest)
        found = np.zeros(len(codes), np.int64)
        single = ~several
        found[single] = self._continued(self._steps(part[single], states[single]), rest[single])
        members = [self._sets[number] for number in rest[several].tolist()]
        length = [len(found) for found in members]
        atoms = np.array([code for found in members for code in found], np.int64)
        revealed = self.reveal(atoms, np.repeat(states[several], length))
        found[several] = self._united(revealed, np.repeat(np.arange(len(length)), length), len(length))
        return found

    def skips(self, codes: np.ndarray) -> int:
        """How many stack states waiting outcomes pass over, at least, before one needs one."""
        least = [part for part in np.unique(codes >> _BITS).tolist() if part != _ANY]
        for number in (codes[codes >> _BITS == _ANY] & _REST).tolist():
            least += [code >> _BITS for code in self._sets[number]]
        return min(self._parts[part].skip for part in least)

    def lowered(self, codes: np.ndarray, skip: int) -> np.ndarray:
        """Waiting outcomes once `skip` states were passed over."""
        if not skip:
            return codes
        distinct, which = np.unique(codes >> _BITS, return_inverse=True)
        parts = [self._lower(part, skip) for part in distinct.tolist()]
        found = np.array(parts, np.int64)[which] << _BITS | codes & _REST
        for index in np.flatnonzero(distinct[which] == _ANY).tolist():
            members = np.array(self._sets[int(codes[index]) & _REST])
            found[index] = self._any_of(tuple(sorted(self.lowered(members, skip).tolist())))
        return found

    def _lower(self, part: int, skip: int) -> int:
        waiting = self._parts[part]
        return part if part == _ANY else self._part(waiting._replace(skip=waiting.skip - skip))

    # Numbers for parts and sets.

    def _part(self, part: _Part) -> int:
        number = self._part_number.setdefault(part, len(self._parts))
        if number == len(self._parts):
            self._parts.append(part)
            if number >= len(self._revealed):
                self._revealed = np.vstack([self._revealed, np.full_like(self._revealed, _UNKNOWN)])
        return number

    def _any_of(self, codes: tuple[int, ...]) -> int:
        """The code of "any of several": distinct waiting codes, none of them such a code, in order."""
        if len(codes) == 1:
            return codes[0]
        number = self._set_number.setdefault(codes, len(self._sets))
        if number == len(self._sets):
            self._sets.append(codes)
        return _ANY << _BITS | number

    def _condition(self, items: frozenset[Item] | None) -> int:
        if items is None:
            return ACCEPTED
        codes = sorted(self._part(item) << _BITS for item in items)
        return self._any_of(tuple(codes)) if codes else REJECTED

    # Steps of the parser: the code of what it waits for, without a rest; or, below 0, the number of the known
    # stack that a terminal was shifted on.

    def _step(self, fed: Known | Pop | None, terminal: int, sure: bool) -> int:
        if fed is None:
            return REJECTED
        if isinstance(fed, Pop):
            return self._part(_Pending(fed.skip, fed.nonterminal, terminal, sure)) << _BITS
        viable = self._viability.viable(fed[-1])
        return REJECTED if viable == DEAD else -1 - self._stacks.number(fed, sure and viable == ALIVE)

    def _steps(self, parts: np.ndarray, states: np.ndarray) -> np.ndarray:
        steps = self._revealed[parts, states]
        unknown = steps == _UNKNOWN
        if unknown.any():
            for part, state in set(zip(parts[unknown].tolist(), states[unknown].tolist(), strict=True)):
                step = self._reveal_part(self._parts[part], state)  # may replace the table by a larger one
                self._revealed[part, state] = step
            steps = self._revealed[parts, states]
        return steps

    def _reveal_part(self, part: _Part, state: int) -> int:
        if part.skip:
            return self._part(part._replace(skip=part.skip - 1)) << _BITS
        if isinstance(part, Item):
            return self._condition(self._viability.reveal(part, state))
        target = self._machine.table.goto[state].get(part.nonterminal)
        fed = None if target is None else self._machine.feed((state, target), part.terminal)
        return self._step(fed, part.terminal, part.sure)

    def _begin(self, state: np.ndarray, terminal: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The outcomes of parts of classes, each with `state >> 1` on top, and whether that is sure."""
        for missing in np.unique(state[self._begun[state, OPEN] == _UNKNOWN]).tolist():
            self._begun[missing] = REJECTED
            for t in self._machine.table.action[missing >> 1]:
                fed = self._machine.feed((missing >> 1,), t)
                self._begun[missing, t] = self._step(fed, t, bool(missing & 1))
        found = self._continued(self._begun[state, terminal], rest)
        ends = np.flatnonzero(terminal == OPEN)
        if len(ends):
            keys = zip(state[ends].tolist(), rest[ends].tolist(), strict=True)
            found[ends] = [self._opened(here >> 1, bool(here & 1), boundary) for here, boundary in keys]
        return found

    def _opened(self, top: int, sure: bool, boundary: int) -> int:
        """Whether a stack can be completed from a boundary class (see `jaxgcd.parsing.viability`)."""
        key = (top, sure, boundary)
        if key not in self._open:
            verdict = self._viability.verdict(top, boundary)
            if verdict == MIXED or (verdict == ALIVE and not sure):
                self._open[key] = self._condition(self._viability.waiting(top, boundary))
            else:
                self._open[key] = ACCEPTED if verdict == ALIVE else REJECTED
        return self._open[key]

    def _continued(self, steps: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """The outcomes of some steps that have a rest each."""
        found = np.where(steps > ACCEPTED, steps | rest, steps)
        shifted = np.flatnonzero(steps < 0)
        if not len(shifted):
            return found
        stack = -1 - steps[shifted]
        top, sure, below = self._stacks.arrays()
        state = top[stack]
        codes = self._behind(2 * state + sure[stack], self._fans[rest[shifted], self._scanner_of[state]])
        for column in range(below.shape[1]):
            known = below[stack, column]
            waiting = np.flatnonzero((codes > ACCEPTED) & (known > 0))
            if not len(waiting):
                break
            codes[waiting] = self.reveal(codes[waiting], known[waiting])
        found[shifted] = codes
        return found

    def _behind(self, state: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """The outcomes of suffix classes with nothing known but the state on top, and whether it is sure."""
        distinct, which = np.unique(state << _BITS | classes, return_inverse=True)
        found = self._shifted.get(distinct)
        new = np.flatnonzero(found == _UNKNOWN)
        if len(new):
            owner, terminal, rest = self._flat.of(distinct[new] & _REST)
            codes = self._begin((distinct[new] >> _BITS)[owner], terminal, rest)
            found[new] = self._united(codes, owner, len(new))
            self._shifted.put(distinct[new], found[new])
        return found[which]

    # Classes in parts.

    def _past_ignored(
        self, owner: np.ndarray, terminal: np.ndarray, rest: np.ndarray, scanner: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Parts with those behind an ignored lexeme in its place; `scanner` is the owners'."""
        ignored = terminal == IGNORED
        if not ignored.any():
            return owner, terminal, rest
        inner, *behind = self._flat.of(self._fans[rest[ignored], scanner[owner[ignored]]])
        owner = np.concatenate([owner[~ignored], owner[ignored][inner]])
        order = np.argsort(owner, kind="stable")
        columns = zip((terminal, rest), behind, strict=True)
        terminal, rest = (np.concatenate([old[~ignored], new])[order] for old, new in columns)
        return owner[order], terminal, rest

    def _united(self, codes: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
        """One code for each owner from those of its parts, which are in order."""
        found = np.zeros(owners, np.int64)
        kept = codes != REJECTED
        codes, owner = codes[kept], owner[kept]
        found[owner] = codes
        if not len(owner) or (owner[1:] != owner[:-1]).all():
            return found
        first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
        ends = np.append(first[1:], len(owner))
        accepted = np.logical_or.reduceat(codes == ACCEPTED, first)
        found[owner[first[accepted]]] = ACCEPTED
        for i in np.flatnonzero((ends - first > 1) & ~accepted).tolist():
            found[owner[first[i]]] = self._union(codes[first[i] : ends[i]].tolist())
        return found

    def _union(self, codes: list[int]) -> int:
        distinct: set[int] = set()
        for code in codes:
            distinct.update(self._sets[code & _REST] if code >> _BITS == _ANY else (code,))
        return self._any_of(tuple(sorted(distinct)))


class _Stacks:
    """Known stacks by number: the state on top, whether it is sure, and the states below, nearest first."""

    def __init__(self) -> None:
        self._number: dict[tuple[Known, bool], int] = {}
        self._arrays: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    def number(self, known: Known, sure: bool) -> int:
        if (known, sure) not in self._number:
            self._number[known, sure] = len(self._number)
            self._arrays = None
        return self._number[known, sure]

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self._arrays is None:
            depth = max(len(known) for known, _ in self._number) - 1
            below = np.zeros((len(self._number), depth), np.int64)
            for row, (known, _) in zip(below, self._number, strict=True):
                row[: len(known) - 1] = known[-2::-1]
            top = np.array([known[-1] for known, _ in self._number])
            self._arrays = top, np.array([sure for _, sure in self._number]), below
        return self._arrays


class _Memo:
    """A map from integers to codes, for many keys at a time: two sorted arrays, a large and a small one."""

    def __init__(self) -> None:
        self._large = self._small = (np.zeros(0, np.int64), np.zeros(0, np.int64))

    def get(self, keys: np.ndarray) -> np.ndarray:
        found = np.full(len(keys), _UNKNOWN)
        for known, values in (self._large, self._small):
            if len(known):
                index = np.minimum(np.searchsorted(known, keys), len(known) - 1)
                met = known[index] == keys
                found[met] = values[index[met]]
        return found

    def put(self, keys: np.ndarray, values: np.ndarray) -> None:
        self._small = _merged(self._small, (keys, values))
        if len(self._small[0]) > 1000 + len(self._large[0]) // 8:
            self._large, self._small = _merged(self._large, self._small), (keys[:0], values[:0])


def _merged(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]):
    keys = np.concatenate([one[0], other[0]])
    order = np.argsort(keys, kind="stable")
    return keys[order], np.concatenate([one[1], other[1]])[order]
