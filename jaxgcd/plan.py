"""The options of a whole text, checked and made into arrays: what `generate` and `stream` have in common."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Unpack

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Int, Int32

from jaxgcd.arguments import count, integers, per_row
from jaxgcd.decoding import unpack
from jaxgcd.distribution import DrawOptions, Settings, make_settings
from jaxgcd.errors import ShapeError
from jaxgcd.state import State
from jaxgcd.stops import Stops, make_stops
from jaxgcd.tables.arrays import Tables


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
        None if none else per_row("min_new_tokens", integers("min_new_tokens", min_new_tokens), batch),
        jnp.int32(max_new_tokens),
        padding(tables, pad_id),
    )


def padding(tables: Tables, pad_id: ArrayLike | None) -> Int32[Array, ""]:
    """What rows hold behind their end: `pad_id`, or by default the lowest EOS id."""
    lowest = jnp.argmax(unpack(tables.eos_words, tables.size)) if pad_id is None else pad_id
    return per_row("pad_id", integers("pad_id", lowest), ())


def check_arguments(
    state: State, last_token: Int[Array, "*batch"], max_new_tokens: int
) -> tuple[Int32[Array, "*batch"], int]:
    """The last tokens and how many to draw; `ShapeError` if no integers, or of another shape."""
    last_token = integers("last_token", last_token)
    if last_token.shape != state.status.shape:
        raise ShapeError(
            f"`last_token` has the shape {last_token.shape}, the state's batch is {state.status.shape}."
        )
    return last_token, count("max_new_tokens", max_new_tokens)
