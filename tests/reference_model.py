"""The decoder written again, plainly: NumPy in float64, one position at a time, without padding or a cache of
fixed size. Settings and weights are those of a Hugging Face folder.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from checkpoints import head_dim, llama3_divisors


def reference_logits(
    settings: Mapping[str, Any], weights: Mapping[str, np.ndarray], tokens: Sequence[int]
) -> np.ndarray:
    """The logits after each token, `float64[time, vocab]`."""
    w = {name.removeprefix("model."): values.astype(np.float64) for name, values in weights.items()}
    past: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in range(settings["num_hidden_layers"])]
    out = []
    for position, token in enumerate(tokens):
        x = w["embed_tokens.weight"][token]
        for layer, memory in enumerate(past):
            at = f"layers.{layer}."
            inside = {name.removeprefix(at): v for name, v in w.items() if name.startswith(at)}
            x = x + _attention(
                settings,
                inside,
                memory,
                position,
                layer,
                _norm(settings, x, inside["input_layernorm.weight"]),
            )
            x = x + _feed_forward(inside, _norm(settings, x, inside["post_attention_layernorm.weight"]))
        head = w["embed_tokens.weight" if settings["tie_word_embeddings"] else "lm_head.weight"]
        out.append(head @ _norm(settings, x, w["norm.weight"]))
    return np.array(out)


def _norm(settings, x, scale):
    return x / np.sqrt((x * x).mean() + settings["rms_norm_eps"]) * scale


def _feed_forward(w, x):
    gate = w["mlp.gate_proj.weight"] @ x
    return w["mlp.down_proj.weight"] @ (gate / (1 + np.exp(-gate)) * (w["mlp.up_proj.weight"] @ x))


def _attention(settings, w, memory, position, layer, x):
    heads, shared = settings["num_attention_heads"], settings["num_key_value_heads"]

    def project(name, count):
        y = w[f"self_attn.{name}_proj.weight"] @ x + w.get(f"self_attn.{name}_proj.bias", 0.0)
        return list(y.reshape(count, -1))

    queries, keys = project("q", heads), project("k", shared)
    if settings["model_type"] == "qwen3":
        queries = [_norm(settings, q, w["self_attn.q_norm.weight"]) for q in queries]
        keys = [_norm(settings, k, w["self_attn.k_norm.weight"]) for k in keys]
    turns, factor = _turns(settings)
    keys = [_turn(k, position * turns) * factor for k in keys]
    memory.append((np.array(keys), np.array(project("v", shared))))
    window = _window(settings, layer)
    mixed = []
    for head, query in enumerate(queries):
        query = _turn(query, position * turns) * factor
        seen = memory if window is None else memory[max(position + 1 - window, 0) :]
        at = head // (heads // shared)
        scores = np.exp([k[at] @ query / math.sqrt(len(query)) for k, _ in seen])
        mixed.append(sum(s * v[at] for s, (_, v) in zip(scores / scores.sum(), seen, strict=True)))
    return w["self_attn.o_proj.weight"] @ np.concatenate(mixed) + w.get("self_attn.o_proj.bias", 0.0)


def _turn(x, angles):
    """As complex numbers: component `i` is the real part, `i + head_dim / 2` the imaginary one."""
    half = len(x) // 2
    turned = (x[:half] + 1j * x[half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag])


def _window(settings, layer):
    if settings["model_type"] == "mistral":
        return settings["sliding_window"]
    if settings.get("use_sliding_window") and layer >= settings["max_window_layers"]:
        return settings["sliding_window"]
    return None


def _turns(settings):
    """Radians per position, and what cosine and sine are multiplied by."""
    dim, theta = head_dim(settings), settings["rope_theta"]
    turns = np.array([theta ** (-i / dim) for i in range(0, dim, 2)])
    scaling = settings.get("rope_scaling") or {}
    kind = scaling.get("rope_type", scaling.get("type"))
    if kind == "linear":
        return turns / scaling["factor"], 1.0
    if kind == "llama3":
        return turns / llama3_divisors(scaling, theta, dim), 1.0
    if kind == "yarn":
        return _yarn(scaling, theta, dim, turns), 0.1 * math.log(scaling["factor"]) + 1
    return turns, 1.0


def _yarn(scaling, theta, dim, turns):
    """Peng et al. 2023, section 3.2 and appendix: a ramp between the pairs that turn 32 times and once within
    the trained length."""
    trained, factor = scaling["original_max_position_embeddings"], scaling["factor"]

    def pair(rotations):
        return dim * math.log(trained / (2 * math.pi * rotations)) / (2 * math.log(theta))

    first, last = max(math.floor(pair(32)), 0), min(math.ceil(pair(1)), dim - 1)
    out = []
    for i, turn in enumerate(turns):
        stretched = 0.0 if i <= first else 1.0 if i >= last else (i - first) / (last - first)
        out.append(stretched * turn / factor + (1 - stretched) * turn)
    return np.array(out)
