"""Rows of token bits: built once for each distinct set of tokens, stored once for each distinct page.

Token `i` is bit `i & 31` of word `i >> 5`, the layout that XGrammar, llguidance and the JAX serving engines
share. A row is a list of pages of at most `PAGE_WORDS` words; equal pages are stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._hashing import random_integers
from jaxgcd._numbering import numbered
from jaxgcd.tables.pools import Portion
from jaxgcd.tables.slots import Group
from jaxgcd.tables.suffixes import NOTHING

PAGE_WORDS = 128


def pack_bits(bits: np.ndarray, words: int) -> np.ndarray:
    """`bool[..., size]` to `uint32[..., words]`, token `i` in bit `i & 31` of word `i >> 5`."""
    padded = np.zeros((*bits.shape[:-1], words * 32), bool)
    padded[..., : bits.shape[-1]] = bits
    return np.packbits(padded, axis=-1, bitorder="little").view("<u4").astype(np.uint32)


def page_words(words: int) -> int:
    """Words in a page for rows of `words` words."""
    return min(PAGE_WORDS, words)


def build_rows(
    rows: Sequence[np.ndarray],
    portions: Sequence[Portion],
    groups: Sequence[Group],
    token_classes: Callable[[int], np.ndarray],
    words: int,
    budget: Budget,
) -> tuple[np.ndarray, np.ndarray]:
    """Builds rows.

    A page is first only the sum of its tokens' random integers, which follows from the sums of each suffix
    class on that page; equal sums are equal pages, and only distinct ones are built.

    Args:
        rows: the portions of each row, which have no token in common; row 0 is empty.
        portions: sets of tokens; number 0 is empty.
        groups: what the portions choose from.
        token_classes: the suffix class or fan of every token in a group.
        words: words in a row.
        budget: what may be used up.

    Returns:
        `row_pages`, `int32[rows, pages in a row]`, and `pages`, `uint32[distinct pages, words in a page]`;
        page 0 is empty.
    """
    pages = _Pages(page_words(words), -(-words // page_words(words)), len(portions), budget)
    by_group: dict[int, list[int]] = {}
    for number in np.argsort([portion.group for portion in portions], kind="stable").tolist():
        by_group.setdefault(portions[number].group, []).append(number)
    for group, numbers in by_group.items():
        own = [portions[number].which for number in numbers]
        pages.add(groups[group].members, token_classes(group), numbers, own)
    return pages.joined(rows)


class _Pages:
    """The distinct pages of portions, and the rows made of them."""

    def __init__(self, words: int, pages: int, portions: int, budget: Budget):
        self._budget = budget
        self._words = words
        self._random = np.tile(random_integers(32 * words), pages)
        self._keys = np.zeros((portions, pages), np.uint64)
        self._pages = np.zeros((portions, pages), np.int32)
        self._number: dict[int, int] = {0: 0}
        self._found: list[np.ndarray] = [np.zeros(words, np.uint32)]

    def add(
        self, members: np.ndarray, classes: np.ndarray, portions: Sequence[int], own: Sequence[np.ndarray]
    ) -> None:
        """Adds the pages of some portions of one group.

        Args:
            members: the group's suffix classes or fans, in order.
            classes: those of the tokens, `NOTHING` for tokens that are not in the group.
            portions: their numbers.
            own: the indices of each one's members.
        """
        width = 32 * self._words
        tokens = np.flatnonzero(classes != NOTHING)
        place = np.zeros(int(members[-1]) + 1, np.int64)
        place[members] = np.arange(len(members))
        member, pages = place[classes[tokens]], self._keys.shape[1]
        sums = np.zeros(len(members) * pages, np.uint64)
        np.add.at(sums, member * pages + tokens // width, self._random[tokens])
        sums = sums.reshape(-1, pages)
        first = np.searchsorted(tokens, width * np.arange(pages + 1))
        for portion, which in zip(portions, own, strict=True):
            self._budget.step()
            self._keys[portion] = sums[which].sum(axis=0)
            chosen = np.zeros(len(members), bool)
            chosen[which] = True
            for index in np.flatnonzero(self._keys[portion]).tolist():
                key = int(self._keys[portion, index])
                if key not in self._number:
                    some = slice(first[index], first[index + 1])
                    bits = np.zeros(width, bool)
                    bits[tokens[some] - index * width] = chosen[member[some]]
                    self._number[key] = len(self._found)
                    self._found.append(pack_bits(bits, self._words))
                self._pages[portion, index] = self._number[key]

    def joined(self, rows: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The rows that are unions of portions; the first one, and no other, is empty."""
        length = np.array([len(row) for row in rows])[1:]
        start = np.cumsum(length) - length
        portions = np.concatenate(rows)
        keys = np.zeros((len(rows), self._keys.shape[1]), np.uint64)
        if len(length):
            keys[1:] = np.add.reduceat(self._keys[portions], start, axis=0)
        distinct, where, row_pages = numbered(keys.ravel())
        self._budget.add_table(4 * keys.size, "a list of pages")
        self._budget.add_table(4 * self._words * len(distinct), "token bits")
        found, parts = np.array(self._found), np.zeros((len(distinct), self._words), np.uint32)
        for number, place in enumerate(where.tolist()):
            row, page = divmod(place, keys.shape[1])
            if row:
                own = portions[start[row - 1] : start[row - 1] + length[row - 1]]
                parts[number] = np.bitwise_or.reduce(found[self._pages[own, page]], axis=0)
        return row_pages.reshape(keys.shape).astype(np.int32), parts
