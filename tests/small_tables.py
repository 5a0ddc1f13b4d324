"""Small grammars over one small vocabulary, compiled once, and one loop that follows token sequences.

All of them are padded to one bucket, so that the loop is traced once for each batch shape.
"""

import collections
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxgcd
from jaxgcd.decoding import unpack

TOKENS = [b"a", b"b", b"(", b")", b"((", b"))", b"a)", b",", b"", b"special", b"ab", b"aa"]
EOS, SPECIAL, SIZE = 8, 9, 14
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[EOS], special=[SPECIAL], size=SIZE)

GRAMMARS = {
    "nested": 'start: "a" | "(" start ")"',
    # `a` begins a lexeme that may still turn out to be `aa(b`: two readings are alive at once.
    "fallback": 'start: (A | LONG | B)+\nLONG: "aa" "(" "b"\nA: "a"\nB: "b"\nP: "("\n%ignore P',
    "many": 'start: "b"*',
    "lists": 'start: "(" args ")"\nargs: | item ("," item)*\nitem: start | "a"+ | B\nB: /b+/',
    "right": 'start: "a" start | "b"',
}
BUCKET = {
    **dict.fromkeys(("lexer_states", "parser_states", "landings", "places", "nodes", "rows", "pages"), 48),
    **dict.fromkeys(("entries", "edges"), 192),
    **dict.fromkeys(("gates", "rules", "token_symbols"), 32),
    **dict.fromkeys(("symbol_classes", "scanners", "terminals", "nonterminals", "slack"), 12),
    **{"slots": 4, "emits": 2, "terminal_words": 1, "runs": 2, "max_depth": 12},
}
JOINED_BUCKET = {
    **{name: size if size <= 12 else 4 * size for name, size in BUCKET.items()},
    **{"places": 48, "token_symbols": 32, "grammars": 8},
}


@functools.cache
def compiled(name: str, check: str = "device") -> jaxgcd.Tables:
    """One grammar, as it was compiled."""
    return jaxgcd.compile_grammar(GRAMMARS[name], VOCABULARY, check=check, max_depth=12)


@functools.cache
def padded(name: str, check: str = "device") -> jaxgcd.Tables:
    """One grammar in the bucket that all share."""
    return jaxgcd.pad(compiled(name, check), BUCKET)


@functools.cache
def joined(check: str = "device") -> jaxgcd.Tables:
    """All grammars, numbered from 1 on in the order of `GRAMMARS`, in a bucket."""
    return jaxgcd.pad(jaxgcd.concatenate([compiled(name, check) for name in GRAMMARS]), JOINED_BUCKET)


TRACES: collections.Counter[tuple[Any, ...]] = collections.Counter()
"""How often `follow` was traced, by the shape of its tokens and the structure of the tables."""


class Trail(NamedTuple):
    """What `follow` saw, with one axis of tokens behind the batch axes."""

    tokens: np.ndarray  # int32[*batch, n]
    words: np.ndarray  # uint32[*batch, n + 1, words], the mask before each token and after the last
    status: np.ndarray  # int32[*batch, n + 1]
    state: jaxgcd.State  # at the end


def follow(tables: jaxgcd.Tables, state: jaxgcd.State, tokens: np.ndarray, draws: np.ndarray) -> Trail:
    """Reads `tokens[*batch, n]`; where one is -1, one that is allowed, chosen by a number in [0, 1)."""
    end, *found = _follow(tables, state, jnp.asarray(tokens, jnp.int32), jnp.asarray(draws, jnp.float32))
    return Trail(*(np.moveaxis(np.asarray(part), 0, len(end.status.shape)) for part in found), end)


def wander(tables: jaxgcd.Tables, state: jaxgcd.State, seed: int, length: int, wild: float = 0.05) -> Trail:
    """Reads tokens that are mostly allowed; a share of them, `wild`, may be any."""
    rng, shape = np.random.default_rng(seed), (*state.status.shape, length)
    tokens = np.where(rng.random(shape) < wild, rng.integers(0, SIZE, shape), -1)
    return follow(tables, state, tokens, rng.random(shape))


def traces(tables: jaxgcd.Tables, batch: tuple[int, ...], length: int) -> int:
    """How often the loop of `follow` was traced for such tables and tokens."""
    return TRACES[_trace_key(tables, (*batch, length))]


def _trace_key(tables: jaxgcd.Tables, shape: tuple[int, ...]) -> tuple[Any, ...]:
    return shape, jax.tree.structure(tables), tuple(leaf.shape for leaf in jax.tree.leaves(tables))


@jax.jit
def _follow(tables, state, tokens, draws):
    TRACES[_trace_key(tables, tokens.shape)] += 1

    def step(state, inputs):
        token, draw, last = inputs
        words = jaxgcd.allowed(tables, state)
        bits = unpack(words, SIZE)
        place = (draw * bits.sum(axis=-1).astype(jnp.float32)).astype(jnp.int32) + 1
        drawn = jnp.argmax(jnp.cumsum(bits, axis=-1, dtype=jnp.int32) == place[..., None], axis=-1).astype(
            jnp.int32
        )
        token = jnp.where(token < 0, drawn, token)
        after = jaxgcd.advance(tables, state, token)
        after = jax.tree.map(lambda new, old: jnp.where(last, old, new), after, state)
        return after, (token, words, state.status)

    # One step more than there are tokens, for the mask at the end; what it reads is taken back.
    tokens, draws = (
        jnp.moveaxis(jnp.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, 1)]), -1, 0) for x in (tokens, draws)
    )
    state, (tokens, words, status) = jax.lax.scan(
        step, state, (tokens, draws, jnp.arange(len(tokens)) == len(tokens) - 1)
    )
    return state, tokens[:-1], words, status
