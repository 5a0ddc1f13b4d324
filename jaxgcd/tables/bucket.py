"""Size buckets: tables enlarged to the same sizes share one trace."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxgcd.errors import ShapeError
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.dtypes import FIELDS, settled

_FIXED = {"symbols", "words", "page_words", "pages_in_shard", "shards", "tokens_plus_one", "two"}
"""Axes that follow from the vocabulary, and do not grow."""

_STATIC = ("runs", "max_depth", "slack")
"""Sizes that are not axes of the tables."""


def pad(tables: Tables, like: Tables | Mapping[str, int] | None = None) -> Tables:
    """Enlarges tables to a size bucket, so that grammars of one bucket share one trace.

    Without `like`, every axis grows to the next size of the row 1, 2, 3, 4, 6, 8, 12, 16, 24, ... (powers of
    two and one step between them), so that an axis gets at most half as long again; `max_depth` stays, and so
    does the number of grammars where it is 1.

    Args:
        tables: what to enlarge. Masks do not change; where `max_depth` grows, rows overflow later.
        like: tables of the bucket, or sizes as in `Tables.sizes`, for example the largest of each among the
            grammars that a server knows.

    Raises:
        ShapeError: the tables are larger than the bucket along some axis, or of another vocabulary size or
            `check`.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> one = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> two = jaxgcd.compile_grammar('start: "b"', vocabulary)
        >>> jaxgcd.pad(two, like=one).sizes == one.sizes
        True
    """
    if isinstance(like, Tables):
        _check_same_kind(tables, like)
    target = _target(tables.sizes, like.sizes if isinstance(like, Tables) else like)
    changes: dict[str, Any] = {name: target[name] for name in _STATIC}
    arrays = {}
    for name in FIELDS.keys() - {"host"}:
        dims, array = FIELDS[name].metadata["dims"], np.asarray(getattr(tables, name))
        more = [target[dim] - length for dim, length in zip(dims, array.shape, strict=True)]
        arrays[name] = np.pad(array, [(0, length) for length in more])
    changes.update(jax.device_put(settled(arrays)))
    return dataclasses.replace(tables, **changes)


def _check_same_kind(tables: Tables, like: Tables) -> None:
    for name in ("size", "check"):
        own, asked = getattr(tables, name), getattr(like, name)
        if own != asked:
            raise ShapeError(
                f"The tables have `{name}` {own!r}, the bucket's tables {asked!r}; compile alike."
            )


def _target(own: Mapping[str, int], asked: Mapping[str, int] | None) -> dict[str, int]:
    """The sizes to enlarge to."""
    if asked is None:
        stay = {*_FIXED, "max_depth"} | ({"grammars"} if own["grammars"] == 1 else set())
        return {name: size if name in stay else bucket_size(size) for name, size in own.items()}
    if unknown := set(asked) - set(own):
        raise ShapeError(f"There are no sizes {sorted(unknown)}; they are {sorted(own)}.")
    target = {**own, **asked}
    for name, size in own.items():
        if target[name] < size or (name in _FIXED and target[name] != size):
            raise ShapeError(
                f"The tables have {name} = {size}, which does not fit the bucket's {target[name]}."
            )
    if own["grammars"] == 1 < target["grammars"]:
        raise ShapeError(
            "The bucket is of joined tables, in which grammar 0 is unconstrained; join these as well, with "
            "`concatenate([tables])`."
        )
    return target


def bucket_size(size: int) -> int:
    """The next of 1, 2, 3, 4, 6, 8, 12, 16, 24, ...; 0 for 0."""
    power = 1 << max(size - 1, 0).bit_length()
    return 0 if size == 0 else power * 3 // 4 if size <= power * 3 // 4 else power
