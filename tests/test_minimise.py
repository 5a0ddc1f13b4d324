"""Which states of an automaton are one, judged by striking out pairs that a word tells apart."""

import numpy as np

from jaxgcd.lexing.minimise import refine


def alike(trans: np.ndarray, accept: np.ndarray) -> np.ndarray:
    """Which pairs of states no word tells apart, by striking out pairs until nothing changes."""
    same = accept[:, None] == accept[None, :]
    while True:
        after = same & np.all([same[column[:, None], column[None, :]] for column in trans.T], axis=0)
        if (after == same).all():
            return same
        same = after


def test_states_share_a_block_exactly_if_no_word_tells_them_apart() -> None:
    """Random automata, and long chains of states, of which one is told apart at a time."""
    rng = np.random.default_rng(0)
    for size in (*range(1, 41), 60, 80):
        for chain in (False, True):
            chance = rng.integers(0, size, (size, 2))
            step = np.minimum(np.arange(size)[:, None] + rng.integers(0, 2, (size, 2)), size - 1)
            trans, accept = (step if chain else chance).astype(np.int32), (rng.random(size) < 0.9).astype(int)
            if chain:  # only the last state differs from the start, and each round tells one more apart
                accept = (np.arange(size) < size - 1).astype(int)
            trans[0], accept[0] = 0, 0
            block = refine(trans, accept)
            assert ((block[:, None] == block[None, :]) == alike(trans, accept)).all()
            assert sorted(set(block.tolist())) == list(range(block.max() + 1))
