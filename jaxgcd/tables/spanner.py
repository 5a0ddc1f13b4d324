"""The inverse token spanner: which terminal sequences each token can produce, from each lexer state.

The paper keys this table by lexer state and whole terminal sequence (Park, Zhou and D'Antoni 2025, section
3.2, `T_inv`). Here every (lexer state, token) pair has a **suffix class**, and a class is a small tree: for
each terminal that the token may complete first, the class of what follows it; and where the token ends, what
its last lexeme can still become. Tokens that no parser can tell apart share a class.

A class is computed for the pairs (lexer state, remaining string) that are met, from short strings to long
ones, so all suffixes shared between tokens and between states are looked at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxgcd.lexing.boundaries import Boundaries
from jaxgcd.lexing.graph import LexerGraph
from jaxgcd.lexing.minimise import splitmix
from jaxgcd.lexing.scanner import DEAD, IGNORED
from jaxgcd.vocabulary import Vocabulary

HASH_MASK = (1 << 64) - 1
NOTHING = 0
"""The class of what no text can be made of."""

NO_LABEL = 0
"""In a reading: nothing is emitted."""


Fan = tuple[tuple[int, int], ...]
"""`(scanner, suffix class)` pairs: what comes after a terminal, by the scanner that reads on."""


class SuffixClass(NamedTuple):
    """What a piece of text may turn into, as far as a parser can see.

    `follow`: pairs `(terminal, fan of what comes after it)`, one for each first terminal, and for `IGNORED`.
    `open`: the boundary classes at which the text may end having emitted nothing more.
    """

    follow: tuple[tuple[int, int], ...]
    open: frozenset[int]


class SuffixClasses:
    """Interned suffix classes and fans, closed under union and under "terminal, then class"."""

    def __init__(self, may_follow: Mapping[int, Mapping[int, frozenset[int]]]):
        """`may_follow[t][s]`: the terminals that a parser state with scanner `s` takes right after `t`, or
        after an ignored lexeme for `t = IGNORED`.
        """
        self._may_follow = may_follow
        self.members: list[SuffixClass] = []
        self.fans: list[Fan] = []
        self._number: dict[SuffixClass, int] = {}
        self._fan_number: dict[Fan, int] = {}
        self._unions: dict[tuple[int, int], int] = {}
        self._after: dict[tuple[int, int, int], int] = {}
        self.fan({})
        self.intern({}, frozenset())

    def __len__(self) -> int:
        return len(self.members)

    def intern(self, follow: Mapping[int, int], open_: frozenset[int]) -> int:
        """The number of a class; terminals followed by nothing are left out."""
        found = SuffixClass(tuple(sorted((t, fan) for t, fan in follow.items() if fan != NOTHING)), open_)
        number = self._number.setdefault(found, len(self.members))
        if number == len(self.members):
            self.members.append(found)
        return number

    def fan(self, classes: Mapping[int, int]) -> int:
        """The number of a fan; scanners with nothing are left out."""
        found = tuple(sorted((s, c) for s, c in classes.items() if c != NOTHING))
        number = self._fan_number.setdefault(found, len(self.fans))
        if number == len(self.fans):
            self.fans.append(found)
        return number

    def of_fan(self, fan: int, scanner: int) -> int:
        """The class that a fan has for one scanner."""
        return next((c for s, c in self.fans[fan] if s == scanner), NOTHING)

    def fan_table(self, scanners: int) -> np.ndarray:
        """The class of each fan for each scanner, `int32[fans, scanners]`."""
        table = np.full((len(self.fans), scanners), NOTHING, np.int32)
        length = [len(fan) for fan in self.fans]
        pairs = np.array([pair for fan in self.fans for pair in fan], np.int64).reshape(-1, 2)
        table[np.repeat(np.arange(len(length)), length), pairs[:, 0]] = pairs[:, 1]
        return table

    def union(self, first: int, second: int) -> int:
        """The class of either."""
        if NOTHING in (first, second) or first == second:
            return first or second
        key = (min(first, second), max(first, second))
        if key not in self._unions:
            one, other = self.members[first], self.members[second]
            follow = dict(one.follow)
            for terminal, fan in other.follow:
                follow[terminal] = self._fan_union(follow.get(terminal, NOTHING), fan)
            self._unions[key] = self.intern(follow, one.open | other.open)
        return self._unions[key]

    def _fan_union(self, first: int, second: int) -> int:
        if NOTHING in (first, second):
            return first or second
        classes = dict(self.fans[first])
        for scanner, suffix_class in self.fans[second]:
            classes[scanner] = self.union(classes.get(scanner, NOTHING), suffix_class)
        return self.fan(classes)

    def after(self, terminal: int, scanners: frozenset[int], rest: int) -> int:
        """The class "`terminal`, then `rest` by these scanners", without what can never follow there."""
        if rest == NOTHING:
            return NOTHING
        fan = self.fan({scanner: self._kept(terminal, scanner, rest) for scanner in scanners})
        return self.intern({terminal: fan}, frozenset())

    def under(self, suffix_class: int, scanner: int) -> int:
        """A class with what comes after an ignored lexeme in its place, which depends on the scanner."""
        follow, open_ = self.members[suffix_class]
        if not follow or follow[0][0] != IGNORED:
            return suffix_class
        return self.union(self.intern(dict(follow[1:]), open_), self.of_fan(follow[0][1], scanner))

    def _kept(self, terminal: int, scanner: int, rest: int) -> int:
        key = (terminal, scanner, rest)
        if key not in self._after:
            follow, open_ = self.members[self.under(rest, scanner)]
            takes = self._may_follow[terminal].get(scanner, frozenset())
            self._after[key] = self.intern({t: fan for t, fan in follow if t in takes}, open_)
        return self._after[key]

    def ending(self, exits: frozenset[tuple[int, int]], graph: LexerGraph, boundaries: Boundaries) -> int:
        """The class of a text that ends inside a lexeme with these exits."""
        found = NOTHING
        for terminal, gate in sorted(exits):
            fan: dict[int, int] = {}
            for scanner, boundary in enumerate(graph.gates[gate].tolist()):
                if boundary != DEAD:
                    fan[scanner] = self.intern({}, frozenset({boundaries.of[boundary]}))
            found = self.union(found, self.intern({terminal: self.fan(fan)}, frozenset()))
        return found


class Block(NamedTuple):
    """The tokens that begin with one symbol class, read from one lexer state: parts with one suffix class
    each.
    """

    part: np.ndarray  # int32[tokens]
    sums: np.ndarray  # uint64[parts], the sum of the tokens' random integers
    classes: np.ndarray  # int32[parts]


@dataclass(frozen=True)
class Spanner:
    """The suffix class of every (lexer state, token) pair, in blocks.

    Tokens are grouped by the class of their first symbol, and a group has one **variant** for each set of
    states that its tokens can be in after that symbol.

    Attributes:
        classes: the suffix classes.
        tokens: for each symbol class the ids of the tokens that begin with it.
        variant: `int32[lexer states, symbol classes]`.
        blocks: `blocks[symbol class][variant]`.
    """

    classes: SuffixClasses
    tokens: list[np.ndarray]
    variant: np.ndarray
    blocks: list[list[Block]]

    def of_state(self, state: int, size: int) -> np.ndarray:
        """The suffix class of every token from one lexer state, `int32[size]`."""
        found = np.zeros(size, np.int32)
        for symbol, tokens in enumerate(self.tokens):
            block = self.blocks[symbol][self.variant[state, symbol]]
            found[tokens] = block.classes[block.part]
        return found

    def class_sums(self, state: int) -> dict[int, int]:
        """For each suffix class from one lexer state the sum of its tokens' random integers, modulo 2**64."""
        found: dict[int, int] = {}
        for symbol, variant in enumerate(self.variant[state]):
            block = self.blocks[symbol][variant]
            for suffix_class, value in zip(block.classes.tolist(), block.sums.tolist(), strict=True):
                found[suffix_class] = found.get(suffix_class, 0) + value & HASH_MASK
        found.pop(NOTHING, None)
        return found


def build_spanner(
    graph: LexerGraph,
    boundaries: Boundaries,
    vocabulary: Vocabulary,
    may_follow: Mapping[int, Mapping[int, frozenset[int]]],
) -> Spanner:
    """Computes the suffix class of every token from every lexer state.

    Args:
        graph: the lexer.
        boundaries: its boundary classes.
        vocabulary: the tokens; their suffixes are shared by all grammars.
        may_follow: for each terminal (and `IGNORED`) and scanner the terminals that some parser state takes
            right after it.
    """
    return _Builder(graph, boundaries, vocabulary, may_follow).build()


class _Builder:
    """Works on pairs of a lexer state and a string that is still to be read, as `state * width + string`.

    A **reading** of a symbol in a state is what happens there: a list of alternatives, each a label (the
    terminal emitted on the way and the scanners that go on, or nothing) and the state behind the symbol.
    """

    def __init__(self, graph, boundaries, vocabulary, may_follow):
        self._graph = graph
        self._strings = vocabulary.strings
        self._symbol = graph.classes[self._strings.first]
        self.classes = SuffixClasses(may_follow)
        self._ending = np.array(
            [self.classes.ending(exits, graph, boundaries) for exits in graph.exits], np.int32
        )
        self._width = len(self._strings.first)
        self._labels: list[tuple[int, frozenset[int]]] = [(NO_LABEL, frozenset())]
        self._variant, self._readings = self._read_all()
        self._base, self._targets, self._label_of = self._flat_readings()
        self._keys: list[np.ndarray] = []  # for each string length the sorted pairs
        self._values: list[np.ndarray] = []  # and their suffix classes

    def build(self) -> Spanner:
        tokens = self._tokens_by_symbol()
        self._collect(tokens)
        self._evaluate()
        random = splitmix(len(self._strings.token_string))
        blocks = [self._blocks(ids, self._readings[symbol], random[ids]) for symbol, ids in enumerate(tokens)]
        return Spanner(self.classes, tokens, self._variant, blocks)

    def _tokens_by_symbol(self) -> list[np.ndarray]:
        strings = self._strings.token_string
        usable = np.flatnonzero(strings)
        symbols = self._symbol[strings[usable]]
        return [usable[symbols == symbol] for symbol in range(self._graph.delta.shape[1])]

    def _read_all(self):
        """The distinct readings of each symbol, and which of them each state has."""
        delta, gates = self._graph.delta, self._graph.gates
        variant = np.zeros(delta.shape, np.int32)
        readings: list[list[tuple[tuple[int, int], ...]]] = []
        label_number = {self._labels[0]: 0}
        for symbol in range(delta.shape[1]):
            behind = delta[gates, symbol].tolist()
            number: dict[tuple, int] = {}
            for state, pairs in enumerate(self._graph.accepts):
                found = [(0, int(delta[state, symbol]))] if delta[state, symbol] != DEAD else []
                for terminal, gate in pairs:
                    found += self._alternatives(terminal, behind[gate], label_number)
                variant[state, symbol] = number.setdefault(tuple(found), len(number))
            readings.append(list(number))
        self._labels = list(label_number)
        return variant, readings

    def _alternatives(self, terminal: int, row: list[int], label_number: dict) -> list[tuple[int, int]]:
        """The alternatives "emit `terminal`, then go on", one for each distinct state behind the symbol."""
        scanners: dict[int, list[int]] = {}
        for scanner, target in enumerate(row):
            if target != DEAD:
                scanners.setdefault(target, []).append(scanner)
        return [
            (label_number.setdefault((terminal, frozenset(found)), len(label_number)), target)
            for target, found in scanners.items()
        ]

    def _flat_readings(self):
        """All readings in rows, those of symbol `s` from `base[s]` on; DEAD in unused alternatives."""
        base = np.cumsum([0, *(len(found) for found in self._readings)])
        most = max((len(reading) for found in self._readings for reading in found), default=0)
        targets = np.zeros((base[-1], most), np.int64)
        labels = np.zeros((base[-1], most), np.int64)
        for row, reading in enumerate(reading for found in self._readings for reading in found):
            for i, (label, target) in enumerate(reading):
                targets[row, i], labels[row, i] = target, label
        return base[:-1], targets, labels

    def _collect(self, tokens: list[np.ndarray]) -> None:
        """Finds all pairs that matter, from long strings to short ones."""
        pairs = [np.zeros(0, np.int64)]
        for symbol, ids in enumerate(tokens):
            rests = np.unique(self._strings.rest[self._strings.token_string[ids]]).astype(np.int64)
            for state in sorted({target for reading in self._readings[symbol] for _, target in reading}):
                pairs.append(state * self._width + rests)
        keys = np.unique(np.concatenate(pairs))
        length = self._strings.length[keys % self._width]
        waiting = [keys[length == n] for n in range(int(self._strings.length.max()) + 1)]
        self._keys = list(waiting)
        for n in range(len(waiting) - 1, 0, -1):
            _, children = self._after(self._keys[n])
            self._keys[n - 1] = np.unique(np.concatenate([waiting[n - 1], children[children > 0]]))

    def _after(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The reading of each pair's first symbol, and the pairs behind it; 0 where there is none."""
        states, strings = np.divmod(keys, self._width)
        symbols = self._symbol[strings]
        reading = self._base[symbols] + self._variant[states, symbols]
        targets = self._targets[reading]
        rest = self._strings.rest[strings].astype(np.int64)[:, None]
        return reading, np.where(targets == DEAD, 0, targets * self._width + rest)

    def _evaluate(self) -> None:
        self._values = [self._ending[self._keys[0] // self._width]]
        for keys in self._keys[1:]:
            reading, children = self._after(keys)
            value = np.zeros(len(keys), np.int32)
            for i in range(children.shape[1]):
                rows = np.flatnonzero(children[:, i])
                rest = self._lookup(children[rows, i], len(self._values) - 1)
                value[rows] = self._joined(value[rows], self._label_of[reading[rows], i], rest)
            self._values.append(value)

    def _lookup(self, keys: np.ndarray, length: int) -> np.ndarray:
        """The suffix classes of pairs whose strings have a certain length; NOTHING for pairs not kept."""
        known = self._keys[length]
        index = np.searchsorted(known, keys)
        found = np.zeros(len(keys), np.int32)
        inside = index < len(known)
        inside[inside] = known[index[inside]] == keys[inside]
        found[inside] = self._values[length][index[inside]]
        return found

    def _joined(self, value: np.ndarray, label: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """`value`, or else what the label says and then `rest`, for each row."""
        if not value.any() and not label.any():
            return rest
        count = len(self.classes)
        keys = label.astype(np.int64) * count**2 + value.astype(np.int64) * count + rest
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rows = zip(value[first].tolist(), label[first].tolist(), rest[first].tolist(), strict=True)
        joined = [self.classes.union(v, self._emit(n, r)) for v, n, r in rows]
        return np.array(joined, np.int32)[inverse.ravel()]

    def _emit(self, label: int, rest: int) -> int:
        terminal, scanners = self._labels[label]
        return rest if terminal == NO_LABEL else self.classes.after(terminal, scanners, rest)

    def _blocks(self, tokens: np.ndarray, readings: list, random: np.ndarray) -> list[Block]:
        """The blocks of one symbol class. Variants that lead to the same states share their parts."""
        strings = self._strings.rest[self._strings.token_string[tokens]]
        values: dict[int, np.ndarray] = {}
        parts: dict[tuple[int, ...], tuple[np.ndarray, np.ndarray, np.ndarray]] = {}
        blocks = []
        for reading in readings:
            targets = tuple(target for _, target in reading)
            if targets not in parts:
                for target in targets:
                    if target not in values:
                        values[target] = self._values_of(target, strings)
                columns = np.zeros((len(targets), len(tokens)), np.int32)
                for column, target in zip(columns, targets, strict=True):
                    column[:] = values[target]
                parts[targets] = _parts(columns, random)
            part, sums, members = parts[targets]
            classes = np.zeros(len(sums), np.int32)
            for (label, _), rest in zip(reading, members, strict=True):
                classes = self._joined(classes, np.full(len(rest), label), rest)
            blocks.append(Block(part, sums, classes))
        return blocks

    def _values_of(self, state: int, strings: np.ndarray) -> np.ndarray:
        """The suffix classes of some strings from one state."""
        keys = state * self._width + strings.astype(np.int64)
        lengths = self._strings.length[strings]
        value = np.zeros(len(strings), np.int32)
        for n in np.unique(lengths):
            value[lengths == n] = self._lookup(keys[lengths == n], int(n))
        return value


def _parts(columns: np.ndarray, random: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Splits tokens by their columns: each one's part, the parts' sums of `random`, the parts' columns."""
    part = np.zeros(columns.shape[1], np.int64)
    for column in columns:
        _, part = np.unique(part * (int(column.max(initial=0)) + 1) + column, return_inverse=True)
    part = part.ravel()
    _, first = np.unique(part, return_index=True)
    sums = np.zeros(len(first), np.uint64)
    np.add.at(sums, part, random)
    return part.astype(np.int32), sums, columns[:, first]
