"""Numbering integers by their values, against `np.unique`."""

import numpy as np
import pytest

from jaxgcd._numbering import numbered, sorting


@pytest.mark.parametrize("count", [0, 1, 7, 1_023, 1_024, 5_000])
@pytest.mark.parametrize("largest", [0, 1, 0xFFFF, 0x10000, 0xFFFFFFFF, 1 << 40, (1 << 63) - 1])
@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_numbering_agrees_with_unique(count: int, largest: int, dtype: type):
    few = np.random.default_rng(count).integers(0, largest, max(1, count // 3), np.int64, endpoint=True)
    keys = np.random.default_rng(1).choice(few, count).astype(dtype)
    expected = np.unique(keys, return_index=True, return_inverse=True)
    for got, value in zip(numbered(keys), expected, strict=True):
        np.testing.assert_array_equal(got, value)
    np.testing.assert_array_equal(sorting(keys), np.argsort(keys, kind="stable"))


def test_numbering_takes_all_64_bits_and_narrow_integers():
    keys = np.random.default_rng(2).integers(0, 1 << 64, 3_000, np.uint64)
    np.testing.assert_array_equal(numbered(keys).values, np.unique(keys))
    narrow = keys.astype(np.int32) & 0x7FFFFFFF
    np.testing.assert_array_equal(numbered(narrow).values, np.unique(narrow))
