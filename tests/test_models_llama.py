"""The Flax decoder: its cache, its batches, and what happens when a prompt does not fit."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jaxgcd import models
from jaxgcd.errors import ModelError, PromptTooLongError, ShapeError

CONFIG = models.LlamaConfig(
    vocab_size=50,
    hidden_size=32,
    num_layers=2,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    intermediate_size=48,
)
TEXT = [7, 3, 41, 0, 3, 3, 19, 28, 49, 5]


OPTIONS = dataclasses.replace(
    CONFIG,
    qkv_bias=True,
    output_bias=True,
    qk_norm=True,
    tied_embeddings=False,
    sliding_window=3,
    sliding_layers=(1,),
    rope_scaling=models.RopeScaling((1.0, 1.5, 4.0, 4.0), attention_factor=1.2),
)


@pytest.fixture(scope="module")
def plain() -> models.Llama:
    return models.Llama(CONFIG, rngs=nnx.Rngs(0))


@pytest.fixture(scope="module", params=[CONFIG, OPTIONS], ids=["plain", "options"])
def model(request) -> models.Llama:
    return models.Llama(request.param, rngs=nnx.Rngs(0))


def all_logits(model: models.Llama, tokens: list[int]) -> np.ndarray:
    """`[time, vocab]`: one forward pass over the whole text (padded, so that all texts share one trace)."""
    rows, _ = padded([tokens, [0] * 16])
    return np.asarray(forward(*nnx.split(model), rows[:1]))[0, : len(tokens)]


@jax.jit
def forward(graphdef, params, tokens):
    model = nnx.merge(graphdef, params)
    hidden, _ = model(tokens, model.init_cache(*tokens.shape))
    return model.logits(hidden)


@jax.jit
def decode(decode_fn, token, cache):
    return decode_fn(token, cache)


def padded(prompts: list[list[int]], pad: int = 11) -> tuple[jax.Array, jax.Array]:
    """Prompts as right-padded rows, and their lengths."""
    width = max(map(len, prompts))
    rows = [prompt + [pad] * (width - len(prompt)) for prompt in prompts]
    return jnp.asarray(rows, jnp.int32), jnp.asarray([len(p) for p in prompts], jnp.int32)


def test_decoding_with_the_cache_equals_a_full_forward_pass(model):
    expected = all_logits(model, TEXT)
    decode_fn, cache = models.make_decode_fn(model), model.init_cache(1, 16)
    for position, token in enumerate(TEXT):
        logits, cache = decode(decode_fn, jnp.asarray([token], jnp.int32), cache)
        np.testing.assert_allclose(logits[0], expected[position], atol=1e-5)
    assert cache.length.tolist() == [len(TEXT)]


def test_a_batch_of_different_lengths_equals_single_prompts(model):
    prompts = [TEXT[:1], TEXT, TEXT[3:7]]
    logits, cache = models.prefill(model, model.init_cache(3, 24), *padded(prompts))
    after, _ = decode(models.make_decode_fn(model), jnp.asarray([20, 30, 40], jnp.int32), cache)
    assert cache.length.tolist() == [1, 10, 4]
    for row, (prompt, token) in enumerate(zip(prompts, [20, 30, 40], strict=True)):
        np.testing.assert_allclose(logits[row], all_logits(model, prompt)[-1], atol=1e-5)
        np.testing.assert_allclose(after[row], all_logits(model, [*prompt, token])[-1], atol=1e-5)


def test_a_prompt_in_two_parts_equals_the_whole(model):
    cache = model.init_cache(2, 12)
    _, cache = models.prefill(model, cache, *padded([TEXT[:6], TEXT[:2]]))
    logits, cache = models.prefill(model, cache, *padded([TEXT[6:9], TEXT[2:8]]))
    assert cache.length.tolist() == [9, 8]
    np.testing.assert_allclose(logits[0], all_logits(model, TEXT[:9])[-1], atol=1e-5)
    np.testing.assert_allclose(logits[1], all_logits(model, TEXT[:8])[-1], atol=1e-5)


def test_tokens_after_a_position_do_not_change_its_logits(model):
    changed = [*TEXT[:6], 1, 2, 4, 6]
    np.testing.assert_allclose(all_logits(model, TEXT)[:6], all_logits(model, changed)[:6], atol=1e-6)
    assert np.abs(all_logits(model, TEXT)[6:] - all_logits(model, changed)[6:]).max() > 1e-3


def greedy(decode_fn, cache, last_token):
    """Four greedy tokens, in a loop like that of `jaxgcd.generate`."""

    def body(carry):
        step, last_token, cache, out = carry
        logits, cache = decode_fn(last_token, cache)
        token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return step + 1, token, cache, out.at[:, step].set(token)

    out = jnp.zeros((last_token.shape[0], 4), jnp.int32)
    return jax.lax.while_loop(lambda carry: carry[0] < 4, body, (0, last_token, cache, out))[3]


def test_start_leads_to_the_same_tokens_as_full_forward_passes(model):
    prompts = [TEXT[:1], TEXT]
    out = jax.jit(greedy)(*models.start(model, prompts, max_new_tokens=4))
    for prompt, tokens in zip(prompts, out.tolist(), strict=True):
        text = list(prompt)
        for _ in range(4):
            text.append(int(all_logits(model, text)[-1].argmax()))
        assert tokens == text[len(prompt) :]


def test_a_row_does_not_depend_on_padding_or_on_its_neighbours(model):
    """Bit for bit, in one compiled program."""
    ids = jnp.asarray([20, 30], jnp.int32)

    def logits(prompts, pad):
        rows, lengths = padded([*prompts, [0] * 12], pad)
        cache = model.init_cache(2, 24)
        first, cache = models.prefill(model, cache, rows[:2], lengths[:2])
        after, _ = decode(models.make_decode_fn(model), ids, cache)
        return np.stack([first[0], after[0]])

    expected = logits([TEXT[:4], TEXT], 11)
    np.testing.assert_array_equal(logits([TEXT[:4], TEXT[5:7]], 49), expected)


@pytest.mark.parametrize("length", [257, 300])
def test_a_prompt_that_is_read_in_chunks(model, length):
    """The second row ends inside the first chunk."""
    generator = np.random.default_rng(0)
    prompts = [generator.integers(0, 50, size).tolist() for size in (length, 40)]
    decode_fn, cache, last_token = models.start(model, prompts, max_new_tokens=4, max_length=310)
    logits, cache = decode(decode_fn, last_token, cache)
    assert cache.length.tolist() == [length, 40]
    rows, _ = padded([*prompts, [0] * 310])
    expected = np.asarray(forward(*nnx.split(model), rows[:2]))
    np.testing.assert_allclose(logits[0], expected[0, length - 1], atol=1e-5)
    np.testing.assert_allclose(logits[1], expected[1, 39], atol=1e-5)


def test_prompts_of_many_lengths_share_few_traces():
    traces, cache_lengths = [], set()

    class Counted(models.Llama):
        def __call__(self, tokens, cache):
            traces.append(tokens.shape)
            return super().__call__(tokens, cache)

    tiny = dataclasses.replace(CONFIG, num_layers=1, hidden_size=8, intermediate_size=8, num_heads=2)
    counted, longest = Counted(tiny, rngs=nnx.Rngs(0)), 600
    for length in [*range(1, 36, 2), *range(36, longest, 61), 256, 257, 258, longest]:
        _, cache, _ = models.start(counted, [[3] * length, [4]], max_new_tokens=20)
        cache_lengths.add(cache.max_length)
    assert len(traces) <= np.log2(longest)
    assert len(cache_lengths) <= np.log2(longest)  # and so often is a decoding step traced
    assert max(width for _, width in traces) == 256  # so that attention does not grow with its square


def test_weights_are_arguments_of_the_compiled_loop(plain):
    arguments = models.start(plain, [TEXT], max_new_tokens=4)
    jaxpr = jax.make_jaxpr(greedy)(*arguments)
    # Only the rotary frequencies are constants.
    assert sum(np.size(constant) for constant in jaxpr.consts) == CONFIG.head_dim // 2
    weights = sum(np.size(leaf) for leaf in jax.tree.leaves(arguments[0]))
    # Embedding and last norm, then per layer: two norms, query and output, key and value, three of SwiGLU.
    assert weights == 50 * 32 + 32 + 2 * (2 * 32 + 2 * 32 * 32 + 2 * 32 * 16 + 3 * 32 * 48)


def test_prompts_and_models_of_one_shape_share_one_trace(plain):
    traces = []

    @jax.jit
    def counted(decode_fn, cache, last_token):
        traces.append(1)
        return decode_fn(last_token, cache)

    counted(*models.start(plain, [TEXT], max_new_tokens=4))
    counted(*models.start(plain, [TEXT[:4]], max_new_tokens=8))
    counted(*models.start(models.Llama(CONFIG, rngs=nnx.Rngs(1)), [TEXT], max_new_tokens=4))
    assert len(traces) == 1


def test_untied_head_and_bfloat16():
    config = dataclasses.replace(CONFIG, tied_embeddings=False, vocab_size=53)
    wide = models.Llama(config, rngs=nnx.Rngs(0))
    graphdef, _ = nnx.split(models.Llama(config, dtype=jnp.bfloat16, rngs=nnx.Rngs(0)))
    rounded = jax.tree.map(lambda weight: weight.astype(jnp.bfloat16), nnx.split(wide)[1])
    narrow = nnx.merge(graphdef, rounded)
    expected, logits = all_logits(wide, TEXT), all_logits(narrow, TEXT)
    assert logits.shape == (len(TEXT), 53)
    assert logits.dtype == np.float32
    assert narrow.init_cache(1, 4).k.dtype == jnp.bfloat16
    # bfloat16 keeps 8 bits: steps of 1/128 at the logits' size (1 to 3), added up over two layers.
    np.testing.assert_allclose(logits, expected, atol=0.2)


def test_a_prompt_longer_than_the_cache_is_an_error_with_the_numbers(plain):
    message = r"prompt of 10 tokens and 7 new tokens need room for 17, but the cache holds 16"
    with pytest.raises(PromptTooLongError, match=message):
        models.start(plain, [TEXT[:2], TEXT], max_new_tokens=7, max_length=16)
    models.start(plain, [TEXT[:2], TEXT], max_new_tokens=6, max_length=16)
    with pytest.raises(PromptTooLongError, match=r"10 tokens need room for 10, but the cache holds 9"):
        models.prefill(plain, plain.init_cache(1, 9), *padded([TEXT]))
    _, cache = models.prefill(plain, plain.init_cache(1, 12), *padded([TEXT]))
    with pytest.raises(PromptTooLongError, match=r"need room for 13, but the cache holds 12"):
        models.prefill(plain, cache, *padded([TEXT[:3]]))


def test_the_models_own_limit_holds_where_none_is_given():
    limited = models.Llama(dataclasses.replace(CONFIG, max_length=30), rngs=nnx.Rngs(0))
    cache = models.start(limited, [TEXT * 2], max_new_tokens=10)[1]
    assert (cache.max_length, cache.length.tolist()) == (30, [19])
    with pytest.raises(PromptTooLongError, match="need room for 31, but the cache holds 30"):
        models.start(limited, [TEXT], max_new_tokens=21)


def test_wrong_batches_are_errors(plain):
    with pytest.raises(ShapeError, match="3 rows of tokens for a cache of 2 rows"):
        models.prefill(plain, plain.init_cache(2, 8), *padded([[1], [2], [3]]))
    for prompts, row in (([[1, 50]], 0), ([[1], [2, -1]], 1)):
        with pytest.raises(ModelError, match=f"prompt {row} holds .*, which is no token id below 50"):
            models.start(plain, prompts, max_new_tokens=4)
    for prompts in ([], [[1], []]):
        with pytest.raises(ModelError, match="at least one"):
            models.start(plain, prompts, max_new_tokens=4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_kv_heads": 3}, r"`num_heads` \(4\) must be a multiple of `num_kv_heads` \(3\)"),
        ({"head_dim": 7}, "`head_dim` must be even"),
        ({"rope_theta": 1.0}, "`rope_theta` must be greater than 1"),
        ({"rope_scaling": models.RopeScaling((1.0,))}, "must have 4 positive divisors"),
        ({"sliding_window": 0}, r"`LlamaConfig\.sliding_window` must be positive"),
        ({"num_layers": 0}, "`LlamaConfig.num_layers` must be positive"),
    ],
)
def test_configs_that_make_no_sense_are_errors(change, message):
    with pytest.raises(ModelError, match=message):
        dataclasses.replace(CONFIG, **change)


@pytest.mark.parametrize(
    "prompts", [[[2.7]], ["ab"], [1, 2], [[1], "a"], [None], 5, np.array([[1.5]]), [], [[]], [[50]], [[-1]]]
)
def test_prompts_that_are_none(plain, prompts):
    with pytest.raises(ModelError, match="token"):
        models.start(plain, prompts, max_new_tokens=4)


@pytest.mark.parametrize("name", ["max_new_tokens", "max_length", "samples"])
@pytest.mark.parametrize("value", [2.5, -3, 0, "4", True])
def test_counts_that_are_none(plain, name, value):
    with pytest.raises(ShapeError, match=f"`{name}="):
        models.start(plain, [TEXT], **{"max_new_tokens": 4, name: value})


def test_prompts_of_an_array(plain):
    rows = np.array([TEXT[:4], TEXT[4:8]])
    found = models.start(plain, rows, max_new_tokens=np.int64(4))
    expected = models.start(plain, rows.tolist(), max_new_tokens=4)
    assert jax.tree.all(jax.tree.map(lambda one, two: (one == two).all(), found[1:], expected[1:]))


@pytest.mark.parametrize(
    "options", [{"dtype": "x"}, {"dtype": object()}, {"max_length": "x"}, {"max_length": 2.5}, {}]
)
def test_arguments_of_load(tmp_path, options):
    checkpoints = pytest.importorskip("checkpoints")
    settings = checkpoints.settings_of("llama")
    folder = checkpoints.write_folder(tmp_path, settings, checkpoints.random_weights(settings))
    message = next(iter(options), "no such file")
    with pytest.raises(ModelError, match=message):
        models.load(folder if options else "x" * 5000, progress=False, **options)
