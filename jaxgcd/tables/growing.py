"""Arrays that grow at their end, and pieces of arrays."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


class Growing:
    """An array with room to grow; `values` is a view that is valid until the next `extend`."""

    def __init__(self, dtype: DTypeLike, *tail: int):
        self._data = np.empty((64, *tail), dtype)
        self.values = self._data[:0]

    def __len__(self) -> int:
        return len(self.values)

    def extend(self, values: ArrayLike) -> None:
        """Appends an array of rows."""
        new = np.asarray(values, self._data.dtype)
        begin, end = len(self.values), len(self.values) + len(new)
        if end > len(self._data):
            larger = np.empty((max(end, 2 * len(self._data)), *self._data.shape[1:]), self._data.dtype)
            larger[:begin] = self.values
            self._data = larger
        self._data[begin:end] = new
        self.values = self._data[:end]


def ranges(start: np.ndarray, length: np.ndarray) -> np.ndarray:
    """`start[0], start[0] + 1, ...`, `length[0]` of them, then those from `start[1]` on, and so on."""
    return np.arange(int(length.sum())) + np.repeat(start - np.cumsum(length) + length, length)


def pieces(sizes: ArrayLike, together: int) -> Iterator[slice]:
    """Slices that cut things of some sizes into pieces; each is no larger, but for its last thing."""
    ends = np.cumsum(sizes)
    begin = 0
    while begin < len(ends):
        past = together + (int(ends[begin - 1]) if begin else 0)
        end = min(int(np.searchsorted(ends, past, side="right")) + 1, len(ends))
        yield slice(begin, end)
        begin = end
