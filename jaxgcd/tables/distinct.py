"""Arrays stored once for each content."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Distinct:
    """Numbers arrays of one shape by their contents, in the order in which they come.

    Attributes:
        found: one array of each number.
    """

    def __init__(self) -> None:
        self.found: list[np.ndarray] = []
        self._number: dict[bytes, int] = {}

    def __call__(self, arrays: np.ndarray) -> np.ndarray:
        """The numbers of some arrays."""
        numbers = np.zeros(len(arrays), np.int32)
        for i, array in enumerate(arrays):
            numbers[i] = self._number.setdefault(array.tobytes(), len(self.found))
            if numbers[i] == len(self.found):
                self.found.append(array)
        return numbers


def stacked(stores: Sequence[Distinct]) -> np.ndarray:
    """What some stores have found, each filled up with zeros to the length of the longest."""
    most = max(len(store.found) for store in stores)
    return np.stack([np.pad(np.stack(s.found), [(0, most - len(s.found)), (0, 0)]) for s in stores])
