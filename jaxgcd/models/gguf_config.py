"""The metadata of a GGUF file as a `LlamaConfig`.

llama.cpp's converter writes Llama, SmolLM2 and Mistral as architecture `llama`. It stores Llama 3's rotary
scaling as a tensor of divisors, `rope_freqs.weight`, and leaves out Mistral's sliding window; a window
is honoured where a file has one.
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from jaxgcd.errors import ModelError

from .config import LlamaConfig
from .rope import NO_SCALING, RopeScaling, check_rope
from .rope_scaling import linear_scaling, yarn_scaling
from .settings import Settings

ARCHITECTURES = ("llama", "qwen2", "qwen3")
"""What `general.architecture` may be."""


def read_config(
    fields: Mapping[str, Any], names: Collection[str], vocab_size: int, divisors: np.ndarray | None
) -> LlamaConfig:
    """The decoder that a file describes, with tensors of these names.

    `vocab_size` is how many rows the embedding has; `divisors` are the values of `rope_freqs.weight`.
    """
    architecture = Settings(fields).text("general.architecture")
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ModelError(f"architecture {architecture!r} is not supported; these are: {known}")
    settings = Settings(fields, prefix=f"{architecture}.")
    hidden, heads = settings.integer("embedding_length"), settings.integer("attention.head_count")
    head_dim = settings.integer("attention.key_length", hidden // max(heads, 1))
    _refuse_the_rest(settings, head_dim)
    theta = _as_written(settings.number("rope.freq_base", 10000.0))
    return LlamaConfig(
        vocab_size=vocab_size,
        hidden_size=hidden,
        num_layers=settings.integer("block_count"),
        num_heads=heads,
        num_kv_heads=settings.integer("attention.head_count_kv", heads),
        head_dim=head_dim,
        intermediate_size=settings.integer("feed_forward_length"),
        rope_theta=theta,
        rope_scaling=_scaling(settings, head_dim, theta, divisors),
        rms_eps=_as_written(settings.number("attention.layer_norm_rms_epsilon")),
        tied_embeddings="output.weight" not in names,
        qkv_bias="blk.0.attn_q.bias" in names,
        output_bias="blk.0.attn_output.bias" in names,
        qk_norm=architecture == "qwen3",
        sliding_window=settings.integer("attention.sliding_window", 0) or None,
        max_length=settings.integer("context_length", None),
    )


def _as_written(value: float) -> float:
    """The shortest decimal number that is stored as this float32: 1e-05, not 9.999999747378752e-06."""
    return float(str(np.float32(value)))


def _refuse_the_rest(settings: Settings, head_dim: int) -> None:
    partial = "rotary positions that cover only a part of the head"
    settings.refuse("rope.dimension_count", head_dim, partial)
    settings.refuse("attention.value_length", head_dim, "values of another size than keys")
    settings.refuse("expert_count", 0, "a mixture of experts")
    settings.refuse("attention.sliding_window_pattern", None, "a sliding window in some layers only")
    settings.refuse("rope.scale_linear", 1.0, "the old way to write linear rotary scaling")
    settings.refuse("rope.scaling.attn_factor", 1.0, "another attention factor than YaRN's own")
    settings.refuse("rope.scaling.yarn_attn_factor", 1.0, "another attention factor than YaRN's own")
    settings.refuse("rope.scaling.yarn_ext_factor", 1.0, "a YaRN that is switched on in part")
    settings.refuse("rope.scaling.yarn_log_multiplier", 0.0, "another attention factor than YaRN's own")


def _scaling(settings: Settings, head_dim: int, theta: float, divisors: np.ndarray | None) -> RopeScaling:
    check_rope(head_dim, theta)
    kind = settings.text("rope.scaling.type", "none")
    if divisors is not None and kind == "none":
        return RopeScaling(tuple(np.asarray(divisors, np.float64).ravel().tolist()))
    if divisors is not None or kind not in ("none", "linear", "yarn"):
        raise ModelError(f"rotary scaling {kind!r} is not supported; 'linear', 'yarn' or `rope_freqs` is")
    if kind == "none":
        return NO_SCALING
    factor = settings.number("rope.scaling.factor")
    if kind == "linear":
        return linear_scaling(head_dim, factor)
    return yarn_scaling(
        head_dim,
        theta,
        factor=factor,
        trained=settings.integer("rope.scaling.original_context_length"),
        fast=settings.number("rope.scaling.yarn_beta_fast", 32.0),
        slow=settings.number("rope.scaling.yarn_beta_slow", 1.0),
    )
