"""`config.json` of a Hugging Face folder as a `LlamaConfig`.

Entries mean what they mean to transformers; all but the sizes of matrices have its defaults, those of version
5.24, where they are missing. What would change
the model and is not supported is a `ModelError` that names the entry.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from jaxgcd.errors import ModelError

from .config import LlamaConfig
from .rope import RopeScaling
from .rope_scaling import read_scaling
from .settings import Settings

KINDS = ("llama", "mistral", "qwen2", "qwen3")
"""What `model_type` may be. SmolLM2 is a "llama"."""

_POSITIONS = {"llama": 2048, "mistral": 131072, "qwen2": 32768, "qwen3": 32768}
_KV_HEADS = {"mistral": 8, "qwen2": 32, "qwen3": 32}  # null, and missing in a "llama", is one for each head
_EOS_ID = {"llama": 2, "mistral": 2}


def read_config(values: Mapping[str, Any]) -> LlamaConfig:
    """The decoder that the entries of a `config.json` describe."""
    settings = Settings(values)
    kind = settings.text("model_type")
    if kind not in KINDS:
        raise ModelError(f"`model_type` {kind!r} is not supported; these are: {', '.join(KINDS)}")
    _refuse_the_rest(settings)
    hidden, heads = settings.integer("hidden_size"), settings.integer("num_attention_heads")
    layers = settings.integer("num_hidden_layers")
    head_dim = settings.integer("head_dim", 128 if kind == "qwen3" else hidden // max(heads, 1))
    trained = settings.integer("max_position_embeddings", _POSITIONS[kind])
    kv_heads = heads if "num_key_value_heads" in values else _KV_HEADS.get(kind, heads)
    theta, scaling = _rope(settings, head_dim, trained)
    window, sliding = _window(settings, kind, layers)
    biased = kind != "mistral" and settings.flag("attention_bias", False)
    return LlamaConfig(
        vocab_size=settings.integer("vocab_size"),
        hidden_size=hidden,
        num_layers=layers,
        num_heads=heads,
        num_kv_heads=settings.integer("num_key_value_heads", kv_heads),
        head_dim=head_dim,
        intermediate_size=settings.integer("intermediate_size"),
        rope_theta=theta,
        rope_scaling=scaling,
        rms_eps=settings.number("rms_norm_eps", 1e-6),
        tied_embeddings=settings.flag("tie_word_embeddings", False),
        qkv_bias=kind == "qwen2" or biased,
        output_bias=kind != "qwen2" and biased,
        qk_norm=kind == "qwen3",
        sliding_window=window,
        sliding_layers=sliding,
        max_length=trained,
    )


def default_eos_id(values: Mapping[str, Any]) -> int | None:
    """The token that ends a text where neither file of the folder says it; None if there is none."""
    return None if "eos_token_id" in values else _EOS_ID.get(values["model_type"])


def _refuse_the_rest(settings: Settings) -> None:
    settings.refuse("partial_rotary_factor", 1.0, "rotary positions that cover only a part of the head")
    settings.refuse("mlp_bias", False, "a bias in the feed-forward block")
    if settings.text("hidden_act", "silu") not in ("silu", "swish"):
        raise ModelError(f"`hidden_act` {settings.get('hidden_act')!r} is not supported; 'silu' is")
    if (quantized := settings.get("quantization_config")) is not None:
        method = quantized.get("quant_method") if isinstance(quantized, dict) else quantized
        raise ModelError(f"weights quantised by {method!r} are not supported; GGUF files are")


def _rope(settings: Settings, head_dim: int, trained: int | None) -> tuple[float, RopeScaling]:
    """Base and scaling: `rope_parameters` in recent files, `rope_theta` and `rope_scaling` in older ones."""
    entry = settings.get("rope_parameters") or settings.get("rope_scaling") or {}
    if not isinstance(entry, dict):
        raise ModelError(f"`rope_parameters` or `rope_scaling` must be an object, not {entry!r}")
    rope = Settings(entry)
    theta = rope.number("rope_theta", None) or settings.number("rope_theta", 10000.0)
    return theta, read_scaling(rope, head_dim, theta, trained)


def _window(settings: Settings, kind: str, layers: int) -> tuple[int | None, Sequence[int]]:
    """The sliding window, and the layers that have it: all of Mistral's, the last ones of Qwen's."""
    if kind == "llama":
        return None, ()
    missing = "sliding_window" not in settings.values
    window = 4096 if missing else settings.integer("sliding_window", None)
    if kind == "mistral":
        sliding, every = range(layers), True
    else:
        sliding, every = range(settings.integer("max_window_layers", 28), layers), False
        window = window if settings.flag("use_sliding_window", False) else None
    if settings.get("layer_types") is not None:
        listed = _listed(settings.get("layer_types"), layers)
        if (window is None and listed) or (every and window is not None and len(listed) < layers):
            raise ModelError("`layer_types` and `sliding_window` contradict each other")
        sliding = listed
    if window is None or not len(sliding):
        return None, ()
    return window, () if len(sliding) == layers else sliding


def _listed(types: Any, layers: int) -> tuple[int, ...]:
    """The layers that `layer_types` lists as sliding."""
    if not isinstance(types, list) or len(types) != layers:
        raise ModelError(f"`layer_types` must list {layers} types, one for each layer")
    if others := set(map(str, types)) - {"full_attention", "sliding_attention"}:
        raise ModelError(f"`layer_types` {min(others)!r} is not supported")
    return tuple(layer for layer, kind in enumerate(types) if kind == "sliding_attention")
