"""Fixed random integers, by which sets and rows are compared without being built.

64 bits each; two different sums of `n` that are compared are equal by chance with a probability of about
2**-64 for each pair.
"""

from __future__ import annotations

import numpy as np


def mixed(numbers: np.ndarray) -> np.ndarray:
    """A random integer, `uint64`, for each integer from 0 on (SplitMix64, Steele et al. 2014)."""
    z = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def random_integers(count: int, stream: int = 0) -> np.ndarray:
    """`count` random integers, `uint64`. Factors of one product must be of different streams.

    Two factors of one stream would commute: `r[i] * r[j]` is `r[j] * r[i]`.
    """
    return mixed(np.arange(1, count + 1) + (stream << 32))
