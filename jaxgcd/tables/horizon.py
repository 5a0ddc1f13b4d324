"""Lexer states that short texts cannot tell apart.

A counted repeat such as `{0,2000}` has a lexer state for each count, and all of them but the last few read
the tokens alike: no token is long enough to reach the end. So pairs of a state and a string are looked at
once for all states that no string of that length tells apart.
"""

from __future__ import annotations

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._hashing import random_integers


def representatives(
    delta: np.ndarray, emits: np.ndarray, ending: np.ndarray, longest: int, budget: Budget
) -> list[np.ndarray]:
    """For each length one state that stands for all that read texts of at most that length alike.

    Args:
        delta: `int[states, symbols]`, the lexer's transitions.
        emits: `int[states]`; states with different numbers emit differently at the next symbol.
        ending: `int[states]`; states with different numbers are told apart by the empty text.
        longest: the largest length.
        budget: what may be used up.

    Returns:
        `longest + 1` arrays `int32[states]`, from which on they no longer change the same one.
    """
    weights = random_integers(delta.shape[1] + 2, stream=1)
    own = random_integers(len(delta))[np.unique(emits, return_inverse=True)[1]] * weights[-1]
    block = np.unique(ending, return_inverse=True)[1]
    own += random_integers(len(delta))[block] * weights[-2]
    found = [_first(block)]
    while len(found) <= longest:
        budget.step(0)
        count = block.max() + 1
        behind = random_integers(int(count))[block]
        rows = own + (behind[delta] * weights[:-2]).sum(axis=1, dtype=np.uint64)
        block = np.unique(rows, return_inverse=True)[1]
        if block.max() + 1 == count:
            found += [found[-1]] * (longest + 1 - len(found))
        else:
            found.append(_first(block))
    return found


def _first(block: np.ndarray) -> np.ndarray:
    """The first state of each state's block."""
    _, first = np.unique(block, return_index=True)
    return first.astype(np.int32)[block]
