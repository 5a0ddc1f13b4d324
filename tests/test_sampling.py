"""One draw: the distribution it is from, against NumPy; keys; what is reported about it.

Distributions are compared as numbers, never by counting draws: `drawn_logprob` is what `sample` says that it
drew from, and the draw itself is compared with a Gumbel maximum computed here from the same key.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgcd
from jaxgcd.distribution import log_weights, make_settings
from jaxgcd.keys import argmax
from jaxgcd.keys import draw as draw_with_key

TOKENS = [b"a", b"b", b"c", b"d", b"e", b"f", b""]
EOS = 6
ALLOWED = [0, 1, 2, 3, 4, EOS]  # before any text; "f" is never allowed
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[EOS])
BATCH = 5


@pytest.fixture(scope="module")
def tables() -> jaxgcd.Tables:
    return jaxgcd.compile_grammar('start: ("a" | "b" | "c" | "d" | "e")*', VOCABULARY)


@pytest.fixture(scope="module")
def logits() -> jax.Array:
    return 2 * jax.random.normal(jax.random.key(7), (BATCH, len(TOKENS)), jnp.float32)


@jax.jit
def sampled(key, tables, state, logits, options):
    """`sample`, compiled as a whole; called as it is, each of its operations would be compiled alone."""
    return jaxgcd.sample(key, tables, state, logits, return_draw=True, **options)


def expected(logits, *, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0, bias=None) -> np.ndarray:
    """The distribution of one row, in the order of the documentation, token by token."""
    scores = {i: float(logits[i]) + (0.0 if bias is None else float(bias[i])) for i in ALLOWED}
    scores = {i: score for i, score in scores.items() if score > -math.inf}
    ranked = sorted(scores, key=lambda i: (-scores[i], i))
    if temperature <= 0:
        ranked, temperature = ranked[:1], 1.0
    weight = {i: math.exp((scores[i] - scores[ranked[0]]) / temperature) for i in ranked}
    if top_k > 0:
        ranked = ranked[:top_k]
    total, seen, kept = sum(weight[i] for i in ranked), 0.0, []
    for i in ranked:
        if not kept or top_p >= 1 or seen < top_p * total:
            kept.append(i)
        seen += weight[i]
    kept = [i for i in kept if weight[i] >= min_p * weight[kept[0]]]
    out = np.zeros(len(TOKENS))
    out[kept] = [weight[i] / sum(weight[j] for j in kept) for i in kept]
    return out


def probabilities(logits, **options) -> np.ndarray:
    """What a draw is from, inside a jitted function: the distribution of masked logits."""
    return np.asarray(shaped(logits, options))


@jax.jit
def shaped(logits, options):
    masked = jnp.where(jnp.isin(jnp.arange(len(TOKENS)), jnp.array(ALLOWED)), logits, -jnp.inf)
    settings = make_settings(logits.shape[:-1], logits.shape[-1], **options)
    return jax.nn.softmax(log_weights(settings, masked), axis=-1)


OPTIONS = [
    {},
    {"temperature": 0.5},
    {"temperature": 3.0},
    {"top_k": 1},
    {"top_k": 3},
    {"top_k": 100},
    {"top_k": -1, "top_p": 1.0, "min_p": 0.0},
    {"top_p": 0.0},
    {"top_p": 0.6},
    {"top_p": 0.95},
    {"min_p": 0.2},
    {"min_p": 1.0},
    {"temperature": 2.0, "top_k": 4, "top_p": 0.7},
    {"temperature": 2.0, "top_k": 5, "top_p": 0.9, "min_p": 0.3},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_the_distribution_is_the_documented_one(logits, options) -> None:
    for row, found in zip(logits, probabilities(logits, **options), strict=True):
        np.testing.assert_allclose(found, expected(row, **options), atol=2e-6)


def test_options_of_each_row(logits) -> None:
    options = {
        "temperature": np.array([0.5, 1.0, 2.0, 1.0, 1e-3], np.float32),
        "top_k": np.array([0, 2, 3, 6, 0]),
        "top_p": np.array([0.5, 1.0, 0.8, 0.3, 1.0], np.float32),
        "min_p": np.array([0.0, 0.1, 0.0, 0.5, 0.0], np.float32),
    }
    found = probabilities(logits, **options)
    for row in range(BATCH):
        mine = {name: values[row].item() for name, values in options.items()}
        np.testing.assert_allclose(found[row], expected(logits[row], **mine), atol=2e-6)


def test_of_equal_tokens_the_lower_ids_are_kept() -> None:
    level = jnp.zeros(len(TOKENS), jnp.float32)
    assert np.flatnonzero(probabilities(level, top_k=2)).tolist() == [0, 1]
    # Six tokens of a sixth each: three of them reach 0.45, two only a third.
    assert np.flatnonzero(probabilities(level, top_p=0.45)).tolist() == [0, 1, 2]
    one_above = level.at[3].set(1.0)
    assert np.flatnonzero(probabilities(one_above, top_k=3)).tolist() == [0, 1, 3]


@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.0}, {"temperature": 0.7, "top_k": 3, "min_p": 0.1}]
)
def test_sample_draws_from_that_distribution_and_says_so(tables, logits, options) -> None:
    bias = np.zeros(len(TOKENS), np.float32)
    bias[[0, 5]] = [-math.inf, 50.0]  # bans an allowed token, wishes for one that is forbidden
    state = jaxgcd.init(tables, BATCH)
    token, _, draw = sampled(jax.random.key(3), tables, state, logits, {"logit_bias": bias, **options})
    gumbel = np.asarray(jax.random.gumbel(jax.random.key(3), logits.shape, jnp.float32))
    for row in range(BATCH):
        model = np.exp(np.asarray(logits[row], np.float64))
        model /= model.sum()
        drawn = expected(logits[row], bias=bias, **options)
        with np.errstate(divide="ignore"):
            assert int(token[row]) == int(np.argmax(np.log(drawn) + gumbel[row]))
        found = [float(values[row]) for values in (draw.logprob, draw.drawn_logprob, draw.log_mass)]
        chosen = int(token[row])
        known = np.log([model[chosen], drawn[chosen], model[ALLOWED].sum()])
        np.testing.assert_allclose(found, known, atol=2e-6)


def test_plain_draws_are_the_model_restricted_to_the_grammar(tables, logits) -> None:
    state = jaxgcd.init(tables, BATCH)
    _, _, draw = sampled(jax.random.key(0), tables, state, logits, {})
    np.testing.assert_allclose(draw.drawn_logprob, draw.logprob - draw.log_mass, atol=1e-6)


def test_a_key_for_each_row_makes_rows_independent(tables, logits) -> None:
    keys = jax.random.split(jax.random.key(5), BATCH)
    state = jaxgcd.init(tables, BATCH)
    hot = {"temperature": 2.0}
    together, _, _ = sampled(keys, tables, state, logits, hot)
    for row in range(BATCH):
        alone, _, _ = sampled(keys[row], tables, jaxgcd.init(tables), logits[row], hot)
        assert int(alone) == int(together[row])
    order = jnp.array([3, 0])
    fewer, _, _ = sampled(keys[order], tables, jaxgcd.init(tables, 2), logits[order], hot)
    assert (fewer == together[order]).all()


@pytest.mark.parametrize("many", [False, True])
def test_raw_and_typed_keys_draw_alike(many: bool) -> None:
    typed, raw = jax.random.key(1), jax.random.PRNGKey(1)
    if many:
        typed, raw = jax.random.split(typed, 3), jax.random.split(raw, 3)
    weights = jnp.zeros((3, 50), jnp.float32)
    from jaxgcd.keys import typed_key

    assert (draw_with_key(typed_key(raw, (3,)), weights) == draw_with_key(typed, weights)).all()


@pytest.mark.parametrize(
    "key", [jax.random.split(jax.random.key(0), 4), jnp.zeros((5, 3), jnp.uint32), jnp.int32(0), 0]
)
def test_what_is_no_key_of_the_batch_is_an_error(tables, logits, key) -> None:
    with pytest.raises(jaxgcd.ShapeError, match="key"):
        jaxgcd.sample(key, tables, jaxgcd.init(tables, BATCH), logits)


def test_another_value_is_not_another_trace(tables, logits) -> None:
    traces = []

    @jax.jit
    def step(key, tables, state, logits, options):
        traces.append(None)
        return jaxgcd.sample(key, tables, state, logits, **options)

    for temperature, top_k in [(0.0, 1), (1.0, 3), (2.5, 0)]:
        options = {"temperature": temperature, "top_k": top_k, "top_p": temperature / 3}
        step(jax.random.key(0), tables, jaxgcd.init(tables, BATCH), logits, options)
    assert len(traces) == 1


def test_a_row_in_which_nothing_can_be_drawn_is_stuck(tables, logits) -> None:
    """Token 0 would be the largest of nothing but minus infinities; the state must not take it."""
    bias = jnp.zeros((BATCH, len(TOKENS)), jnp.float32).at[1].set(-jnp.inf)
    broken = logits.at[2].set(jnp.nan)
    state = jaxgcd.init(tables, BATCH)
    options = {"logit_bias": bias, "top_p": 0.9}
    token, after, draw = sampled(jax.random.key(0), tables, state, broken, options)
    stuck = [False, True, True, False, False]
    assert (after.status == jaxgcd.Status.STUCK).tolist() == stuck
    assert token[1] == EOS and token[2] == EOS
    assert (after.lexer[1] == state.lexer[1]).all()
    assert (draw.log_mass == -jnp.inf).tolist() == stuck
    _, again, draw = sampled(jax.random.key(0), tables, after, logits, options)
    assert (again.status[1:3] == jaxgcd.Status.STUCK).all() and not draw.log_mass[1:3].any()


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.float32])
@pytest.mark.parametrize("extreme", [1e-30, 1e30, math.inf])
def test_extreme_temperatures_and_logits(tables, dtype, extreme) -> None:
    logits = jnp.array([-1.0, -2.0, -math.inf, -300.0, -math.inf, math.inf, -3.0], dtype)
    state = jaxgcd.init(tables, 40)
    logits = jnp.broadcast_to(logits, (40, len(TOKENS)))
    token, _, draw = sampled(jax.random.key(0), tables, state, logits, {"temperature": extreme})
    assert set(token.tolist()) == ({0} if extreme < 1 else {0, 1, 3, EOS})
    # All temperatures above make one token certain, or four alike.
    np.testing.assert_allclose(draw.drawn_logprob, 0.0 if extreme < 1 else -math.log(4), atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        {"top_p": 1.5},
        {"top_p": -0.1},
        {"min_p": 2},
        {"temperature": math.nan},
        {"min_p": np.array([0, 0, 0, 0, 7])},
    ],
)
def test_values_out_of_range_are_errors(tables, logits, options) -> None:
    with pytest.raises(jaxgcd.SamplingError, match=next(iter(options))):
        jaxgcd.sample(jax.random.key(0), tables, jaxgcd.init(tables, BATCH), logits, **options)


@pytest.mark.parametrize(
    "options",
    [{"top_k": 2.5}, {"temperature": jnp.ones(4)}, {"top_p": np.ones((5, 1))}, {"logit_bias": np.zeros(3)}],
)
def test_options_of_the_wrong_shape_are_errors(tables, logits, options) -> None:
    with pytest.raises(jaxgcd.ShapeError, match=next(iter(options))):
        jaxgcd.sample(jax.random.key(0), tables, jaxgcd.init(tables, BATCH), logits, **options)


def test_an_unknown_option_is_an_error(tables, logits) -> None:
    with pytest.raises(TypeError, match="topk"):
        jaxgcd.sample(jax.random.key(0), tables, jaxgcd.init(tables, BATCH), logits, topk=3)  # type: ignore


def test_many_tokens_of_few_weights() -> None:
    """What `top_k` and `top_p` keep of 3,000 tokens with some 50 different logits, against a sort."""
    logits = np.round(np.random.default_rng(3).normal(size=(3, 3000)) * 6) / 2
    logits = np.where(np.arange(3000) % 7 == 1, -np.inf, logits).astype(np.float32)
    order = np.argsort(-logits, axis=-1, kind="stable")

    @jax.jit
    def kept(top_k, top_p):
        settings = make_settings((3,), 3000, top_k=top_k, top_p=top_p)
        return log_weights(settings, jnp.asarray(logits)) > -jnp.inf

    for top_k, top_p in [(1, 1.0), (17, 1.0), (2000, 1.0), (9999, 1.0), (0, 0.3), (0, 0.999), (40, 0.7)]:
        found = np.asarray(kept(jnp.int32(top_k), jnp.float32(top_p)))
        for row in range(3):
            ranked = [i for i in order[row].tolist() if logits[row, i] > -np.inf][: top_k or None]
            shares = np.exp(logits[row, ranked].astype(np.float64))
            reached = np.cumsum(shares) >= np.float64(np.float32(top_p)) * shares.sum()
            count = len(ranked) if top_p == 1 else int(np.argmax(reached)) + 1
            assert np.flatnonzero(found[row]).tolist() == sorted(ranked[:count])


@pytest.mark.parametrize("size", [1, 31, 32, 100, 4096])
def test_the_faster_argmax_and_draw_are_those_of_jax(size: int) -> None:
    rng = np.random.default_rng(size)
    values = rng.integers(-3, 4, (40, size)).astype(np.float32)  # many are equal
    values[rng.random(values.shape) < 0.3] = -np.inf
    values[0] = -np.inf
    assert (argmax(values) == values.argmax(axis=-1)).all() and argmax(values).dtype == jnp.int32
    key = jax.random.key(size)
    assert (draw_with_key(key, jnp.asarray(values)) == jax.random.categorical(key, values)).all()
    keys = jax.random.split(key, len(values))
    expected = jax.vmap(jax.random.categorical)(keys, jnp.asarray(values))
    assert (draw_with_key(keys, jnp.asarray(values)) == expected).all()
