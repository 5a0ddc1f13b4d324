"""Integers numbered by their values, as by `np.unique`, but in less time where there are many.

NumPy sorts integers of 16 bits in linear time, so larger ones are sorted digit by digit, the last one first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_BITS = 16
_FEW = 1 << 10
"""So many are sorted as fast by comparisons."""


class Numbering(NamedTuple):
    """The distinct ones among some integers, in order.

    Attributes:
        values: each of them.
        first: where each stands first.
        which: for every integer, the index of its value.
    """

    values: np.ndarray
    first: np.ndarray
    which: np.ndarray


def sorting(keys: np.ndarray) -> np.ndarray:
    """The stable order that sorts integers, none of which is negative."""
    if len(keys) < _FEW:
        return np.argsort(keys, kind="stable")
    order = np.argsort(keys.astype(np.uint16), kind="stable")
    for shift in range(_BITS, int(keys.max()).bit_length(), _BITS):
        digit = (keys >> keys.dtype.type(shift)).astype(np.uint16)
        order = order[np.argsort(digit[order], kind="stable")]
    return order


def numbered(keys: np.ndarray) -> Numbering:
    """Numbers integers, none of which is negative, by their values."""
    order = sorting(keys)
    ordered = keys[order]
    begins = np.append(True, ordered[1:] != ordered[:-1])[: len(keys)]
    which = np.empty(len(keys), np.int64)
    which[order] = np.cumsum(begins, dtype=np.int32) - 1  # sums of 64 bits take six times as long
    return Numbering(ordered[begins], order[begins], which)
