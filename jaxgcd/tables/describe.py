"""What the reference machine knows of a grammar, as arrays that can be saved.

A `CompiledReference` is asked everything that the machine may ever ask it; `StoredReference` then answers
from the arrays. Suffix classes, fans, sets of tokens and conditions are numbered anew, as few are needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxgcd.errors import StorageError
from jaxgcd.parsing.machine import predecessors, shift_targets
from jaxgcd.parsing.table import START_STATE
from jaxgcd.tables.host import Condition, Member
from jaxgcd.tables.reference import CompiledReference
from jaxgcd.tables.slots import NO_TERMINAL
from jaxgcd.tables.stored_reference import ALWAYS, NEVER
from jaxgcd.tables.suffixes import NOTHING, OPEN

MOST_REVEALS = 1_000_000
"""The most pairs of a condition on a stack and the state on top of it."""

Pairs = tuple[tuple[int, int], ...]


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
        members = _ragged("members", lists)
        members["members"][:, 1], tokens = self._tokens(members["members"][:, 1])
        return {
            "list": number,
            **members,
            **_ragged("parts", parts),
            **tokens,
            "fan": fans,
            **_Conditions(self._reference).arrays(),
        }

    def _members(self, tables: Mapping[str, np.ndarray]) -> tuple[np.ndarray, list[Pairs]]:
        """The list of each entry, and the lists of members, renumbered."""
        number = np.zeros(len(tables["entry"]), np.int32)
        known: dict[Pairs, int] = {(): 0}
        for entry, (state, slot, terminal, top) in self._entries(tables).items():
            found = self._renumbered(self._reference.dependents(state, slot, top), terminal)
            number[entry] = known.setdefault(found, len(known))
        return number, list(known)

    def _entries(self, tables: Mapping[str, np.ndarray]) -> dict[int, tuple[int, int, int, int]]:
        """The entries in which something depends on the stack: state, slot, terminal, state on top."""
        found = {}
        for state, slots in enumerate(self._compiled.slots.of_state):
            for i, slot in enumerate(slots):
                tops, terminal = self._compiled.tops.of(slot), slot.terminal
                columns = tables["column"][tops, int(terminal != NO_TERMINAL)]
                entries = (int(tables["slot_base"][state, i]) + columns.astype(np.int64)).tolist()
                pairs = zip(entries, tops.tolist(), strict=True)
                found.update({entry: (state, i, terminal, top) for entry, top in pairs})
        return {entry: found[entry] for entry in found if tables["dependents"][entry]}

    def _renumbered(self, members: Sequence[Member], terminal: int) -> Pairs:
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

    def _graph(self) -> tuple[list[Pairs], np.ndarray]:
        """The parts of all suffix classes that can be met, and the fans."""
        parts: dict[int, Pairs] = {0: ()}
        while self._todo:
            old = self._todo.pop()
            follow, open_ = self._reference.suffix_class(old)
            found = [(terminal, self._fan(fan)) for terminal, fan in follow]
            parts[self._classes[old]] = (*found, *((OPEN, boundary) for boundary in sorted(open_)))
        fans = np.zeros((len(self._fans), len(self._compiled.grammar.scanners)), np.int32)
        for row, old in zip(fans, self._fans, strict=True):
            for scanner, suffix_class in self._compiled.spanner.classes.fan_classes(old).items():
                row[scanner] = self._classes[suffix_class]
        return [parts[number] for number in range(len(parts))], fans

    def _tokens(self, numbers: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """The numbers of the tokens of numbered `(group, member)` pairs, and the distinct sets of tokens."""
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
        text = b"".join(sets)
        offset = np.cumsum([0, *map(len, sets)], dtype=np.int64) // 4
        return distinct[numbers], {
            "tokens.offset": offset.astype(np.int32),
            "tokens": np.frombuffer(text, np.int32),
        }


class _Conditions:
    """All conditions that can be met going down a stack."""

    def __init__(self, reference: CompiledReference):
        self._reference = reference
        self._below = predecessors(reference.table)
        self._number: dict[Condition, int] = {frozenset(): NEVER, None: ALWAYS}
        self._revealed: dict[tuple[Condition, int], int] = {}
        self._todo: list[tuple[Condition, int]] = []

    def arrays(self) -> dict[str, np.ndarray]:
        boundaries = len(self._reference.compiled.boundaries.exits)
        waiting = np.zeros((self._reference.table.n_states, boundaries), np.int32)
        for top in {START_STATE}.union(*shift_targets(self._reference.table)):
            for boundary in range(boundaries):
                waiting[top, boundary] = self._met(self._reference.waiting(top, boundary), top)
        while self._todo:
            condition, state = pair = self._todo.pop()
            if pair not in self._revealed:
                self._revealed[pair] = self._met(self._reference.reveal(condition, state), state)
            if len(self._revealed) > MOST_REVEALS:
                raise StorageError(
                    f"The reference machine of this grammar has more than {MOST_REVEALS} conditions on "
                    "stacks, too many to be saved. Save tables that were compiled with `check='device'`."
                )
        lists: list[list[tuple[int, int]]] = [[] for _ in self._number]
        for (condition, state), then in self._revealed.items():
            lists[self._number[condition]].append((state, then))
        return {"waiting": waiting, **_ragged("reveal", lists)}

    def _met(self, condition: Condition, above: int) -> int:
        """The number of a condition on what lies below `above`."""
        if condition:
            pairs = ((condition, state) for state in self._below[above])
            self._todo += [pair for pair in pairs if pair not in self._revealed]
        return self._number.setdefault(condition, len(self._number))


def _ragged(name: str, lists: Sequence[Sequence[tuple[int, int]]]) -> dict[str, np.ndarray]:
    """Lists of pairs, as `AXES` says."""
    pairs = [pair for found in lists for pair in found]
    return {
        f"{name}.offset": np.cumsum([0, *map(len, lists)], dtype=np.int32),
        name: np.array(pairs, np.int32).reshape(-1, 2),
    }
