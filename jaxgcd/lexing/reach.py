"""What can be reached in a graph. Each round looks only at edges into what the last one changed, so that an
automaton that is one long chain costs no more than another.
"""

from __future__ import annotations

import numpy as np

from jaxgcd._numbering import numbered

UNREACHED = -1


class Edges:
    """The edges of a graph, in an order in which those into some nodes are found at once.

    Args:
        source: `int[edges]`.
        target: `int[edges]`.
        nodes: the number of nodes.
    """

    def __init__(self, source: np.ndarray, target: np.ndarray, nodes: int):
        order = np.argsort(target, kind="stable")
        self._source = source[order]
        self._first = np.searchsorted(target[order], np.arange(nodes + 1))

    def into(self, targets: np.ndarray) -> np.ndarray:
        """The sources of all edges into some nodes."""
        lengths = self._first[targets + 1] - self._first[targets]
        skipped = self._first[targets + 1] - lengths.cumsum()
        return self._source[np.repeat(skipped, lengths) + np.arange(lengths.sum())]


def transitions(trans: np.ndarray) -> Edges:
    """The edges of an automaton, `int[states, classes]`, without those into state 0, which is dead."""
    source, symbol = np.nonzero(trans)
    return Edges(source, trans[source, symbol], len(trans))


def distance(edges: Edges, goal: np.ndarray) -> np.ndarray:
    """The fewest edges from each node to one of `goal`, or `UNREACHED`.

    Args:
        edges: of the graph.
        goal: `bool[nodes]`.
    """
    found = np.where(goal, 0, UNREACHED)
    frontier, steps = np.flatnonzero(goal), 0
    while len(frontier):
        steps += 1
        sources = edges.into(frontier)
        frontier = np.unique(sources[found[sources] == UNREACHED])
        found[frontier] = steps
    return found


def height(edges: Edges, trans: np.ndarray) -> np.ndarray:
    """The most edges that a path from each state of an automaton can have; `UNREACHED` without a bound.

    Args:
        edges: `transitions(trans)`.
        trans: `int[states, classes]`.
    """
    found = np.full(len(trans), UNREACHED)
    open_ = np.count_nonzero(trans, axis=1)
    frontier, steps = np.flatnonzero(open_ == 0), 0
    while len(frontier):
        found[frontier] = steps
        steps += 1
        sources, count = np.unique(edges.into(frontier), return_counts=True)
        open_[sources] -= count
        frontier = sources[open_[sources] == 0]
    return found


def closure(bits: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """What can be reached: `bits[source] |= bits[target]` along all edges until nothing changes.

    Args:
        bits: `bool[nodes, things]`.
        source: `int[edges]`.
        target: `int[edges]`.
    """
    packed = np.packbits(bits, axis=1)
    close(packed, source, target)
    return np.unpackbits(packed, axis=1, count=bits.shape[1]).view(bool)


def close(packed: np.ndarray, source: np.ndarray, target: np.ndarray) -> None:
    """`closure` of bits that are packed, `uint8[nodes, bytes]`, in their place."""
    pairs = numbered(source.astype(np.int64) * len(packed) + target).values
    if not len(pairs) or not packed.size:
        return
    source, target = np.divmod(pairs, len(packed))
    into, first = Edges(source, target, len(packed)), np.searchsorted(source, np.arange(len(packed) + 1))
    suspects = np.unique(source)
    while len(suspects):
        lengths = first[suspects + 1] - first[suspects]
        begin = lengths.cumsum() - lengths
        edges = np.repeat(first[suspects] - begin, lengths) + np.arange(lengths.sum())
        new = packed[suspects] | np.bitwise_or.reduceat(packed[target[edges]], begin, axis=0)
        changed = suspects[(new != packed[suspects]).any(axis=1)]
        packed[suspects] = new
        suspects = numbered(into.into(changed)).values
