"""The only place where the oracle's tests touch the library: compile, and step through token sequences.

All small grammars are padded to one bucket and run in one batch shape, so that the step is traced once;
`TRACES` counts the traces.
"""

import collections
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

import jaxgcd

SMALL_SHAPE = (64, 16)  # sequences at once, tokens per sequence: no small text has more than 16 bytes
REAL_SHAPE = (32, 256)
TRACES: collections.Counter[tuple[Any, ...]] = collections.Counter()

# Sizes that no grammar of the small suites exceeds (`jaxgcd.pad` refuses larger ones). The largest seen: 314
# lexer states, 107 symbol classes, 302 rows (Unicode word characters), 26 parser states, 20 rules; among the
# random grammars 795 nodes, 967 edges, and 3 lexemes that may end in one state.
SMALL_BUCKET = {
    **{
        "lexer_states": 512,
        "symbol_classes": 128,
        "emits": 4,
        "runs": 4,
        "terminal_words": 1,
        "terminals": 16,
    },
    **{
        "parser_states": 64,
        "places": 64,
        "nonterminals": 16,
        "rules": 64,
        "landings": 128,
        "slack": 12,
        "gates": 64,
        "scanners": 16,
        "slots": 8,
        "nodes": 2048,
    },
    **{"entries": 512, "edges": 4096, "rows": 512, "pages": 512, "token_symbols": 1024},
}


class TokenList(Protocol):
    """A vocabulary as plain data."""

    @property
    def tokens(self) -> Sequence[bytes]: ...
    @property
    def eos(self) -> Sequence[int]: ...
    @property
    def special(self) -> Sequence[int]: ...
    @property
    def size(self) -> int: ...


@dataclass(frozen=True)
class Compiled:
    """Tables, the vocabulary that they were made for, and the messages of the warnings on the way."""

    tables: Any
    vocabulary: Any
    warned: tuple[str, ...]
    shape: tuple[int, int]

    @property
    def exact(self) -> bool:
        """The library's own verdict."""
        return self.tables.report.exact

    @property
    def reasons(self) -> tuple[str, ...]:
        """What it gives as reasons when it is not exact."""
        return self.tables.report.reasons


@dataclass(frozen=True)
class Trail:
    """What happened along some token sequences, one row each."""

    drawn: np.ndarray  # bool[n, length]: was this token allowed when it was drawn (True behind its end)
    ends: np.ndarray  # bool[n, length + 1]: could it end after so many tokens (behind its end: as at it)
    masks: np.ndarray  # bool[n, size]: the mask after the whole sequence

    def accepts(self) -> list[bool]:
        """Whether each whole sequence was allowed and could end."""
        return (self.drawn.all(axis=1) & self.ends[:, -1]).tolist()


def vocabulary_of(words: TokenList | jaxgcd.Vocabulary) -> Any:
    """The library's vocabulary for a plain token list, or the one that was built before."""
    if isinstance(words, jaxgcd.Vocabulary):
        return words
    return jaxgcd.Vocabulary(
        list(words.tokens), eos=list(words.eos), special=list(words.special), size=words.size
    )


def compile_small(
    grammar: Any,
    words: TokenList | jaxgcd.Vocabulary,
    *,
    shape: tuple[int, int] = SMALL_SHAPE,
    bucket: dict[str, int] = SMALL_BUCKET,
    **options: Any,
) -> Compiled:
    """Compile (with the basic lexer, if not told otherwise) and pad to the bucket of the small grammars."""
    compiled = compile_any(grammar, vocabulary_of(words), shape=shape, **options)
    return replace(compiled, tables=jaxgcd.pad(compiled.tables, bucket))


def compile_any(
    grammar: Any, vocabulary: Any, *, shape: tuple[int, int] = REAL_SHAPE, **options: Any
) -> Compiled:
    """Compile (by default with the basic lexer); collects `InexactGrammarWarning`s, lets others through."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", jaxgcd.InexactGrammarWarning)
        tables = jaxgcd.compile_grammar(grammar, vocabulary, **{"lexer": "basic", **options})
    warned = tuple(str(w.message) for w in caught if issubclass(w.category, jaxgcd.InexactGrammarWarning))
    return Compiled(tables, vocabulary, warned, shape)


def trails(compiled: Compiled, sequences: Sequence[Sequence[int]]) -> Trail:
    """Step through any number of token sequences, a full batch at a time."""
    rows, length = compiled.shape
    parts = []
    for first in range(0, len(sequences), rows):
        batch = sequences[first : first + rows]
        padded = np.full((rows, length), -1, np.int32)
        for row, sequence in zip(padded, batch, strict=False):
            row[: len(sequence)] = sequence
        eos = np.asarray(compiled.vocabulary.eos, np.int32)
        outputs = _follow(compiled.tables, jnp.asarray(padded), jnp.asarray(eos))
        parts.append([np.asarray(output)[: len(batch)] for output in outputs])
    drawn, ends, words, readings = (np.concatenate(part) for part in zip(*parts, strict=True))
    bound = compiled.tables.report.counts["runs"]  # a bucket has room for more, which would hide a wrong one
    assert readings.max(initial=0) <= bound, f"{readings.max()} readings of a text, and not at most {bound}"
    return Trail(drawn, ends, unpack(words, compiled.vocabulary.size))


def masks(compiled: Compiled, sequences: Sequence[Sequence[int]]) -> np.ndarray:
    """The mask after each token sequence, bool[n, size]."""
    return trails(compiled, sequences).masks


def trace_key(compiled: Compiled) -> tuple[Any, ...]:
    """Under which key `TRACES` counts the traces of `trails` for tables of this shape."""
    return _trace_key(compiled.shape, compiled.tables)


def _trace_key(shape: tuple[int, ...], tables: Any) -> tuple[Any, ...]:
    return shape, jax.tree.structure(tables), tuple(leaf.shape for leaf in jax.tree.leaves(tables))


def unpack(words: np.ndarray, size: int) -> np.ndarray:
    """Token i is bit `i & 31` of word `i >> 5`; the bits past the last id must be 0."""
    bits = np.unpackbits(words.astype("<u4").view(np.uint8), axis=-1, bitorder="little").astype(bool)
    assert not bits[..., size:].any(), "bits past the vocabulary are set"
    return bits[..., :size]


@jax.jit
def _follow(tables: Any, tokens: jax.Array, eos: jax.Array) -> tuple[jax.Array, ...]:
    """Advance over int32[rows, length] (-1: no more tokens), looking at the mask before every token.

    Returns what a `Trail` has, the masks packed, and the most readings of each row.
    """
    TRACES[_trace_key(tokens.shape, tables)] += 1
    start = jaxgcd.init(tables, batch_shape=(tokens.shape[0],))

    def step(state: Any, token: jax.Array) -> tuple[Any, tuple[jax.Array, jax.Array, jax.Array]]:
        words, going = jaxgcd.allowed(tables, state), token >= 0
        moved = jaxgcd.advance(tables, state, jnp.maximum(token, 0))
        kept = jax.tree.map(lambda new, old: jnp.where(_like(going, new), new, old), moved, state)
        readings = (kept.lexer > 0).sum(axis=-1)
        return kept, (_bit(words, jnp.maximum(token, 0)) | ~going, _ends(words, eos), readings)

    state, (drawn, ends, readings) = jax.lax.scan(step, start, tokens.T)
    words = jaxgcd.allowed(tables, state)
    ends = jnp.concatenate([ends.T, _ends(words, eos)[:, None]], axis=1)
    return drawn.T, ends, words, readings.max(axis=0)


def _bit(words: jax.Array, token: jax.Array) -> jax.Array:
    """The bit of one token per row."""
    word = jnp.take_along_axis(words, (token >> 5)[:, None], axis=1)[:, 0]
    return ((word >> (token & 31).astype(jnp.uint32)) & jnp.uint32(1)).astype(bool)


def _ends(words: jax.Array, eos: jax.Array) -> jax.Array:
    """Whether every EOS token is allowed, per row."""
    bits = jax.vmap(lambda token: _bit(words, jnp.broadcast_to(token, words.shape[:1])))(eos)
    return bits.all(axis=0)


def _like(flag: jax.Array, leaf: jax.Array) -> jax.Array:
    """`flag[rows]` with trailing axes to select whole rows of `leaf`."""
    return flag.reshape(flag.shape + (1,) * (leaf.ndim - 1))
