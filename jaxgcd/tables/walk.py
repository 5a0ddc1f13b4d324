"""The stack walk: every context-dependent check as a few look-ups in one finite automaton.

All classes that wait on the same stack read it downwards together. A **node** is a pool of what they wait for
and how many states are passed over before it looks at one; reading that state leads to another node, with the
tokens accepted on the way as that edge's row. That this automaton is finite is Büchi's theorem (1964): the
stacks that an LR machine accepts form a regular language.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import NamedTuple

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._numbering import numbered, sorting
from jaxgcd.parsing.table import START_STATE
from jaxgcd.tables.accept import Acceptance
from jaxgcd.tables.growing import Growing, pieces
from jaxgcd.tables.outcomes import ACCEPTED
from jaxgcd.tables.pools import CHUNK, NO_POOL, NOTHING, Pools, Portion
from jaxgcd.tables.slots import Group

NO_NODE = 0
NO_ROW = 0

_BITS = 32
_WORD = 64
"""So many bits of a set are unpacked about as fast as one is looked at."""


class Edges(NamedTuple):
    """The rows of the tokens accepted on the way (or `NO_ROW`) and the nodes behind (or `NO_NODE`)."""

    row: np.ndarray
    node: np.ndarray


class Entry(NamedTuple):
    """A group is checked with state `top` on top; `fans` says what its members are."""

    group: int
    top: int
    fans: bool


class Entries(NamedTuple):
    """Many of these."""

    group: np.ndarray
    top: np.ndarray
    fans: np.ndarray


class Walk:
    """Builds nodes and rows on demand.

    Args:
        acceptance: runs suffix classes.
        groups: the sets of tokens that are checked.
        below: for each parser state those that may lie directly below it.
        budget: what may be used up.

    Attributes:
        rows: the portions of each row.
        skip: how many states each node passes over.
        edges: the node, the state it reads, and the row and the node that this leads to, of each edge.
    """

    def __init__(
        self,
        acceptance: Acceptance,
        groups: Sequence[Group],
        below: Sequence[tuple[int, ...]],
        budget: Budget,
    ):
        self._acceptance = acceptance
        self._groups = groups
        self._below = _Below(below)
        self._budget = budget
        self._pools = Pools(acceptance, budget)
        self._row_number: dict[int, int] = {0: NO_ROW}
        self._node_number: dict[int, int] = {NO_POOL: NO_NODE}
        self._pool, self.skip = Growing(np.int64), Growing(np.int64)
        self._pool.extend([NO_POOL])
        self.skip.extend([0])
        self._wanted = [0]  # for each node the set of states that it reads
        self._todo: dict[int, int] = {}  # those that it has not read yet
        self.edges = tuple(Growing(np.int32) for _ in range(4))
        self.rows: list[np.ndarray] = [np.zeros(0, np.int64)]

    @property
    def portions(self) -> list[Portion]:
        """What rows are made of."""
        return self._pools.portions

    def entries(self, jobs: Entries) -> tuple[Edges, np.ndarray]:
        """Where the checks of some groups start with states on top of the stack.

        Returns:
            The edges, and how many members of each group depend on the stack below.
        """
        sizes = np.array([len(group.members) for group in self._groups], np.int64)
        found, depending = [Edges(np.zeros(0, np.int64), np.zeros(0, np.int64))], [np.zeros(0, np.int64)]
        for piece in pieces(sizes[jobs.group], CHUNK):
            some = Entries(*(column[piece] for column in jobs))
            self._budget.step(len(some.group))
            length = sizes[some.group]
            sums = np.concatenate([self._groups[group].sums for group in some.group.tolist()])
            outcomes = self._entered(some, length)
            landing = self._pools.land(outcomes, sums, length, -1 - some.group)
            looks = [(np.arange(len(length)), landing.accepted)]
            nodes = self._nodes(landing.pool, landing.skip, some.top)
            found.append(Edges(self._rows(looks, len(length)), nodes))
            first = np.cumsum(length) - length
            depending.append(np.add.reduceat(outcomes > ACCEPTED, first, dtype=np.int64))
        return Edges(*map(np.concatenate, zip(*found, strict=True))), np.concatenate(depending)

    def _entered(self, jobs: Entries, length: np.ndarray) -> np.ndarray:
        """The outcomes of the members of groups, so many for each job."""
        members = np.concatenate([self._groups[group].members for group in jobs.group.tolist()])
        tops, fans = np.repeat(jobs.top, length), np.repeat(jobs.fans, length)
        return self._acceptance.entries(
            tops, np.where(fans, self._acceptance.after(members * fans, tops), members)
        )

    def dependents(self, entry: Entry) -> list[int]:
        """The members of a group that depend on the stack below the top."""
        members, _ = self._groups[entry.group]
        job = Entries(*(np.array([value]) for value in entry))
        return members[self._entered(job, np.array([len(members)])) > ACCEPTED].tolist()

    def finish(self) -> None:
        """Builds everything that the entries lead to."""
        while self._todo:
            jobs = [(node, wanted) for node, wanted in self._todo.items() if wanted]
            self._todo = {}
            words = self._below.states // _WORD
            for piece in pieces([words + wanted.bit_count() for _, wanted in jobs], CHUNK):
                some = jobs[piece]
                self._budget.step(len(some))
                self._read(*self._below.unpacked(some))

    def _read(self, nodes: np.ndarray, states: np.ndarray) -> None:
        """Adds the edges of nodes for states that are read."""
        pools, skips = self._pool.values[nodes], np.zeros(len(nodes), np.int64)
        looks = []
        todo = np.arange(len(nodes))
        while len(todo):
            landing = self._pools.read(pools[todo], states[todo])
            pools[todo], skips[todo] = landing.pool, landing.skip
            looks.append((todo, landing.accepted))
            todo = todo[(landing.pool != NO_POOL) & (landing.skip == 0)]
        edges = self._rows(looks, len(nodes)), self._nodes(pools, skips - 1, states)
        for column, values in zip(self.edges, (nodes, states, *edges), strict=True):
            column.extend(values)

    def _rows(self, looks: list[tuple[np.ndarray, np.ndarray]], jobs: int) -> np.ndarray:
        """The rows of jobs, from the portions accepted by each look, of some jobs each."""
        job, portion = (np.concatenate(column) for column in zip(*looks, strict=True))
        kept = np.flatnonzero(portion != NOTHING)
        kept = kept[sorting(job[kept])]
        job, portion = job[kept], portion[kept]
        sums = np.zeros(jobs, np.uint64)
        np.add.at(sums, job, self._pools.sums.values[portion])
        keys, where, which = numbered(sums)
        first, end = np.searchsorted(job, where), np.searchsorted(job, where, side="right")
        for i, key in enumerate(keys.tolist()):
            if key not in self._row_number:
                self._row_number[key] = len(self.rows)
                self.rows.append(portion[first[i] : end[i]].copy())
        return np.array([self._row_number[key] for key in keys.tolist()])[which]

    def _nodes(self, pools: np.ndarray, skips: np.ndarray, lasts: np.ndarray) -> np.ndarray:
        """The nodes of pools, once so many states are passed over, below some that were read last."""
        pools = np.where(lasts == START_STATE, NO_POOL, pools)  # nothing lies below the start state
        keys, _, which = numbered(pools << _BITS | np.where(pools == NO_POOL, 0, skips))
        new = [key for key in keys.tolist() if key not in self._node_number]
        self._budget.add_table(4 * len(new) * self._below.states, "a stack walk")
        self._node_number.update(zip(new, itertools.count(len(self._pool)), strict=False))
        self._wanted += [0] * len(new)
        added = np.array(new, np.int64)
        self._pool.extend(added >> _BITS)
        self.skip.extend(added & (1 << _BITS) - 1)
        nodes = np.array([self._node_number[key] for key in keys.tolist()])[which]
        self._visit(nodes, lasts)
        return nodes

    def _visit(self, nodes: np.ndarray, lasts: np.ndarray) -> None:
        """Plans to read what may lie where nodes look, below states that were read last."""
        pairs = numbered(nodes << _BITS | lasts).values
        nodes, lasts = pairs >> _BITS, pairs & (1 << _BITS) - 1
        depths = self.skip.values[nodes] + 1
        for node, last, depth in zip(nodes.tolist(), lasts.tolist(), depths.tolist(), strict=True):
            new = self._below(last, depth) & ~self._wanted[node] if node != NO_NODE else 0
            if new:
                self._wanted[node] |= new
                self._todo[node] = self._todo.get(node, 0) | new


class _Below:
    """The states that may lie at some depth below a state, as sets of bits.

    Attributes:
        states: how many there are.
    """

    def __init__(self, below: Sequence[tuple[int, ...]]):
        self.states = len(below)
        self._directly = below
        self._sets: dict[tuple[int, int], int] = {}
        self._bytes = -(-len(below) // 8)

    def __call__(self, state: int, depth: int) -> int:
        todo = [(state, depth)]
        while todo:
            key = todo[-1]
            lower = [(under, key[1] - 1) for under in self._directly[key[0]]] if key[1] > 1 else []
            missing = [pair for pair in lower if pair not in self._sets]
            if missing and key not in self._sets:
                todo += missing
                continue
            todo.pop()
            if key not in self._sets:
                own = [self._sets[pair] for pair in lower] or [1 << under for under in self._directly[key[0]]]
                self._sets[key] = reduce(or_, own, 0)
        return self._sets[state, depth]

    def unpacked(self, sets: Sequence[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        """Pairs of a number and a set of states as pairs of the number and a state."""
        data = b"".join(found.to_bytes(self._bytes, "little") for _, found in sets)
        bits = np.unpackbits(np.frombuffer(data, np.uint8).reshape(len(sets), -1), axis=1, bitorder="little")
        which, states = np.nonzero(bits)
        return np.array([number for number, _ in sets])[which], states
