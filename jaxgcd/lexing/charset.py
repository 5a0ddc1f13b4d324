"""Sets of characters as Python's `re` understands them, and their UTF-8 encodings.

A set is a tuple of sorted, disjoint, non-adjacent ranges of code points. Surrogates are in no set: they
have no UTF-8 form. What a class such as `\\w` contains, or what matches under IGNORECASE, is not
modelled but read off `re` itself, so it is right for the Unicode version of the running Python.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from re import _constants as op  # type: ignore[attr-defined]
from typing import Any

import numpy as np

CharSet = tuple[tuple[int, int], ...]

ALL: CharSet = ((0, 0xD7FF), (0xE000, 0x10FFFF))
NEWLINE: CharSet = ((10, 10),)

DEAD = 0
COMPLETE = 1

_CATEGORIES = {
    op.CATEGORY_DIGIT: (r"\d+", False),
    op.CATEGORY_NOT_DIGIT: (r"\d+", True),
    op.CATEGORY_SPACE: (r"\s+", False),
    op.CATEGORY_NOT_SPACE: (r"\s+", True),
    op.CATEGORY_WORD: (r"\w+", False),
    op.CATEGORY_NOT_WORD: (r"\w+", True),
}


def union(ranges: Iterable[tuple[int, int]]) -> CharSet:
    """The set of all characters in `ranges`, which may overlap and come in any order."""
    merged: list[list[int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1][1] = max(merged[-1][1], high)
        else:
            merged.append([low, high])
    return tuple(
        (max(low, first), min(high, last))
        for low, high in merged
        for first, last in ALL
        if max(low, first) <= min(high, last)
    )


def complement(charset: CharSet) -> CharSet:
    """All characters that are not in `charset`."""
    starts = [0, *(high + 1 for _, high in charset)]
    ends = [*(low - 1 for low, _ in charset), 0x10FFFF]
    return union((low, high) for low, high in zip(starts, ends, strict=True) if low <= high)


def category(code: Any, flags: int) -> CharSet:
    """The characters of a category such as `\\w`: Unicode's, or ASCII's under `re.ASCII`."""
    pattern, negated = _CATEGORIES[code]
    found = _scan(pattern, flags & re.ASCII)
    return complement(found) if negated else found


def from_items(items: Sequence[tuple[Any, Any]], flags: int) -> CharSet:
    """The characters that a parsed class `[...]` matches.

    Args:
        items: pairs (opcode, argument) as `re`'s parser makes them: NEGATE, LITERAL, RANGE, CATEGORY.
        flags: the flags in force; IGNORECASE and ASCII matter.
    """
    return _from_items(tuple(items), flags & (re.IGNORECASE | re.ASCII))


@lru_cache(maxsize=4096)
def _from_items(items: tuple[tuple[Any, Any], ...], flags: int) -> CharSet:
    negated = any(code is op.NEGATE for code, _ in items)
    categories = [category(argument, flags) for code, argument in items if code is op.CATEGORY]
    ranges = [(arg, arg) for code, arg in items if code is op.LITERAL]
    ranges += [arg for code, arg in items if code is op.RANGE]
    if flags & re.IGNORECASE:
        plain = [r for r in ranges if r[1] < 128]
        ranges = [*_fold_ascii(plain, flags), *_fold(tuple(r for r in ranges if r[1] >= 128), flags)]
    found = union([*ranges, *(r for members in categories for r in members)])
    return complement(found) if negated else found


def _fold_ascii(ranges: Sequence[tuple[int, int]], flags: int) -> list[tuple[int, int]]:
    """All that `ranges` of ASCII characters match under IGNORECASE, such as the Kelvin sign for `k`."""
    folds = _ascii_folds(flags)
    members = {code for low, high in ranges for code in range(low, high + 1)}
    return [fold for code in members for fold in folds.get(code, [(code, code)])]


@lru_cache(maxsize=4)
def _ascii_folds(flags: int) -> dict[int, list[tuple[int, int]]]:
    candidates = [chr(c) for low, high in _scan("[a-z]+", flags) for c in range(low, high + 1)]
    folds = {}
    for letter in "abcdefghijklmnopqrstuvwxyz":
        match = re.compile(letter, flags).match
        found = [(ord(char), ord(char)) for char in candidates if match(char)]
        folds[ord(letter)] = folds[ord(letter.upper())] = found
    return folds


def _fold(ranges: tuple[tuple[int, int], ...], flags: int) -> CharSet:
    """All that `ranges` match under IGNORECASE: asks `re` about every character that has another case."""
    if not ranges:
        return ()
    pattern = "[" + "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges) + "]"
    return union([*ranges, *((ord(char), ord(char)) for char in re.findall(pattern, _cased(), flags))])


@lru_cache(maxsize=1)
def _cased() -> str:
    """All characters that have another case."""
    pieces = (_text(c, min(c + 4095, high)) for low, high in ALL for c in range(low, high + 1, 4096))
    return "".join(_changed(piece, piece.lower()) + _changed(piece, piece.upper()) for piece in pieces)


def _changed(text: str, cased: str) -> str:
    """The characters of `text` whose case differs; most have one character in the other case, too."""
    if cased == text:
        return ""
    if len(cased) == len(text):
        return "".join(one for one, other in zip(text, cased, strict=True) if one != other)
    return "".join(char for char in text if char.lower() != char or char.upper() != char)


@lru_cache(maxsize=256)
def _scan(pattern: str, flags: int) -> CharSet:
    """The characters that `pattern` matches, by searching a text of all characters for runs of them."""
    runs = ((low, match) for low, high in ALL for match in re.finditer(pattern, _text(low, high), flags))
    return tuple((low + match.start(), low + match.end() - 1) for low, match in runs)


def _text(low: int, high: int) -> str:
    """All characters from `low` to `high` (NumPy's UCS-4 strings are by far the fastest way)."""
    return np.arange(low, high + 1, dtype=np.uint32).view(f"U{high - low + 1}").item()


@dataclass(frozen=True, eq=False)
class CharAutomaton:
    """The UTF-8 encodings of one character of a set, as a minimal deterministic automaton.

    `edges[state]` lists `(first byte, last byte, next state)`; state 0 is dead, in state 1 the
    character is complete. Only well-formed UTF-8 gets there.
    """

    edges: tuple[tuple[tuple[int, int, int], ...], ...]
    start: int

    @property
    def cuts(self) -> set[int]:
        """Byte values at which some transition changes."""
        return {cut for row in self.edges for low, high, _ in row for cut in (low, high + 1)}


_FORMS = (
    (0x00, 0x7F, 0, 0x00),
    (0x80, 0x7FF, 1, 0xC0),
    (0x800, 0xFFFF, 2, 0xE0),
    (0x10000, 0x10FFFF, 3, 0xF0),
)
"""First and last code point, number of continuation bytes, and base of the first byte (RFC 3629)."""

_LIMITED = {
    0xE0: ((0x800, 0xFFF),),
    0xED: ((0x000, 0x7FF),),
    0xF0: ((0x10000, 0x3FFFF),),
    0xF4: ((0x00000, 0x0FFFF),),
}
"""First bytes after which not every value of the other bytes is a character, and those that are."""


@lru_cache(maxsize=4096)
def char_automaton(charset: CharSet, peek: bool = False) -> CharAutomaton:
    """The automaton that reads one character of `charset`, sharing equal tails.

    With `peek` it only finds out whether the character is in the set, and is done as soon as the bytes
    that are left cannot change that.
    """
    builder = _CharBuilder(peek)
    start: list[tuple[int, int, int]] = []
    for first, last, more, base in _FORMS:
        part = [(max(low, first), min(high, last)) for low, high in charset if low <= last and high >= first]
        start += builder.row(part, more, base)
    builder.edges.append(tuple(start))
    return CharAutomaton(tuple(builder.edges), len(builder.edges) - 1)


class _CharBuilder:
    """Hash-consed states: a state is the set of values that its remaining continuation bytes may spell."""

    def __init__(self, peek: bool) -> None:
        self.peek = peek
        self.edges: list[tuple[tuple[int, int, int], ...]] = [(), ()]
        self.states: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}

    def state(self, ranges: tuple[tuple[int, int], ...], more: int) -> int:
        if more == 0 or (self.peek and ranges == ((0, 64**more - 1),)):
            return COMPLETE
        key = (more, ranges)
        if key not in self.states:
            row = self.row(ranges, more - 1, 0x80)
            self.states[key] = len(self.edges)
            self.edges.append(tuple(row))
        return self.states[key]

    def row(self, ranges: Iterable[tuple[int, int]], more: int, base: int) -> list[tuple[int, int, int]]:
        """Edges over the first of `more + 1` bytes that spell the values in `ranges`."""
        unit = 64**more
        tails: dict[int, list[tuple[int, int]]] = {}
        row: list[tuple[int, int, int]] = []
        for low, high in ranges:
            for digit in {low // unit, high // unit}:
                here = (max(low, digit * unit) % unit, min(high, digit * unit + unit - 1) % unit)
                tails.setdefault(digit, []).append(here)
            if high // unit - low // unit > 1:
                full = self.state(((0, unit - 1),), more)
                row.append((base + low // unit + 1, base + high // unit - 1, full))
        for digit, tail in tails.items():
            done = self.peek and tuple(tail) == _LIMITED.get(base + digit)
            row.append((base + digit, base + digit, COMPLETE if done else self.state(tuple(tail), more)))
        return _join(sorted(row))


def _join(row: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Neighbouring edges with one target become one edge."""
    joined: list[tuple[int, int, int]] = []
    for low, high, target in row:
        if joined and joined[-1][1] + 1 == low and joined[-1][2] == target:
            low = joined.pop()[0]
        joined.append((low, high, target))
    return joined
