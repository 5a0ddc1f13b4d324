"""Always accepted, never accepted, or waiting for the stack: suffix classes on stacks known in part.

For a parser state on top of an unknown stack, a suffix class is run on the LALR machine. The **outcome** is
the paper's: accepted whatever lies below (its always-accepted table `A`), rejected, or context-dependent (its
table `D`). What a context-dependent class waits for is a pending reduction, "skip `k` states, reveal one, go
to a nonterminal under a lookahead, then go on with what follows", or several, any one of which will do; or a
condition of `Viability` on the rest of the stack.

Many classes are run at once, as numbers. Where a terminal is shifted, what follows is run with nothing known
but the state shifted into, which many stacks share; the states known below it are then revealed to the
result. That is a recursion as deep as a token has terminals, so it runs on a stack of its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxgcd._hashing import mixed
from jaxgcd._numbering import numbered, sorting
from jaxgcd._recursion import Routine, run
from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.machine import Known, Machine, Pop
from jaxgcd.parsing.viability import ALIVE, ALWAYS, DEAD, MIXED, Item, Viability
from jaxgcd.tables.growing import pieces
from jaxgcd.tables.outcomes import (
    ACCEPTED,
    REJECTED,
    SEVERAL,
    SKIP,
    SKIP_BITS,
    UNKNOWN,
    Held,
    Outcomes,
    Part,
    Pending,
)
from jaxgcd.tables.sparse import Sparse
from jaxgcd.tables.suffixes import OPEN, SuffixClasses

_TOGETHER = 1 << 20
"""About how many parts of classes are looked at together."""

_BITS = 32
_REST = (1 << _BITS) - 1

# What a step of the parser leads to, as `value << 2 | kind`: an outcome, a part to wait for and how many
# states it skips, a known stack.
_DONE, _WAITS, _SHIFTED = 0, 1, 2
_FAILED = REJECTED << 2 | _DONE

Outcome = Routine[np.ndarray]
"""A routine that returns outcomes, `int64[n]`."""


class Acceptance:
    """Outcomes of suffix classes on stacks that can be completed.

    The verdicts of `Viability` hold for terminals shifted on stacks that can be completed. Where that is not
    sure any more, because an earlier terminal of the same token led to a state whose verdict depends on the
    stack, the conditions behind the verdicts are used instead, which hold of any stack.

    Attributes:
        outcomes: the outcomes by number.
    """

    def __init__(
        self,
        machine: Machine,
        viability: Viability,
        classes: SuffixClasses,
        scanner_of: Sequence[int],
        runs: int,
    ):
        self.outcomes = Outcomes(machine.table)
        self._machine = machine
        self._viability = viability
        self._scanner_of = np.array(scanner_of)
        self._fans = classes.fan_table(max(scanner_of) + 1)
        self._flat = classes.parts()
        self._emitted = {terminal for follow, _ in classes.members for terminal, _ in follow}
        # With several readings of one text, the text may be viable through another one. A reading that
        # shifts into a state that is dead on every stack is dropped, so only a mixed verdict leaves a doubt.
        trusted = runs == 1 or viability.all_viable
        viable = np.array([viability.viable(state) for state in range(machine.table.n_states)])
        self._dead, self._sure = viable == DEAD, (viable == ALIVE) & trusted
        self._stacks = _Stacks()
        self._begun = Sparse(2 * machine.table.n_states, len(machine.table.terminals), _FAILED)
        self._has_begun = np.zeros(2 * machine.table.n_states, bool)
        self._revealed: dict[int, int] = {}
        self._open: dict[tuple[int, int], int] = {}
        self._shifted: dict[int, int] = {}

    def entries(self, tops: np.ndarray, classes: np.ndarray) -> np.ndarray:
        """What becomes of suffix classes with states on top that were just shifted, or stand there.

        Args:
            tops: `int[n]`, parser states.
            classes: `int[n]`.

        Returns:
            Outcomes, `int64[n]`.
        """
        found = [np.zeros(0, np.int64)]
        for piece in pieces(self._flat.length[classes], _TOGETHER):
            found.append(self._entries(tops[piece], classes[piece]))
        return np.concatenate(found)

    def _entries(self, tops: np.ndarray, classes: np.ndarray) -> np.ndarray:
        owner, terminal, rest = self._flat.of(classes)
        owner, terminal, rest = self._past_ignored(owner, terminal, rest, self._scanner_of[tops])
        found = run(self._begin((2 * tops + self._sure[tops])[owner], terminal, rest))
        return np.where(self._dead[tops], REJECTED, self._united(found, owner, len(tops)))

    def after(self, fans: np.ndarray, tops: np.ndarray) -> np.ndarray:
        """The suffix classes that go on after terminals were shifted into states, `int[n]` each."""
        return self._fans[fans, self._scanner_of[tops]]

    def read(self, outcomes: np.ndarray, states: np.ndarray) -> np.ndarray:
        """What becomes of outcomes when the next state down the stack is known, before it is passed over.

        Outcomes that skip it stay the same. Others may look at it again.

        Args:
            outcomes: `int64[n]`.
            states: `int[n]`, a possible next state for each.

        Returns:
            Outcomes, `int64[n]`.
        """
        return run(self._read(outcomes, states))

    def _read(self, outcomes: np.ndarray, states: np.ndarray) -> Outcome:
        found = outcomes.copy()
        looking = np.flatnonzero(outcomes & SKIP == 0)
        found[looking] = yield self._look(outcomes[looking], states[looking])
        return found

    def _look(self, outcomes: np.ndarray, states: np.ndarray) -> Outcome:
        place = self.outcomes.place(outcomes, states)
        found = self.outcomes.results[place]
        unknown = np.flatnonzero(found == UNKNOWN)
        if len(unknown):
            distinct, first, _ = numbered(place[unknown])
            results = yield self._evaluated(outcomes[unknown[first]], states[unknown[first]])
            self.outcomes.results[distinct] = results  # `results` may have moved meanwhile
            found[unknown] = self.outcomes.results[place[unknown]]
        return found

    def _passed(self, outcomes: np.ndarray, states: np.ndarray) -> Outcome:
        """What becomes of waiting outcomes when the next state down the stack is known and passed over."""
        found = outcomes.copy()
        todo = np.flatnonzero(found & SKIP == 0)
        while len(todo):  # to an end: reductions that never end are refused before
            found[todo] = yield self._look(found[todo], states[todo])
            todo = todo[(found[todo] & SKIP == 0) & (found[todo] > ACCEPTED)]
        return found - (found > ACCEPTED)

    def _evaluated(self, outcomes: np.ndarray, states: np.ndarray) -> Outcome:
        """`_look` where the result is not known."""
        part, rest = self.outcomes.parts_of(outcomes)
        single = part != SEVERAL
        found = np.zeros(len(outcomes), np.int64)
        found[single] = yield self._continued(self._steps(part[single], states[single]), rest[single])
        if not single.all():
            members = [self.outcomes.members(outcome) for outcome in outcomes[~single].tolist()]
            length = [len(atoms) for atoms in members]
            atoms = np.concatenate([np.array(atoms) for atoms in members])
            results = yield self._read(atoms, np.repeat(states[~single], length))
            found[~single] = self._united(results, np.repeat(np.arange(len(length)), length), len(length))
        return found

    # Steps of the parser.

    def _step(self, fed: Known | Pop | None, terminal: int, sure: bool) -> int:
        if fed is None:
            return _FAILED
        if isinstance(fed, Pop):
            return self._waits(Pending(fed.nonterminal, terminal, sure), fed.skip)
        viable = self._viability.viable(fed[-1])
        return (
            _FAILED if viable == DEAD else self._stacks.number(fed, sure and viable == ALIVE) << 2 | _SHIFTED
        )

    def _waits(self, part: Part, skip: int) -> int:
        return (self.outcomes.part_number(part) << SKIP_BITS | skip) << 2 | _WAITS

    def _steps(self, parts: np.ndarray, states: np.ndarray) -> np.ndarray:
        distinct, _, which = numbered(parts << _BITS | states)
        found = []
        for key in distinct.tolist():
            if key not in self._revealed:
                self._revealed[key] = self._reveal(self.outcomes.parts[key >> _BITS], key & _REST)
            found.append(self._revealed[key])
        return np.array(found, np.int64)[which]

    def _reveal(self, part: Part, state: int) -> int:
        """The step of a part that looks at the next state on the stack."""
        if isinstance(part, Held):
            items = self._viability.reveal(Item(0, part.condition), state)
            return self._condition(items and {item._replace(skip=item.skip + 1) for item in items}) << 2
        target = self._machine.table.goto[state].get(part.nonterminal)
        fed = None if target is None else self._machine.feed((target,), part.terminal)
        return self._step(fed, part.terminal, part.sure)

    def _condition(self, items: set[Item] | frozenset[Item] | None) -> int:
        """The outcome that waits for any of some items, or for nothing."""
        if items is None:
            return ACCEPTED
        if not items:
            return REJECTED
        columns = ((self.outcomes.part_number(Held(item.condition)), 0, item.skip) for item in sorted(items))
        return self.outcomes.any_of(self.outcomes.atoms(*np.array(list(columns), np.int64).T).tolist())

    def _begin(self, state: np.ndarray, terminal: np.ndarray, rest: np.ndarray) -> Outcome:
        """The outcomes of parts of classes, each with `state >> 1` on top, and whether that is sure."""
        missing = np.unique(state[~self._has_begun[state]])
        if len(missing):
            self._has_begun[missing] = True
            self._begun.put(*self._first_steps(missing.tolist()))
        found = yield self._continued(self._begun.at(state, terminal), rest)
        ends = np.flatnonzero(terminal == OPEN)
        if len(ends):
            keys = zip(state[ends].tolist(), rest[ends].tolist(), strict=True)
            found[ends] = [self._opened(here, boundary) for here, boundary in keys]
        return found

    def _first_steps(self, states: list[int]) -> np.ndarray:
        """The first steps with some states on top: columns of states, terminals and steps."""
        found = []
        for state in states:
            for terminal in self._machine.table.action[state >> 1].keys() & self._emitted:
                fed = self._machine.feed((state >> 1,), terminal)
                found.append((state, terminal, self._step(fed, terminal, bool(state & 1))))
        return np.array(found, np.int64).reshape(-1, 3).T

    def _opened(self, state: int, boundary: int) -> int:
        """Whether a stack can be completed from a boundary class (see `jaxgcd.parsing.viability`)."""
        if boundary == ALWAYS:
            return ACCEPTED
        key = (state, boundary)
        if key not in self._open:
            verdict = self._viability.verdict(state >> 1, boundary)
            if verdict == MIXED or (verdict == ALIVE and not state & 1):
                self._open[key] = self._condition(self._viability.waiting(state >> 1, boundary))
            else:
                self._open[key] = ACCEPTED if verdict == ALIVE else REJECTED
        return self._open[key]

    def _continued(self, steps: np.ndarray, rest: np.ndarray) -> Outcome:
        """The outcomes of some steps that have a rest each."""
        value, kind = steps >> 2, steps & 3
        found = value.copy()
        waits = np.flatnonzero(kind == _WAITS)
        if len(waits):
            part, skip = value[waits] >> SKIP_BITS, value[waits] & SKIP
            found[waits] = self.outcomes.atoms(part, rest[waits], skip)
        shifted = np.flatnonzero(kind == _SHIFTED)
        if len(shifted):
            found[shifted] = yield self._behind(value[shifted], rest[shifted])
        return found

    def _behind(self, stacks: np.ndarray, fans: np.ndarray) -> Outcome:
        """The outcomes of what follows with known stacks."""
        top, sure, below = self._stacks.arrays()
        state = top[stacks]
        found = yield self._on_top(2 * state + sure[stacks], self._fans[fans, self._scanner_of[state]])
        for column in range(below.shape[1]):
            known = below[stacks, column]
            waiting = np.flatnonzero((found > ACCEPTED) & (known > 0))
            if not len(waiting):
                break
            found[waiting] = yield self._passed(found[waiting], known[waiting])
        return found

    def _on_top(self, state: np.ndarray, classes: np.ndarray) -> Outcome:
        """The outcomes of suffix classes with nothing known but the state on top, and whether it is sure."""
        distinct, _, which = numbered(state << _BITS | classes)
        new = np.array([key for key in distinct.tolist() if key not in self._shifted], np.int64)
        if len(new):
            owner, terminal, rest = self._flat.of(new & _REST)
            found = yield self._begin((new >> _BITS)[owner], terminal, rest)
            found = self._united(found, owner, len(new))
            self._shifted.update(zip(new.tolist(), found.tolist(), strict=True))
        return np.array([self._shifted[key] for key in distinct.tolist()], np.int64)[which]

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
        order = sorting(owner)
        columns = zip((terminal, rest), behind, strict=True)
        terminal, rest = (np.concatenate([old[~ignored], new])[order] for old, new in columns)
        return owner[order], terminal, rest

    def _united(self, outcomes: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
        """One outcome for each owner from those of its parts, which are in order."""
        found = np.zeros(owners, np.int64)
        kept = outcomes != REJECTED
        outcomes, owner = outcomes[kept], owner[kept]
        found[owner] = outcomes
        if not len(owner) or (owner[1:] != owner[:-1]).all():
            return found
        first = np.flatnonzero(np.append(True, owner[1:] != owner[:-1]))
        ends = np.append(first[1:], len(owner))
        accepted = np.logical_or.reduceat(outcomes == ACCEPTED, first)
        found[owner[first[accepted]]] = ACCEPTED
        several = np.flatnonzero((ends - first > 1) & ~accepted)
        # Many states and classes wait for the same: each distinct set is looked at once.
        _, where, which = numbered(np.add.reduceat(mixed(outcomes), first)[several])
        sets = [outcomes[first[i] : ends[i]].tolist() for i in several[where].tolist()]
        united = np.array([self.outcomes.any_of(some) for some in sets], np.int64)
        found[owner[first[several]]] = united[which]
        return found


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
