"""The distribution that a token is drawn from: bias, temperature, top-k, top-p and min-p.

Logits here are already masked: what the grammar forbids is at minus infinity before anything else happens, so
that `top_k` and `top_p` count allowed tokens only. All settings are arrays, for all rows or one for each, so
that another value is not another trace; a setting that is None costs nothing.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TypedDict

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.typing import ArrayLike
from jaxtyping import Array, Bool, Float, Int32

from jaxgcd.arguments import floats, integers, per_row
from jaxgcd.errors import SamplingError, ShapeError


class DrawOptions(TypedDict, total=False):
    """The keyword arguments that shape a draw: `sample`, `generate` and `stream` take all of them.

    They apply in this order, after the grammar's mask. Each is one number or an array with one for each row
    (`[*batch]`), may be traced, and is off by default.
    """

    logit_bias: ArrayLike | None
    """Added to the logits, `[size]` or `[*batch, size]`; minus infinity bans a token. A token that the
    grammar forbids stays forbidden."""
    temperature: ArrayLike
    """Divides the logits; 1 by default, and 0 (or less) takes the likeliest token (of
    equals, the lowest id)."""
    top_k: ArrayLike | None
    """Keeps the `top_k` likeliest tokens; of equals, the lower ids. 0 (or less) keeps all."""
    top_p: ArrayLike | None
    """Keeps the fewest likeliest tokens whose share of what `top_k` kept is at least `top_p`: 0 keeps one
    token, 1 keeps all. (Nucleus sampling, Holtzman et al. 2020.)"""
    min_p: ArrayLike | None
    """Keeps tokens at least `min_p` times as likely as the likeliest; 0 keeps all. (Nguyen et al. 2024.)"""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["temperature", "top_k", "top_p", "min_p", "logit_bias"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Settings:
    """`DrawOptions` as arrays; None is a setting that is off."""

    temperature: Float[Array, "*batch"]
    top_k: Int32[Array, "*batch"] | None
    top_p: Float[Array, "*batch"] | None
    min_p: Float[Array, "*batch"] | None
    logit_bias: Float[Array, "*batch size"] | None


def make_settings(
    batch: tuple[int, ...],
    size: int,
    *,
    temperature: ArrayLike = 1.0,
    top_k: ArrayLike | None = None,
    top_p: ArrayLike | None = None,
    min_p: ArrayLike | None = None,
    logit_bias: ArrayLike | None = None,
) -> Settings:
    """Checks the options of a draw and makes arrays of them.

    Raises:
        ShapeError: one is neither a single number nor one for each row; `logit_bias` is not as wide as the
            logits, or `top_k` is no integer.
        SamplingError: one is out of range. Numbers on the device are not looked at.
    """
    bias = None if logit_bias is None else floats("logit_bias", logit_bias)
    if bias is not None and bias.shape not in ((size,), (*batch, size)):
        raise ShapeError(
            f"`logit_bias` has the shape {bias.shape}; give {(size,)}, or "
            f"{(*batch, size)} for one in each row."
        )
    return Settings(
        _in_range("temperature", temperature, batch, -math.inf, math.inf),
        None if top_k is None else per_row("top_k", integers("top_k", top_k), batch),
        None if top_p is None else _in_range("top_p", top_p, batch, 0, 1),
        None if min_p is None else _in_range("min_p", min_p, batch, 0, 1),
        bias,
    )


def _in_range(name: str, value: ArrayLike, batch: tuple[int, ...], low: float, high: float) -> Array:
    array = per_row(name, floats(name, value), batch)
    # A value on the device would have to be waited for, and may be traced.
    if not any(isinstance(leaf, jax.Array) for leaf in jax.tree.leaves(value)):
        if not np.all((np.asarray(value) >= low) & (np.asarray(value) <= high)):
            raise SamplingError(f"`{name}={value!r}` must be a number from {low} to {high}.")
    return array


def biased(settings: Settings, masked: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
    """Masked logits with the bias: minus infinity where a token can never be drawn, otherwise finite."""
    bias = settings.logit_bias
    scores = masked if bias is None else masked + bias.astype(masked.dtype)
    # A logit that is not a number, or both banned and wished for, compares as false: never drawn.
    return jnp.where(scores > -jnp.inf, jnp.minimum(scores, jnp.finfo(scores.dtype).max), -jnp.inf)


def log_weights(settings: Settings, scores: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
    """What a row draws from where its temperature is above 0.

    Args:
        settings: the options of the draw.
        scores: masked and biased logits.

    Returns:
        Unnormalised log-probabilities; the largest is 0, and minus infinity is never drawn.
    """
    temperature = settings.temperature[..., None].astype(scores.dtype)
    temperature = jnp.where(temperature > 0, temperature, jnp.ones_like(temperature))
    top = scores.max(axis=-1, keepdims=True)
    possible = scores > -jnp.inf
    # Relative to the largest, so that a tiny temperature cannot push all of them to an infinity; and
    # minus infinity, divided by an infinite temperature, would not be a number.
    weights = jnp.where(possible, (scores - jnp.where(top > -jnp.inf, top, 0.0)) / temperature, -jnp.inf)
    if settings.top_k is not None:
        weights = jnp.where(_likeliest(weights, settings.top_k[..., None]), weights, -jnp.inf)
    if settings.top_p is not None:
        top_p = settings.top_p[..., None].astype(weights.dtype)
        weights = jnp.where(_nucleus(weights, top_p), weights, -jnp.inf)
    if settings.min_p is not None:
        least = jnp.log(settings.min_p)[..., None].astype(weights.dtype)
        weights = jnp.where(weights >= least, weights, -jnp.inf)
    return weights


def _likeliest(
    weights: Float[Array, "*batch size"], top_k: Int32[Array, "*#batch 1"]
) -> Bool[Array, "*batch size"]:
    """The `top_k` largest log-weights; of equals, the lower ids."""
    number = jnp.where(top_k > 0, top_k, weights.shape[-1])
    last = _last(weights, lambda inside: inside.sum(axis=-1, keepdims=True, dtype=jnp.int32) >= number)
    above = weights > last
    return _with_equals(weights, last, number - above.sum(axis=-1, keepdims=True, dtype=jnp.int32))


def _nucleus(
    weights: Float[Array, "*batch size"], top_p: Float[Array, "*#batch 1"]
) -> Bool[Array, "*batch size"]:
    """The fewest largest log-weights whose share is at least `top_p`; of equals, the lower ids."""
    shares = jnp.exp(weights)
    wanted = top_p * shares.sum(axis=-1, keepdims=True)

    def share(inside: Bool[Array, "*batch size"]) -> Float[Array, "*batch 1"]:
        return jnp.where(inside, shares, 0).sum(axis=-1, keepdims=True)

    last = _last(weights, lambda inside: share(inside) >= wanted)
    missing = (wanted - share(weights > last)) / jnp.maximum(jnp.exp(last), jnp.finfo(last.dtype).tiny)
    room = jnp.clip(jnp.ceil(missing), 1, weights.shape[-1]).astype(jnp.int32)
    # Shares can add up to all before the last token, by rounding; 1 means all tokens nevertheless.
    return _with_equals(weights, last, room) | (top_p >= 1)


def _last(
    weights: Float[Array, "*batch size"],
    enough: Callable[[Bool[Array, "*batch size"]], Bool[Array, "*batch 1"]],
) -> Float[Array, "*batch 1"]:
    """The largest log-weight such that it and all above it are enough; the smallest one if none is.

    Found by halving an interval of bit patterns, which are in the order of the numbers where those have one
    sign: 31 passes over a row (63 in float64) find it exactly, and take a fraction of the time of a sort.
    """
    unsigned = jnp.uint32 if weights.dtype == jnp.float32 else jnp.uint64
    rank = lax.bitcast_convert_type(jnp.abs(weights), unsigned)  # 0 for the likeliest

    def halved(_: int, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = low + (high - low) // 2
        found = enough(rank <= middle)
        return jnp.where(found, low, middle + 1), jnp.where(found, middle, high)

    bounds = rank.min(axis=-1, keepdims=True), rank.max(axis=-1, keepdims=True)
    bits = jnp.finfo(weights.dtype).bits - 1
    return -lax.bitcast_convert_type(lax.fori_loop(0, bits, halved, bounds)[1], weights.dtype)


def _with_equals(
    weights: Float[Array, "*batch size"], last: Float[Array, "*batch 1"], room: Int32[Array, "*batch 1"]
) -> Bool[Array, "*batch size"]:
    """All log-weights above the last one, and `room` that are equal to it, of the lower ids."""
    equal = weights == last
    return (weights > last) | (equal & (jnp.cumsum(equal, axis=-1, dtype=jnp.int32) <= room))
