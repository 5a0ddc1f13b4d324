"""Files that appear at once, and are opened without surprises."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from typing import BinaryIO

TEMPORARY = (".jaxgcd-", ".tmp")
"""How the names of unfinished files begin and end."""


def replace(path: str | os.PathLike[str], pieces: Iterable[bytes | memoryview]) -> None:
    """Writes a file beside `path`, and puts it there once it is on the disk.

    Raises:
        OSError, ValueError: it cannot be written; what was at `path` is still there.
    """
    target = os.fsdecode(path)
    folder = os.path.dirname(target) or os.curdir
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(target).st_mode):
            raise ValueError("it exists and is not a regular file")
    temporary = os.path.join(folder, secrets.token_hex(8).join(TEMPORARY))
    try:
        with open(temporary, "xb") as file:
            file.writelines(pieces)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _sync_folder(folder: str) -> None:
    """Makes a file's new name last through a crash, where the system can do that."""
    with suppress(OSError):
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)


def opened(path: str | os.PathLike[str]) -> BinaryIO:
    """Opens a file for reading, and does not wait for a writer if it is a pipe."""
    flags = getattr(os, "O_NONBLOCK", 0)
    return open(path, "rb", buffering=0, opener=lambda name, mode: os.open(name, mode | flags))


def regular_size(file: BinaryIO) -> int:
    """The length of a file; a `ValueError` for a folder, a pipe or a device."""
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        raise ValueError("it is not a regular file")
    return found.st_size
