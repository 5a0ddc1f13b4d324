"""Several answers to each prompt: the rows of `models.start(..., samples=n)` are those of repeated
prompts."""

import jax
import numpy as np
import pytest
from flax import nnx

import jaxgcd
from jaxgcd import models

CONFIG = models.LlamaConfig(
    vocab_size=7,
    hidden_size=8,
    num_layers=1,
    num_heads=2,
    num_kv_heads=1,
    head_dim=4,
    intermediate_size=8,
)


def test_samples_are_rows_of_repeated_prompts() -> None:
    model = models.Llama(CONFIG, rngs=nnx.Rngs(0))
    vocabulary = jaxgcd.Vocabulary([b"a", b"b", b"c", b"d", b"e", b"f", b""], eos=[6])
    tables = jaxgcd.compile_grammar("start: LETTER*\nLETTER: /[a-f]/", vocabulary)
    prompts, keys = [[1, 2, 3], [4]], jax.random.split(jax.random.key(0), 6)
    written = []
    for given, samples in ((prompts, 3), ([prompt for prompt in prompts for _ in range(3)], 1)):
        fn, cache, last = models.start(model, given, max_new_tokens=6, samples=samples)
        assert cache.batch == 6 and cache.length.tolist() == [2] * 3 + [0] * 3
        state = jaxgcd.init(tables, 6)
        written.append(jaxgcd.generate(keys, fn, cache, tables, state, last, max_new_tokens=6))
    once, repeated = written
    assert (once.tokens == repeated.tokens).all()
    np.testing.assert_array_equal(once.draws.logprob, repeated.draws.logprob)
    assert len({tuple(row) for row in once.tokens[:3].tolist()}) > 1  # with other keys, other answers


@pytest.mark.parametrize("samples", [0, 1.5])
def test_no_samples_are_an_error(samples) -> None:
    model = models.Llama(CONFIG, rngs=nnx.Rngs(0))
    with pytest.raises(jaxgcd.ShapeError, match="samples"):
        models.start(model, [[1]], max_new_tokens=1, samples=samples)
