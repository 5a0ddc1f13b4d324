"""Views: how much of a stack state has to be known.

A pending reduction sees only the goto that a state has on its nonterminal, and many states share that.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

import numpy as np

from jaxgcd._numbering import numbered
from jaxgcd.parsing.table import ParseTable
from jaxgcd.tables.growing import Growing

_BITS = 32
NO_VIEW = 0
"""Sees nothing."""


class Views:
    """Numbered views. States in the same class of a view look the same."""

    def __init__(self, table: ParseTable):
        self._table = table
        self._number: dict[object, int] = {}
        self._classes = Growing(np.int32, table.n_states)
        self._sizes = Growing(np.int64)
        self._add("nothing", np.zeros(table.n_states, np.int32))

    @property
    def classes(self) -> np.ndarray:
        """The class of each state, `int32[views, states]`."""
        return self._classes.values

    @property
    def sizes(self) -> np.ndarray:
        """How many classes each view has."""
        return self._sizes.values

    def of_goto(self, nonterminal: int) -> int:
        """Sees a state's goto."""
        if nonterminal not in self._number:
            self._add(nonterminal, np.array([gotos.get(nonterminal, 0) for gotos in self._table.goto]))
        return self._number[nonterminal]

    def of_state(self) -> int:
        """Sees which state it is."""
        if "state" not in self._number:
            self._add("state", np.arange(self._table.n_states))
        return self._number["state"]

    def joined(self, views: Iterable[int]) -> int:
        """Sees what any of some views sees."""
        some = frozenset(views) - {NO_VIEW}
        if len(some) <= 1:
            return next(iter(some), NO_VIEW)
        if some not in self._number:
            self._add(some, self.classes[sorted(some)])
        return self._number[some]

    def _add(self, key: object, seen: np.ndarray) -> None:
        classes = reduce(
            _refined, np.atleast_2d(seen).astype(np.int64), np.zeros(self._table.n_states, np.int64)
        )
        self._number[key] = len(self._sizes)
        self._classes.extend(classes[None])
        self._sizes.extend([int(classes.max()) + 1])


def _refined(classes: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """Classes split by what is seen."""
    return numbered(classes << _BITS | seen).which
