"""`CompileCache`: compiled tables in a folder, for all processes that use it.

An entry is a file as `save` writes it, without the arrays that the vocabulary alone decides, named by its key
(`jaxgcd.tables.key`). Entries appear at once and are never changed, only replaced by equal ones or deleted,
so there are no locks: readers see a whole entry or none, and processes that compile the same at the same time
both write it. An entry that is damaged is no entry; it is replaced.
"""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Any, NamedTuple

import lark

from jaxgcd._budget import Budget
from jaxgcd._files import TEMPORARY
from jaxgcd.errors import StorageError, StorageWarning
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.key import compile_key
from jaxgcd.tables.pack import VOCABULARY_ARRAYS, vocabulary_arrays
from jaxgcd.tables.storage import read_tables, write_tables
from jaxgcd.vocabulary import Vocabulary

DEFAULT_MAX_BYTES = 1 << 30
MAX_BYTES_VARIABLE = "JAXGCD_CACHE_MAX_BYTES"
"""An environment variable: `max_bytes` where it is not given."""

_ENTRY = re.compile(r"[0-9a-f]{40}\.jaxgcd")
_ABANDONED = 3600.0
"""Seconds after which an unfinished file is taken for one that a process has left behind."""


class CompileCache:
    """A folder of compiled tables, for `compile_grammar(..., cache=...)`.

    Any number of threads and processes may use a folder. Its entries are trusted as far as programs are: give
    it to nobody from whom you would not run one.

    Args:
        directory: the folder; made if it is not there.
        max_bytes: the most that its entries may take together; beyond it those that were not used for the
            longest time are deleted, and tables that alone take more are not kept. By default the environment
            variable `JAXGCD_CACHE_MAX_BYTES`, or else 2**30.

    Raises:
        StorageError: the folder cannot be made, or the limit is not a number of bytes.

    Example:
        >>> import tempfile, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> cache = jaxgcd.CompileCache(tempfile.mkdtemp())
        >>> once, again = (jaxgcd.compile_grammar('start: "a" "b"', vocabulary, cache=cache) for _ in "12")
        >>> once.report.cached, again.report.cached
        (False, True)
    """

    def __init__(self, directory: str | os.PathLike[str], *, max_bytes: int | None = None):
        if not isinstance(directory, (str, os.PathLike)):
            raise StorageError(
                f"`cache` must be a `CompileCache` or the path of a folder, not {type(directory).__name__}."
            )
        self.directory = os.path.abspath(os.fsdecode(directory))
        self.max_bytes = _limit(max_bytes)
        try:
            os.makedirs(self.directory, exist_ok=True)
        except (OSError, ValueError) as error:
            raise StorageError(f"The cache's folder {self.directory!r} cannot be made: {error}.") from error

    def __repr__(self) -> str:
        return f"CompileCache({self.directory!r}, max_bytes={self.max_bytes})"

    def lookup(self, key: str, vocabulary: Vocabulary) -> Tables | None:
        """The tables of a key, or None if there is no sound entry."""
        path = self._path(key)
        if not os.path.exists(path):
            return None
        try:
            tables = read_tables(path, {"key": key}, vocabulary_arrays(vocabulary))
        except StorageError:
            return None
        with suppress(OSError):  # a folder that cannot be written to does not count its uses
            os.utime(path)
        return tables

    def store(self, key: str, tables: Tables) -> None:
        """Adds an entry, then deletes the entries that are too many.

        Warns:
            StorageWarning: it could not be written.
        """
        with suppress(OSError):
            os.makedirs(self.directory, exist_ok=True)  # it may have been deleted meanwhile
        try:
            write_tables(self._path(key), tables, {"key": key}, shared=VOCABULARY_ARRAYS)
        except StorageError as error:
            message = f"The compiled tables were not kept in the cache: {error}"
            warnings.warn(message, StorageWarning, stacklevel=4)
        self._trim()

    def _path(self, key: str) -> str:
        return os.path.join(self.directory, f"{key}.jaxgcd")

    def _trim(self) -> None:
        """Deletes the entries that are too many, and what processes have left behind.

        Others may do the same at the same time: what is gone is gone, and whoever reads an entry keeps it.
        """
        entries = sorted(self._files(), key=lambda file: (file.size <= self.max_bytes, file.used))
        total = sum(file.size for file in entries)
        for file in entries:
            if total <= self.max_bytes:
                break
            total -= file.size
            _delete(file.path)

    def _files(self) -> Iterator[_File]:
        """The entries; deletes unfinished files that are old."""
        with suppress(OSError), os.scandir(self.directory) as found:
            for item in found:
                with suppress(OSError):
                    status = item.stat()
                    if _ENTRY.fullmatch(item.name):
                        yield _File(item.path, status.st_size, status.st_mtime)
                    elif _is_temporary(item.name) and time.time() - status.st_mtime > _ABANDONED:
                        _delete(item.path)


class _File(NamedTuple):
    path: str
    size: int
    used: float


def _delete(path: str) -> None:
    with suppress(OSError):  # another process was faster, or may not
        os.unlink(path)


def _is_temporary(name: str) -> bool:
    return name.startswith(TEMPORARY[0]) and name.endswith(TEMPORARY[1])


def _limit(max_bytes: int | None) -> int:
    given, name = max_bytes, "`max_bytes`"
    if given is None:
        given, name = os.environ.get(MAX_BYTES_VARIABLE, DEFAULT_MAX_BYTES), MAX_BYTES_VARIABLE
    try:
        limit = int(given)
    except (TypeError, ValueError, OverflowError):
        limit = -1
    if limit < 0 or isinstance(given, float):
        raise StorageError(f"{name} is {given!r}; give a number of bytes, 0 or more.")
    return limit


def through_cache(
    cache: CompileCache | str | os.PathLike[str],
    fresh: Callable[[], Tables],
    grammar: str | os.PathLike[str] | lark.Lark,
    vocabulary: Vocabulary,
    options: dict[str, Any],
    budget: Budget,
) -> Tables:
    """The tables from the cache, or fresh ones, which are then in the cache."""
    cache = cache if isinstance(cache, CompileCache) else CompileCache(cache)
    begin = time.perf_counter()
    key = compile_key(grammar, vocabulary, options, budget)
    found = key and cache.lookup(key, vocabulary)
    if found and found.report:
        seconds = {"load": time.perf_counter() - begin}
        return replace(found, report=replace(found.report, seconds=seconds, cached=True))
    tables = fresh()
    if key and key == compile_key(
        grammar, vocabulary, options, budget
    ):  # no imported file has changed meanwhile
        cache.store(key, tables)
    return tables
