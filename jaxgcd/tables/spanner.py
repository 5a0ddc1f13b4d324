"""The inverse token spanner: which terminal sequences each token can produce, from each lexer state.

The paper keys this table by lexer state and whole terminal sequence (Park, Zhou and D'Antoni 2025, section
3.2, `T_inv`). Here every (lexer state, token) pair has a **suffix class**, and a class is a small tree: for
each terminal that the token may complete first, the class of what follows it; and where the token ends, what
its last lexeme can still become. Tokens that no parser can tell apart share a class.

A class is computed for the pairs (lexer state, remaining string) that are met, from short strings to long
ones, so all suffixes shared between tokens and between states are looked at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxgcd.lexing.boundaries import Boundaries
from jaxgcd.lexing.graph import LexerGraph
from jaxgcd.lexing.scanner import DEAD, IGNORED
from jaxgcd.vocabulary import Vocabulary

HASH_MASK = (1 << 64) - 1
NOTHING = 0
"""The class of what no text can be made of."""


class SuffixClass(NamedTuple):
    """What a piece of text may turn into, as far as a parser can see.

    `follow`: pairs `(terminal, class of what comes after it)`, one for each first terminal. `open`: the
    boundary classes at which the text may end having emitted nothing more.
    """

    follow: tuple[tuple[int, int], ...]
    open: frozenset[int]


class SuffixClasses:
    """Interned suffix classes, closed under union and under "terminal, then class"."""

    def __init__(self, may_follow: Sequence[frozenset[int]]):
        """`may_follow[t]`: the terminals that some parser state takes right after terminal `t`."""
        self._may_follow = may_follow
        self.members: list[SuffixClass] = []
        self._number: dict[SuffixClass, int] = {}
        self._unions: dict[tuple[int, int], int] = {}
        self._after: dict[tuple[int, int], int] = {}
        self.intern({}, frozenset())

    def __len__(self) -> int:
        return len(self.members)

    def intern(self, follow: dict[int, int], open_: frozenset[int]) -> int:
        """The number of a class; terminals followed by nothing are left out."""
        found = SuffixClass(tuple(sorted((t, c) for t, c in follow.items() if c != NOTHING)), open_)
        number = self._number.setdefault(found, len(self.members))
        if number == len(self.members):
            self.members.append(found)
        return number

    def union(self, first: int, second: int) -> int:
        """The class of either."""
        if NOTHING in (first, second) or first == second:
            return first or second
        key = (min(first, second), max(first, second))
        if key not in self._unions:
            one, other = self.members[first], self.members[second]
            follow = dict(one.follow)
            for terminal, after in other.follow:
                follow[terminal] = self.union(follow.get(terminal, NOTHING), after)
            self._unions[key] = self.intern(follow, one.open | other.open)
        return self._unions[key]

    def after(self, terminal: int, rest: int) -> int:
        """The class "`terminal`, then `rest`", without what can never follow `terminal`."""
        if terminal == IGNORED or rest == NOTHING:
            return rest
        key = (terminal, rest)
        if key not in self._after:
            follow, open_ = self.members[rest]
            kept = self.intern({t: c for t, c in follow if t in self._may_follow[terminal]}, open_)
            self._after[key] = self.intern({terminal: kept}, frozenset())
        return self._after[key]

    def ending(self, exits: frozenset[tuple[int, int]], boundaries: Boundaries) -> int:
        """The class of a text that ends inside a lexeme with these exits."""
        found = self.intern({}, frozenset(boundaries.of[b] for t, b in exits if t == IGNORED))
        for terminal, boundary in sorted(exits):
            if terminal != IGNORED:
                then = self.intern({}, frozenset({boundaries.of[boundary]}))
                found = self.union(found, self.intern({terminal: then}, frozenset()))
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
    graph: LexerGraph, boundaries: Boundaries, vocabulary: Vocabulary, may_follow: Sequence[frozenset[int]]
) -> Spanner:
    """Computes the suffix class of every token from every lexer state.

    Args:
        graph: the lexer.
        boundaries: its boundary classes.
        vocabulary: the tokens; their suffixes are shared by all grammars.
        may_follow: for each terminal those that some parser state takes right after it.
    """
    return _Builder(graph, boundaries, vocabulary, may_follow).build()


class _Builder:
    def __init__(self, graph, boundaries, vocabulary, may_follow):
        self._strings = vocabulary.strings
        self._symbol = graph.classes[self._strings.first]
        self._delta = graph.delta
        self._accepts = graph.accepts
        self.classes = SuffixClasses(may_follow)
        self._ending = np.array([self.classes.ending(exits, boundaries) for exits in graph.exits], np.int32)
        self._accepting = np.array([bool(pairs) for pairs in graph.accepts])
        self._width = len(self._strings.first)
        self._keys: list[np.ndarray] = []  # for each string length the sorted (state, string) pairs
        self._values: list[np.ndarray] = []  # and their suffix classes

    def build(self) -> Spanner:
        tokens = self._tokens_by_symbol()
        variant, readings = self._variants()
        needed = [
            (state, self._strings.rest[self._strings.token_string[ids]])
            for symbol, ids in enumerate(tokens)
            for state in sorted({target for reading in readings[symbol] for _, target in reading} - {DEAD})
        ]
        self._collect(needed)
        self._evaluate()
        random = splitmix(len(self._strings.token_string))
        blocks = [self._blocks(ids, readings[symbol], random[ids]) for symbol, ids in enumerate(tokens)]
        return Spanner(self.classes, tokens, variant, blocks)

    def _tokens_by_symbol(self) -> list[np.ndarray]:
        strings = self._strings.token_string
        usable = np.flatnonzero(strings)
        symbols = self._symbol[strings[usable]]
        return [usable[symbols == symbol] for symbol in range(self._delta.shape[1])]

    def _variants(self):
        """The distinct ways in which the states read each symbol: `(emitted terminal or None, next state)`
        pairs.
        """
        variant = np.zeros(self._delta.shape, np.int32)
        readings: list[list[tuple]] = []
        for symbol in range(self._delta.shape[1]):
            number: dict[tuple, int] = {}
            for state in range(len(self._delta)):
                reading = [(None, int(self._delta[state, symbol]))]
                reading += [(t, int(self._delta[b, symbol])) for t, b in self._accepts[state]]
                key = tuple(pair for pair in reading if pair[1] != DEAD)
                variant[state, symbol] = number.setdefault(key, len(number))
            readings.append(list(number))
        return variant, readings

    def _collect(self, needed: list[tuple[int, np.ndarray]]) -> None:
        """Finds all (state, string) pairs that matter, from long strings to short ones."""
        pairs = [state * self._width + np.unique(strings).astype(np.int64) for state, strings in needed]
        keys = np.unique(np.concatenate(pairs)) if pairs else np.zeros(0, np.int64)
        length = self._strings.length[keys % self._width]
        waiting = [keys[length == n] for n in range(int(self._strings.length.max()) + 1)]
        self._keys = [np.zeros(0, np.int64)] * len(waiting)
        for n in range(len(waiting) - 1, 0, -1):
            self._keys[n] = waiting[n]
            states, strings = np.divmod(waiting[n], self._width)
            after = [self._after(states, strings)]
            for accepting, boundary in self._boundary_rows(states):
                after.append(self._after(boundary, strings[accepting]))
            children = np.concatenate(after)
            waiting[n - 1] = np.unique(np.concatenate([waiting[n - 1], children[children >= self._width]]))
        self._keys[0] = waiting[0]

    def _after(self, states: np.ndarray, strings: np.ndarray) -> np.ndarray:
        """The pairs after one more symbol; below `width` where the state is dead."""
        targets = self._delta[states, self._symbol[strings]].astype(np.int64)
        return np.where(targets == DEAD, 0, targets * self._width + self._strings.rest[strings])

    def _boundary_rows(self, states: np.ndarray):
        """For each alternative, where a lexeme can end: the indices into `states`, and the boundaries."""
        found = np.flatnonzero(self._accepting[states])
        most = max((len(self._accepts[q]) for q in np.unique(states[found])), default=0)
        for i in range(most):
            rows = np.array([k for k in found if len(self._accepts[states[k]]) > i], np.int64)
            yield rows, np.array([self._accepts[q][i][1] for q in states[rows]], np.int64)

    def _evaluate(self) -> None:
        empty = self._keys[0]
        self._values = [self._ending[empty // self._width]]
        for keys in self._keys[1:]:
            states, strings = np.divmod(keys, self._width)
            value = self._lookup(self._after(states, strings), len(self._values) - 1)
            for i, (rows, boundary) in enumerate(self._boundary_rows(states)):
                rest = self._lookup(self._after(boundary, strings[rows]), len(self._values) - 1)
                terminal = np.array([self._accepts[q][i][0] for q in states[rows]], np.int64)
                value[rows] = self._joined(value[rows], terminal, rest)
            self._values.append(value)

    def _lookup(self, keys: np.ndarray, length: int) -> np.ndarray:
        index = np.searchsorted(self._keys[length], keys)
        index = np.minimum(index, max(len(self._keys[length]) - 1, 0))
        if not len(self._keys[length]):
            return np.zeros(len(keys), np.int32)
        return np.where(keys >= self._width, self._values[length][index], NOTHING).astype(np.int32)

    def _joined(self, value: np.ndarray, terminal: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """`value`, or else `terminal` and then `rest`, for each row."""
        count = len(self.classes)
        keys = (terminal.astype(np.int64) + 1) * count**2 + value.astype(np.int64) * count + rest
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        rows = zip(value[first].tolist(), terminal[first].tolist(), rest[first].tolist(), strict=True)
        joined = [self.classes.union(v, self.classes.after(t, r)) for v, t, r in rows]
        return np.array(joined, np.int32)[inverse.ravel()]

    def _blocks(self, tokens: np.ndarray, readings: list[tuple], random: np.ndarray) -> list[Block]:
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
            for (terminal, _), rest in zip(reading, members, strict=True):
                emitted = np.full(len(rest), IGNORED if terminal is None else terminal)
                classes = self._joined(classes, emitted, rest)
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


def splitmix(count: int) -> np.ndarray:
    """`count` fixed random 64-bit integers (the output function of SplitMix64, Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        z = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
