"""Ways to stretch rotary positions to texts longer than those that the model was trained on.

Every scaling that is supported comes down to numbers known beforehand: what each frequency is divided by, and
what cosine and sine are multiplied by. "Dynamic" scaling is not among them: its frequencies change with the
length of the text, so that the keys in the cache would have to change, too.
"""

import math
import reprlib

import numpy as np

from jaxgcd.errors import ModelError

from .rope import NO_SCALING, RopeScaling, check_rope, frequencies
from .settings import Settings

_LEAST, _MOST = 1e-6, 1e9
"""Factors between these stay numbers in float32, whatever they are multiplied with."""

_SCALINGS = {
    "default": {"factor", "original_max_position_embeddings"},
    "linear": {"factor", "original_max_position_embeddings"},
    "llama3": {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"},
    "yarn": {
        *("factor", "original_max_position_embeddings", "attention_factor"),
        *("beta_fast", "beta_slow", "truncate"),
    },
}


def read_scaling(rope: Settings, head_dim: int, theta: float, trained: int | None) -> RopeScaling:
    """The scaling of a `rope_parameters` or `rope_scaling` entry.

    `trained` is how many positions the model was trained on, where the entry does not say it.
    """
    kind = rope.text("rope_type", None) or rope.text("type", "default")
    if kind not in _SCALINGS:
        raise ModelError(f"rotary scaling {kind!r} is not supported; these are: {', '.join(_SCALINGS)}")
    check_rope(head_dim, theta)
    rope.refuse("partial_rotary_factor", 1.0, "rotary positions that cover only a part of the head")
    known = {"rope_type", "type", "rope_theta", "partial_rotary_factor"} | _SCALINGS[kind]
    if unknown := sorted(name for name in rope.values if name not in known and rope.get(name) is not None):
        raise ModelError(f"rotary scaling {kind!r}: the option `{unknown[0]}` is not supported")
    if kind == "default":
        return NO_SCALING
    factor = rope.number("factor")
    if kind == "linear":
        return linear_scaling(head_dim, factor)
    trained = rope.integer("original_max_position_embeddings", trained)
    if trained is None:
        raise ModelError(f"rotary scaling {kind!r} needs a positive `original_max_position_embeddings`")
    if kind == "llama3":
        low, high = rope.number("low_freq_factor"), rope.number("high_freq_factor")
        return llama3_scaling(head_dim, theta, factor=factor, low=low, high=high, trained=trained)
    return yarn_scaling(
        head_dim,
        theta,
        factor=factor,
        trained=trained,
        fast=rope.number("beta_fast", 32.0),
        slow=rope.number("beta_slow", 1.0),
        attention_factor=rope.number("attention_factor", None),
        truncate=rope.flag("truncate", True),
    )


def linear_scaling(head_dim: int, factor: float) -> RopeScaling:
    """Position interpolation (Chen et al. 2023): all positions divided by one factor."""
    return RopeScaling((_positive("factor", factor),) * (head_dim // 2))


def llama3_scaling(
    head_dim: int, theta: float, *, factor: float, low: float, high: float, trained: int
) -> RopeScaling:
    """Llama 3.1: waves shorter than `trained / high` positions stay, those longer than `trained / low` are
    stretched by `factor`, and those in between by a mixture of the two.

    Source: `apply_scaling` in Meta's llama-models.
    """
    if not 0 < low < high:
        raise ModelError(f"rotary scaling: `low_freq_factor` ({low}) must be in 0 to {high}, both exclusive")
    waves_in_trained = _positions(trained) * frequencies(head_dim, theta) / (2 * math.pi)
    kept = np.clip((waves_in_trained - low) / (high - low), 0, 1)
    return RopeScaling(_mixture(kept, _positive("factor", factor)))


def yarn_scaling(
    head_dim: int,
    theta: float,
    *,
    factor: float,
    trained: int,
    fast: float = 32.0,
    slow: float = 1.0,
    attention_factor: float | None = None,
    truncate: bool = True,
) -> RopeScaling:
    """YaRN (Peng et al. 2023): pairs that turn more than `fast` times within `trained` positions stay, those
    that turn fewer than `slow` times are stretched by `factor`, with a ramp over the pairs in between.

    `attention_factor` is by default the paper's `0.1 ln(factor) + 1`. With `truncate` the ramp's ends are
    whole pairs.
    """
    _positive("factor", factor)
    if not _LEAST <= slow < fast <= _MOST:
        raise ModelError(f"yarn: `beta_slow` ({slow}) must be less than `beta_fast` ({fast}), both positive")
    trained = _positions(trained)
    ends = [
        head_dim * math.log(trained / (turns * 2 * math.pi)) / (2 * math.log(theta)) for turns in (fast, slow)
    ]
    begin, end = (math.floor(ends[0]), math.ceil(ends[1])) if truncate else ends
    begin, end = max(begin, 0), min(end, head_dim - 1)
    ramp = np.clip((np.arange(head_dim // 2) - begin) / max(end - begin, 0.001), 0, 1)
    if attention_factor is None:
        attention_factor = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    return RopeScaling(_mixture(1 - ramp, factor), _positive("attention_factor", attention_factor))


def _mixture(kept: np.ndarray, factor: float) -> tuple[float, ...]:
    """Divisors of frequencies of which a share `kept` stays and the rest is divided by `factor`."""
    return tuple((1 / (kept + (1 - kept) / factor)).tolist())


def _positive(name: str, value: float) -> float:
    if not _LEAST <= value <= _MOST:
        raise ModelError(f"rotary scaling: `{name}` must be positive, {_LEAST} to {_MOST}, not {value}")
    return value


def _positions(trained: int) -> int:
    if not 1 <= trained < 2**31:
        raise ModelError(
            "rotary scaling needs a positive `original_max_position_embeddings` below 2**31, not "
            f"{reprlib.repr(trained)}"
        )
    return trained
