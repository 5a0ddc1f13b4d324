"""The stack walk: every context-dependent check as a few look-ups in one finite automaton.

All classes that wait on the same stack read it downwards together. A **node** holds, for each distinct set of
pending reductions, the tokens that wait for it; reading the next stack state that one of them needs leads to
another node, with the tokens accepted on the way as that edge's row. That this automaton is finite is Büchi's
theorem (1964): the stacks that an LR machine accepts form a regular language.

Sets of tokens are hashes here, sums of one random integer for each token, so that equal sets are found
without being built; what they wait for is hashed in as a factor. A `Recipe` remembers how one of the equal
sets is made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._hashing import mixed
from jaxgcd.parsing.table import START_STATE
from jaxgcd.tables.accept import ACCEPTED, Acceptance
from jaxgcd.tables.slots import Group

CHUNK = 1 << 19
"""About how many outcomes are looked at together."""

Job = TypeVar("Job")

NO_NODE = 0
NO_ROW = 0


class Recipe(NamedTuple):
    """The tokens of `group` whose suffix class or fan is one of `members`."""

    group: int
    members: np.ndarray


class Edge(NamedTuple):
    """The row of the tokens accepted on the way (or `NO_ROW`) and the node behind (or `NO_NODE`)."""

    row: int
    node: int


@dataclass
class Node:
    """`skip` states are passed over, the next one chooses the edge.

    Attributes:
        skip: as said.
        codes: `int64[outcomes]`, what tokens wait for once the states are passed over (see `Acceptance`).
        sums: `uint64[outcomes]`, the sums of those tokens' random integers.
        group: a group that these tokens belong to.
        which: `int32[members]`, for each member of the group the outcome that it waits for, or -1.
        edges: by the state read.
    """

    skip: int
    codes: np.ndarray
    sums: np.ndarray
    group: int
    which: np.ndarray
    edges: dict[int, Edge] = field(default_factory=dict)


class Entry(NamedTuple):
    """A group is checked with state `top` on top; `fans` says what its members are."""

    group: int
    top: int
    fans: bool


class _Begun(NamedTuple):
    """Outcomes are those of a group's members, or of the `which` of a node, with `state` just revealed."""

    group: int
    which: np.ndarray | None
    state: int


class Walk:
    """Builds nodes and rows on demand.

    Args:
        acceptance: runs suffix classes.
        groups: the sets of tokens that are checked.
        below: for each parser state those that may lie directly below it.
        budget: what may be used up.
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
        self._below = below
        self._budget = budget
        self._row_number: dict[int, int] = {0: NO_ROW}
        self._node_number: dict[int, int] = {0: NO_NODE}
        self._depths: dict[tuple[int, int], frozenset[int]] = {}
        self._todo: dict[int, set[int]] = {}
        self._met: set[tuple[int, int]] = set()
        nothing = np.zeros(0, np.int64)
        self.rows: list[Recipe] = [Recipe(0, nothing)]
        self.nodes: list[Node] = [Node(0, nothing, nothing, 0, nothing)]

    def entries(self, jobs: Sequence[Entry]) -> tuple[list[Edge], list[int]]:
        """Where the checks of some groups start with states on top of the stack.

        Returns:
            The edges, and how many members depend on the stack below.
        """
        edges, depending = [], []
        for some in _chunks(jobs, lambda job: len(self._groups[job.group].members)):
            self._budget.step(len(some))
            length = [len(self._groups[job.group].members) for job in some]
            codes = self._entry_codes(some, length)
            begun = [_Begun(job.group, None, job.top) for job in some]
            sums = np.concatenate([self._groups[job.group].sums for job in some])
            edges += self._edges(begun, length, codes, sums)
            depending += _sums(codes > ACCEPTED, length).tolist()
        return edges, depending

    def _entry_codes(self, jobs: Sequence[Entry], length: list[int]) -> np.ndarray:
        members = np.concatenate([self._groups[job.group].members for job in jobs])
        tops = np.repeat([job.top for job in jobs], length)
        fans = np.repeat([job.fans for job in jobs], length)
        return self._acceptance.entries(
            tops, np.where(fans, self._acceptance.after(members * fans, tops), members)
        )

    def dependents(self, entry: Entry) -> list[int]:
        """The members of a group that depend on the stack below the top."""
        members, _ = self._groups[entry.group]
        return members[self._entry_codes([entry], [len(members)]) > ACCEPTED].tolist()

    def finish(self) -> None:
        """Builds everything that the entries lead to."""
        while self._todo:
            jobs: list[tuple[Node, int]] = []
            for number, lasts in self._todo.items():
                node = self.nodes[number]
                states = {state for last in lasts for state in self._at_depth(last, node.skip + 1)}
                jobs += [(node, state) for state in sorted(states - node.edges.keys())]
            self._todo = {}
            for some in _chunks(jobs, lambda job: len(job[0].codes)):
                self._budget.step(len(some))
                self._read(some)

    def _read(self, jobs: Sequence[tuple[Node, int]]) -> None:
        """Adds the edges of nodes for states that are read."""
        length = [len(node.codes) for node, _ in jobs]
        states = np.repeat([state for _, state in jobs], length)
        codes = self._acceptance.reveal(np.concatenate([node.codes for node, _ in jobs]), states)
        begun = [_Begun(node.group, node.which, state) for node, state in jobs]
        sums = np.concatenate([node.sums for node, _ in jobs])
        for (node, state), edge in zip(jobs, self._edges(begun, length, codes, sums), strict=True):
            node.edges[state] = edge

    def _edges(
        self, jobs: Sequence[_Begun], length: list[int], codes: np.ndarray, sums: np.ndarray
    ) -> list[Edge]:
        """The edges for some outcomes, so many for each job."""
        nothing = np.uint64(0)
        rows = _sums(np.where(codes == ACCEPTED, sums, nothing), length).tolist()
        waiting = _sums(np.where(codes > ACCEPTED, mixed(codes) * sums, nothing), length).tolist()
        edges, end = [], 0
        for job, row, node, count in zip(jobs, rows, waiting, length, strict=True):
            end += count
            own = slice(end - count, end)
            if row not in self._row_number:
                self._row(row, job, codes[own] == ACCEPTED)
            if not node or job.state == START_STATE:  # nothing lies below the start state
                edges.append(Edge(self._row_number[row], NO_NODE))
                continue
            if node not in self._node_number:
                self._node(node, job, codes[own], sums[own])
            edges.append(Edge(self._row_number[row], self._node_number[node]))
            self._visit(self._node_number[node], job.state)
        return edges

    def _row(self, key: int, job: _Begun, accepted: np.ndarray) -> None:
        chosen = accepted if job.which is None else accepted[job.which] & (job.which >= 0)
        self._row_number[key] = len(self.rows)
        self.rows.append(Recipe(job.group, self._groups[job.group].members[chosen]))

    def _node(self, key: int, job: _Begun, codes: np.ndarray, sums: np.ndarray) -> None:
        if len(self.nodes) > self._budget.limits.walk_nodes:
            remedy = "split long rules, or use left recursion instead of right recursion"
            raise self._budget.exceeded("walk_nodes", f"{self._budget.work}: it needs", "nodes", remedy)
        alive = codes > ACCEPTED
        distinct, inverse = np.unique(codes[alive], return_inverse=True)
        joined = np.zeros(len(distinct), np.uint64)
        np.add.at(joined, inverse, sums[alive])
        place = np.full(len(codes) + 1, -1, np.int32)  # the last one is for members that wait for nothing
        place[:-1][alive] = inverse
        which = place[:-1] if job.which is None else place[job.which]
        skip = self._acceptance.skips(distinct)
        self._node_number[key] = len(self.nodes)
        self.nodes.append(Node(skip, self._acceptance.lowered(distinct, skip), joined, job.group, which))

    def _visit(self, number: int, last: int) -> None:
        if (number, last) not in self._met:
            self._met.add((number, last))
            self._todo.setdefault(number, set()).add(last)

    def _at_depth(self, state: int, depth: int) -> frozenset[int]:
        """The states that may lie `depth` below `state`."""
        key = (state, depth)
        if key not in self._depths:
            above = self._at_depth(state, depth - 1) if depth > 1 else (state,)
            self._depths[key] = frozenset(b for s in above for b in self._below[s])
        return self._depths[key]


def _sums(values: np.ndarray, length: list[int]) -> np.ndarray:
    """The sums of consecutive pieces, none of them empty."""
    first = np.cumsum([0, *length[:-1]])
    return np.add.reduceat(values, first, dtype=np.uint64)


def _chunks(jobs: Sequence[Job], size: Callable[[Job], int]) -> Iterator[list[Job]]:
    """Jobs in pieces that are not too large together."""
    some: list[Job] = []
    total = 0
    for job in jobs:
        some.append(job)
        total += size(job)
        if total > CHUNK:
            yield some
            some, total = [], 0
    if some:
        yield some
