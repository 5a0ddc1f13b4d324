"""Llama-family models from Hugging Face folders: settings, weights, tokenizer, chat template.

A folder holds `config.json`, `model.safetensors` or shards with `model.safetensors.index.json`,
`tokenizer.json` (or a `tokenizer.model`, or `vocab.json` and `merges.txt`), and optionally
`generation_config.json`, `tokenizer_config.json` and `chat_template.jinja`.
"""

from collections.abc import Mapping
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
from .files import read_json, read_text
from .folder_config import default_eos_id, read_config
from .library import reported
from .loaded import LoadedModel, checked_eos
from .names import folder_name
from .shards import FolderTensors
from .weights import build

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def load_folder(
    path: str | PathLike[str],
    *,
    dtype: DTypeLike = jnp.float32,
    max_length: int | None = None,
    tokenizer: "Tokenizer | None" = None,
    progress: bool = True,
) -> LoadedModel:
    """Load a model from a Hugging Face folder; `load` describes the arguments.

    Raises `ModelError`, naming the folder and what in it, if something is missing, damaged or not supported.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ModelError(f"{fspath(folder)}: no such folder")
    try:
        values = read_settings(folder)
        config = read_config(values)
        config = replace(config, max_length=config.max_length if max_length is None else max_length)
        tensors = FolderTensors(folder)
        _discard_copies(tensors, config)
        tokenizer_settings = read_json(folder / "tokenizer_config.json")
        return LoadedModel(
            tokenizer=tokenizer or read_tokenizer(folder),
            chat_template=_chat_template(folder, tokenizer_settings),
            eos_ids=checked_eos(read_eos_ids(folder, values), config.vocab_size),
            model=build(config, dtype, tensors, folder_name, progress=progress),
            config=config,
        )
    except ModelError as error:
        raise ModelError(f"{fspath(folder)}: {error}") from error


def read_settings(folder: Path) -> dict[str, Any]:
    """The entries of `config.json`, which a model's folder must have."""
    values = read_json(folder / "config.json")
    if not values:
        raise ModelError("no config.json in this folder: it holds no Hugging Face model")
    return values


def _discard_copies(tensors: FolderTensors, config: LlamaConfig) -> None:
    """Leave out what older files store and the decoder computes: frequencies, and a head that is tied."""
    for name in [name for name in tensors.names if name.endswith(".rotary_emb.inv_freq")]:
        tensors.discard(name)
    head, embedding = "lm_head.weight", "model.embed_tokens.weight"
    if config.tied_embeddings and {head, embedding} <= set(tensors.names):
        if not np.array_equal(tensors.read(head), tensors.read(embedding)):
            raise ModelError(
                f"`tie_word_embeddings` is true, but {head!r} differs from {embedding!r}; if the head is "
                "a matrix of its own, set `tie_word_embeddings` to false in config.json"
            )
        tensors.discard(head)


def read_tokenizer(folder: Path) -> "Tokenizer":
    """From `tokenizer.json`, or as transformers makes it from older files."""
    with reported("the tokenizer's files cannot be read", "; pass `tokenizer`"):
        if (folder / "tokenizer.json").exists():
            return require("tokenizers", "models").Tokenizer.from_file(str(folder / "tokenizer.json"))
        if not any((folder / name).exists() for name in ("tokenizer.model", "vocab.json")):
            raise ModelError("no tokenizer.json, tokenizer.model or vocab.json here; pass `tokenizer`")
        auto = require("transformers", "models").AutoTokenizer
        return auto.from_pretrained(folder, local_files_only=True, trust_remote_code=False).backend_tokenizer


def _chat_template(folder: Path, settings: Mapping[str, Any]) -> ChatTemplate | None:
    """From `chat_template.jinja`, else from `tokenizer_config.json`, where it can be one of several."""
    source = settings.get("chat_template")
    if isinstance(source, list):
        named = {entry.get("name"): entry.get("template") for entry in source if isinstance(entry, dict)}
        source = named.get("default")
    if (file := folder / "chat_template.jinja").exists():
        source = read_text(file)
    if not isinstance(source, str):
        return None
    bos, eos = (_content(settings.get(name)) for name in ("bos_token", "eos_token"))
    return ChatTemplate(source, bos=bos, eos=eos)


def _content(token: Any) -> str:
    """A special token's text, which older files wrap in an object."""
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


def read_eos_ids(folder: Path, config: Mapping[str, Any]) -> list[Any]:
    """What `generation_config.json` says, which lists the ends of turns as well, else `config.json`."""
    value = read_json(folder / "generation_config.json").get("eos_token_id")
    value = config.get("eos_token_id", default_eos_id(config)) if value is None else value
    return value if isinstance(value, list) else [] if value is None else [value]
