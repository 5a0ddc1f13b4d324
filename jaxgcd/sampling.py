"""Drawing tokens: `sample`, one step, and `generate`, a whole text in one `lax.while_loop`."""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax
from jaxtyping import Array, Float, Int, Int32

from jaxgcd.decoding import advance, mask_logits
from jaxgcd.errors import ShapeError
from jaxgcd.state import State, Status
from jaxgcd.tables.arrays import Tables

Cache = TypeVar("Cache")
DecodeFn = Callable[[Array, Cache], tuple[Array, Cache]]
"""`(last_token int32[*batch], cache) -> (logits float[*batch, size], cache)`, one step of a language model.
"""


class Finish(enum.IntEnum):
    """Why a row of `generate` ended; `EOS` to `OVERFLOW` have the values of `Status`."""

    LENGTH = 0
    """`max_new_tokens` were drawn, and the text may not be complete."""
    EOS = Status.FINISHED
    """The text is complete."""
    STUCK = Status.STUCK
    """No token was allowed."""
    OVERFLOW = Status.OVERFLOW
    """The text needed a deeper parser stack than `max_depth`."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["tokens", "length", "finish", "state", "cache"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Generation:
    """What `generate` returns."""

    tokens: Int32[Array, "*batch max_new_tokens"]
    """Token ids; after a row's end `pad_id`. The EOS token itself is not among them."""
    length: Int32[Array, "*batch"]
    """How many tokens each row drew, EOS not counted."""
    finish: Int32[Array, "*batch"]
    """A `Finish`."""
    state: State
    """The grammar's state after those tokens."""
    cache: Any
    """The model's cache after the last step."""


def sample(
    key: Array,
    tables: Tables,
    state: State,
    logits: Float[Array, "*batch size"],
    *,
    temperature: float | Array = 1.0,
) -> tuple[Int32[Array, "*batch"], State]:
    """Draws one allowed token for each row and reads it.

    Args:
        key: a PRNG key, typed or raw.
        tables: the compiled grammar.
        state: any batch axes.
        logits: batch axes as in `state`, as wide as the vocabulary's `size`.
        temperature: divides the logits; 0 (or less) takes the most likely token.

    Returns:
        The tokens, and the state after them.

    Example:
        >>> import jax, jax.numpy as jnp, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> token, state = jaxgcd.sample(jax.random.key(0), tables, jaxgcd.init(tables), jnp.zeros(3))
        >>> int(token)
        0
    """
    temperature = jnp.asarray(temperature, logits.dtype)
    scaled = logits / jnp.where(temperature > 0, temperature, jnp.ones_like(temperature))
    # Masked last and with -inf: a finite fill divided by a high temperature would come back into reach.
    masked = mask_logits(tables, state, scaled, fill=-jnp.inf)
    greedy = jnp.argmax(masked, axis=-1).astype(jnp.int32)
    drawn = jax.random.categorical(key, masked).astype(jnp.int32)
    token = jnp.where(temperature > 0, drawn, greedy)
    return token, advance(tables, state, token)


def generate(
    key: Array,
    decode_fn: DecodeFn,
    cache: Any,
    tables: Tables,
    state: State,
    last_token: Int[Array, "*batch"],
    *,
    max_new_tokens: int,
    temperature: float | Array = 1.0,
    pad_id: int = 0,
) -> Generation:
    """Generates a text in each row with one jitted loop, without a transfer to the host.

    Args:
        key: a PRNG key, typed or raw.
        decode_fn: one step of the model; a plain function, or a `jax.tree_util.Partial` whose bound arguments
        (the
            weights) are then arguments of the compiled loop and not constants in it.
        cache: the model's state after all of the prompt but its last token; any pytree.
        tables: the compiled grammar.
        state: the grammar's state, `init(tables, batch_shape)` at the start of a text.
        last_token: the last token of each row's prompt.
        max_new_tokens: the most tokens to draw in a row.
        temperature: divides the logits; 0 takes the most likely token.
        pad_id: what rows emit once they have ended.

    Returns:
        A `Generation`. Rows end by EOS, by `max_new_tokens`, or as `Finish` says. With `check="host"` each
        step makes at most one callback; otherwise there is none.

    Raises:
        ShapeError: the batch axes differ, or the model's logits are not as wide as the vocabulary.
    """
    if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise ShapeError(f"`max_new_tokens={max_new_tokens!r}` must be an integer of at least 1.")
    if jnp.shape(last_token) != state.status.shape:
        raise ShapeError(
            f"`last_token` has the shape {jnp.shape(last_token)}, the state's batch is {state.status.shape}."
        )
    if not isinstance(decode_fn, jax.tree_util.Partial):
        decode_fn = jax.tree_util.Partial(decode_fn)
    return _generate(
        key, decode_fn, cache, tables, state, last_token, temperature, pad_id, max_new_tokens=max_new_tokens
    )


@functools.partial(jax.jit, static_argnames="max_new_tokens")
def _generate(
    key, decode_fn, cache, tables, state, last_token, temperature, pad_id, *, max_new_tokens
) -> Generation:
    batch = state.status.shape
    pad_id = jnp.asarray(pad_id, jnp.int32)

    def going(carry):
        step, *_, state, _, _ = carry
        return (step < max_new_tokens) & (state.status == Status.RUNNING).any()

    def step(carry):
        i, key, last_token, cache, state, tokens, length = carry
        key, draw = jax.random.split(key)
        logits, cache = decode_fn(last_token, cache)
        token, state = sample(draw, tables, state, logits, temperature=temperature)
        emitted = state.status == Status.RUNNING
        token = jnp.where(emitted, token, pad_id)
        tokens = lax.dynamic_update_index_in_dim(tokens, token, i, axis=-1)
        return i + 1, key, token, cache, state, tokens, length + emitted.astype(jnp.int32)

    # Made from the state, so that on many devices they are laid out as it is.
    length = 0 * state.status
    tokens = jnp.broadcast_to((length + pad_id)[..., None], (*batch, max_new_tokens))
    first = (
        jnp.int32(0),
        key,
        jnp.asarray(last_token).astype(jnp.int32),
        cache,
        state,
        tokens,
        length,
    )
    _, _, _, cache, state, tokens, length = lax.while_loop(going, step, first)
    return Generation(tokens, length, state.status, state, cache)
