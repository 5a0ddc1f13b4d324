"""From prompts to what `jaxgcd.generate` needs: `decode_fn`, the filled cache and the last tokens."""

import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.core import Tracer
from jaxtyping import Array, Float32, Int

from jaxgcd.arguments import count
from jaxgcd.errors import ModelError, PromptTooLongError, ShapeError

from .cache import Cache
from .llama import Llama

Weights = Any  # an `nnx.State`; its own type hints do not pass beartype

_SMALLEST, _CHUNK = 16, 256  # how many tokens of a prompt are read at once, at least and at most

DecodeFn = Callable[[Int[Array, " batch"], Cache], tuple[Float32[Array, "batch vocab"], Cache]]


def make_decode_fn(model: Llama) -> DecodeFn:
    """`decode_fn(last_token, cache) -> (logits, cache)`, pure, for use inside `lax.while_loop`.

    It is a `jax.tree_util.Partial`: a pytree whose leaves are the weights. Passed to a jitted
    function, the weights are arguments of it and not constants inside it, and the loop reads but
    does not carry them.
    """
    graphdef, params = nnx.split(model)
    return jax.tree_util.Partial(_decode, graphdef, params)


def _decode(
    graphdef: nnx.GraphDef, params: Weights, last_token: Int[Array, " batch"], cache: Cache
) -> tuple[Float32[Array, "batch vocab"], Cache]:
    model = nnx.merge(graphdef, params)
    hidden, cache = model(last_token[:, None], cache)
    return model.logits(hidden[:, 0]), cache.extend(jnp.ones_like(cache.length))


def prefill(
    model: Llama, cache: Cache, tokens: Int[Array, "batch time"], lengths: Int[Array, " batch"]
) -> tuple[Float32[Array, "batch vocab"], Cache]:
    """Read right-padded prompts, row `i` being `tokens[i, :lengths[i]]`, behind what the cache holds.

    Returns the logits after each row's last token and the cache; those of a row of length 0 mean nothing.
    Raises `PromptTooLongError` if the tokens do not fit; inside a jitted function, where lengths
    are not known, only the width of `tokens` is compared.
    """
    if tokens.shape[0] != cache.batch:
        raise ShapeError(f"`prefill`: {tokens.shape[0]} rows of tokens for a cache of {cache.batch} rows")
    check_fits(tokens.shape[1], 0, cache.max_length)
    if not any(isinstance(x, Tracer) for x in (lengths, cache.length)):
        check_fits(int(np.max(np.asarray(lengths) + np.asarray(cache.length))), 0, cache.max_length)
    graphdef, params = nnx.split(model)
    return _prefill(graphdef, params, cache, tokens, lengths)


@jax.jit
def _prefill(
    graphdef: nnx.GraphDef,
    params: Weights,
    cache: Cache,
    tokens: Int[Array, "batch time"],
    lengths: Int[Array, " batch"],
) -> tuple[Float32[Array, "batch vocab"], Cache]:
    model = nnx.merge(graphdef, params)
    hidden, cache = model(tokens, cache)
    last = jnp.maximum(lengths - 1, 0)[:, None, None]  # [B, 1, 1]
    return model.logits(jnp.take_along_axis(hidden, last, axis=1)[:, 0]), cache.extend(lengths)


def start(
    model: Llama,
    prompts: Sequence[Sequence[int]],
    *,
    max_new_tokens: int,
    max_length: int | None = None,
    samples: int = 1,
) -> tuple[DecodeFn, Cache, Int[Array, " batch"]]:
    """Read a batch of prompts (token ids, of any lengths) up to their last tokens.

    All but the last tokens are padded on the right to the longest row's bucket, a power of two from 16 to
    256; beyond that they are read in chunks of 256. With `max_length=None` the cache's length, too, depends
    on that power of two only (and on `max_new_tokens`): prompts of up to `n` tokens are traced at most
    `log2(n)` times. Padding is never attended to. A row's results depend on the other rows by rounding alone:
    their number, and the longest one's bucket, select the program.

    Args:
        model: the decoder.
        prompts: one row of token ids each, at least one in each row.
        max_new_tokens: room for the answer. To draw more than that afterwards is no error, but what does not
            fit into the cache is dropped from it, and later tokens do not see it.
        max_length: how many tokens a row of the cache holds; by default as many as are needed, rounded up,
            but no more than the model's `config.max_length`.
        samples: how many answers to each prompt there are to be. A prompt is read once, and its row then
            repeated: row `i * samples + j` of the batch is answer `j` to prompt `i`.

    Returns:
        `decode_fn`, the cache and the last tokens, `int32[batch]`, ready for `jaxgcd.generate`; the batch is
        `len(prompts) * samples`.

    Raises:
        PromptTooLongError: a prompt and its answer do not fit.
        ModelError: a prompt is empty, or holds what is no token id.
        ShapeError: `samples`, `max_new_tokens` or `max_length` is no positive integer.
    """
    samples, max_new_tokens = count("samples", samples), count("max_new_tokens", max_new_tokens)
    prompts = _checked_prompts(prompts, model.config.vocab_size)
    longest = max(len(prompt) for prompt in prompts)
    bucket = max(_SMALLEST, 1 << max(longest - 2, 0).bit_length())
    if max_length is None:
        max_length = -(-(bucket + 1 + max_new_tokens) // 64) * 64
        max_length = min(max_length, model.config.max_length or max_length)
    max_length = count("max_length", max_length)
    check_fits(longest, max_new_tokens, max_length)
    width = min(bucket, _CHUNK, max_length)
    graphdef, params = nnx.split(model)
    cache = model.init_cache(len(prompts), max_length)
    for begin in range(0, longest - 1, width):
        tokens, lengths = _chunk(prompts, begin, width)
        _, cache = _prefill(graphdef, params, cache, tokens, lengths)
    last_token = np.array([prompt[-1] for prompt in prompts], np.int32)
    if samples > 1:
        cache = cache.repeat(samples)
    return make_decode_fn(model), cache, jnp.asarray(np.repeat(last_token, samples))


def _chunk(
    prompts: Sequence[Sequence[int]], begin: int, width: int
) -> tuple[Int[Array, "batch width"], Int[Array, " batch"]]:
    """The prompts' tokens from `begin` on, without their last ones; padded on the right, and how many."""
    tokens, lengths = np.zeros((len(prompts), width), np.int32), np.zeros(len(prompts), np.int32)
    for row, prompt in enumerate(prompts):
        part = prompt[begin : min(begin + width, len(prompt) - 1)]
        tokens[row, : len(part)], lengths[row] = part, len(part)
    return jnp.asarray(tokens), jnp.asarray(lengths)


def _checked_prompts(prompts: Sequence[Sequence[int]], vocab_size: int) -> list[list[int]]:
    try:
        rows = [[operator.index(token) for token in prompt] for prompt in prompts]
    except TypeError as error:
        raise ModelError(f"`prompts` must be sequences of token ids, one for each row ({error})") from None
    if not rows or not all(rows):
        raise ModelError("`start` needs at least one prompt, and each prompt at least one token")
    for row, prompt in enumerate(rows):
        if strays := [token for token in prompt if not 0 <= token < vocab_size]:
            raise ModelError(f"prompt {row} holds {strays[0]}, which is no token id below {vocab_size}")
    return rows


def check_fits(prompt_length: int, max_new_tokens: int, max_length: int) -> None:
    """Raise `PromptTooLongError` unless a prompt and the tokens to be generated fit into the cache."""
    if prompt_length + max_new_tokens > max_length:
        new = f" and {max_new_tokens} new tokens" if max_new_tokens else ""
        raise PromptTooLongError(
            f"a prompt of {prompt_length} tokens{new} need room for {prompt_length + max_new_tokens}, "
            f"but the cache holds {max_length}; shorten the prompt or ask for a longer cache"
        )
