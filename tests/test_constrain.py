"""`constrain`, the one call for loops of one's own, against `advance` and `mask_logits`."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_calls import callbacks
from small_tables import EOS, GRAMMARS, SIZE, joined, padded, wander

import jaxgcd

ROWS, LENGTH = 12, 10
IDS = [row % (len(GRAMMARS) + 1) for row in range(ROWS)]
WEIGHTS = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)


def equal(one, other) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: bool((np.asarray(a) == np.asarray(b)).all()), one, other))


@functools.cache
def middle() -> tuple[jaxgcd.State, np.ndarray]:
    """Rows that have read some tokens, a few of which were not allowed, and one more token for each."""
    state = wander(joined(), jaxgcd.init(joined(), grammar=IDS), 1, LENGTH, wild=0.03).state
    return state, wander(joined(), state, 2, LENGTH, wild=0.3).tokens[:, 0]


def test_it_is_advance_and_then_mask_logits() -> None:
    (state, token), fill = middle(), -1e3
    logits = WEIGHTS[:ROWS]
    after, masked = jaxgcd.constrain(joined(), state, token, logits, fill=fill)
    expected = jaxgcd.advance(joined(), state, token)
    assert equal(after, expected) and len(set(expected.status.tolist())) > 2
    assert equal(masked, jaxgcd.mask_logits(joined(), expected, logits, fill=fill))


def test_rows_that_have_drawn_nothing_stay_as_they_are() -> None:
    state, token = middle()
    waiting = np.arange(ROWS) % 3 == 0
    after, masked = jaxgcd.constrain(joined(), state, np.where(waiting, -1, token), WEIGHTS[:ROWS])
    read = jaxgcd.advance(joined(), state, token)
    for new, old, moved in zip(*map(jax.tree.leaves, (after, state, read)), strict=True):
        assert (np.asarray(new)[waiting] == np.asarray(old)[waiting]).all()
        assert (np.asarray(new)[~waiting] == np.asarray(moved)[~waiting]).all()
    assert equal(masked, jaxgcd.mask_logits(joined(), after, WEIGHTS[:ROWS]))
    for nothing in (None, -1, jnp.int32(-1), np.full(ROWS, -1, np.int8)):
        assert equal(jaxgcd.constrain(joined(), state, nothing, WEIGHTS[:ROWS])[0], state)
    # Any other number that is no token's is what it is for `advance`.
    after, _ = jaxgcd.constrain(padded("nested"), jaxgcd.init(padded("nested")), -2, WEIGHTS[0])
    assert int(after.status) == jaxgcd.Status.STUCK


TRACES = []


def loop(tables, state, weights):
    """A greedy loop of a toy model, `[batch]` rows; its tokens and the state before the last one."""
    TRACES.append(None)

    def step(carry, _):
        token, state = carry
        state, logits = jaxgcd.constrain(tables, state, token, weights[token])  # row -1 for the first token
        token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return (token, state), token

    token = jnp.full(state.status.shape, -1, jnp.int32)
    (_, state), tokens = jax.lax.scan(step, (token, state), length=LENGTH)
    return jnp.moveaxis(tokens, 0, -1), state


JITTED = jax.jit(loop)


def test_a_jitted_loop_is_the_two_steps_by_hand_and_is_traced_once() -> None:
    finished = 0
    for name in GRAMMARS:
        tables, token = padded(name), np.full(ROWS, -1)
        state = jaxgcd.init(tables, ROWS)
        weights = jnp.asarray(np.random.default_rng(len(name)).normal(size=(SIZE, SIZE)), jnp.float32)
        tokens, after = JITTED(tables, state, weights)
        for i in range(LENGTH):
            state = state if i == 0 else jaxgcd.advance(tables, state, token)
            token = np.asarray(jaxgcd.mask_logits(tables, state, weights[token])).argmax(axis=-1)
            assert (tokens[:, i] == token).all()
        assert equal(after, state)
        finished += EOS in tokens.tolist()[0]
    assert len(TRACES) == 1 and finished
    jaxpr = jax.make_jaxpr(loop)(padded("fallback"), jaxgcd.init(padded("fallback"), ROWS), WEIGHTS)
    assert not callbacks(jaxpr.jaxpr)


def test_vmapped_equals_batched() -> None:
    tables = padded("fallback")
    start = jaxgcd.init(tables, ROWS)
    assert equal(
        JITTED(tables, start, WEIGHTS), jax.vmap(loop, (None, 0, None))(tables, start, jnp.asarray(WEIGHTS))
    )


def test_arguments_are_checked_as_in_its_parts() -> None:
    tables = padded("nested")
    state = jaxgcd.init(tables, 2)
    for token in (np.zeros(2, np.float32), np.zeros(3, np.int32)):
        with pytest.raises(jaxgcd.ShapeError, match="token"):
            jaxgcd.constrain(tables, state, token, WEIGHTS[:2])
    for token in (None, np.zeros(2, np.int32)):
        with pytest.raises(jaxgcd.ShapeError, match="size="):
            jaxgcd.constrain(tables, state, token, WEIGHTS[:2, :-1])
