"""What the decoder's parameters are called in Hugging Face folders and in GGUF files."""

Path = tuple[str | int, ...]
"""The attribute path of a parameter inside `Llama`, e.g. `("layers", 0, "attention", "query", "kernel")`."""

_OUTSIDE = {
    "embedding": ("model.embed_tokens", "token_embd"),
    "norm": ("model.norm", "output_norm"),
    "head": ("lm_head", "output"),
}
_INSIDE_A_LAYER = {
    ("attention_norm",): ("input_layernorm", "attn_norm"),
    ("attention", "query"): ("self_attn.q_proj", "attn_q"),
    ("attention", "key"): ("self_attn.k_proj", "attn_k"),
    ("attention", "value"): ("self_attn.v_proj", "attn_v"),
    ("attention", "output"): ("self_attn.o_proj", "attn_output"),
    ("attention", "query_norm"): ("self_attn.q_norm", "attn_q_norm"),
    ("attention", "key_norm"): ("self_attn.k_norm", "attn_k_norm"),
    ("mlp_norm",): ("post_attention_layernorm", "ffn_norm"),
    ("mlp", "gate"): ("mlp.gate_proj", "ffn_gate"),
    ("mlp", "up"): ("mlp.up_proj", "ffn_up"),
    ("mlp", "down"): ("mlp.down_proj", "ffn_down"),
}


def folder_name(path: Path) -> str:
    """The tensor's name in a Hugging Face folder.

    >>> folder_name(("layers", 0, "attention", "query", "kernel"))
    'model.layers.0.self_attn.q_proj.weight'
    """
    return _name(path, 0, "model.layers")


def gguf_name(path: Path) -> str:
    """The tensor's name in a GGUF file.

    >>> gguf_name(("layers", 0, "attention", "query", "bias"))
    'blk.0.attn_q.bias'
    """
    return _name(path, 1, "blk")


def _name(path: Path, column: int, layers: str) -> str:
    kind = "bias" if path[-1] == "bias" else "weight"
    if path[0] != "layers":
        return f"{_OUTSIDE[str(path[0])][column]}.{kind}"
    inside = tuple(str(part) for part in path[2:-1])
    return f"{layers}.{path[1]}.{_INSIDE_A_LAYER[inside][column]}.{kind}"
