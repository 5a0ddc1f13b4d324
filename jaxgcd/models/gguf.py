"""Llama-family models from GGUF files: metadata, weights, tokenizer, chat template.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Quantised tensors are
dequantised while loading, by the `gguf` package. Limits: `general.architecture` is `llama`, the
rotary positions are not scaled and cover the whole head; anything else is a `ModelError`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

from .chat import ChatTemplate
from .config import LlamaConfig
from .llama import Llama
from .tokenizer import byte_level_tokenizer
from .weights import Path, build

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NAMES = {
    ("embedding", "embedding"): "token_embd.weight",
    ("norm", "scale"): "output_norm.weight",
    ("head", "kernel"): "output.weight",
    ("attention_norm", "scale"): "attn_norm.weight",
    ("attention", "query", "kernel"): "attn_q.weight",
    ("attention", "key", "kernel"): "attn_k.weight",
    ("attention", "value", "kernel"): "attn_v.weight",
    ("attention", "output", "kernel"): "attn_output.weight",
    ("mlp_norm", "scale"): "ffn_norm.weight",
    ("mlp", "gate", "kernel"): "ffn_gate.weight",
    ("mlp", "up", "kernel"): "ffn_up.weight",
    ("mlp", "down", "kernel"): "ffn_down.weight",
}


@dataclass(frozen=True)
class LoadedModel:
    """What a GGUF file holds.

    `chat_template` is None where the file has none; `eos_ids` are the tokens that end a text or a turn.
    """

    model: Llama
    config: LlamaConfig
    tokenizer: "Tokenizer"
    chat_template: ChatTemplate | None
    eos_ids: tuple[int, ...]


def load_gguf(
    path: str | PathLike[str], *, dtype: DTypeLike = jnp.float32, progress: bool = True
) -> LoadedModel:
    """Load the model, its tokenizer and its chat template from a GGUF file.

    Raises `ModelError`, naming the file, if it is missing, damaged or of a kind that is not supported.
    """
    path = FilePath(path)
    fields, tensors = _open(path)
    try:
        config = _config(fields, tensors)
        model = build(config, dtype, _reader(tensors, config), progress=progress)
        if tensors:
            raise ModelError(f"tensors that this decoder does not use: {', '.join(sorted(tensors)[:5])}")
        return LoadedModel(
            model=model,
            config=config,
            tokenizer=_tokenizer(fields),
            chat_template=_chat_template(fields),
            eos_ids=_eos_ids(fields),
        )
    except KeyError as error:
        raise ModelError(f"{fspath(path)}: no entry {error.args[0]!r} in this GGUF file") from error
    except ModelError as error:
        raise ModelError(f"{fspath(path)}: {error}") from error


def _open(path: FilePath) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata as plain Python values, and tensors by name."""
    gguf = require("gguf", "models")
    if not path.is_file():
        raise ModelError(f"{fspath(path)}: no such model file")
    try:
        reader = gguf.GGUFReader(path)
        fields = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise ModelError(f"{fspath(path)}: not a complete GGUF file ({error})") from error
    return fields, {tensor.name: tensor for tensor in reader.tensors}


def _config(fields: Mapping[str, Any], tensors: Mapping[str, Any]) -> LlamaConfig:
    architecture = fields["general.architecture"]
    if architecture != "llama":
        raise ModelError(f"architecture {architecture!r} is not supported; 'llama' is")
    hidden, heads = fields["llama.embedding_length"], fields["llama.attention.head_count"]
    head_dim = fields.get("llama.attention.key_length", hidden // heads)
    if fields.get("llama.rope.dimension_count", head_dim) != head_dim:
        raise ModelError("rotary positions that cover only a part of the head are not supported")
    if fields.get("llama.rope.scaling.type", "none") != "none":
        raise ModelError(f"rotary scaling {fields['llama.rope.scaling.type']!r} is not supported")
    return LlamaConfig(
        vocab_size=int(tensors["token_embd.weight"].shape[1]),
        hidden_size=hidden,
        num_layers=fields["llama.block_count"],
        num_heads=heads,
        num_kv_heads=fields.get("llama.attention.head_count_kv", heads),
        head_dim=head_dim,
        intermediate_size=fields["llama.feed_forward_length"],
        rope_theta=fields.get("llama.rope.freq_base", 10000.0),
        rms_eps=fields["llama.attention.layer_norm_rms_epsilon"],
        tied_embeddings="output.weight" not in tensors,
    )


def _reader(tensors: dict[str, Any], config: LlamaConfig):
    """A function from a parameter's path to its values; takes each tensor out of `tensors`."""

    def read(path: Path) -> np.ndarray:
        values = _values(tensors.pop(_tensor_name(path)))
        if path[-2:] == ("query", "kernel"):
            values = _halves(values, config.num_heads)
        elif path[-2:] == ("key", "kernel"):
            values = _halves(values, config.num_kv_heads)
        return values.T if path[-1] == "kernel" else values

    return read


def _tensor_name(path: Path) -> str:
    if path[0] == "layers":
        return f"blk.{path[1]}.{_NAMES[path[2:]]}"
    return _NAMES[path]


def _values(tensor: Any) -> np.ndarray:
    """Dequantised values, `[outputs, inputs]` for matrices."""
    try:
        return require("gguf", "models").dequantize(tensor.data, tensor.tensor_type)
    except NotImplementedError as error:
        kind = tensor.tensor_type.name
        raise ModelError(f"tensor {tensor.name!r}: quantisation {kind} is not supported") from error


def _halves(values: np.ndarray, heads: int) -> np.ndarray:
    """Reorder the rows of each head from rotary pairs `(2 i, 2 i + 1)` to `(i, i + head_dim / 2)`.

    llama.cpp stores the query and key rows of this architecture so that pairs are neighbours.
    """
    outputs, inputs = values.shape
    return values.reshape(heads, outputs // heads // 2, 2, inputs).swapaxes(1, 2).reshape(outputs, inputs)


def _tokenizer(fields: Mapping[str, Any]) -> "Tokenizer":
    kind = fields["tokenizer.ggml.model"]
    if kind != "gpt2":
        raise ModelError(f"tokenizer kind {kind!r} is not supported; 'gpt2' (byte-level BPE) is")
    return byte_level_tokenizer(
        fields["tokenizer.ggml.tokens"],
        fields["tokenizer.ggml.token_type"],
        fields["tokenizer.ggml.merges"],
        fields.get("tokenizer.ggml.pre", "gpt-2"),
    )


def _special_token(fields: Mapping[str, Any], name: str) -> str:
    index = fields.get(f"tokenizer.ggml.{name}_token_id")
    return "" if index is None else fields["tokenizer.ggml.tokens"][index]


def _chat_template(fields: Mapping[str, Any]) -> ChatTemplate | None:
    source = fields.get("tokenizer.chat_template")
    if source is None:
        return None
    return ChatTemplate(source, bos=_special_token(fields, "bos"), eos=_special_token(fields, "eos"))


def _eos_ids(fields: Mapping[str, Any]) -> tuple[int, ...]:
    """End of text, and end of turn where the file names one."""
    names = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
    return tuple(sorted({int(fields[name]) for name in names if name in fields}))
