"""Small random models, written as Hugging Face folders and as GGUF files.

Settings and tensors have the names of Hugging Face; `write_gguf` converts them as llama.cpp's converter does
(convert_hf_to_gguf.py): other names, the rows of `q_proj` and `k_proj` of Llama and Mistral permuted by
`LlamaModel.permute` (two halves of a head become neighbouring pairs), those of Qwen as they are, and the
rotary scaling of Llama 3 as the tensor `rope_freqs.weight`.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

VOCAB, HIDDEN, LAYERS, HEADS, KV_HEADS, INNER = 13, 32, 2, 4, 2, 64
TOKENS = ["<|end|>", "<|user|>", "a", "b", "c", "Ġ", "1", "2", "ab", "Ġab", "Ċ", "Ã", "©"]
MERGES = ["a b", "Ġ ab"]
CHAT_TEMPLATE = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}{{ bos_token }}"
_CONTROL, _NORMAL = 3, 1

_COMMON = {
    "vocab_size": VOCAB,
    "hidden_size": HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "num_key_value_heads": KV_HEADS,
    "intermediate_size": INNER,
    "hidden_act": "silu",
    "max_position_embeddings": 64,
    "eos_token_id": 0,
}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
YARN = {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
SETTINGS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "rms_norm_eps": 1e-4, "rope_theta": 500.0, "tie_word_embeddings": True},
    "llama3": {
        **{"model_type": "llama", "rms_norm_eps": 1e-5, "tie_word_embeddings": False},
        **{"rope_theta": 500.0, "rope_scaling": LLAMA3, "attention_bias": True},
    },
    "mistral": {
        **{"model_type": "mistral", "rms_norm_eps": 1e-5, "rope_theta": 10000.0},
        **{"tie_word_embeddings": False, "sliding_window": 4, "head_dim": 6},
    },
    "qwen2": {
        **{"model_type": "qwen2", "rms_norm_eps": 1e-6, "rope_theta": 1000.0, "tie_word_embeddings": True},
        **{"use_sliding_window": False, "sliding_window": 4, "rope_scaling": YARN},
    },
    "qwen3": {
        **{"model_type": "qwen3", "rms_norm_eps": 1e-6, "rope_theta": 1000.0, "tie_word_embeddings": False},
        **{"head_dim": 16, "attention_bias": False, "use_sliding_window": False},
    },
}
"""The entries of `config.json`, by kind; `_COMMON` comes on top."""


def settings_of(kind: str, **changes: Any) -> dict[str, Any]:
    """A complete `config.json`; a change to `...` leaves the entry out."""
    settings = _COMMON | SETTINGS[kind] | changes
    return {name: value for name, value in settings.items() if value is not ...}


def head_dim(settings: Mapping[str, Any]) -> int:
    return settings.get("head_dim") or settings["hidden_size"] // settings["num_attention_heads"]


def random_weights(settings: Mapping[str, Any], seed: int = 0) -> dict[str, np.ndarray]:
    """Tensors by their names in a folder; matrices are `[outputs, inputs]`."""
    hidden, inner, dim = settings["hidden_size"], settings["intermediate_size"], head_dim(settings)
    q, kv = settings["num_attention_heads"] * dim, settings["num_key_value_heads"] * dim
    kind = settings["model_type"]
    shapes = {"model.embed_tokens.weight": (settings["vocab_size"], hidden), "model.norm.weight": (hidden,)}
    if not settings["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (settings["vocab_size"], hidden)
    for layer in range(settings["num_hidden_layers"]):
        at = f"model.layers.{layer}"
        shapes |= {
            f"{at}.input_layernorm.weight": (hidden,),
            f"{at}.self_attn.q_proj.weight": (q, hidden),
            f"{at}.self_attn.k_proj.weight": (kv, hidden),
            f"{at}.self_attn.v_proj.weight": (kv, hidden),
            f"{at}.self_attn.o_proj.weight": (hidden, q),
            f"{at}.post_attention_layernorm.weight": (hidden,),
            f"{at}.mlp.gate_proj.weight": (inner, hidden),
            f"{at}.mlp.up_proj.weight": (inner, hidden),
            f"{at}.mlp.down_proj.weight": (hidden, inner),
        }
        if kind == "qwen2" or settings.get("attention_bias"):
            biases = {"q_proj": q, "k_proj": kv, "v_proj": kv} | (
                {} if kind == "qwen2" else {"o_proj": hidden}
            )
            shapes |= {f"{at}.self_attn.{name}.bias": (size,) for name, size in biases.items()}
        if kind == "qwen3":
            shapes |= {f"{at}.self_attn.{name}.weight": (dim,) for name in ("q_norm", "k_norm")}
    generator = np.random.default_rng(seed)
    scale = {name: 1.0 if name.endswith("norm.weight") else 0.0 for name in shapes}
    return {
        name: (scale[name] + 0.3 * generator.normal(size=shape)).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_folder(
    folder: Path, settings: Mapping[str, Any], weights: Mapping[str, np.ndarray], shards: int = 3
) -> Path:
    """Write a folder with the weights in several shards, or in one file for `shards=1`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", settings)
    write_tokenizer(folder)
    if shards == 1:
        save_file(dict(weights), folder / "model.safetensors", metadata={"format": "pt"})
        return folder
    weight_map = {}
    for shard in range(shards):
        file = f"model-{shard + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: weights[name] for name in sorted(weights)[shard::shards]}
        save_file(part, folder / file, metadata={"format": "pt"})
        weight_map |= dict.fromkeys(part, file)
    write_json(folder / "model.safetensors.index.json", {"metadata": {}, "weight_map": weight_map})
    return folder


def write_chat_model(folder: Path) -> str:
    """Write a random Llama of one layer, with a chat template; returns the folder's name."""
    settings = settings_of("llama", num_hidden_layers=1)
    write_folder(folder, settings, random_weights(settings), shards=1)
    (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE)
    return str(folder)


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value))


def write_tokenizer(folder: Path) -> None:
    """The tokenizer of `TOKENS` and `MERGES`, as a `tokenizer.json`."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    pairs = [tuple(merge.split()) for merge in MERGES]
    tokenizer = Tokenizer(models.BPE({token: index for index, token in enumerate(TOKENS)}, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in TOKENS[:2]])
    tokenizer.save(str(folder / "tokenizer.json"))


_GGUF_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_tensors(settings: Mapping[str, Any], weights: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The tensors as a GGUF file names and orders them."""
    out = {}
    for name, values in weights.items():
        stem, _, end = name.rpartition(".")
        layer = ""
        if stem.startswith("model.layers."):
            _, _, number, stem = stem.split(".", 3)
            layer = f"blk.{number}."
        permuted = {"self_attn.q_proj": "num_attention_heads", "self_attn.k_proj": "num_key_value_heads"}
        if stem in permuted and settings["model_type"] in ("llama", "mistral"):
            heads = settings[permuted[stem]]
            halves = values.reshape(heads, 2, values.shape[0] // heads // 2, *values.shape[1:])
            values = halves.swapaxes(1, 2).reshape(values.shape)
        out[f"{layer}{_GGUF_NAMES[stem]}.{end}"] = values
    scaling = settings.get("rope_scaling") or {}
    if scaling.get("rope_type") == "llama3":
        out["rope_freqs.weight"] = llama3_divisors(scaling, settings["rope_theta"], head_dim(settings))
    return out


def llama3_divisors(scaling: Mapping[str, Any], theta: float, dim: int) -> np.ndarray:
    """One frequency at a time, by its wavelength, as Meta describes it."""
    low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
    trained, factor = scaling["original_max_position_embeddings"], scaling["factor"]
    divisors = []
    for i in range(0, dim, 2):
        wavelength = 2 * math.pi * theta ** (i / dim)
        if wavelength < trained / high:
            divisors.append(1.0)
        elif wavelength > trained / low:
            divisors.append(factor)
        else:
            smooth = (trained / wavelength - low) / (high - low)
            divisors.append(1 / ((1 - smooth) / factor + smooth))
    return np.array(divisors, np.float32)


def gguf_fields(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The metadata of a GGUF file; its values' types decide how they are written."""
    kind = {"mistral": "llama"}.get(settings["model_type"], settings["model_type"])
    numbers = {
        "context_length": settings["max_position_embeddings"],
        "block_count": settings["num_hidden_layers"],
        "embedding_length": settings["hidden_size"],
        "feed_forward_length": settings["intermediate_size"],
        "attention.head_count": settings["num_attention_heads"],
        "attention.head_count_kv": settings["num_key_value_heads"],
        "attention.layer_norm_rms_epsilon": float(settings["rms_norm_eps"]),
        "attention.key_length": head_dim(settings),
        "attention.value_length": head_dim(settings),
        "rope.dimension_count": head_dim(settings),
        "rope.freq_base": float(settings["rope_theta"]),
    }
    if settings["model_type"] == "mistral" and settings["sliding_window"]:
        numbers["attention.sliding_window"] = settings["sliding_window"]
    scaling = settings.get("rope_scaling") or {}
    if (scaling_kind := scaling.get("type")) is not None:
        numbers["rope.scaling.type"] = scaling_kind
        numbers["rope.scaling.factor"] = float(scaling["factor"])
        if "original_max_position_embeddings" in scaling:
            numbers["rope.scaling.original_context_length"] = scaling["original_max_position_embeddings"]
    return {f"{kind}.{name}": value for name, value in numbers.items()} | {
        "general.architecture": kind,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.ggml.tokens": TOKENS,
        "tokenizer.ggml.token_type": [_CONTROL] * 2 + [_NORMAL] * (len(TOKENS) - 2),
        "tokenizer.ggml.merges": MERGES,
        "tokenizer.ggml.eos_token_id": 0,
    }


def write_gguf(
    path: Path,
    fields: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    quantized: Mapping[str, tuple[np.ndarray, Any]] | None = None,
) -> Path:
    """Write a GGUF file; `quantized` are raw bytes and their types, by tensor names."""
    import gguf

    writer = gguf.GGUFWriter(path, str(fields.get("general.architecture", "llama")))
    writers = {bool: writer.add_bool, int: writer.add_uint32, float: writer.add_float32}
    writers |= {str: writer.add_string, list: writer.add_array}
    for name, value in fields.items():
        if name != "general.architecture":
            writers[type(value)](name, value)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    for name, (raw, kind) in (quantized or {}).items():
        writer.add_tensor(name, raw, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
