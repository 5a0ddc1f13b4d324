"""`stream`: the loop of `generate`, a few tokens at a time, as text for people who are waiting."""

from __future__ import annotations

import codecs
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, Unpack

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Int32

from jaxgcd import keys
from jaxgcd.arguments import count
from jaxgcd.decode_fn import DecodeFn, as_partial
from jaxgcd.errors import ShapeError
from jaxgcd.generation import rows_of
from jaxgcd.loop import Finish, Progress, Record, begin, run
from jaxgcd.plan import Plan, TextOptions, check_arguments, make_plan
from jaxgcd.sampling import Draw
from jaxgcd.state import State, Status
from jaxgcd.tables.arrays import Tables
from jaxgcd.vocabulary import Vocabulary


@dataclasses.dataclass(frozen=True)
class Chunk:
    """What one dispatch of `stream` added to each row; on the host. Lists hold the rows in C order."""

    texts: list[str]
    """New text. Bytes of a character that is not whole yet come with a later chunk; at a row's end, what is
    left of them becomes U+FFFD. A text that ended by a stop string ends with it."""
    tokens: Int32[np.ndarray, "*batch steps"]
    """New token ids, as many as `lengths`; behind them `pad_id`."""
    lengths: list[int]
    """How many tokens were added."""
    finish: list[Finish | None]
    """Why a row ended; None while it goes on."""
    draws: Draw
    """`[*batch, steps]`, as in `Generation`."""


def stream(
    key: Array,
    decode_fn: DecodeFn,
    cache: Any,
    tables: Tables,
    state: State,
    last_token: Int[Array, "*batch"],
    vocabulary: Vocabulary,
    *,
    max_new_tokens: int,
    steps: int = 8,
    **options: Unpack[TextOptions],
) -> Iterator[Chunk]:
    """`generate`, handing out text while it is written: the same draws, joined the same texts.

    Each dispatch draws up to `steps` tokens in one jitted loop. The next one is dispatched before the last
    one's tokens are read, so the device does not wait for whoever reads the text. All dispatches share one
    trace.

    Args:
        key, decode_fn, cache, tables, state, last_token, max_new_tokens, **options: as in `generate`.
        vocabulary: the one that `tables` were compiled for.
        steps: how many tokens to draw before the host looks at them.

    Returns:
        An iterator of `Chunk`s, at least one; it ends when all rows have ended.

    Raises:
        ShapeError, SamplingError: as in `generate`, and when called, not when the first chunk is asked for.

    Example:
        >>> import jax, jax.numpy as jnp, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b" "a" "b"', vocabulary)
        >>> def decode_fn(last_token, cache):
        ...     return jnp.zeros((1, 3)), cache
        >>> chunks = jaxgcd.stream(
        ...     jax.random.key(0), decode_fn, None, tables, jaxgcd.init(tables, 1), jnp.array([0]),
        ...     vocabulary, max_new_tokens=8, steps=2,
        ... )
        >>> [chunk.texts[0] for chunk in chunks]
        ['ab', 'ab', '']
    """
    last_token, max_new_tokens = check_arguments(state, last_token, max_new_tokens)
    steps = count("steps", steps)
    if vocabulary.size != tables.size:
        raise ShapeError(
            f"`vocabulary` has {vocabulary.size} ids, the tables were compiled for {tables.size}."
        )
    key = keys.typed_key(key, state.status.shape)
    plan = make_plan(tables, state, max_new_tokens=max_new_tokens, **options)
    # A dispatch gives its buffers to the next one; those of the caller stay the caller's.
    progress = jax.tree.map(jnp.copy, begin(cache, state, last_token))
    dispatch = functools.partial(_dispatch, key, as_partial(decode_fn), tables, plan, steps=steps)
    return _chunks(dispatch, dispatch(progress), vocabulary, -(-max_new_tokens // steps))


@dataclasses.dataclass(frozen=True)
class _Report:
    """What the host reads of a dispatch."""

    record: Record
    added: Int32[Array, "*batch"]
    excess: Int32[Array, "*batch"]
    finish: Int32[Array, "*batch"]


jax.tree_util.register_dataclass(_Report, ["record", "added", "excess", "finish"], [])


@functools.partial(jax.jit, static_argnames="steps", donate_argnames="progress")
def _dispatch(
    key: Array, decode_fn: DecodeFn, tables: Tables, plan: Plan, progress: Progress, *, steps: int
) -> tuple[Progress, _Report]:
    after, record = run(key, decode_fn, tables, plan, progress, steps=steps)
    report = _Report(record, after.length - progress.length, after.excess, after.state.status)
    return after, report


def _chunks(
    dispatch: Any, first: tuple[Progress, _Report], vocabulary: Vocabulary, most: int
) -> Iterator[Chunk]:
    progress, waiting = first
    rows = progress.length.size
    decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(rows)]
    done = [False] * rows
    for number in range(1, most + 1):
        report = waiting
        if number < most:
            progress, waiting = dispatch(progress)
        yield _read(jax.device_get(report), vocabulary, decoders, done, last=number == most)
        if all(done):
            return


def _read(
    report: _Report, vocabulary: Vocabulary, decoders: list[Any], done: list[bool], *, last: bool
) -> Chunk:
    """Turns a dispatch into text; `decoders` and `done` are each row's, and go on from chunk to chunk."""
    added, status = report.added.reshape(-1).tolist(), report.finish.reshape(-1).tolist()
    excess = np.where(report.added > 0, report.excess, 0)
    texts = []
    for row, new in enumerate(rows_of(vocabulary, report.record.tokens, report.added, excess)):
        ends = (last or status[row] != Status.RUNNING) and not done[row]
        texts.append(decoders[row].decode(new, final=ends))
        done[row] |= ends
    finish = [Finish(value) if end else None for value, end in zip(status, done, strict=True)]
    return Chunk(texts, np.asarray(report.record.tokens), added, finish, report.record.draws)
