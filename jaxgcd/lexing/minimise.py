"""Minimal automata (by partition refinement), with states and byte classes in a canonical order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxgcd._hashing import random_integers
from jaxgcd.lexing.formula import Automaton


def minimise(classes: np.ndarray, trans: np.ndarray, accept: Sequence[int]) -> Automaton:
    """The minimal automaton; it depends on nothing but what the given one accepts.

    State 0 is dead, state 1 the start (even if it is as good as dead), the others are numbered by
    breadth-first search in the order of bytes. Byte classes are numbered by their first bytes.

    Args:
        classes: `uint8[256]`, byte to byte class; classes are numbered by their first bytes.
        trans: `int32[states, classes]`; state 0 is dead and state 1 the start.
        accept: a formula, or some other label, for each state; 0 for state 0.
    """
    classes, trans = _merge_classes(classes, trans)
    block = refine(trans, np.asarray(accept))
    rows = block[trans]
    order = _breadth_first(rows, block)
    number = np.zeros(int(block.max()) + 1, np.int32)
    for new, state in enumerate(order[2:], 2):
        number[block[state]] = new
    if block[1] != block[0]:
        number[block[1]] = 1
    classes, trans = _merge_classes(classes, number[rows[order]])
    alive = np.asarray((trans != 0).any(axis=1))
    return Automaton(classes, trans, [accept[state] for state in order], alive)


def _merge_classes(classes: np.ndarray, trans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Bytes that lead to the same state from every state share one class."""
    merged: dict[bytes, int] = {}
    same, kept = [], []
    for index, column in enumerate(np.ascontiguousarray(trans.T)):
        same.append(merged.setdefault(column.tobytes(), len(merged)))
        if len(merged) > len(kept):
            kept.append(index)
    return np.array(same, np.uint8)[classes], np.ascontiguousarray(trans[:, kept])


def refine(trans: np.ndarray, accept: np.ndarray) -> np.ndarray:
    """The block of each state in the coarsest partition that respects `accept` and `trans`.

    Rows of blocks are compared by sums of random 64-bit integers.

    Args:
        trans: `int[states, classes]`.
        accept: `int[states]`; states with different values never share a block.
    """
    block = np.unique(np.stack([accept, _distance(trans, accept)], 1), axis=0, return_inverse=True)[1].ravel()
    for _ in range(8):  # that is enough for most automata
        count = block.max() + 1
        block = np.unique(_signatures(block, trans), return_inverse=True)[1].ravel()
        if block.max() + 1 == count:
            return block
    return _refine_chains(block, trans)


def _signatures(block: np.ndarray, trans: np.ndarray, states: slice | np.ndarray = slice(None)) -> np.ndarray:
    """The block of each state and those that it leads to, as one random integer for each such row."""
    own, weights = random_integers(int(block.max()) + 1), random_integers(trans.shape[1] + 1, stream=1)
    row = (own[block[trans[states]]] * weights[1:]).sum(axis=1, dtype=np.uint64)
    return row + own[block[states]] * weights[0]


def _refine_chains(block: np.ndarray, trans: np.ndarray) -> np.ndarray:
    """The same where it takes many rounds, as for `a{0,2000}b`, whose chain loses one state in each.

    A round looks only at the states that lead into a block with a new number, and the largest part of a
    block keeps the old one, so that a state is looked at O(log states) times (Hopcroft 1971).
    """
    first, sources = _by_target(trans)
    suspects = np.arange(len(block))
    while len(suspects):
        found = _split(block, trans, suspects)
        renamed, block = np.flatnonzero(found != block), found
        suspects = _leading_to(renamed, first, sources)
    return block


def _by_target(trans: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The states that lead to state `s` are `sources[first[s] : first[s + 1]]`."""
    order = np.argsort(trans, axis=None, kind="stable")
    first = np.searchsorted(trans.ravel()[order], np.arange(len(trans) + 1))
    return first, order // trans.shape[1]


def _leading_to(targets: np.ndarray, first: np.ndarray, sources: np.ndarray) -> np.ndarray:
    """The states that lead to one of `targets`."""
    lengths = first[targets + 1] - first[targets]
    skipped = first[targets + 1] - lengths.cumsum()
    return np.unique(sources[np.repeat(skipped, lengths) + np.arange(lengths.sum())])


def _split(block: np.ndarray, trans: np.ndarray, suspects: np.ndarray) -> np.ndarray:
    """The blocks once `suspects` are told apart by the blocks that they lead to.

    The others of a block lead where they led before, so they stay together and apart from all suspects.
    """
    _, at, part, size = np.unique(
        _signatures(block, trans, suspects), return_index=True, return_inverse=True, return_counts=True
    )
    home = block[suspects[at]]  # the block of each part
    others = np.bincount(block)  # how many states of a block are no suspects
    np.subtract.at(others, home, size)
    staying = _largest(home, size, others)
    leaving = home[staying][others[home[staying]] > 0]
    renamed = np.delete(np.arange(len(size)), staying)
    number, name = np.arange(len(others)), home.copy()
    number[leaving] = len(others) + np.arange(len(leaving))
    name[renamed] = len(others) + len(leaving) + np.arange(len(renamed))
    found = number[block]
    found[suspects] = name[part.ravel()]
    return found


def _largest(home: np.ndarray, size: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The parts that are the largest of their block, and larger than its rest."""
    order = np.lexsort((size, home))
    largest = order[np.append(np.diff(home[order]) != 0, True)]
    return largest[size[largest] > others[home[largest]]]


def closure(bits: np.ndarray, source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """What can be reached: `bits[source] |= bits[target]` along all edges until nothing changes.

    Args:
        bits: `bool[nodes, things]`.
        source: `int[edges]`.
        target: `int[edges]`.
    """
    edges = np.unique(source.astype(np.int64) * len(bits) + target)
    if not len(edges) or not bits.size:
        return bits
    source, target = np.divmod(edges, len(bits))
    sources, first = np.unique(source, return_index=True)
    packed = np.packbits(bits, axis=1)
    while True:
        new = packed.copy()
        new[sources] |= np.bitwise_or.reduceat(packed[target], first, axis=0)
        if (new == packed).all():
            return np.unpackbits(packed, axis=1, count=bits.shape[1]).astype(bool)
        packed = new


def _distance(trans: np.ndarray, accept: np.ndarray) -> np.ndarray:
    """Bytes to the nearest state that may accept, -1 if there is none; it tells most states apart at once."""
    distance = np.where(accept != 0, 0, -1)
    frontier, steps = distance == 0, 0
    while frontier.any():
        steps += 1
        frontier = frontier[trans].any(axis=1) & (distance < 0)
        distance[frontier] = steps
    return distance


def _breadth_first(rows: np.ndarray, block: np.ndarray) -> list[int]:
    """One state for each reachable block: the dead state, the start, and the others as they are found."""
    member = {int(b): s for s, b in reversed(list(enumerate(block)))}
    order, seen = [0, 1], {int(block[0]), int(block[1])}
    for state in order:
        if state:
            for found in dict.fromkeys(rows[state].tolist()):
                if found not in seen:
                    seen.add(found)
                    order.append(member[found])
    return order


def joint_classes(partitions: Sequence[np.ndarray]) -> tuple[np.ndarray, list[int]]:
    """The coarsest classes of the 256 bytes that respect some partitions, and each class's first byte."""
    alike = np.zeros(256, np.int64)  # where there is no partition at all
    _, first, classes = np.unique(
        np.stack([alike, *partitions]), axis=1, return_index=True, return_inverse=True
    )
    order = np.argsort(first)
    return np.argsort(order)[classes.ravel()], first[order].tolist()
