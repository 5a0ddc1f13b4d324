"""The state under JAX's transformations, and any way to the same text leads to the same state."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_calls import callbacks
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import EOS, GRAMMARS, SIZE, TOKENS, follow, joined, padded, wander

import jaxgcd

ROWS, LENGTH = 12, 10
IDS = [row % (len(GRAMMARS) + 1) for row in range(ROWS)]
WEIGHTS = np.random.default_rng(0).normal(size=(SIZE, SIZE)).astype(np.float32)


def start() -> jaxgcd.State:
    return jaxgcd.init(joined(), grammar=IDS)


def bits(words: np.ndarray) -> np.ndarray:
    return np.unpackbits(words.astype("<u4").view(np.uint8), axis=-1, bitorder="little")[..., :SIZE] > 0


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1), st.lists(st.booleans(), min_size=LENGTH, max_size=2 * LENGTH))
def test_forks_and_reorderings_equal_a_replay_from_the_start(seed: int, reorders: list[bool]) -> None:
    """`reorders`: at each turn rows come from any rows (some are forked, some lost), or a token is read."""
    rng = np.random.default_rng(seed)
    tokens = wander(joined(), start(), seed, LENGTH).tokens
    state, origin, texts = start(), np.arange(ROWS), [[] for _ in range(ROWS)]
    for reorder in reorders:
        if reorder:
            parents = rng.integers(0, ROWS, ROWS)
            state = jax.tree.map(lambda leaf, parents=parents: leaf[parents], state)
            origin, texts = origin[parents], [list(texts[parent]) for parent in parents]
        elif len(texts[0]) < LENGTH:
            token = tokens[origin if rng.random() < 0.8 else rng.permutation(origin), len(texts[0])]
            state = jaxgcd.advance(joined(), state, token)
            texts = [[*text, new] for text, new in zip(texts, token.tolist(), strict=True)]
    count = len(texts[0])
    filled = np.array([text + [EOS] * (LENGTH - count) for text in texts])
    replay = follow(
        joined(), jaxgcd.init(joined(), grammar=np.array(IDS)[origin]), filled, np.zeros(filled.shape)
    )
    assert (np.asarray(state.status) == replay.status[:, count]).all()
    assert (np.asarray(jaxgcd.allowed(joined(), state)) == replay.words[:, count]).all()


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_an_overflowed_row_keeps_its_text_and_disturbs_no_other(seed: int) -> None:
    names = list(GRAMMARS)
    ids, deep = np.array(IDS), np.arange(ROWS) % 3 == 0
    ids[deep] = 1 + names.index("nested")
    calm = wander(joined(), jaxgcd.init(joined(), grammar=ids), seed, LENGTH)
    tokens = np.where(deep[:, None], TOKENS.index(b"(("), calm.tokens)
    trail = follow(joined(), jaxgcd.init(joined(), grammar=ids), tokens, np.zeros(tokens.shape))
    assert (trail.words[~deep] == calm.words[~deep]).all()
    assert (trail.status[~deep] == calm.status[~deep]).all()
    over = trail.status[deep] == jaxgcd.Status.OVERFLOW
    assert over[:, 7:].all() and not over[:, :7].any()  # six of them need twelve states, the seventh more
    assert (bits(trail.words[deep][:, 7:]) == (np.arange(SIZE) == EOS)).all()
    before = jaxgcd.init(joined(), grammar=1 + names.index("nested"), prefix="((" * 6)
    for leaf in ("lexer", "stack", "depth"):
        assert (np.asarray(getattr(trail.state, leaf))[deep] == np.asarray(getattr(before, leaf))).all()


def model(weights, last_token, cache):
    return weights[last_token], cache


def greedy(tables, state, weights, last_token):
    """The whole loop of `generate` with a toy model."""
    decode_fn = jax.tree_util.Partial(model, weights)
    return jaxgcd.generate(
        jax.random.key(0), decode_fn, (), tables, state, last_token, max_new_tokens=LENGTH, temperature=0.0
    )


def test_the_loop_can_be_exported_for_devices_that_are_not_here() -> None:
    export = pytest.importorskip("jax.export")
    pytest.importorskip("flatbuffers")
    last = np.arange(ROWS, dtype=np.int32)
    arguments = (joined(), start(), jnp.asarray(WEIGHTS), jnp.asarray(last))
    data = export.export(jax.jit(greedy), platforms=["cpu", "cuda", "tpu"])(*arguments).serialize()
    assert len(data) < 300_000  # the program alone: tables and weights are arguments
    loaded = export.deserialize(data)
    assert loaded.platforms == ("cpu", "cuda", "tpu")
    out = loaded.call(*arguments)
    assert isinstance(out, jaxgcd.Generation) and isinstance(out.state, jaxgcd.State)
    # Each token is the likeliest of those that a replay allows.
    tokens, length = np.asarray(out.tokens), np.asarray(out.length)
    ended = np.asarray(out.finish) == jaxgcd.Finish.EOS
    tokens = np.where(np.arange(LENGTH) == np.where(ended, length, -1)[:, None], EOS, tokens)
    replay = follow(joined(), start(), tokens, np.zeros(tokens.shape))
    logits = WEIGHTS[np.concatenate([last[:, None], tokens[:, :-1]], axis=1)]
    best = np.where(bits(replay.words[:, :-1]), logits, -np.inf).argmax(axis=-1)
    read = np.arange(LENGTH) < (length + ended)[:, None]
    assert (best == tokens)[read].all() and ended.any() and not ended.all()


def test_states_can_be_donated() -> None:
    step = jax.jit(jaxgcd.advance, donate_argnums=1)
    kept, given_away = start(), start()
    token = wander(joined(), start(), 1, LENGTH).tokens[:, 0]
    after, expected = step(joined(), given_away, token), jaxgcd.advance(joined(), kept, token)
    assert jax.tree.all(jax.tree.map(lambda one, other: bool((one == other).all()), after, expected))
    assert given_away.stack.is_deleted() and not joined().delta.is_deleted()


def test_gradients_under_checkpoint_are_those_of_the_masked_softmax() -> None:
    trail = wander(joined(), start(), 4, LENGTH, wild=0.0)

    @jax.grad
    def gradient(weights):
        @jax.checkpoint
        def step(state, token):
            logits = jaxgcd.mask_logits(joined(), state, weights)
            likelihood = jnp.take_along_axis(jax.nn.log_softmax(logits), token[:, None], axis=1)
            return jaxgcd.advance(joined(), state, token), likelihood.sum()

        return jax.lax.scan(step, start(), jnp.asarray(trail.tokens.T))[1].sum()

    weights = WEIGHTS[:ROWS]
    exponentials = np.where(bits(trail.words[:, :-1]), np.exp(weights)[:, None], 0)
    shares = exponentials / exponentials.sum(axis=-1, keepdims=True)
    expected = (np.eye(SIZE)[trail.tokens] - shares).sum(axis=1)
    np.testing.assert_allclose(gradient(jnp.asarray(weights)), expected, atol=1e-5)


def test_nothing_new_asks_the_host() -> None:
    tables, state = padded("fallback"), jaxgcd.init(padded("fallback"), 2)
    last, tokens = jnp.zeros(2, jnp.int32), jnp.zeros((2, 3), jnp.int32)
    decode_fn = jax.tree_util.Partial(model, jnp.asarray(WEIGHTS))
    loops = {
        "drafts": lambda tables, state: jaxgcd.advance_many(tables, state, tokens),
        "forced": lambda tables, state: jaxgcd.jump_forward(tables, state, unit="byte"),
        "beams": lambda tables, state: jaxgcd.beam_search(
            decode_fn, (), tables, state, last, beams=2, max_new_tokens=3
        ),
        "start": lambda tables, _: jaxgcd.init(tables, prefix=["(", "("]),
    }
    for name, loop in loops.items():
        assert not callbacks(jax.make_jaxpr(loop)(tables, state).jaxpr), name
    hosted = padded("fallback", "host")
    assert callbacks(jax.make_jaxpr(loops["drafts"])(hosted, state).jaxpr) == {"pure_callback"}
