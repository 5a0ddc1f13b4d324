"""Llama-family models from GGUF files: metadata, weights, tokenizer, chat template.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. Quantised tensors are
dequantised while loading, by the `gguf` package.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

from .chat import ChatTemplate
from .config import LlamaConfig
from .gguf_config import read_config
from .gguf_tokenizer import gguf_tokenizer, special_token
from .loaded import LoadedModel, checked_eos
from .names import gguf_name
from .settings import Settings
from .weights import build

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_DIVISORS = "rope_freqs.weight"


def load_gguf(
    path: str | PathLike[str],
    *,
    dtype: DTypeLike = jnp.float32,
    max_length: int | None = None,
    tokenizer: "Tokenizer | None" = None,
    progress: bool = True,
) -> LoadedModel:
    """Load a model from a GGUF file; `load` describes the arguments.

    Raises `ModelError`, naming the file, if it is missing, damaged or of a kind that is not supported.
    """
    path = Path(path)
    fields, stored = open_gguf(path)
    try:
        if Settings(fields).integer("split.count", 1) > 1:
            raise ModelError("one of several parts; join them with llama.cpp's `llama-gguf-split --merge`")
        tensors = _Tensors(stored)
        divisors = tensors.take(_DIVISORS) if _DIVISORS in stored else None
        config = read_config(fields, stored, vocab_size(stored), divisors)
        config = replace(config, max_length=config.max_length if max_length is None else max_length)
        if fields["general.architecture"] == "llama":
            tensors.unpermute(config)
        return LoadedModel(
            tokenizer=tokenizer or read_tokenizer(fields),
            chat_template=_chat_template(fields),
            eos_ids=checked_eos(read_eos_ids(fields), config.vocab_size),
            model=build(config, dtype, tensors, gguf_name, progress=progress),
            config=config,
        )
    except KeyError as error:
        raise ModelError(f"{fspath(path)}: no entry {error.args[0]!r} in this GGUF file") from error
    except ModelError as error:
        raise ModelError(f"{fspath(path)}: {error}") from error


def open_gguf(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Metadata as plain Python values, and tensors by name; they stay memory-mapped."""
    gguf = require("gguf", "models")
    if not path.is_file():
        raise ModelError(f"{fspath(path)}: no such model file")
    try:
        reader = gguf.GGUFReader(path)
        fields = {name: field.contents() for name, field in reader.fields.items()}
    except (ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise ModelError(f"{fspath(path)}: not a complete GGUF file ({error})") from error
    return fields, {tensor.name: tensor for tensor in reader.tensors}


def vocab_size(stored: Mapping[str, Any]) -> int:
    return int(stored["token_embd.weight"].shape[-1])


class _Tensors:
    """The stored tensors, dequantised when they are read."""

    def __init__(self, stored: dict[str, Any]):
        self._stored = stored
        self._heads: dict[str, int] = {}

    @property
    def names(self) -> Collection[str]:
        return self._stored.keys()

    def read(self, name: str) -> np.ndarray:
        tensor = self._stored[name]
        try:
            values = require("gguf", "models").dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            kind = tensor.tensor_type.name
            raise ModelError(f"tensor {name!r}: quantisation {kind} is not supported") from error
        heads = self._heads.get(name.split(".", 2)[-1].rpartition(".")[0])
        return values if heads is None else _halves(name, values, heads)

    def take(self, name: str) -> np.ndarray:
        """Read a tensor that is no weight, and take it out of the names."""
        values = self.read(name)
        del self._stored[name]
        return values

    def unpermute(self, config: LlamaConfig) -> None:
        """Reorder the rows of queries and keys, and their biases, from now on."""
        self._heads = {"attn_q": config.num_heads, "attn_k": config.num_kv_heads}


def _halves(name: str, values: np.ndarray, heads: int) -> np.ndarray:
    """Reorder the rows of each head from rotary pairs `(2 i, 2 i + 1)` to `(i, i + head_dim / 2)`.

    llama.cpp's converter stores the queries and keys of architecture `llama` so that pairs are neighbours
    (`LlamaModel.permute` in convert_hf_to_gguf.py); those of `qwen2` and `qwen3` it leaves as they are.
    """
    if values.shape[0] % (2 * heads):
        raise ModelError(f"tensor {name!r} has {values.shape[0]} rows, which {heads} heads cannot share")
    return values.reshape(heads, -1, 2, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)


def read_tokenizer(fields: Mapping[str, Any]) -> "Tokenizer":
    try:
        return gguf_tokenizer(fields)
    except ModelError as error:
        raise ModelError(f"{error}; pass `tokenizer` to take another one") from error


def _chat_template(fields: Mapping[str, Any]) -> ChatTemplate | None:
    source = Settings(fields).text("tokenizer.chat_template", None)
    if source is None:
        return None
    return ChatTemplate(source, bos=special_token(fields, "bos"), eos=special_token(fields, "eos"))


def read_eos_ids(fields: Mapping[str, Any]) -> list[Any]:
    """End of text, and end of turn where the file names one."""
    names = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id")
    return [fields[name] for name in names if name in fields]
