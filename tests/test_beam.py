"""Beam search against all texts, listed and scored without it."""

import itertools

import jax
import jax.numpy as jnp
import lark
import numpy as np
import pytest
from small_tables import EOS, GRAMMARS, SIZE, TOKENS, VOCABULARY, compiled, joined

import jaxgcd

STEPS, BEAMS = 4, 24
WEIGHTS = np.random.default_rng(0).normal(size=(2, SIZE, SIZE)).astype(np.float32)
USABLE = [i for i, usable in enumerate(VOCABULARY.usable) if usable]
START = 3
"""The last token of the prompt."""


def decode_fn(weights, last_token, cache):
    """A model whose logits depend on all tokens so far, so that a cache in a wrong order shows."""
    seen = cache["seen"] * 0.5 + weights[0][last_token].T  # [SIZE, rows]
    return (weights[1] @ seen).T, {"seen": seen, "steps": cache["steps"] + 1}


def score(tokens: tuple[int, ...]) -> float:
    """The model's log-probability of some tokens and EOS, in NumPy."""
    seen, total, last = np.zeros(SIZE), 0.0, START
    for token in (*tokens, EOS):
        seen = seen * 0.5 + WEIGHTS[0][last]
        logits = WEIGHTS[1] @ seen
        total += logits[token] - np.log(np.exp(logits).sum())
        last = token
    return total


def complete(grammar: str) -> dict[tuple[int, ...], float]:
    """All token sequences that Lark parses, of fewer than `STEPS` tokens, for EOS is drawn as well."""
    parser, found = lark.Lark(grammar, parser="lalr"), {}
    for count in range(STEPS):
        for tokens in itertools.product(USABLE, repeat=count):
            try:
                parser.parse(b"".join(TOKENS[token] for token in tokens).decode())
            except lark.exceptions.LarkError:
                continue
            found[tokens] = score(tokens)
    return found


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_wide_beams_find_all_texts_best_first(penalty: float) -> None:
    names = list(GRAMMARS)
    prefixes = ["", "", "(" * 12, "(" * 6]
    state = jaxgcd.init(
        joined(),
        grammar=[1 + names.index(n) for n in ("nested", "right", "nested", "nested")],
        prefix=prefixes,
    )
    cache = {"seen": jnp.zeros((SIZE, 4)), "steps": jnp.int32(0)}
    decode = jax.tree_util.Partial(decode_fn, jnp.asarray(WEIGHTS))
    options = {"beams": BEAMS, "max_new_tokens": STEPS, "length_penalty": penalty}
    options |= {"cache_axes": {"seen": 1, "steps": None}}
    found = jaxgcd.beam_search(decode, cache, joined(), state, np.full(4, START), pad_id=7, **options)
    usual = jaxgcd.beam_search(decode, cache, joined(), state, np.full(4, START), **options)
    behind = np.arange(STEPS) >= np.asarray(usual.length)[..., None]
    assert (usual.tokens == np.where(behind, EOS, found.tokens)).all() and behind.any()
    for row, name in enumerate(["nested", "right"]):
        texts = complete(GRAMMARS[name])
        assert 5 <= len(texts) < BEAMS
        ranked = sorted(texts, key=lambda tokens: -texts[tokens] / (len(tokens) + 1) ** penalty)
        for place, tokens in enumerate(ranked):
            assert found.length[row, place] == len(tokens) and found.finish[row, place] == jaxgcd.Finish.EOS
            assert tuple(found.tokens[row, place].tolist()) == tokens + (7,) * (STEPS - len(tokens))
            expected = texts[tokens] / (len(tokens) + 1) ** penalty
            assert np.isclose(found.score[row, place], expected, rtol=1e-4)
        assert (found.finish[row, len(ranked) :] != jaxgcd.Finish.EOS).all()
    # 12 brackets fill the stack; 6 need four tokens to be closed, and then EOS.
    assert set(found.finish[2].tolist()) == {jaxgcd.Finish.OVERFLOW} and (found.score[2] == -np.inf).all()
    assert (found.length[2] == 0).all() and (found.tokens[2] == 7).all()
    assert found.finish[3, 0] == jaxgcd.Finish.LENGTH and found.length[3, 0] == STEPS


def test_arguments_of_beam_search_are_checked() -> None:
    tables = compiled("nested")
    state, last = jaxgcd.init(tables, 2), np.zeros(2, np.int32)

    def search(cache=(), last=last, **options):
        options = {"beams": 2, "max_new_tokens": 2, **options}
        return jaxgcd.beam_search(decode_fn, cache, tables, state, last, **options)

    for options in ({"beams": 0}, {"max_new_tokens": 1.5}, {"last": last[:1]}, {"beams": None}):
        with pytest.raises(jaxgcd.ShapeError, match=next(iter(options))):
            search(**options)
    for cache, axes in (({"seen": np.zeros((3, 2))}, 0), (np.zeros(()), 0), ([np.zeros(2)], [1])):
        with pytest.raises(jaxgcd.ShapeError, match="cache_axes"):
            search(cache=cache, cache_axes=axes)
