"""`stream` against `generate`: the same tokens, texts and ends, a few at a time."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgcd

EURO = "€".encode()
TOKENS = [b"a", b"b", EURO[:1], EURO[1:2], EURO[2:], EURO[1:], b"b" + EURO[:2], b""]
EOS = 7
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[EOS])
LIMIT = 11


def scores(params, last_token, step):
    return params[last_token] + jnp.cos(step[0] * params[0]), {0: step[0] + 1.0}


@pytest.fixture(scope="module")
def tables() -> jaxgcd.Tables:
    return jaxgcd.compile_grammar('start: ("a" | "b" | "€")*', VOCABULARY)


def arguments(tables, batch):
    params = jax.random.normal(jax.random.key(3), (len(TOKENS), len(TOKENS)), jnp.float32)
    cache = {0: jnp.zeros((), jnp.float32)}
    state = jaxgcd.init(tables, batch)
    return jax.tree_util.Partial(scores, params), cache, tables, state, jnp.zeros(batch, jnp.int32)


def test_joined_chunks_are_the_whole_texts(tables) -> None:
    """3 does not divide 11, and a € of three bytes does not fit into two tokens of every kind."""
    batch = (4, 6)
    given = arguments(tables, batch)
    options = {"max_new_tokens": LIMIT, "temperature": 1.3, "stop": ["aba", "b€b"], "min_new_tokens": 3}
    whole = jaxgcd.generate(jax.random.key(3), *given, **options)
    chunks = list(jaxgcd.stream(jax.random.key(3), *given, VOCABULARY, steps=3, **options))
    texts = ["".join(row) for row in zip(*(chunk.texts for chunk in chunks), strict=True)]
    assert texts == whole.texts(VOCABULARY)
    tokens = np.concatenate([chunk.tokens for chunk in chunks], axis=-1)
    assert (tokens[..., :LIMIT] == whole.tokens[..., : tokens.shape[-1]]).all()
    mass = np.concatenate([chunk.draws.log_mass for chunk in chunks], axis=-1)
    assert (mass[..., :LIMIT] == whole.draws.log_mass[..., : tokens.shape[-1]]).all()
    assert sum(np.array(chunk.lengths) for chunk in chunks).tolist() == whole.length.reshape(-1).tolist()
    assert chunks[-1].finish == whole.finish.reshape(-1).tolist()
    for before, after in pairwise(chunks):  # a row that has ended stays so
        assert all(old in (None, new) for old, new in zip(before.finish, after.finish, strict=True))
    kinds = {jaxgcd.Finish(f).name for f in whole.finish.reshape(-1).tolist()}
    assert kinds == {"EOS", "STOP", "LENGTH"} and any(t.endswith("\ufffd") for t in texts)
    assert not given[1][0].is_deleted() and not given[3].stack.is_deleted()  # the caller's are not donated


def test_half_characters_are_held_back_and_one_trace_serves_all(tables) -> None:
    wishes = np.zeros((LIMIT, len(TOKENS)), np.float32)
    wishes[range(6), [0, 2, 3, 4, 6, 4]] = 9.0
    wishes[6:, EOS] = 9.0
    traces = []

    def decode_fn(params, last_token, step):
        traces.append(None)
        return params[step], step + 1

    fn = jax.tree_util.Partial(decode_fn, jnp.asarray(wishes[:, None]))
    state, last = jaxgcd.init(tables, 1), jnp.zeros(1, jnp.int32)
    chunks = jaxgcd.stream(
        jax.random.key(0),
        *(fn, jnp.int32(0), tables, state, last, VOCABULARY),
        max_new_tokens=LIMIT,
        temperature=0.0,
        steps=1,
    )
    first = next(chunks)
    once = len(traces)
    rest = list(chunks)
    assert [first.texts[0], *(chunk.texts[0] for chunk in rest)] == ["a", "", "", "€", "b", "€", ""]
    assert [chunk.finish[0] for chunk in rest] == [None] * 5 + [jaxgcd.Finish.EOS]
    assert len(traces) == once


def test_wrong_arguments_are_errors_at_once(tables) -> None:
    given = arguments(tables, (2,))
    with pytest.raises(jaxgcd.ShapeError, match="steps"):
        jaxgcd.stream(jax.random.key(0), *given, VOCABULARY, max_new_tokens=3, steps=0)
    other = jaxgcd.Vocabulary([b"a", b""], eos=[1])
    with pytest.raises(jaxgcd.ShapeError, match="vocabulary"):
        jaxgcd.stream(jax.random.key(0), *given, other, max_new_tokens=3)
    with pytest.raises(jaxgcd.SamplingError, match="top_p"):
        jaxgcd.stream(jax.random.key(0), *given, VOCABULARY, max_new_tokens=3, top_p=3)
