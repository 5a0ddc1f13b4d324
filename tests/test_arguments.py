"""Arguments of `sample`, `generate` and `stream` that can be anything: typed errors, or what they mean."""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgcd

VOCABULARY = jaxgcd.Vocabulary([b"a", b"b", b"c", b""], eos=[3])
SIZE, ROWS, STEPS = 4, 2, 3
Error = (jaxgcd.ShapeError, jaxgcd.SamplingError)


@pytest.fixture(scope="module")
def tables() -> jaxgcd.Tables:
    return jaxgcd.compile_grammar('start: ("a" | "b" | "c")*', VOCABULARY)


def level(last_token, cache):
    return jnp.zeros((*last_token.shape, SIZE), jnp.float32), cache


def call(function, tables, rows: int = ROWS, **options):
    """`generate` or `stream`; `key` and `last_token` can be given, too."""
    options = {"max_new_tokens": STEPS, "key": jax.random.key(0), **options}
    key, last = options.pop("key"), options.pop("last_token", jnp.zeros(rows, jnp.int32))
    return function(key, level, None, tables, jaxgcd.init(tables, rows), last, **options)


generate = functools.partial(call, jaxgcd.generate)
stream = functools.partial(call, functools.partial(jaxgcd.stream, vocabulary=VOCABULARY))

WRONG = {
    "stop": [5, None, "\ud800", ["a", "\ud800"], [None], [5]],
    "stop_ids": [3, None, ["a"], [2.5]],
    "top_k": ["a", [1, "a"], [1.5, 2], True, [[1, 2], [3]], object()],
    "min_new_tokens": [None, "a", [1], 1.5],
    "pad_id": ["a", [1], 1.5],
    "temperature": ["a", None, 1j, object(), [[1.0], []]],
    "top_p": ["a", object()],
    "min_p": ["a", b"a"],
    "logit_bias": ["x", 1j, object(), np.array(["a"] * SIZE)],
    "key": [None, "x", object(), 1.5, 10**30],
    "last_token": [[0.7, 0.2], None, "ab", [True, False], 0],
    "max_new_tokens": [True, 0, 2.0, "3", None, 10**30],
}


@pytest.mark.parametrize("function", [generate, stream], ids=["generate", "stream"])
@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WRONG.items() for value in values]
)
def test_what_an_option_cannot_be_is_named(tables, function, name: str, value: Any) -> None:
    with pytest.raises(Error, match=f"`{name}"):
        function(tables, **{name: value})


def test_numbers_of_all_kinds_are_what_they_hold(tables) -> None:
    plain = {
        "top_k": jnp.array([1, 2], jnp.int32),
        "min_new_tokens": jnp.array([1, 2], jnp.int32),
        "pad_id": 1,
    }
    expected = generate(tables, **plain)
    other = {"top_k": [1, 2], "min_new_tokens": (1, np.int8(2)), "pad_id": np.uint64(1), "last_token": [0, 0]}
    found = generate(tables, **other, max_new_tokens=np.int64(STEPS))
    assert (found.tokens == expected.tokens).all()
    huge = generate(tables, top_k=10**30, min_p=[0, 0], logit_bias=[0] * SIZE)
    assert (huge.tokens == generate(tables, top_k=np.array(2**40)).tokens).all()


@pytest.mark.parametrize("rows", [0, (2, 0), (0, 3)])
def test_a_batch_without_rows(tables, rows) -> None:
    state, logits = jaxgcd.init(tables, rows), jnp.zeros((*np.atleast_1d(rows), SIZE), jnp.float32)
    token, after = jaxgcd.sample(jax.random.key(0), tables, state, logits, top_p=0.5)
    assert token.shape == after.status.shape == state.status.shape
    found = generate(tables, rows, top_k=2, stop="a", min_new_tokens=1)
    assert found.tokens.shape == (*state.status.shape, STEPS) and found.texts(VOCABULARY) == []
    assert [chunk.texts for chunk in stream(tables, rows)] == [[]]


@pytest.mark.parametrize("kind", ["rbg", "unsafe_rbg", "threefry2x32"])
def test_with_a_key_for_each_row_a_row_is_as_if_it_were_alone(tables, kind: str) -> None:
    keys = jax.random.split(jax.random.key(7, impl=kind), 3)
    texts = generate(tables, 3, key=keys, max_new_tokens=16).tokens
    other = keys.at[0].set(jax.random.key(99, impl=kind))
    changed = generate(tables, 3, key=other, max_new_tokens=16).tokens
    assert (changed[1:] == texts[1:]).all() and (changed[0] != texts[0]).any()
    for row in range(3):
        alone = generate(tables, (), key=keys[row], last_token=0, max_new_tokens=16).tokens
        assert (alone == texts[row]).all()
