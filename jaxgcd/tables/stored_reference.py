"""What the reference machine knows of a grammar, as arrays that can be saved.

`describe` asks a `CompiledReference` everything that the machine may ever ask it; `StoredReference` answers
from the arrays. Suffix classes, fans, sets of tokens and conditions are numbered anew, as few are needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from jaxgcd.errors import StorageError
from jaxgcd.parsing.machine import predecessors
from jaxgcd.parsing.table import START_STATE, ParseTable
from jaxgcd.tables.host import Member
from jaxgcd.tables.pack import slot_tops
from jaxgcd.tables.reference import CompiledReference
from jaxgcd.tables.rows import pack_bits
from jaxgcd.tables.slots import NO_TERMINAL
from jaxgcd.tables.stored import Stored
from jaxgcd.tables.suffixes import NOTHING, OPEN, SuffixClass

_NEVER, _ALWAYS = 0, 1
"""Numbers of the conditions that no stack meets, and that all do."""

TABLE_ARRAYS = ("slot_terminal", "slot_base", "column", "scanner")
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
    "reveal": ("conditions", "all_parser_states"),
}
"""The arrays, all `int32`, and the names of their axes. List `i` of `x` is `x[x.offset[i]:x.offset[i + 1]]`.

`list[entry]` is the list of members `(fan or suffix class, set of tokens)` of an entry of the tables;
`parts[suffix class]` are `(terminal, fan)` pairs, or `(OPEN, boundary class)`; `fan[fan, scanner]` is a
suffix class; `waiting[parser state, boundary class]` and `reveal[condition, parser state]` are conditions.
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

    @property
    def table(self) -> ParseTable:
        if self._table is None:
            self._table = self.grammar.table_and_scanners().table
        return self._table

    def terminal(self, lexer_state: int, slot: int) -> int:
        return int(self.arrays["slot_terminal"][lexer_state, slot])

    def dependents(self, lexer_state: int, slot: int, top: int) -> Sequence[Member]:
        column = self.arrays["column"][int(self.terminal(lexer_state, slot) != NO_TERMINAL), top]
        entry = int(self.arrays["slot_base"][lexer_state, slot] + column)
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

    def waiting(self, top: int, boundary: int) -> int | None:
        return self._condition(int(self.arrays["waiting"][top, boundary]))

    def reveal(self, condition: int, state: int) -> int | None:
        return self._condition(int(self.arrays["reveal"][condition, state]))

    def _condition(self, number: int) -> int | None:
        return None if number == _ALWAYS else number

    def _pairs(self, name: str, number: int) -> list[list[int]]:
        begin, end = self.arrays[f"{name}.offset"][number : number + 2]
        return self.arrays[name][begin:end].tolist()


def describe(reference: CompiledReference, tables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a compiled grammar, from those of its tables.

    Raises:
        StorageError: the grammar has too many conditions on stacks.
    """
    return _Describer(reference).arrays(tables)


class _Describer:
    def __init__(self, reference: CompiledReference):
        self._reference = reference
        self._compiled = reference.compiled
        self._classes: dict[int, int] = {NOTHING: 0}  # numbers before and after; in order
        self._fans: dict[int, int] = {NOTHING: 0}
        self._sets: dict[tuple[int, int], int] = {}
        self._todo: list[int] = []

    def arrays(self, tables: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        number, lists = self._members(tables)
        parts, fans = self._graph()
        distinct, tokens = self._tokens()
        members = _ragged("members", [np.array(found, np.int32).reshape(-1, 2) for found in lists])
        members["members"][:, 1] = distinct[members["members"][:, 1]]
        return {
            "list": number,
            **members,
            **_ragged("parts", [np.array(found, np.int32).reshape(-1, 2) for found in parts]),
            **_ragged("tokens", tokens),
            "fan": fans,
            **_Conditions(self._reference).arrays(),
        }

    def _members(self, tables: Mapping[str, np.ndarray]) -> tuple[np.ndarray, list[tuple]]:
        """The list of each entry, and the lists of members, renumbered."""
        tops = slot_tops(self._reference.table)
        number = np.zeros(len(tables["entry"]), np.int32)
        known: dict[tuple, int] = {(): 0}
        for state, slots in enumerate(self._compiled.slots.of_state):
            for i, (terminal, _) in enumerate(slots):
                for top in tops[terminal]:
                    column = tables["column"][int(terminal != NO_TERMINAL), top]
                    entry = int(tables["slot_base"][state, i] + column)
                    if tables["dependents"][entry] and not number[entry]:
                        found = self._renumbered(self._reference.dependents(state, i, top), terminal)
                        number[entry] = known.setdefault(found, len(known))
        return number, list(known)

    def _renumbered(self, members: Sequence[Member], terminal: int) -> tuple[tuple[int, int], ...]:
        renumber = self._class if terminal == NO_TERMINAL else self._fan
        return tuple((renumber(m.number), self._sets.setdefault(m.tokens, len(self._sets))) for m in members)

    def _class(self, old: int) -> int:
        if old not in self._classes:
            self._classes[old] = len(self._classes)
            self._todo.append(old)
        return self._classes[old]

    def _fan(self, old: int) -> int:
        if old not in self._fans:
            self._fans[old] = len(self._fans)
            for suffix_class in self._compiled.spanner.classes.fan_classes(old).values():
                self._class(suffix_class)
        return self._fans[old]

    def _graph(self) -> tuple[list[list[tuple[int, int]]], np.ndarray]:
        """The parts of all suffix classes that can be met, and the fans."""
        parts: dict[int, list[tuple[int, int]]] = {0: []}
        while self._todo:
            old = self._todo.pop()
            follow, open_ = self._reference.suffix_class(old)
            found = [(terminal, self._fan(fan)) for terminal, fan in follow]
            parts[self._classes[old]] = [*found, *((OPEN, boundary) for boundary in sorted(open_))]
        fans = np.zeros((len(self._fans), len(self._compiled.grammar.scanners)), np.int32)
        for row, old in zip(fans, self._fans, strict=True):
            for scanner, suffix_class in self._compiled.spanner.classes.fan_classes(old).items():
                row[scanner] = self._classes[suffix_class]
        return [parts[number] for number in range(len(parts))], fans

    def _tokens(self) -> tuple[np.ndarray, list[np.ndarray]]:
        """For each `(group, member)` pair the number of its tokens, and the distinct sets of tokens."""
        distinct = np.zeros(len(self._sets), np.int32)
        sets: dict[bytes, int] = {}
        members: dict[int, list[int]] = {}
        for group, member in self._sets:
            members.setdefault(group, []).append(member)
        for group, own in members.items():
            classes = self._compiled.slots.token_classes(group)
            order = np.argsort(classes, kind="stable").astype(np.int32)
            begin, end = (np.searchsorted(classes[order], own, side=side) for side in ("left", "right"))
            for member, first, last in zip(own, begin, end, strict=True):
                tokens = order[first:last].tobytes()
                distinct[self._sets[group, member]] = sets.setdefault(tokens, len(sets))
        return distinct, [np.frombuffer(found, np.int32) for found in sets] or [np.zeros(0, np.int32)]


class _Conditions:
    """All conditions that can be met going down a stack."""

    def __init__(self, reference: CompiledReference, limit: int = 1_000_000):
        self._reference = reference
        self._limit = limit
        self._number = {frozenset(): _NEVER, None: _ALWAYS}

    def arrays(self) -> dict[str, np.ndarray]:
        table = self._reference.table
        below = predecessors(table)
        boundaries = len(self._reference.compiled.boundaries.exits)
        waiting = np.zeros((table.n_states, boundaries), np.int32)
        revealed: dict[tuple, int] = {}
        todo = []
        for top in {START_STATE}.union(*slot_tops(table)):
            for boundary in range(boundaries):
                condition = self._reference.waiting(top, boundary)
                waiting[top, boundary] = self._numbered(condition)
                todo += [(condition, state) for state in below[top]] if condition else []
        while todo:
            condition, state = pair = todo.pop()
            if pair in revealed:
                continue
            then = self._reference.reveal(condition, state)
            revealed[pair] = self._numbered(then)
            todo += [(then, lower) for lower in below[state] if (then, lower) not in revealed] if then else []
            if len(revealed) > self._limit:
                raise StorageError(
                    f"The reference machine of this grammar has more than {self._limit} conditions on "
                    "stacks, too many to be saved. Save tables that were compiled with `check='device'`."
                )
        return {"waiting": waiting, "reveal": self._dense(revealed, table.n_states)}

    def _numbered(self, condition: frozenset | None) -> int:
        return self._number.setdefault(condition, len(self._number))

    def _dense(self, revealed: Mapping[tuple, int], states: int) -> np.ndarray:
        found = np.zeros((len(self._number), states), np.int32)
        for (condition, state), then in revealed.items():
            found[self._number[condition], state] = then
        return found


def _ragged(name: str, lists: Iterable[np.ndarray]) -> dict[str, np.ndarray]:
    found = list(lists)
    return {
        f"{name}.offset": np.cumsum([0, *map(len, found)], dtype=np.int32),
        name: np.concatenate(found).astype(np.int32),
    }
