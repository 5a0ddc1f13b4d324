"""Whole texts: `generate`, one `lax.while_loop` on the device.

The loop's parts are shared with `stream` (jaxgcd/streaming.py), which runs it a few tokens at a time.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float32, Int, Int32

from jaxgcd import keys
from jaxgcd.decoding import unpack
from jaxgcd.distribution import DrawOptions, Settings, make_settings, per_row
from jaxgcd.errors import ShapeError
from jaxgcd.sampling import Draw, draw_token
from jaxgcd.state import State, Status
from jaxgcd.stops import Stops, make_stops, read
from jaxgcd.tables.arrays import Tables
from jaxgcd.vocabulary import Vocabulary

Cache = TypeVar("Cache")
DecodeFn = Callable[[Array, Cache], tuple[Array, Cache]]
"""`(last_token int32[*batch], cache) -> (logits float[*batch, size], cache)`, one step of a language model.
"""


class Finish(enum.IntEnum):
    """Why a row of `generate` ended; `EOS`, `STUCK` and `OVERFLOW` have the values of `Status`."""

    LENGTH = 0
    """`max_new_tokens` were drawn, and the text may not be complete."""
    EOS = Status.FINISHED
    """The text is complete."""
    STUCK = Status.STUCK
    """No token could be drawn."""
    OVERFLOW = Status.OVERFLOW
    """The text needed a deeper parser stack than `max_depth`."""
    STOP = 4
    """A stop string or a stop id was drawn; the text may not be complete."""


class TextOptions(DrawOptions, total=False):
    """The keyword arguments of `generate` and `stream` that shape a text, beside those that shape a draw."""

    min_new_tokens: ArrayLike
    """EOS is withheld from the first tokens, so many, while another token is allowed; an integer, or one for
    each row. 0 by default."""
    stop: str | bytes | Sequence[str | bytes]
    """Strings that end a row when its generated text (not the prompt) contains one, as UTF-8 or as bytes."""
    stop_ids: Sequence[int]
    """Token ids that end a row when they are drawn. They must be tokens that the grammar allows; ids that
    are to end a text in any case belong into `Vocabulary(..., eos=...)`."""
    pad_id: ArrayLike | None
    """What rows hold behind their end. By default the vocabulary's lowest EOS id: every vocabulary has one,
    and it is never text, while few tokenizers have a padding token."""


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


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["settings", "stops", "min_new_tokens", "max_new_tokens", "pad_id"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Plan:
    """The options of a text, as arrays; the loop reads them and does not carry them."""

    settings: Settings
    stops: Stops | None
    min_new_tokens: Int32[Array, "*batch"] | None
    max_new_tokens: Int32[Array, ""]
    pad_id: Int32[Array, ""]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["step", "last_token", "cache", "state", "matched", "length", "excess"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Progress:
    """What one step hands to the next. In the loop a row that a stop ended has the status `Finish.STOP`,
    which is none of `Status`: like all but RUNNING, it makes a row stay as it is."""

    step: Int32[Array, ""]
    last_token: Int32[Array, "*batch"]
    cache: Any
    state: State
    matched: Int32[Array, "*batch"]
    """The state of the stop strings' automaton."""
    length: Int32[Array, "*batch"]
    excess: Int32[Array, "*batch"]


@functools.partial(jax.tree_util.register_dataclass, data_fields=["tokens", "draws"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Record:
    """What some steps drew: tokens `int32[*batch, steps]`, and a `Draw` of `float32[*batch, steps]`."""

    tokens: Int32[Array, "*batch steps"]
    draws: Draw


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
        ShapeError: the batch axes differ, an option or the key has the wrong shape, or the model's logits
            are not as wide as the vocabulary.
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
    check_arguments(state, last_token, max_new_tokens)
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


def check_arguments(state: State, last_token: Int[Array, "*batch"], max_new_tokens: int) -> None:
    """`ShapeError` if the batch axes differ, or there are no tokens to draw."""
    if not isinstance(max_new_tokens, int) or max_new_tokens < 1:
        raise ShapeError(f"`max_new_tokens={max_new_tokens!r}` must be an integer of at least 1.")
    if jnp.shape(last_token) != state.status.shape:
        raise ShapeError(
            f"`last_token` has the shape {jnp.shape(last_token)}, the state's batch is {state.status.shape}."
        )


def as_partial(decode_fn: DecodeFn) -> jax.tree_util.Partial:
    """A `decode_fn` that can be an argument of a jitted function."""
    return decode_fn if isinstance(decode_fn, jax.tree_util.Partial) else jax.tree_util.Partial(decode_fn)


def make_plan(
    tables: Tables,
    state: State,
    *,
    max_new_tokens: int,
    min_new_tokens: ArrayLike = 0,
    stop: str | bytes | Sequence[str | bytes] = (),
    stop_ids: Sequence[int] = (),
    pad_id: ArrayLike | None = None,
    **options: Unpack[DrawOptions],
) -> Plan:
    """Checks the options of a text and makes arrays of them."""
    batch = state.status.shape
    none = isinstance(min_new_tokens, int) and min_new_tokens == 0
    return Plan(
        make_settings(batch, tables.size, **options),
        make_stops(stop, stop_ids, tables.size),
        None if none else per_row("min_new_tokens", min_new_tokens, batch, jnp.int32),
        jnp.int32(max_new_tokens),
        padding(tables, pad_id),
    )


def padding(tables: Tables, pad_id: ArrayLike | None) -> Int32[Array, ""]:
    """What rows hold behind their end: `pad_id`, or by default the lowest EOS id."""
    lowest = jnp.argmax(unpack(tables.eos_words, tables.size)) if pad_id is None else pad_id
    return per_row("pad_id", lowest, (), jnp.int32)


def begin(cache: Any, state: State, last_token: Int[Array, "*batch"]) -> Progress:
    """Before the first step."""
    # Made from the state, so that on many devices they are laid out as it is.
    zero = 0 * state.status
    last_token = jnp.asarray(last_token).astype(jnp.int32)
    return Progress(jnp.int32(0), last_token, cache, state, matched=zero, length=zero, excess=zero)


def run(
    key: Array,
    decode_fn: DecodeFn,
    tables: Tables,
    plan: Plan,
    progress: Progress,
    *,
    steps: int,
) -> tuple[Progress, Record]:
    """Up to `steps` further steps; fewer if all rows end, or `plan.max_new_tokens` is reached before."""
    first = progress.step
    limit = jnp.minimum(first + steps, plan.max_new_tokens)

    def going(carry: tuple[Progress, Record]) -> Bool[Array, ""]:
        progress, _ = carry
        return (progress.step < limit) & (progress.state.status == Status.RUNNING).any()

    def step(carry: tuple[Progress, Record]) -> tuple[Progress, Record]:
        progress, record = carry
        after, token, draw = _step(key, decode_fn, tables, plan, progress)
        return after, _written(record, progress.step - first, token, draw)

    return lax.while_loop(going, step, (progress, _blank(plan, progress.state, steps)))


def _step(
    key: Array, decode_fn: DecodeFn, tables: Tables, plan: Plan, progress: Progress
) -> tuple[Progress, Int32[Array, "*batch"], Draw]:
    """One step of all rows: the progress, the tokens (`pad_id` where none was added), the draw."""
    logits, cache = decode_fn(progress.last_token, progress.cache)
    early = None if plan.min_new_tokens is None else progress.length < plan.min_new_tokens
    drawing = keys.fold(key, progress.step)
    token, state, draw = draw_token(drawing, tables, progress.state, logits, plan.settings, early)
    added = state.status == Status.RUNNING
    matched, excess = progress.matched, progress.excess
    if plan.stops is not None:
        state_of, stopped, behind = read(plan.stops, tables, matched, token)
        matched, excess = jnp.where(added, state_of, matched), jnp.where(added, behind, excess)
        status = jnp.where(added & stopped, jnp.int32(Finish.STOP), state.status)
        state = dataclasses.replace(state, status=status)
    token = jnp.where(added, token, plan.pad_id)
    length = progress.length + added.astype(jnp.int32)
    return Progress(progress.step + 1, token, cache, state, matched, length, excess), token, draw


def _blank(plan: Plan, state: State, steps: int) -> Record:
    shape = (*state.status.shape, steps)
    zero = (0 * state.status)[..., None]
    tokens = jnp.broadcast_to(zero + plan.pad_id, shape)
    nothing: Float32[Array, "*batch steps"] = jnp.broadcast_to(zero.astype(jnp.float32), shape)
    return Record(tokens, Draw(nothing, nothing, nothing))


def _written(record: Record, index: Int32[Array, ""], token: Int32[Array, "*batch"], draw: Draw) -> Record:
    return jax.tree.map(
        lambda whole, new: lax.dynamic_update_index_in_dim(whole, new.astype(whole.dtype), index, axis=-1),
        record,
        Record(token, draw),
    )


def resumable(state: State) -> State:
    """Rows that a stop ended are RUNNING again: the grammar would let them go on."""
    running = state.status == Finish.STOP
    return dataclasses.replace(state, status=jnp.where(running, jnp.int32(Status.RUNNING), state.status))


def rows_of(vocabulary: Vocabulary, tokens: ArrayLike, length: ArrayLike, excess: ArrayLike) -> list[bytes]:
    """The bytes of each row, rows in C order: `length` tokens without the last `excess` bytes."""
    tokens, length, excess = (np.asarray(array) for array in (tokens, length, excess))
    rows = zip(tokens.reshape(-1, tokens.shape[-1]), length.reshape(-1), excess.reshape(-1), strict=True)
    texts = ((b"".join(vocabulary.tokens[i] for i in row[:count]), behind) for row, count, behind in rows)
    return [text[: len(text) - behind] for text, behind in texts]
