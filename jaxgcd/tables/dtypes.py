"""The dtypes of the arrays of `Tables`: those of two bytes where the sizes allow it.

A dtype follows from sizes alone, never from the numbers that are there, so that tables of one bucket have the
same dtypes and share a trace. An array's kind is its annotation in `Tables`, and the axes that its values
are below are in its field.

One byte would fit few arrays, none of them large: those of terminals, scanners and nonterminals.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

import numpy as np

from jaxgcd.tables.arrays import Tables

_KINDS = {
    "Int32": (np.int32, np.int32),
    "UInt32": (np.uint32, np.uint32),
    "Int": (np.int16, np.int32),
    "Integer": (np.uint16, np.int32),
}
"""By annotation, the dtype where all places have numbers in it, and the dtype elsewhere."""

FIELDS = {field.name: field for field in dataclasses.fields(Tables) if "dims" in field.metadata}
"""The fields that are arrays."""


def dtype_of(name: str, sizes: Mapping[str, int]) -> np.dtype:
    """The dtype of one array.

    Args:
        name: of the field of `Tables`.
        sizes: the lengths of at least the axes that its values are below.
    """
    narrow, wide = _KINDS[str(FIELDS[name].type).split("[")[0]]
    longest = max((sizes[axis] for axis in FIELDS[name].metadata["below"]), default=math.inf)
    return np.dtype(narrow if longest <= np.iinfo(narrow).max else wide)


def settled(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All arrays of some tables, in the dtypes that their sizes ask for."""
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        sizes.update(zip(FIELDS[name].metadata["dims"], array.shape, strict=True))
    return {name: array.astype(dtype_of(name, sizes), copy=False) for name, array in arrays.items()}
