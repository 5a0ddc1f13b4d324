"""Rows of token bits: built once for each distinct set of tokens, stored once for each distinct page.

Token `i` is bit `i & 31` of word `i >> 5`, the layout that XGrammar, llguidance and the JAX serving engines
share. A row is a list of pages of at most `PAGE_WORDS` words; equal pages are stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._hashing import random_integers
from jaxgcd.tables.slots import Group
from jaxgcd.tables.walk import Recipe

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
    recipes: Sequence[Recipe],
    groups: Sequence[Group],
    token_classes: Callable[[int], np.ndarray],
    words: int,
    budget: Budget,
) -> tuple[np.ndarray, np.ndarray]:
    """Builds the rows of all recipes.

    A page is first only the sum of its tokens' random integers, which follows from the sums of each suffix
    class on that page; equal sums are equal pages, and only distinct ones are built.

    Args:
        recipes: row 0 is empty.
        groups: what the recipes choose from.
        token_classes: the suffix class or fan of every token in a group.
        words: words in a row.
        budget: what may be used up.

    Returns:
        `row_pages`, `int32[rows, pages in a row]`, and `pages`, `uint32[distinct pages, words in a page]`;
        page 0 is empty.
    """
    per_page = page_words(words)
    row_pages = np.zeros((len(recipes), -(-words // per_page)), np.int32)
    budget.add_table(row_pages.nbytes, "a list of pages")
    pages = _Pages(per_page)
    by_group: dict[int, list[int]] = {}
    for row, recipe in enumerate(recipes):
        if len(recipe.members):
            by_group.setdefault(recipe.group, []).append(row)
    for group, rows in sorted(by_group.items()):
        members = groups[group].members
        chosen = np.zeros((len(rows), len(members)), bool)
        for own, row in zip(chosen, rows, strict=True):
            own[np.searchsorted(members, recipes[row].members)] = True
        before = len(pages.found)
        row_pages[rows] = pages.numbers(members, token_classes(group), chosen)
        budget.step(len(rows))
        budget.add_table(4 * per_page * (len(pages.found) - before), "token bits")
    return row_pages, np.array(pages.found, np.uint32)


class _Pages:
    """The distinct pages."""

    def __init__(self, words: int):
        self._words = words
        self._number: dict[int, int] = {0: 0}
        self.found: list[np.ndarray] = [np.zeros(words, np.uint32)]

    def numbers(self, members: np.ndarray, classes: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        """The pages of the rows of one group, `int32[rows, pages in a row]`.

        Args:
            members: the group's suffix classes or fans, in order.
            classes: those of the tokens, `NOTHING` for tokens that are not in the group.
            chosen: `bool[rows, members]`.
        """
        width = 32 * self._words
        tokens = np.flatnonzero(classes)
        member, page = np.searchsorted(members, classes[tokens]), tokens // width
        sums = np.zeros((len(members), -(-len(classes) // width)), np.uint64)
        np.add.at(sums, (member, page), random_integers(width)[tokens % width])
        keys = chosen.astype(np.uint64) @ sums
        first = np.searchsorted(page, np.arange(sums.shape[1] + 1))
        found = np.zeros(keys.shape, np.int32)
        for index, row in np.ndenumerate(keys):
            key = int(row)
            if key not in self._number:
                own = slice(first[index[1]], first[index[1] + 1])
                bits = np.zeros(width, bool)
                bits[tokens[own] - index[1] * width] = chosen[index[0], member[own]]
                self._number[key] = len(self.found)
                self.found.append(pack_bits(bits, self._words))
            found[index] = self._number[key]
        return found
