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

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.parsing.table import START_STATE
from jaxgcd.tables.accept import ACCEPTED, Acceptance

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


class Group(NamedTuple):
    """A set of tokens by suffix class or fan."""

    members: np.ndarray  # int64[members]
    sums: np.ndarray  # uint64[members], the sums of their tokens' random integers


class Walk:
    """Builds nodes and rows on demand.

    Args:
        acceptance: runs suffix classes.
        below: for each parser state those that may lie directly below it.
        limit: the most nodes.
    """

    def __init__(self, acceptance: Acceptance, below: Sequence[tuple[int, ...]], *, limit: int = 200_000):
        self._acceptance = acceptance
        self._below = below
        self._limit = limit
        self._row_number: dict[int, int] = {0: NO_ROW}
        self._node_number: dict[int, int] = {0: NO_NODE}
        self._depths: dict[tuple[int, int], frozenset[int]] = {}
        self._todo: dict[int, set[int]] = {}
        self._met: set[tuple[int, int]] = set()
        nothing = np.zeros(0, np.int64)
        self.rows: list[Recipe] = [Recipe(0, nothing)]
        self.nodes: list[Node] = [Node(0, nothing, nothing, 0, nothing)]
        self.groups: list[Group] = []

    def group(self, hashes: dict[int, int]) -> int:
        """Registers a set of tokens by suffix class or fan: `{number: sum of its tokens' integers}`."""
        members = np.fromiter(hashes.keys(), np.int64, len(hashes))
        self.groups.append(Group(members, np.fromiter(hashes.values(), np.uint64, len(hashes))))
        return len(self.groups) - 1

    def entries(self, group: int, tops: Sequence[int], fans: bool) -> tuple[list[Edge], np.ndarray]:
        """Where the check of a group starts with each of some states on top of the stack.

        Returns:
            The edges, and how many members depend on the stack below, `int64[tops]`.
        """
        members, sums = self.groups[group]
        codes = self._acceptance.entries(members, tops, fans)
        return self._edges(group, codes, sums, None, tops), (codes > ACCEPTED).sum(axis=1)

    def dependents(self, group: int, top: int, fans: bool) -> list[int]:
        """The members of a group that depend on the stack below `top`."""
        members, _ = self.groups[group]
        return members[self._acceptance.entries(members, [top], fans)[0] > ACCEPTED].tolist()

    def finish(self) -> None:
        """Builds everything that the entries lead to."""
        while self._todo:
            number, lasts = self._todo.popitem()
            node = self.nodes[number]
            states = {state for last in lasts for state in self._at_depth(last, node.skip + 1)}
            new = sorted(states - node.edges.keys())
            if new:
                revealed = np.tile(node.codes, len(new)), np.repeat(new, len(node.codes))
                codes = self._acceptance.reveal(*revealed).reshape(len(new), -1)
                edges = self._edges(node.group, codes, node.sums, node.which, new)
                node.edges.update(zip(new, edges, strict=True))

    def _edges(
        self, group: int, codes: np.ndarray, sums: np.ndarray, which: np.ndarray | None, states: Sequence[int]
    ) -> list[Edge]:
        """The edges for some outcomes after each of some states; `which` says whose outcomes they are."""
        accepted = codes == ACCEPTED
        rows = np.where(accepted, sums, np.uint64(0)).sum(axis=1, dtype=np.uint64).tolist()
        waiting = (mixed(codes) * sums).sum(axis=1, dtype=np.uint64).tolist()
        edges = []
        for i, state in enumerate(states):
            if rows[i] not in self._row_number:
                self._row(
                    rows[i], group, accepted[i] if which is None else (accepted[i][which] & (which >= 0))
                )
            node = NO_NODE
            if waiting[i] and state != START_STATE:  # nothing lies below the start state
                if waiting[i] not in self._node_number:
                    self._node(waiting[i], group, codes[i], sums, which)
                node = self._node_number[waiting[i]]
                self._visit(node, state)
            edges.append(Edge(self._row_number[rows[i]], node))
        return edges

    def _row(self, key: int, group: int, chosen: np.ndarray) -> None:
        self._row_number[key] = len(self.rows)
        self.rows.append(Recipe(group, self.groups[group].members[chosen]))

    def _node(
        self, key: int, group: int, codes: np.ndarray, sums: np.ndarray, which: np.ndarray | None
    ) -> None:
        if len(self.nodes) > self._limit:
            raise GrammarTooLarge(
                f"The stack walk has more than {self._limit} nodes; the grammar is too large."
            )
        alive = codes > ACCEPTED
        distinct, inverse = np.unique(codes[alive], return_inverse=True)
        joined = np.zeros(len(distinct), np.uint64)
        np.add.at(joined, inverse, sums[alive])
        place = np.full(len(codes) + 1, -1, np.int32)  # the last one is for members that wait for nothing
        place[:-1][alive] = inverse
        skip = self._acceptance.skips(distinct)
        lowered = self._acceptance.lowered(distinct, skip)
        self._node_number[key] = len(self.nodes)
        self.nodes.append(Node(skip, lowered, joined, group, place[:-1] if which is None else place[which]))

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


def mixed(codes: np.ndarray) -> np.ndarray:
    """A random 64-bit integer for each waiting outcome, 0 for the others (SplitMix64, Steele et al. 2014)."""
    z = codes.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.where(codes > ACCEPTED, z ^ (z >> np.uint64(31)), np.uint64(0))
