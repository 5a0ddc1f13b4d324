"""Parser states on top of the stack: wherever a text leads, the tables have an entry for the check there."""

import functools
from typing import Any

import harness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_grammars import DEAD_ENDS, LEXING, MICRO, RANDOM, RULES, SMALL, Small, words

import jaxgcd
from jaxgcd.state import Status
from jaxgcd.tables.slots import NO_TERMINAL

ROWS, TRIES = 64, 60
# At the start of a text as well, `ac` is only read, and ignored, behind something else that is ignored.
IGNORED_FIRST = Small("ignored first", 'start: "b"+\n%ignore "-"\n%ignore /(?<=-)ac/', "abc-")
CHOSEN = [IGNORED_FIRST, *MICRO, *LEXING[::2], *RULES[::2], *DEAD_ENDS[::2], *RANDOM[::4]]
LEXERS = ("contextual", "basic")


@functools.cache
def compiled(small: Small, lexer: str) -> Any:
    return harness.compile_any(
        small.grammar, harness.vocabulary_of(words(small.alphabet)), lexer=lexer
    ).tables


@jax.jit
def wander(tables: Any, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The readings' lexer states and states on top, before each of `tokens[tries, rows]`.

    Whether a token is read or skipped is not asked of a mask: it is skipped if the text could not go on.
    """

    def step(state: jaxgcd.State, token: jax.Array) -> tuple[jaxgcd.State, tuple[jax.Array, jax.Array]]:
        top = jnp.take_along_axis(state.stack, jnp.maximum(state.depth - 1, 0)[..., None], axis=-1)[..., 0]
        after, seen = jaxgcd.advance(tables, state, token), (state.lexer, top)
        goes_on = after.status == Status.RUNNING
        return jax.tree.map(
            lambda new, old: jnp.where(goes_on.reshape(-1, *[1] * (new.ndim - 1)), new, old), after, state
        ), seen

    return jax.lax.scan(step, jaxgcd.init(tables, (tokens.shape[1],)), tokens)[1]


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("small", CHOSEN, ids=lambda small: small.name)
def test_every_state_on_top_that_a_text_leads_to_has_an_entry(small: Small, lexer: str) -> None:
    tables = compiled(small, lexer)
    tokens = np.random.default_rng(0).integers(0, len(words(small.alphabet).tokens), (TRIES, ROWS))
    seen = wander(jaxgcd.pad(tables, harness.SMALL_BUCKET), jnp.asarray(tokens, jnp.int32))
    pairs = {
        pair for pair in zip(*(np.asarray(part).ravel().tolist() for part in seen), strict=True) if pair[0]
    }
    made = tables.compiled.tops
    for state, top in pairs:
        for slot in tables.compiled.slots.of_state[state]:
            assert slot.terminal != NO_TERMINAL or top in made.of(slot), (state, top)
    assert len(pairs) > 1


@pytest.mark.parametrize("lexer", LEXERS)
@pytest.mark.parametrize("small", SMALL[::4], ids=lambda small: small.name)
def test_no_two_checks_share_an_entry(small: Small, lexer: str) -> None:
    tables = compiled(small, lexer)
    base, column = np.asarray(tables.slot_base), np.asarray(tables.column)
    found = {
        (slot, top): base[state, i] + column[top, int(slot.terminal != NO_TERMINAL)]
        for state, slots in enumerate(tables.compiled.slots.of_state)
        for i, slot in enumerate(slots)
        for top in tables.compiled.tops.of(slot).tolist()
    }
    numbers = list(found.values())
    assert len(set(numbers)) == len(numbers)
    assert 0 < min(numbers) <= max(numbers) < len(tables.entry)
