"""The stack walk as arrays: nodes that do the same are one, and so are parser states that are read alike.

An edge says how many states are passed over behind it, so that nodes differ in nothing but what they do with
the state that they read. Many states are never met below others, or lead wherever another one leads: those
share a place. Both together make the largest array of a grammar several times smaller.
"""

from __future__ import annotations

import numpy as np

from jaxgcd._hashing import random_integers
from jaxgcd._numbering import numbered
from jaxgcd.tables.walk import NO_NODE, Edges, Walk

_BITS = 32


def edge_arrays(walk: Walk, entries: Edges, n_states: int) -> dict[str, np.ndarray]:
    """The arrays of a finished walk, and the edges of the entries.

    Edges are numbered by what is behind them; number 0 leads nowhere.
    """
    node, state, *behind = (column.values.astype(np.int64) for column in walk.edges)
    row, target = (np.concatenate(pieces) for pieces in zip(entries, behind, strict=True))
    pairs, _, number = numbered(row << _BITS | target)
    read = number[len(entries.row) :]
    nodes = _alike(node, state, read, len(walk.skip))
    places = _alike(state, node, read, n_states)
    row, target = pairs >> _BITS, pairs & (1 << _BITS) - 1
    skip = np.where(nodes[target] == NO_NODE, 0, walk.skip.values[target])
    ways, _, way = numbered(skip << _BITS | nodes[target])
    pairs, _, merged = numbered(row << _BITS | way)
    way = ways[pairs & (1 << _BITS) - 1]
    number = merged[number].astype(np.int32)
    node_edge = np.zeros((nodes.max() + 1, places.max() + 1), np.int32)
    node_edge[nodes[node], places[state]] = number[len(entries.row) :]
    return {
        "entry": number[: len(entries.row)],
        "place": places,
        "node_edge": node_edge,
        "edge_row": pairs >> _BITS,
        "edge_skip": way >> _BITS,
        "edge_node": way & (1 << _BITS) - 1,
    }


def _alike(line: np.ndarray, across: np.ndarray, value: np.ndarray, lines: int) -> np.ndarray:
    """Numbers the lines of a sparse matrix by their contents, in the order in which they come.

    Args:
        line: of each value.
        across: its place in its line.
        value: zeros are as good as nothing.
        lines: how many there are; the first one is empty.
    """
    random = np.append(np.uint64(0), random_integers(int(value.max(initial=0))))
    factor = random_integers(int(across.max(initial=0)) + 1, stream=1)
    sums = np.zeros(lines, np.uint64)
    np.add.at(sums, line, random[value] * factor[across])
    _, first, which = numbered(sums)
    order = np.empty(len(first), np.int64)
    order[np.argsort(first)] = np.arange(len(first))
    return order[which]
