"""The stack walk: every context-dependent check as a few look-ups in one finite automaton.

All classes that wait on the same stack read it downwards together. A **node** holds, for each distinct set of
pending reductions, the tokens that wait for it; reading the next stack state that one of them needs leads to
another node, with the tokens accepted on the way as that edge's row. That this automaton is finite is Büchi's
theorem (1964): the stacks that an LR machine accepts form a regular language.

Sets of tokens are hashes here, sums of one random integer for each token, so that equal sets are found
without being built. A `Recipe` remembers how one of the equal sets is made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.parsing.table import START_STATE
from jaxgcd.tables.accept import Acceptance, Outcome, Waiting, any_of
from jaxgcd.tables.spanner import HASH_MASK

NO_NODE = 0
NO_ROW = 0


class Recipe(NamedTuple):
    """The tokens of `group` whose suffix class or fan is one of `members`."""

    group: int
    members: tuple[int, ...]


class Edge(NamedTuple):
    """The row of the tokens accepted on the way (or `NO_ROW`) and the node behind (or `NO_NODE`)."""

    row: int
    node: int


@dataclass
class Node:
    """`skip` states are passed over, the next one chooses the edge."""

    skip: int
    waiting: dict[frozenset[Waiting], tuple[int, ...]]
    group: int
    edges: dict[int, Edge] = field(default_factory=dict)


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
        self._node_number: dict[frozenset[tuple[frozenset[Waiting], int]], int] = {}
        self._depths: dict[tuple[int, int], frozenset[int]] = {}
        self._revealed: dict[tuple[frozenset[Waiting], int, int], Outcome] = {}
        self._todo: list[tuple[int, int]] = []
        self._met: set[tuple[int, int]] = set()
        self.rows: list[Recipe] = [Recipe(0, ())]
        self.nodes: list[Node] = [Node(0, {}, 0)]
        self.hashes: list[dict[int, int]] = []

    def group(self, hashes: dict[int, int]) -> int:
        """Registers a set of tokens by suffix class or fan: `{number: sum of its tokens' integers}`."""
        self.hashes.append(hashes)
        return len(self.hashes) - 1

    def outcomes(self, group: int, state: int, fans: bool) -> dict[int, Outcome]:
        """What becomes of a group's members, classes or fans, with `state` on top of the stack."""
        after = self._acceptance.after
        return {
            member: self._acceptance.entry(after(member, state) if fans else member, state)
            for member in self.hashes[group]
        }

    def entry(self, group: int, state: int, fans: bool) -> Edge:
        """Where the check of a group starts with `state` on top of the stack."""
        return self._edge(group, self.outcomes(group, state, fans), state)

    def finish(self) -> None:
        """Builds everything that the entries lead to."""
        while self._todo:
            number, last = self._todo.pop()
            node = self.nodes[number]
            for state in self._at_depth(last, node.skip + 1):
                if state not in node.edges:
                    node.edges[state] = Edge(NO_ROW, NO_NODE)
                    node.edges[state] = self._read(node, state)
                elif node.edges[state].node:
                    self._visit(node.edges[state].node, state)

    def _read(self, node: Node, state: int) -> Edge:
        outcomes: dict[int, Outcome] = {}
        for pending, classes in node.waiting.items():
            outcome = self._reveal(pending, node.skip, state)
            outcomes.update(dict.fromkeys(classes, outcome))
        return self._edge(node.group, outcomes, state)

    def _reveal(self, waiting: frozenset[Waiting], skip: int, state: int) -> Outcome:
        key = (waiting, skip, state)
        if key not in self._revealed:
            self._revealed[key] = any_of(
                frozenset({found._replace(skip=found.skip - skip - 1)})
                if found.skip > skip
                else self._acceptance.reveal(found._replace(skip=0), state)
                for found in waiting
            )
        return self._revealed[key]

    def _edge(self, group: int, outcomes: dict[int, Outcome], state: int) -> Edge:
        accepted = tuple(sorted(c for c, outcome in outcomes.items() if outcome is None))
        waiting: dict[frozenset[Waiting], list[int]] = {}
        for c in sorted(outcomes):
            if outcome := outcomes[c]:
                waiting.setdefault(outcome, []).append(c)
        return Edge(self._row(group, accepted), self._node(group, waiting, state))

    def _row(self, group: int, classes: tuple[int, ...]) -> int:
        number = self._row_number.setdefault(self._hash(group, classes), len(self.rows))
        if number == len(self.rows):
            self.rows.append(Recipe(group, classes))
        return number

    def _node(self, group: int, waiting: dict[frozenset[Waiting], list[int]], last: int) -> int:
        if not waiting or last == START_STATE:  # nothing lies below the start state
            return NO_NODE
        key = frozenset((pending, self._hash(group, tuple(classes))) for pending, classes in waiting.items())
        number = self._node_number.setdefault(key, len(self.nodes))
        if number == len(self.nodes):
            if number > self._limit:
                raise GrammarTooLarge(
                    f"The stack walk has more than {self._limit} nodes; the grammar is too large."
                )
            skip = min(pending.skip for found in waiting for pending in found)
            self.nodes.append(
                Node(skip, {found: tuple(classes) for found, classes in waiting.items()}, group)
            )
        self._visit(number, last)
        return number

    def _visit(self, number: int, last: int) -> None:
        if (number, last) not in self._met:
            self._met.add((number, last))
            self._todo.append((number, last))

    def _hash(self, group: int, classes: tuple[int, ...]) -> int:
        hashes = self.hashes[group]
        return sum(hashes[c] for c in classes) & HASH_MASK

    def _at_depth(self, state: int, depth: int) -> frozenset[int]:
        """The states that may lie `depth` below `state`."""
        key = (state, depth)
        if key not in self._depths:
            above = self._at_depth(state, depth - 1) if depth > 1 else (state,)
            self._depths[key] = frozenset(b for s in above for b in self._below[s])
        return self._depths[key]
