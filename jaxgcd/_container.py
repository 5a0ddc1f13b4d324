"""The file format of what is saved: facts and named arrays in one file, checksummed, without pickle.

| bytes | what |
|---|---|
| 0 to 7 | `MAGIC` |
| 8 to 15 | the version of the format, `FORMAT` |
| 16 to 23 | the length of the header, a multiple of 64 |
| 24 to 31 | the length of the file |
| 32 to 63 | SHA-256 of bytes 0 to 31 and of the header |
| 64 and on | the header: JSON, padded with spaces |
| behind it | the arrays, one after another in C order, each padded with zeros to a multiple of 64 bytes |

The header holds what kind of thing this is, its facts, the name, dtype and shape of each array, and the
SHA-256 of all that is behind it. Numbers are little-endian. Where an array lies follows from the shapes
before it, so that no offset can point anywhere else, and the lengths are checked against the file's own
before any memory is taken for the arrays.

The checksums detect damage, not malice: whoever can write a file can also write its checksums.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from jaxgcd._files import opened, regular_size, replace
from jaxgcd.errors import StorageError

MAGIC = b"jaxgcd\r\n"
FORMAT = 1
"""Raised whenever the meaning of a file changes; files of other formats are refused."""

MAX_BYTES = 1 << 32
"""A file that is longer is refused."""
MAX_HEADER = 1 << 22
"""A longer header is refused."""

_ALIGN = 64
_DTYPES = frozenset({"|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"})
_MOST_DIMS = 4

FilePath = str | os.PathLike[str]


class Spec(NamedTuple):
    """An array's dtype and shape."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        return np.dtype(self.dtype).itemsize * math.prod(self.shape)


class Contents(NamedTuple):
    """What a file holds."""

    facts: dict[str, Any]
    arrays: dict[str, np.ndarray]


Check = Callable[[dict[str, Any], dict[str, Spec]], None]
"""Looks at the facts and the arrays' specs before the arrays are read; a `ValueError` says what is wrong."""


def write(path: FilePath, kind: str, facts: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Writes a file, or replaces one at once: a reader sees the old one or the new one, never a part.

    Raises:
        StorageError: the file cannot be written.
    """
    stored = {name: _little_endian(array) for name, array in arrays.items()}
    raw = [array.reshape(-1).view(np.uint8) for array in stored.values()]
    body = [piece for array in raw for piece in (array.data, bytes(_padding(array.nbytes)))]
    header = {
        "kind": kind,
        "facts": dict(facts),
        "arrays": [[name, array.dtype.str, array.shape] for name, array in stored.items()],
        "digest": _digest(*body),
    }
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * _padding(len(text))
    with _naming(path, "Give a path in a folder that exists and can be written to"):
        if len(text) > MAX_HEADER:
            raise ValueError(f"the facts to be saved take {len(text)} bytes, more than {MAX_HEADER}")
        size = 64 + len(text) + sum(map(len, body))
        if size > MAX_BYTES:
            raise ValueError(f"the file would have {size} bytes, more than {MAX_BYTES}")
        numbers = b"".join(number.to_bytes(8, "little") for number in (FORMAT, len(text), size))
        prefix = MAGIC + numbers
        replace(path, [prefix, bytes.fromhex(_digest(prefix, text)), text, *body])


def read(path: FilePath, kind: str, check: Check, *, mapped: bool = False) -> Contents:
    """Reads a file that `write` wrote. The arrays cannot be written to, and begin at multiples of 64 bytes.

    Args:
        path: the file.
        kind: the kind that it must be of.
        check: see `Check`.
        mapped: map the file into memory instead of reading it. Then nobody may change it in place while the
            arrays are in use.

    Raises:
        StorageError: it cannot be read, is not such a file, or is damaged.
    """
    with naming(path, kind), opened(path) as file:
        size = regular_size(file)
        if size > MAX_BYTES:
            raise ValueError(f"it has {size} bytes, more than {MAX_BYTES}")
        header, begin = _read_header(file, size)
        facts, specs, digest = _parsed(header, kind)
        check(facts, specs)
        end = begin + sum(spec.nbytes + _padding(spec.nbytes) for spec in specs.values())
        if end != size:
            raise ValueError(f"its arrays end at byte {end} of {size}")
        body = _mapping(file, begin) if mapped else _read_body(file, size - begin)
        if _digest(body.data) != digest:
            raise ValueError("its checksum is wrong, so it is damaged")
    return Contents(facts, _views(body, specs))


def kind_of(path: FilePath) -> str:
    """What kind of thing a file holds, from its header alone; `StorageError` if it is none of `write`'s."""
    with naming(path, "tables or a vocabulary"), opened(path) as file:
        header = json.loads(_read_header(file, regular_size(file))[0].decode())
        if not isinstance(header, dict) or not isinstance(header.get("kind"), str):
            raise ValueError("its header is damaged")
        return header["kind"]


def naming(path: FilePath, kind: str) -> AbstractContextManager[None]:
    """Turns what goes wrong while a file is read into errors that name it and the remedy."""
    return _naming(path, f"Make the file again ({kind}) with this version of jaxgcd, or give another one")


def _little_endian(array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    return np.require(array, array.dtype.newbyteorder("<"), "C")


def _padding(length: int) -> int:
    return -length % _ALIGN


def _digest(*pieces: bytes | memoryview) -> str:
    found = hashlib.sha256()
    for piece in pieces:
        found.update(piece)
    return found.hexdigest()


@contextmanager
def _naming(path: FilePath, remedy: str) -> Iterator[None]:
    if not isinstance(path, (str, os.PathLike)):
        raise StorageError(f"`path` must be a `str` or a `pathlib.Path`, not {type(path).__name__}.")
    try:
        yield
    except OSError as error:
        raise StorageError(f"{os.fsdecode(path)!r}: {error.strerror or error}. {remedy}.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        reason = str(error) or type(error).__name__
        raise StorageError(f"{os.fsdecode(path)!r}: {reason}. {remedy}.") from error


def _read_header(file: BinaryIO, size: int) -> tuple[bytes, int]:
    """The header, and where the arrays begin."""
    prefix = _read_body(file, min(64, size)).tobytes()
    if prefix[:8] != MAGIC:
        raise ValueError("it is not a file of jaxgcd's")
    if len(prefix) < 64:
        raise ValueError("it is truncated")
    version, length, stated = (int.from_bytes(prefix[at : at + 8], "little") for at in (8, 16, 24))
    if version != FORMAT:
        age = "a newer jaxgcd (update this one)" if version > FORMAT else "an older jaxgcd"
        raise ValueError(f"it was written by {age} in format {version}, and this one reads format {FORMAT}")
    if stated != size:
        raise ValueError(f"it has {size} bytes and should have {stated}, so it is truncated or damaged")
    if length > min(size - 64, MAX_HEADER):
        raise ValueError("its header is damaged")
    header = _read_body(file, length).tobytes()
    if _digest(prefix[:32], header) != prefix[32:].hex():
        raise ValueError("its header's checksum is wrong, so it is damaged")
    return header, 64 + length


def _parsed(text: bytes, kind: str) -> tuple[dict[str, Any], dict[str, Spec], str]:
    header = json.loads(text.decode())
    keys = {"kind": str, "facts": dict, "arrays": list, "digest": str}
    if not isinstance(header, dict) or {key: type(value) for key, value in header.items()} != keys:
        raise ValueError("its header is damaged")
    if header["kind"] != kind:
        raise ValueError(f"it holds {header['kind']!r}, not {kind!r}")
    specs = dict(_spec(entry) for entry in header["arrays"])
    if len(specs) != len(header["arrays"]):
        raise ValueError("it names an array twice")
    return header["facts"], specs, header["digest"]


def _spec(entry: Any) -> tuple[str, Spec]:
    if not isinstance(entry, list) or [type(part) for part in entry] != [str, str, list]:
        raise ValueError("its list of arrays is damaged")
    name, dtype, shape = entry
    if dtype not in _DTYPES or len(shape) > _MOST_DIMS:
        raise ValueError(f"its array {name!r} has the dtype {dtype!r} and {len(shape)} axes")
    if not all(type(length) is int and 0 <= length < 1 << 31 for length in shape):
        raise ValueError(f"its array {name!r} has a wrong shape")
    return name, Spec(dtype, tuple(shape))


def _read_body(file: BinaryIO, length: int) -> np.ndarray:
    """The next bytes, in memory of our own that begins at a multiple of 64."""
    room = np.empty(length + _ALIGN, np.uint8)
    begin = -room.ctypes.data % _ALIGN
    found = room[begin : begin + length]
    done = 0
    while done < length:
        count = file.readinto(found.data[done:])  # type: ignore[attr-defined]
        if not count:
            raise ValueError("it became shorter while it was read")
        done += count
    found.flags.writeable = False
    return found


def _mapping(file: BinaryIO, begin: int) -> np.ndarray:
    return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)[begin:]


def _views(body: np.ndarray, specs: Mapping[str, Spec]) -> dict[str, np.ndarray]:
    arrays, begin = {}, 0
    for name, spec in specs.items():
        raw = body[begin : begin + spec.nbytes].view(spec.dtype).reshape(spec.shape)
        arrays[name] = raw.astype(raw.dtype.newbyteorder("="), copy=False)
        begin += spec.nbytes + _padding(spec.nbytes)
    return arrays
