"""Minimal automata (by partition refinement), with states and byte classes in a canonical order."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxgcd._hashing import mixed, random_integers
from jaxgcd.lexing.formula import Automaton
from jaxgcd.lexing.reach import UNREACHED, distance, height, transitions


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
    block = np.unique(_telling(trans, accept), axis=0, return_inverse=True)[1].ravel()
    for _ in range(8):  # that is enough for most automata
        count = block.max() + 1
        random = random_integers(int(count))
        signatures = _signatures(random[block], random[block[trans]])
        block = np.unique(signatures, return_inverse=True)[1].ravel()
        if block.max() + 1 == count:
            return block
    return _refine_chains(block, trans)


def _telling(trans: np.ndarray, accept: np.ndarray) -> np.ndarray:
    """What tells most states apart at once: the label, the shortest and the longest way to accepting.

    Returns:
        `int[states, 3]`.
    """
    shortest = distance(transitions(trans), accept != 0)
    live = shortest != UNREACHED
    kept = np.where(live[:, None] & live[trans], trans, 0)
    return np.stack([accept, shortest, height(transitions(kept), kept)], 1)


def _signatures(own: np.ndarray, behind: np.ndarray) -> np.ndarray:
    """One random integer for each row, from those of a state's block and of the blocks that it leads to."""
    weights = random_integers(behind.shape[1] + 1, stream=1)
    return (behind * weights[1:]).sum(axis=1, dtype=np.uint64) + own * weights[0]


def _refine_chains(block: np.ndarray, trans: np.ndarray) -> np.ndarray:
    """The same where it takes many rounds, because the automaton has long chains that end alike.

    A round looks only at the states that lead into a block with a new number, and the largest part of a
    block keeps the old one, so that a state is looked at O(log states) times (Hopcroft 1971).
    """
    edges = transitions(trans)
    sizes = np.bincount(block, minlength=len(block))
    suspects = np.arange(len(block))
    while len(suspects):
        suspects = np.unique(edges.into(_split(block, sizes, trans, suspects)))
    return block


def _split(block: np.ndarray, sizes: np.ndarray, trans: np.ndarray, suspects: np.ndarray) -> np.ndarray:
    """Tells `suspects` apart by the blocks that they lead to; returns the states that get a new block.

    The others of a block lead where they led before, so they stay together and apart from all suspects.

    Args:
        block: `int[states]`, changed in place.
        sizes: `int[states]`, the size of each block, changed in place.
        trans: `int32[states, classes]`.
        suspects: distinct states.
    """
    signatures = _signatures(mixed(block[suspects] + 1), mixed(block[trans[suspects]] + 1))
    _, at, part, size = np.unique(signatures, return_index=True, return_inverse=True, return_counts=True)
    home = block[suspects[at]]  # the block of each part
    others = sizes.copy()
    np.subtract.at(others, home, size)  # how many states of a block are no suspects
    staying = _largest(home, size, others)
    renamed, count = np.delete(np.arange(len(size)), staying), int(np.count_nonzero(sizes))
    name = home.copy()
    name[renamed] = count + np.arange(len(renamed))
    np.subtract.at(sizes, home[renamed], size[renamed])
    sizes[name[renamed]] = size[renamed]
    block[suspects] = name[part.ravel()]
    moved = [suspects[np.isin(part.ravel(), renamed)]]
    leaving = home[staying][others[home[staying]] > 0]
    for new, old in enumerate(leaving.tolist(), count + len(renamed)):
        rest = np.setdiff1d(np.flatnonzero(block == old), suspects)
        block[rest], sizes[new] = new, len(rest)
        sizes[old] -= len(rest)
        moved.append(rest)
    return np.concatenate(moved)


def _largest(home: np.ndarray, size: np.ndarray, others: np.ndarray) -> np.ndarray:
    """The parts that are the largest of their block, and larger than its rest."""
    order = np.lexsort((size, home))
    largest = order[np.append(np.diff(home[order]) != 0, True)]
    return largest[size[largest] > others[home[largest]]]


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
