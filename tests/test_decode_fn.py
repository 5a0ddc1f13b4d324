"""A `decode_fn` that does not fit: `generate`, `stream` and `beam_search` name the fault and the remedy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgcd

VOCABULARY = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
CACHE = {"k": jnp.zeros((2, 4), jnp.float32), "at": jnp.zeros(2, jnp.int32)}


@pytest.fixture(scope="module")
def tables() -> jaxgcd.Tables:
    return jaxgcd.compile_grammar('start: ("a" | "b")*', VOCABULARY)


def logits(*shape: int, dtype=jnp.float32) -> jax.Array:
    return jnp.zeros(shape, dtype)


GOOD = logits(2, 3)
WRONG = {
    "no function": (None, "is a NoneType; give a function"),
    "logits alone": (
        lambda t, c: GOOD,
        r"returned an array float32\[2, 3\]; it must return `\(logits, cache",
    ),
    "three things": (lambda t, c: (GOOD, c, t), "returned a tuple of 3"),
    "the wrong order": (lambda t, c: (c, GOOD), "a dict as logits; return .* in this order"),
    "positions": (
        lambda t, c: (logits(2, 1, 3), c),
        r"\(2, 1, 3\).*axis of positions: `logits\[..., -1, :\]`",
    ),
    "one row": (lambda t, c: (logits(3), c), r"batch axes are \(2,\)"),
    "too wide": (lambda t, c: (logits(2, 8), c), r"\(2, 8\).*Vocabulary\(..., size=8\)"),
    "too narrow": (lambda t, c: (logits(2, 2), c), "1 ids more than the model"),
    "integers": (lambda t, c: (logits(2, 3, dtype=jnp.int32), c), "logits of int32; return floating-point"),
    "no cache": (lambda t, c: (GOOD, None), r"cache\['at'\] is gone, cache\['k'\] is gone"),
    "a new leaf": (lambda t, c: (GOOD, {**c, "v": c["k"]}), r"cache\['v'\] is new"),
    "another container": (lambda t, c: (GOOD, {"k": c["k"], "at": (c["at"],)}), r"cache\['at'\]\[0\] is new"),
    "a cache that grows": (
        lambda t, c: (GOOD, {**c, "k": jnp.pad(c["k"], ((0, 0), (0, 1)))}),
        r"cache\['k'\], an array float32\[2, 4\], an array float32\[2, 5\].*Allocate it for all",
    ),
    "a cache of another dtype": (
        lambda t, c: (GOOD, {**c, "at": c["at"].astype(jnp.float32)}),
        r"int32\[2\], .* float32",
    ),
}


@pytest.mark.parametrize(("decode_fn", "message"), WRONG.values(), ids=WRONG)
def test_a_model_that_does_not_fit(tables, decode_fn, message) -> None:
    state, last = jaxgcd.init(tables, 2), jnp.zeros(2, jnp.int32)
    with pytest.raises(jaxgcd.ShapeError, match=message):
        jaxgcd.generate(jax.random.key(0), decode_fn, CACHE, tables, state, last, max_new_tokens=4)


@pytest.mark.parametrize("name", ["no function", "too wide", "a cache that grows"])
def test_the_other_loops_say_the_same(tables, name) -> None:
    """`stream` when it is called, not when the first chunk is asked for."""
    decode_fn, message = WRONG[name]
    state, last = jaxgcd.init(tables, 2), jnp.zeros(2, jnp.int32)
    with pytest.raises(jaxgcd.ShapeError, match=message):
        jaxgcd.stream(jax.random.key(0), decode_fn, CACHE, tables, state, last, VOCABULARY, max_new_tokens=4)
    with pytest.raises(jaxgcd.ShapeError, match=message):
        jaxgcd.beam_search(decode_fn, CACHE, tables, state, last, beams=1, max_new_tokens=4)


def test_what_jax_takes_is_taken(tables) -> None:
    """Logits from NumPy, a list instead of a tuple, Python numbers in the cache that become arrays."""

    def decode_fn(last_token, cache):
        return [np.zeros((2, 3), np.float32), {"at": cache["at"] + jnp.float32(1), "none": None}]

    state, last = jaxgcd.init(tables, 2), jnp.zeros(2, jnp.int32)
    cache = {"at": 0, "none": None}
    with jax.numpy_dtype_promotion("standard"):
        output = jaxgcd.generate(
            jax.random.key(0), decode_fn, cache, tables, state, last, max_new_tokens=3, min_new_tokens=3
        )
    assert output.cache["at"] == 3.0 and output.length.tolist() == [3, 3]
