"""Conditions on parser stacks: what must lie below a state for the text to be completable.

An **item** "skip `k` states, reveal one, go to nonterminal `N` under the lookahead of column `c`" is what the
machine waits for where a reduction pops more than is known. A **condition** is a set of items, one of which
must hold; its items are kept as `(k, N)` pairs with a bit mask of columns, since most columns go together.

Conditions are numbered, so that equal ones are found at once.
"""

from __future__ import annotations

from collections.abc import Iterable

REJECTED, ACCEPTED = 0, 1
"""The conditions that hold of no stack and of every stack."""

ANYWAY = -1
"""In place of an item: nothing need hold."""

ALL = -1
"""The bit mask of all columns."""

Items = tuple[tuple[int, int], ...]
"""Sorted `(item, columns)` pairs; item `k * nonterminals + N` skips `k` states and goes to `N`."""


class Conditions:
    """The conditions of a grammar, by number."""

    def __init__(self, nonterminals: int):
        self.nonterminals = nonterminals
        self._items: list[Items] = [(), ((ANYWAY, 1),)]
        self._number = {items: i for i, items in enumerate(self._items)}

    def intern(self, found: dict[int, int]) -> int:
        """The number of a condition."""
        if ANYWAY in found:
            return ACCEPTED
        items = tuple(sorted(found.items()))
        number = self._number.setdefault(items, len(self._items))
        if number == len(self._items):
            self._items.append(items)
        return number

    def items(self, condition: int) -> Items:
        """The items of a condition."""
        return self._items[condition]

    def either(self, conditions: Iterable[int]) -> int:
        """The condition that one of some conditions holds."""
        found: dict[int, int] = {}
        for condition in conditions:
            add(found, self._items[condition])
        return self.intern(found)

    def skips(self, condition: int) -> int:
        """How many states down the stack the condition does not look at."""
        return self._items[condition][0][0] // self.nonterminals

    def skip(self, condition: int, count: int) -> int:
        """The condition once `count` states, which it does not look at, are passed over."""
        return self.intern({item - count * self.nonterminals: mask for item, mask in self._items[condition]})


def add(masks: dict, more, within: int = ALL) -> None:
    """Adds `(key, mask)` pairs, of each mask the bits in `within`."""
    for key, mask in more:
        if mask & within:
            masks[key] = masks.get(key, 0) | mask & within
