"""Rows of token bits: built once for each distinct set of tokens, stored once for each distinct page.

Token `i` is bit `i & 31` of word `i >> 5`, the layout that XGrammar, llguidance and the JAX serving engines
share. A row is a list of pages of at most `PAGE_WORDS` words; equal pages are stored once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

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
    recipes: Sequence[Recipe], token_classes: Callable[[int], np.ndarray], words: int
) -> tuple[np.ndarray, np.ndarray]:
    """Builds the rows of all recipes.

    Args:
        recipes: row 0 is empty.
        token_classes: the suffix class or fan of every token in a group.
        words: words in a row.

    Returns:
        `row_pages`, `int32[rows, pages in a row]`, and `pages`, `uint32[distinct pages, words in a page]`;
        page 0 is empty.
    """
    per_page = page_words(words)
    per_row = -(-words // per_page)
    row_pages = np.zeros((len(recipes), per_row), np.int32)
    number = {bytes(4 * per_page): 0}
    by_group: dict[int, list[int]] = {}
    for row, recipe in enumerate(recipes):
        by_group.setdefault(recipe.group, []).append(row)
    for group, rows in sorted(by_group.items()):
        classes = token_classes(group)
        for row in rows:
            chosen = np.zeros(int(classes.max()) + 1, bool)
            chosen[list(recipes[row].members)] = True
            packed = pack_bits(chosen[classes], per_row * per_page).reshape(per_row, per_page)
            row_pages[row] = [number.setdefault(page.tobytes(), len(number)) for page in packed]
    pages = np.frombuffer(b"".join(number), np.uint32).reshape(len(number), per_page)
    return row_pages, pages
