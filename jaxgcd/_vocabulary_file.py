"""A vocabulary in a file (see `jaxgcd._container`): its contents, and what was derived from them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from jaxgcd import _container
from jaxgcd._container import FilePath, Spec
from jaxgcd._version import version

KIND = "vocabulary"
_SYMBOLS = 257
"""The bytes, and the end of the text."""
_OWN = {"text": "|u1", "offset": "<i8", "eos": "<i4", "special": "<i4"}


class Parts(NamedTuple):
    """The contents of a vocabulary, and arrays that were derived from them."""

    tokens: Sequence[bytes]
    eos: Sequence[int]
    special: Sequence[int]
    size: int
    fingerprint: str
    derived: Mapping[str, np.ndarray]


def write(path: FilePath, parts: Parts) -> None:
    """Writes the file."""
    own = {
        "text": np.frombuffer(b"".join(parts.tokens), np.uint8),
        "offset": np.cumsum([0, *map(len, parts.tokens)], dtype=np.int64),
        "eos": np.array(parts.eos, np.int32),
        "special": np.array(sorted(parts.special), np.int32),
    }
    facts = {"written by": version(), "size": parts.size, "fingerprint": parts.fingerprint}
    _container.write(path, KIND, facts, {**own, **parts.derived})


def read(path: FilePath, derived: Collection[str]) -> Parts:
    """Reads the file.

    Args:
        path: the file.
        derived: the names of the derived arrays that it must have.
    """

    def check(facts: dict[str, Any], specs: dict[str, Spec]) -> None:
        kinds = {name: type(value) for name, value in facts.items()}
        if kinds != {"written by": str, "size": int, "fingerprint": str}:
            raise ValueError("its facts are damaged")
        own = {name: Spec(dtype, specs[name].shape[:1]) for name, dtype in _OWN.items() if name in specs}
        if specs.keys() != {*_OWN, *derived} or any(specs[name] != spec for name, spec in own.items()):
            raise ValueError("its arrays differ from those of this version")

    facts, arrays = _container.read(path, KIND, check)
    offset, text = arrays["offset"].tolist(), arrays["text"].tobytes()
    with _container.naming(path, KIND):
        if offset[:1] != [0] or offset[-1] != len(text) or offset != sorted(offset):
            raise ValueError("its tokens are damaged")
        _check_derived(arrays, facts["size"])
    tokens = [text[begin:end] for begin, end in pairwise(offset)]
    own = tokens, arrays["eos"].tolist(), arrays["special"].tolist(), facts["size"], facts["fingerprint"]
    return Parts(*own, {name: arrays[name] for name in derived})


def _check_derived(arrays: Mapping[str, np.ndarray], size: int) -> None:
    """Raises a `ValueError` where a number that was derived points to nothing."""
    offset, symbols = arrays["spelling.offset"], arrays["spelling.symbols"]
    first, rest = arrays["strings.first"], arrays["strings.rest"]
    length, whole = arrays["strings.length"], arrays["strings.token_string"]
    ends = len(offset) == size + 1 and offset[0] == 0 and offset[-1] == len(symbols)
    count = len(first)
    sound = (
        ends
        and (np.diff(offset) >= 0).all()
        and {count} == {len(rest), len(length)}
        and len(whole) == size
        and _within(symbols, _SYMBOLS)
        and _within(first, _SYMBOLS)
        and _within(whole, count)
        and not rest[:1].any()
        and _within(rest[1:], np.arange(1, count))
        and (length == np.append(0, 1 + length[rest[1:]])).all()
        and (length[whole] == np.diff(offset)).all()
    )
    if not sound:
        raise ValueError("what was derived from its tokens is damaged")


def _within(values: np.ndarray, most: int | np.ndarray) -> bool:
    """Whether all values are from 0 on and less than `most`."""
    return bool(((values >= 0) & (values < most)).all())
