"""The inverse token spanner: which terminal sequences each token can produce, from each lexer state.

The paper keys this table, `T_inv`, by lexer state and whole terminal sequence (Park, Zhou and D'Antoni
2025). Here every (lexer state, token) pair has a **suffix class**, and a class is a small tree: for
each terminal that the token may complete first, the class of what follows it; and where the token ends, what
its last lexeme can still become. Tokens that no parser can tell apart share a class.

A class is computed for the pairs (lexer state, remaining string) that are met, from short strings to long
ones, so all suffixes shared between tokens and between states are looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._hashing import random_integers
from jaxgcd._numbering import numbered, sorting
from jaxgcd.lexing.graph import LexerGraph
from jaxgcd.lexing.scanner import DEAD
from jaxgcd.tables.blocks import Block, Column, Reading, alternatives, split_tokens, targets_of
from jaxgcd.tables.growing import ranges
from jaxgcd.tables.horizon import representatives
from jaxgcd.tables.suffixes import NOTHING, Lists, SuffixClasses
from jaxgcd.vocabulary import Strings, Vocabulary

_BITS = 32
NO_LABEL = 0
"""In a reading: nothing is emitted."""


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
        """The suffix class of every token from one lexer state, `int[size]`."""
        classes, which = self.distinct_of_state(state, size)
        return classes[which]

    def distinct_of_state(self, state: int, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The distinct suffix classes from one lexer state, in order, and which of them each token has.

        `NOTHING` is always one of them.
        """
        base, _, length, _, _ = self._blocks_in_a_row
        live = np.flatnonzero(length[base + self.variant[state]]).tolist()
        blocks = [self.blocks[symbol][self.variant[state, symbol]] for symbol in live]
        classes, _, which = numbered(np.concatenate([[NOTHING], *(block.classes for block in blocks)]))
        ends = np.cumsum([1, *(len(block.classes) for block in blocks)])
        places = np.split(which.astype(np.int32), ends)[1:-1]
        found = np.zeros(size, np.int32)
        for symbol, block, place in zip(live, blocks, places, strict=True):
            found[self.tokens[symbol]] = place[block.part]
        return classes, found

    def class_sums(self, states: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The suffix classes from each of some lexer states.

        Returns:
            The index of the state of each class, the class, the sum of its tokens' random integers.
        """
        base, start, length, classes, sums = self._blocks_in_a_row
        block = base + self.variant[states]
        index = ranges(start[block].ravel(), length[block].ravel())
        owner = np.repeat(np.arange(len(states)), length[block].sum(axis=1))
        keys, sums = summed(owner << _BITS | classes[index], sums[index])
        return keys >> _BITS, keys & (1 << _BITS) - 1, sums

    @cached_property
    def _blocks_in_a_row(self) -> tuple[np.ndarray, ...]:
        """The number of each symbol class's first block, and what is in the parts of all blocks, as lists."""
        blocks = [block for blocks in self.blocks for block in blocks]
        count = np.array([len(blocks) for blocks in self.blocks])
        classes = np.concatenate([block.classes for block in blocks])
        owner = np.repeat(np.arange(len(blocks)), [len(block.classes) for block in blocks])
        kept = classes != NOTHING
        length = np.bincount(owner[kept], minlength=len(blocks))
        sums = np.concatenate([block.sums for block in blocks])[kept]
        return np.cumsum(count) - count, np.cumsum(length) - length, length, classes[kept], sums


def summed(keys: np.ndarray, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, 0 left out, and the sums of what belongs to them, modulo 2**64."""
    kept = keys != 0
    distinct, _, which = numbered(keys[kept])
    total = np.zeros(len(distinct), np.uint64)
    np.add.at(total, which, sums[kept])
    return distinct, total


def build_spanner(
    graph: LexerGraph,
    ends: Mapping[int, int | None],
    vocabulary: Vocabulary,
    may_follow: Mapping[int, Mapping[int, frozenset[int]]],
    budget: Budget,
) -> Spanner:
    """Computes the suffix class of every token from every lexer state.

    Args:
        graph: the lexer.
        ends: the boundary class that stands for each lexer state at a boundary, or None if no text can go on.
        vocabulary: the tokens; their suffixes are shared by all grammars.
        may_follow: for each terminal (and `IGNORED`) and scanner the terminals that some parser state takes
            right after it.
        budget: what may be used up; `work` names the terminal with the most lexer states.

    Raises:
        GrammarTooLarge: there are too many pairs of a lexer state and a string, or too many suffix classes.
    """
    return _Builder(graph, ends, vocabulary, may_follow, budget).build()


class _Builder:
    """Works on pairs of a lexer state and a string that is still to be read, as `state << bits | string`.

    The state stands for all that strings of that length do not tell apart. A label is the terminal emitted
    on the way and the scanners that go on, or `NO_LABEL`.
    """

    def __init__(self, graph, ends, vocabulary, may_follow, budget):
        self._budget = budget
        self._pairs = 0
        self._graph = graph
        self._strings = vocabulary.strings
        self._symbol = graph.classes[self._strings.first]
        self.classes = SuffixClasses(may_follow)
        fans = [self.classes.ended(gate, ends) for gate in graph.gates.tolist()]
        self._ending = np.array([self.classes.ending(exits, fans) for exits in graph.exits], np.int32)
        self._bits = len(self._strings.first).bit_length()
        self._longest = int(self._strings.length.max())
        numbers: dict[object, int] = {}
        self._emits = np.array([numbers.setdefault(tuple(pairs), len(numbers)) for pairs in graph.accepts])
        self._alike = representatives(graph.delta, self._emits, self._ending, self._longest, budget)
        self._delta = self._alike[-1][graph.delta]
        self._labels: list[tuple[int, frozenset[int]]] = [(NO_LABEL, frozenset())]
        self._variant, self._readings = self._read_all()
        self._base, self._alternatives = self._flat_readings()
        self._symbols_into: dict[int, list[int]] = {}  # the symbols that lead to a state
        for symbol, readings in enumerate(self._readings):
            for target in {target for reading in readings for _, target in reading}:
                self._symbols_into.setdefault(target, []).append(symbol)
        self._keys: list[np.ndarray] = []  # for each string length the sorted pairs
        self._behind: list[_Behind] = []  # and what is behind their first symbols
        self._values: list[np.ndarray] = []  # and their suffix classes

    def build(self) -> Spanner:
        tokens = self._tokens_by_symbol()
        self._collect(tokens)
        self._evaluate()
        random = random_integers(len(self._strings.token_string))
        return Spanner(self.classes, tokens, self._variant, self._blocks(tokens, random))

    def _tokens_by_symbol(self) -> list[np.ndarray]:
        strings = self._strings.token_string
        usable = np.flatnonzero(strings)
        symbols = self._symbol[strings[usable]]
        return [usable[symbols == symbol] for symbol in range(self._graph.delta.shape[1])]

    def _read_all(self) -> tuple[np.ndarray, list[list[Reading]]]:
        """The distinct readings of each symbol, and which of them each state has."""
        delta = self._delta
        variant = np.zeros(delta.shape, np.int32)
        readings: list[list[Reading]] = []
        label_number = {self._labels[0]: 0}
        for symbol in range(delta.shape[1]):
            # States that emit the same and go on to the same state read the symbol alike.
            _, first, alike = numbered(self._emits * self._graph.n_states + delta[:, symbol])
            number: dict[Reading, int] = {}
            found = [number.setdefault(r, len(number)) for r in self._read(symbol, first, label_number)]
            variant[:, symbol] = np.array(found)[alike]
            readings.append(list(number))
        self._labels = list(label_number)
        return variant, readings

    def _read(self, symbol: int, states: np.ndarray, label_number: dict) -> Iterator[Reading]:
        """The readings of one symbol in some states."""
        behind = self._delta[self._graph.gates, symbol].tolist()
        emitting: dict[tuple[int, int], Reading] = {}
        for state in states.tolist():
            target = int(self._delta[state, symbol])
            found: Reading = ((NO_LABEL, target),) if target != DEAD else ()
            for pair in self._graph.accepts[state]:
                if pair not in emitting:
                    scanners = self.classes.scanners(pair[0])
                    emitting[pair] = _emitting(pair[0], behind[pair[1]], scanners, label_number)
                found += emitting[pair]
            yield found

    def _flat_readings(self):
        """All readings in a row, those of symbol `s` from `base[s]` on, as lists of alternatives."""
        base = np.cumsum([0, *(len(found) for found in self._readings)])
        readings = [reading for found in self._readings for reading in found]
        return base[:-1], Lists(readings)

    def _collect(self, tokens: list[np.ndarray]) -> None:
        """Finds all pairs that matter, from long strings to short ones."""
        waiting = self._begun(tokens)
        self._keys = list(waiting)
        self._behind = [_Behind(*[np.zeros(0, np.int64)] * 3)] * (self._longest + 1)
        for n in range(self._longest, 0, -1):
            owner, label, children = self._after(self._keys[n], self._alike[n - 1])
            self._count(len(children))
            known = len(waiting[n - 1])
            self._keys[n - 1], _, place = numbered(np.concatenate([waiting[n - 1], children]))
            self._behind[n] = _Behind(owner.astype(np.int32), label, place[known:].astype(np.int32))

    def _begun(self, tokens: list[np.ndarray]) -> list[np.ndarray]:
        """For each length the pairs of what tokens go on with and the states behind their first symbols."""
        states = np.array(sorted(self._symbols_into), np.int64)
        into = np.zeros((len(states), len(tokens)), bool)
        for row, state in zip(into, states.tolist(), strict=True):
            row[self._symbols_into[state]] = True
        into = np.packbits(into, axis=1)
        rests, found = _Rests(self._strings, tokens), []
        for n, alike in enumerate(self._alike):
            if n == 0 or alike is not self._alike[n - 1]:
                groups = _by_symbols(alike[states], into)
            keys = [(some[:, None] << self._bits | rests.of(symbols)[n]).ravel() for symbols, some in groups]
            self._count(sum(map(len, keys)))
            found.append(np.concatenate([np.zeros(0, np.int64), *keys]))
        return found

    def _count(self, pairs: int) -> None:
        """Bounds memory and time; pairs met again count again."""
        self._budget.step(pairs)
        self._pairs += pairs
        if self._pairs > self._budget.limits.suffix_pairs:
            subject = f"{self._budget.work}: its lexer states and the vocabulary's strings form"
            raise self._budget.exceeded("suffix_pairs", subject, "pairs", "shorten its bounded repeats")

    def _after(self, keys: np.ndarray, alike: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The alternatives of each pair's first symbol: whose they are, their labels, the pairs behind.

        `alike`: the states that stand for others with strings that are one symbol shorter.
        """
        states, strings = self._split(keys)
        symbols = self._symbol[strings]
        owner, label, target = self._alternatives.of(self._base[symbols] + self._variant[states, symbols])
        return owner, label, alike[target].astype(np.int64) << self._bits | self._strings.rest[strings[owner]]

    def _split(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The states and the strings of pairs."""
        return keys >> self._bits, keys & (1 << self._bits) - 1

    def _evaluate(self) -> None:
        self._values = [self._ending[self._keys[0] >> self._bits]]
        for keys, (owner, label, child) in zip(self._keys[1:], self._behind[1:], strict=True):
            rest = self._emit_all(label, self._values[-1][child])
            self._values.append(self._united(rest, owner, len(keys)))
            self._budget.step(len(keys))
            if len(self.classes) > self._budget.limits.suffix_classes:
                subject = f"{self._budget.work}: rests of tokens have"
                remedy = "use fewer terminals that can directly follow each other"
                raise self._budget.exceeded("suffix_classes", subject, "different outcomes", remedy)

    def _emit_all(self, label: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """What the labels say and then the classes `rest`."""
        found = rest.copy()
        emits = np.flatnonzero((label != NO_LABEL) & (rest != NOTHING))
        if len(emits):
            pairs = label[emits].astype(np.int64) << 32 | rest[emits]
            distinct, _, which = numbered(pairs)
            labels, first = np.unique(distinct >> 32, return_index=True)
            rests = np.split(distinct & 0xFFFFFFFF, first[1:])
            emitted = []
            for number, some in zip(labels.tolist(), rests, strict=True):
                terminal, scanners = self._labels[number]
                emitted.append(self.classes.after(terminal, scanners, some.tolist()))
            found[emits] = np.concatenate(emitted).astype(np.int32)[which]
        return found

    def _united(self, classes: np.ndarray, owner: np.ndarray, owners: int) -> np.ndarray:
        """One class for each owner, the union of its own, which are in order."""
        kept = classes != NOTHING
        classes, owner = classes[kept], owner[kept]
        found = np.zeros(owners, np.int32)
        found[owner[::-1]] = classes[::-1]  # each owner's first
        for index in (np.flatnonzero(owner[1:] == owner[:-1]) + 1).tolist():
            found[owner[index]] = self.classes.union(int(found[owner[index]]), int(classes[index]))
        return found

    def _blocks(self, tokens: list[np.ndarray], random: np.ndarray) -> list[list[Block]]:
        """The blocks of each symbol class. Readings that lead to the same states share their parts."""
        columns = self._columns(tokens)
        return [
            self._blocks_of(self._readings[symbol], columns[symbol], random[ids], len(ids))
            for symbol, ids in enumerate(tokens)
        ]

    def _columns(self, tokens: list[np.ndarray]) -> list[dict[int, Column]]:
        """For each symbol class and each state behind it the suffix classes of what the tokens go on with."""
        rests = [self._strings.rest[self._strings.token_string[ids]] for ids in tokens]
        columns: list[dict[int, Column]] = [{} for _ in tokens]
        classes = np.zeros(len(self._strings.first), np.int32)
        for state, pieces in self._by_state():
            for strings, values in pieces:
                classes[strings] = values
            for symbol in self._symbols_into[state]:
                found = classes[rests[symbol]]
                kept = np.flatnonzero(found)
                columns[symbol][state] = Column(kept.astype(np.int32), found[kept])
            for strings, _ in pieces:
                classes[strings] = NOTHING
        return columns

    def _by_state(self) -> Iterator[tuple[int, list[tuple[np.ndarray, np.ndarray]]]]:
        """For each state that some symbol leads to the strings of its pairs, and their suffix classes, in
        pieces.
        """
        states = np.array(sorted(self._symbols_into), np.int64)
        pieces: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in states]
        for alike, keys, values in zip(self._alike, self._keys, self._values, strict=True):
            order = sorting(keys) if keys is self._keys[-1] else slice(None)
            owners, strings = self._split(keys[order])
            values = values[order]
            begin = np.searchsorted(owners, alike[states]).tolist()
            end = np.searchsorted(owners, alike[states], side="right").tolist()
            for own, first, last in zip(pieces, begin, end, strict=True):
                if first < last:
                    own.append((strings[first:last], values[first:last]))
        yield from zip(states.tolist(), pieces, strict=True)

    def _blocks_of(
        self, readings: list[Reading], columns: dict[int, Column], random: np.ndarray, size: int
    ) -> list[Block]:
        """The blocks of one symbol class."""
        if not readings:
            return []
        targets = [targets_of(reading) for reading in readings]
        known = split_tokens(dict.fromkeys(targets), columns, random, size)
        found = [known[some] for some in targets]
        label, classes, owner = alternatives(readings, found)
        ends = np.cumsum([len(parts.sums) for parts in found])
        united = self._united(self._emit_all(label, classes), owner, int(ends[-1]))
        pieces = zip(found, np.split(united, ends[:-1]), strict=True)
        return [Block(parts.part, parts.sums, classes) for parts, classes in pieces]


class _Rests:
    """What tokens go on with behind their first symbols."""

    def __init__(self, strings: Strings, tokens: list[np.ndarray]):
        self._count = len(strings)
        self._ends = np.cumsum(np.bincount(strings.length))[:-1]  # their ids are sorted by length
        self._rests = [strings.rest[strings.token_string[ids]] for ids in tokens]
        self._known: dict[bytes, list[np.ndarray]] = {}

    def of(self, symbols: bytes) -> list[np.ndarray]:
        """For each length the strings behind a set of symbols, packed bits."""
        if symbols not in self._known:
            begun = np.zeros(self._count, bool)
            for symbol in np.flatnonzero(np.unpackbits(np.frombuffer(symbols, np.uint8))).tolist():
                begun[self._rests[symbol]] = True
            found = np.flatnonzero(begun)
            self._known[symbols] = np.split(found, np.searchsorted(found, self._ends))
        return self._known[symbols]


def _by_symbols(states: np.ndarray, into: np.ndarray) -> list[tuple[bytes, np.ndarray]]:
    """Sets of symbols, as packed bits, and the states, given repeatedly, that just these lead to.

    Args:
        states: `int[n]`, not in order.
        into: `uint8[n, bytes]`, the symbols that lead to each, as packed bits.
    """
    order = sorting(states)
    distinct, first = np.unique(states[order], return_index=True)
    found: dict[bytes, list[int]] = {}
    sets = np.bitwise_or.reduceat(into[order], first, axis=0)
    for state, symbols in zip(distinct.tolist(), sets, strict=True):
        found.setdefault(symbols.tobytes(), []).append(state)
    return [(symbols, np.array(some)) for symbols, some in found.items()]


def _emitting(terminal: int, row: list[int], follow: tuple[int, ...], label_number: dict) -> Reading:
    """The alternatives "emit `terminal`, then go on", one for each distinct state behind the symbol.

    `follow`: the scanners that may read on after `terminal`.
    """
    scanners: dict[int, list[int]] = {}
    for scanner in follow:
        if row[scanner] != DEAD:
            scanners.setdefault(row[scanner], []).append(scanner)
    return tuple(
        (label_number.setdefault((terminal, frozenset(found)), len(label_number)), target)
        for target, found in scanners.items()
    )


class _Behind(NamedTuple):
    """What is behind the first symbols of some pairs, in lists of alternatives."""

    owner: np.ndarray  # the index of the pair
    label: np.ndarray
    child: np.ndarray  # the index of the pair behind, among those whose strings are one shorter
