"""Whole texts: `generate`, one `lax.while_loop` on the device."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Unpack

import jax
import numpy as np
from jax.typing import ArrayLike
from jaxtyping import Array, Int, Int32

from jaxgcd import keys
from jaxgcd.decode_fn import DecodeFn, as_partial
from jaxgcd.loop import begin, resumable, run
from jaxgcd.plan import TextOptions, check_arguments, make_plan
from jaxgcd.sampling import Draw
from jaxgcd.state import State
from jaxgcd.tables.arrays import Tables
from jaxgcd.vocabulary import Vocabulary


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["tokens", "length", "finish", "state", "cache", "draws", "excess"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Generation:
    """What `generate` returns."""

    tokens: Int32[Array, "*batch max_new_tokens"]
    """Token ids; after a row's end `pad_id`. The EOS token itself is not among them, the tokens of a stop
    are."""
    length: Int32[Array, "*batch"]
    """How many tokens each row drew, EOS not counted."""
    finish: Int32[Array, "*batch"]
    """A `Finish`."""
    state: State
    """The grammar's state after those tokens; a row that ended by a stop or by length is RUNNING."""
    cache: Any
    """The model's cache after the last step."""
    draws: Draw
    """`[*batch, max_new_tokens]`: what is known about each draw, that of EOS (or of the token that
    overflowed) included, at index `length`; 0 where nothing was drawn."""
    excess: Int32[Array, "*batch"]
    """How many bytes of a row's last token lie behind the end of its stop string; otherwise 0."""

    def texts(self, vocabulary: Vocabulary) -> list[str]:
        """Each row's text, on the host, rows in C order; one that ended by a stop string ends with it.

        What is not whole UTF-8 (a text may end by its length, within a character) becomes U+FFFD.
        """
        rows = rows_of(vocabulary, self.tokens, self.length, self.excess)
        return [row.decode("utf-8", "replace") for row in rows]


def generate(
    key: Array,
    decode_fn: DecodeFn,
    cache: Any,
    tables: Tables,
    state: State,
    last_token: Int[Array, "*batch"],
    *,
    max_new_tokens: int,
    **options: Unpack[TextOptions],
) -> Generation:
    """Generates a text in each row with one jitted loop, without a transfer to the host.

    Another value of an option is not another trace; an option that was off before is.

    Args:
        key: a PRNG key, typed or raw; or one for each row, and then a row's text does not depend on the other
            rows, nor on how many there are.
        decode_fn: one step of the model; a plain function, or a `jax.tree_util.Partial` whose bound arguments
            (the weights) are then arguments of the compiled loop and not constants in it.
        cache: the model's state after all of the prompt but its last token; any pytree.
        tables: the compiled grammar.
        state: the grammar's state, `init(tables, batch_shape)` at the start of a text.
        last_token: the last token of each row's prompt.
        max_new_tokens: the most tokens to draw in a row, EOS counted.
        **options: those of `sample` (`logit_bias`, `temperature`, `top_k`, `top_p`, `min_p`), and
            `min_new_tokens`, `stop`, `stop_ids`, `pad_id`: see `TextOptions` and docs/sampling.md.

    Returns:
        A `Generation`. Rows end by EOS, by a stop, by `max_new_tokens`, or as `Finish` says. With
        `check="host"` each step makes at most one callback; otherwise there is none.

    Raises:
        ShapeError: the batch axes differ, an option or the key has the wrong shape, or `decode_fn` does not
            return a pair, logits `[*batch, size]` and a cache like the one it was given.
        SamplingError: an option is out of range.

    Example:
        >>> import jax, jax.numpy as jnp, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b";", b""], eos=[3])
        >>> tables = jaxgcd.compile_grammar('start: ("a" | "b" | ";")*', vocabulary)
        >>> wishes = jnp.array([[0, 2, 1, 0], [0, 0, 9, 0], [0, 9, 0, 0], [0, 0, 0, 0]], jnp.float32)
        >>> def decode_fn(last_token, cache):
        ...     return wishes[last_token], cache
        >>> output = jaxgcd.generate(
        ...     jax.random.key(0), decode_fn, None, tables, jaxgcd.init(tables, 1), jnp.array([0]),
        ...     max_new_tokens=8, temperature=0.0, stop=";b",
        ... )
        >>> output.tokens.tolist(), jaxgcd.Finish(int(output.finish[0])).name
        ([[1, 2, 1, 3, 3, 3, 3, 3]], 'STOP')
    """
    last_token, max_new_tokens = check_arguments(state, last_token, max_new_tokens)
    key = keys.typed_key(key, state.status.shape)
    plan = make_plan(tables, state, max_new_tokens=max_new_tokens, **options)
    decode_fn = as_partial(decode_fn)
    return _generate(key, decode_fn, cache, tables, state, last_token, plan, max_new_tokens=max_new_tokens)


@functools.partial(jax.jit, static_argnames="max_new_tokens")
def _generate(key, decode_fn, cache, tables, state, last_token, plan, *, max_new_tokens: int) -> Generation:
    progress = begin(cache, state, last_token)
    progress, record = run(key, decode_fn, tables, plan, progress, steps=max_new_tokens)
    return Generation(
        tokens=record.tokens,
        length=progress.length,
        finish=progress.state.status,
        state=resumable(progress.state),
        cache=progress.cache,
        draws=record.draws,
        excess=progress.excess,
    )


def rows_of(vocabulary: Vocabulary, tokens: ArrayLike, length: ArrayLike, excess: ArrayLike) -> list[bytes]:
    """The bytes of each row, rows in C order: `length` tokens without the last `excess` bytes."""
    tokens, length, excess = (np.asarray(array) for array in (tokens, length, excess))
    rows = zip(tokens.reshape(-1, tokens.shape[-1]), length.reshape(-1), excess.reshape(-1), strict=True)
    texts = ((b"".join(vocabulary.tokens[i] for i in row[:count]), behind) for row, count, behind in rows)
    return [text[: len(text) - behind] for text, behind in texts]
