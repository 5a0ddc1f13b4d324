"""Vocabularies split into equal parts, one for each device that holds a part of the logits."""

from __future__ import annotations

import dataclasses

import jax
import numpy as np

from jaxgcd.arguments import count
from jaxgcd.errors import ShapeError
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.distinct import Distinct, stacked
from jaxgcd.tables.dtypes import dtype_of
from jaxgcd.tables.rows import PAGE_WORDS

_CHUNK = 1 << 24
"""About how many words of rows are laid out together."""


def split_vocabulary(tables: Tables, shards: int) -> Tables:
    """Lays tables out so that their vocabulary can be split across devices; see `partition_specs`.

    Each part holds `ceil(words / shards)` words of every row of token bits, in pages of its own; so packed
    masks may become a few words longer, with zeros at the end. Where the logits are split as well, the parts
    should be the same tokens: make `Vocabulary(size=...)` a multiple of `32 * shards`.

    Args:
        tables: as they were compiled, or joined (`concatenate`); `pad` comes afterwards.
        shards: how many parts; 1 is how tables are compiled.

    Raises:
        ShapeError: `shards` is not a number of parts, or the tables ask the host (`check="host"`).

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2], size=128)
        >>> tables = jaxgcd.split_vocabulary(jaxgcd.compile_grammar('start: "b"', vocabulary), 2)
        >>> tables.pages.shape[0], jaxgcd.allowed(tables, jaxgcd.init(tables)).tolist()
        (2, [2, 0, 0, 0])
    """
    shards = count("shards", shards)
    if tables.check == "host":
        raise ShapeError('A vocabulary is split for the device alone; compile with `check="device"`.')
    words = -(-tables.size // 32)
    own = -(-words // shards)
    page_words = -(-own // -(-own // PAGE_WORDS))
    row_pages, pages = _pages(tables, words, own, page_words, shards)
    dtype = dtype_of("row_pages", {"pages": pages.shape[1]})
    changes = {"row_pages": row_pages.astype(dtype), "pages": pages}
    for name in ("eos_words", "bytewise"):
        changes[name] = _fitted(np.asarray(getattr(tables, name))[None, :words], own * shards)[0]
    return dataclasses.replace(tables, **jax.device_put(changes))


def _pages(
    tables: Tables, words: int, own: int, page_words: int, shards: int
) -> tuple[np.ndarray, np.ndarray]:
    """`row_pages` and `pages`, for `own` words in each shard."""
    pages, row_pages = np.asarray(tables.pages), np.asarray(tables.row_pages)
    count = -(-own // page_words)
    stores = [Distinct() for _ in range(shards)]
    found = np.zeros((len(row_pages), shards, count), np.int32)
    step = max(1, _CHUNK // (own * shards))
    for first in range(0, len(row_pages), step):
        ids = row_pages[first : first + step]
        parts = [
            part[own_ids].reshape(len(ids), -1)
            for part, own_ids in zip(pages, ids.swapaxes(0, 1), strict=True)
        ]
        width = tables.words // tables.shards
        rows = np.concatenate([part[:, :width] for part in parts], axis=1)[:, :words]
        rows = _fitted(rows, own * shards).reshape(len(ids), shards, own)
        for shard, store in enumerate(stores):
            cut = _fitted(rows[:, shard], count * page_words).reshape(-1, page_words)
            found[first : first + step, shard] = store(cut).reshape(len(ids), count)
    return found, stacked(stores)


def _fitted(rows: np.ndarray, width: int) -> np.ndarray:
    """Rows with zeros behind, up to a width."""
    return np.pad(rows, [(0, 0), (0, width - rows.shape[1])])
