"""From prompts to what `jaxgcd.generate` needs: `decode_fn`, the filled cache and the last tokens."""

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.core import Tracer
from jaxtyping import Array, Float32, Int

from jaxgcd.errors import ModelError, PromptTooLongError, ShapeError

from .cache import Cache
from .llama import Llama

Weights = Any  # an `nnx.State`; its own type hints do not pass beartype

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
    model: Llama, prompts: Sequence[Sequence[int]], *, max_new_tokens: int, max_length: int | None = None
) -> tuple[DecodeFn, Cache, Int[Array, " batch"]]:
    """Read a batch of prompts (token ids, of any lengths) up to their last tokens.

    Returns `decode_fn`, the cache and the last tokens, ready for `jaxgcd.generate`. The cache has
    room for `max_length` tokens a row, by default as many as are needed, rounded up so that
    prompts of similar length share their compiled code.
    """
    if not prompts or not all(len(prompt) for prompt in prompts):
        raise ModelError("`start` needs at least one prompt, and each prompt at least one token")
    longest = max(len(prompt) for prompt in prompts)
    if max_length is None:
        max_length = _round_up(longest + max_new_tokens, 64)
    check_fits(longest, max_new_tokens, max_length)
    width = min(_round_up(longest - 1, 32), max_length)
    tokens = np.zeros((len(prompts), width), np.int32)
    for row, prompt in zip(tokens, prompts, strict=True):
        row[: len(prompt) - 1] = prompt[:-1]
    lengths = np.array([len(prompt) - 1 for prompt in prompts], np.int32)
    cache = model.init_cache(len(prompts), max_length)
    if width:
        _, cache = prefill(model, cache, jnp.asarray(tokens), jnp.asarray(lengths))
    last_token = np.array([prompt[-1] for prompt in prompts], np.int32)
    return make_decode_fn(model), cache, jnp.asarray(last_token)


def check_fits(prompt_length: int, max_new_tokens: int, max_length: int) -> None:
    """Raise `PromptTooLongError` unless a prompt and the tokens to be generated fit into the cache."""
    if prompt_length + max_new_tokens > max_length:
        new = f" and {max_new_tokens} new tokens" if max_new_tokens else ""
        raise PromptTooLongError(
            f"a prompt of {prompt_length} tokens{new} need room for {prompt_length + max_new_tokens}, "
            f"but the cache holds {max_length}; shorten the prompt or ask for a longer cache"
        )


def _round_up(count: int, multiple: int) -> int:
    return -(-count // multiple) * multiple
