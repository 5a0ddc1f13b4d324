"""What the reference machine knows of a grammar, from arrays that were saved (`jaxgcd.tables.describe`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxgcd.parsing.table import ParseTable
from jaxgcd.tables.host import Member
from jaxgcd.tables.rows import pack_bits
from jaxgcd.tables.slots import NO_TERMINAL
from jaxgcd.tables.stored import Stored
from jaxgcd.tables.suffixes import OPEN, SuffixClass

NEVER, ALWAYS = 0, 1
"""Numbers of the conditions that no stack meets, and that all do."""

TABLE_ARRAYS = ("slot_terminal", "slot_base", "column", "scanner", "takes")
"""Arrays of `Tables` that a `StoredReference` reads as well."""

AXES: dict[str, tuple[str, ...]] = {
    "list": ("entries",),
    "members.offset": ("lists_plus_one",),
    "members": ("all_members", "two"),
    "parts.offset": ("classes_plus_one",),
    "parts": ("all_parts", "two"),
    "tokens.offset": ("token_sets_plus_one",),
    "tokens": ("all_tokens",),
    "fan": ("fans", "all_scanners"),
    "waiting": ("all_parser_states", "boundaries"),
    "reveal.offset": ("conditions_plus_one",),
    "reveal": ("all_reveals", "two"),
}
"""The arrays, all `int32`, and the names of their axes. List `i` of `x` is `x[x.offset[i]:x.offset[i + 1]]`.

`list[entry]` is the list of members `(fan or suffix class, set of tokens)` of an entry of the tables;
`parts[suffix class]` are `(terminal, fan)` pairs, or `(OPEN, boundary class)`; `fan[fan, scanner]` is a
suffix class; `waiting[parser state, boundary class]` is a condition, and `reveal[condition]` are pairs
`(parser state, condition)`.
"""


class StoredReference:
    """A `Reference` that answers from arrays. Keys of tokens are numbers.

    Args:
        arrays: those that `describe` made, and `TABLE_ARRAYS`.
        grammar: Lark's table.
        words: words of a packed mask.
    """

    def __init__(self, arrays: Mapping[str, np.ndarray], grammar: Stored, words: int):
        self.arrays = dict(arrays)
        self.words = words
        self.grammar = grammar
        self._table: ParseTable | None = None
        self._words: dict[int, np.ndarray] = {}
        self._classes: dict[int, SuffixClass] = {}
        self._revealed: dict[int, dict[int, int]] = {}

    @property
    def table(self) -> ParseTable:
        if self._table is None:
            self._table = self.grammar.table_and_scanners().table
        return self._table

    def terminal(self, lexer_state: int, slot: int) -> int:
        return int(self.arrays["slot_terminal"][lexer_state, slot])

    def dependents(self, lexer_state: int, slot: int, top: int) -> Sequence[Member]:
        column = self.arrays["column"][top, int(self.terminal(lexer_state, slot) != NO_TERMINAL)]
        entry = int(self.arrays["slot_base"][lexer_state, slot]) + int(column)
        return [Member(*pair) for pair in self._pairs("members", int(self.arrays["list"][entry]))]

    def token_words(self, tokens: int) -> np.ndarray:
        if tokens not in self._words:
            begin, end = self.arrays["tokens.offset"][tokens : tokens + 2]
            bits = np.zeros(32 * self.words, bool)
            bits[self.arrays["tokens"][begin:end]] = True
            self._words[tokens] = pack_bits(bits, self.words)
        return self._words[tokens]

    def after(self, fan: int, state: int) -> int:
        return int(self.arrays["fan"][fan, self.arrays["scanner"][state]])

    def suffix_class(self, number: int) -> SuffixClass:
        if number not in self._classes:
            pairs = self._pairs("parts", number)
            follow = tuple((first, rest) for first, rest in pairs if first != OPEN)
            self._classes[number] = SuffixClass(follow, frozenset(b for first, b in pairs if first == OPEN))
        return self._classes[number]

    def viable(self, top: int) -> bool:
        return bool(self.arrays["takes"][top].any())  # see `pack`: a state that is not takes nothing

    def waiting(self, top: int, boundary: int) -> int | None:
        return self._condition(int(self.arrays["waiting"][top, boundary]))

    def reveal(self, condition: int, state: int) -> int | None:
        if condition not in self._revealed:
            self._revealed[condition] = dict(self._pairs("reveal", condition))
        return self._condition(self._revealed[condition][state])

    def _condition(self, number: int) -> int | None:
        return None if number == ALWAYS else number

    def _pairs(self, name: str, number: int) -> list[tuple[int, int]]:
        begin, end = self.arrays[f"{name}.offset"][number : number + 2]
        return [(first, second) for first, second in self.arrays[name][begin:end].tolist()]
