"""Matrices in which few cells are set."""

from __future__ import annotations

import numpy as np

from jaxgcd.tables.growing import Growing

_BITS = 4
_WIDTH = 1 << _BITS
"""Columns of a block. Small, as a block may be made for one cell."""


class Sparse:
    """Integers, `int64[rows, columns]`, in blocks of columns; blocks without a cell are not stored.

    Args:
        rows: how many there are.
        columns: how many there are.
        default: what cells hold that are not set.
    """

    def __init__(self, rows: int, columns: int, default: int):
        self._default = default
        self._across = -(-columns // _WIDTH)
        self._block = np.zeros(rows * self._across, np.int32)
        self._cells = Growing(np.int64)
        self._cells.extend(np.full(_WIDTH, default))  # block 0 is that of all that are not stored

    def put(self, rows: np.ndarray, columns: np.ndarray, values: np.ndarray) -> None:
        """Sets some cells."""
        places = rows * self._across + (columns >> _BITS)
        new = np.unique(places[self._block[places] == 0])
        self._block[new] = (len(self._cells) >> _BITS) + np.arange(len(new))
        self._cells.extend(np.full(_WIDTH * len(new), self._default))
        self._cells.values[self._index(rows, columns)] = values

    def at(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """The values of some cells."""
        return self._cells.values[self._index(rows, columns)]

    def _index(self, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        blocks = self._block[rows * self._across + (columns >> _BITS)]
        return blocks.astype(np.int64) << _BITS | columns & _WIDTH - 1
