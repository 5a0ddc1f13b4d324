"""What the reference machine knows of a grammar that was just compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxgcd.parsing.table import ParseTable
from jaxgcd.parsing.viability import DEAD, Item
from jaxgcd.tables.compiled import Compiled
from jaxgcd.tables.host import Member
from jaxgcd.tables.rows import pack_bits
from jaxgcd.tables.slots import NO_TERMINAL
from jaxgcd.tables.suffixes import SuffixClass
from jaxgcd.tables.walk import Entry

Items = frozenset[Item] | None
"""Items one of which must hold; None if nothing need hold."""


class CompiledReference:
    """A `Reference` that asks the stages of the pipeline when it is asked.

    Keys of tokens are `(group, member)` pairs.
    """

    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        self._words: dict[tuple[int, int], np.ndarray] = {}

    @property
    def table(self) -> ParseTable:
        return self.compiled.machine.table

    @property
    def words(self) -> int:
        return self.compiled.vocabulary.words

    def terminal(self, lexer_state: int, slot: int) -> int:
        return self.compiled.slots.of_state[lexer_state][slot].terminal

    def dependents(self, lexer_state: int, slot: int, top: int) -> Sequence[Member]:
        terminal, group = self.compiled.slots.of_state[lexer_state][slot]
        entry = Entry(group, top, terminal != NO_TERMINAL)
        return [Member(member, (group, member)) for member in self.compiled.walk.dependents(entry)]

    def token_words(self, tokens: tuple[int, int]) -> np.ndarray:
        if tokens not in self._words:
            group, member = tokens
            chosen = self.compiled.slots.token_classes(group) == member
            self._words[tokens] = pack_bits(chosen, self.words)
        return self._words[tokens]

    def after(self, fan: int, state: int) -> int:
        return self.compiled.spanner.classes.of_fan(fan, self.compiled.grammar.scanner_of[state])

    def suffix_class(self, number: int) -> SuffixClass:
        return self.compiled.spanner.classes.members[number]

    def viable(self, top: int) -> bool:
        return self.compiled.viability.viable(top) != DEAD

    def waiting(self, top: int, boundary: int) -> Items:
        viability = self.compiled.viability
        return viability.waiting(top, boundary) if viability.complete else None

    def reveal(self, condition: frozenset[Item], state: int) -> Items:
        revealed = [self.compiled.viability.reveal(item, state) for item in condition]
        return None if None in revealed else frozenset().union(*(found or () for found in revealed))
