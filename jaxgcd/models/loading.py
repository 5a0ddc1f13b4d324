"""Load a model from whatever holds it."""

import os
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import jax.numpy as jnp
from jax.typing import DTypeLike

from jaxgcd.errors import ModelError

from .folder import load_folder
from .gguf import load_gguf
from .loaded import LoadedModel

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def load(
    path: str | PathLike[str],
    *,
    dtype: DTypeLike = jnp.float32,
    max_length: int | None = None,
    tokenizer: "Tokenizer | None" = None,
    progress: bool = True,
) -> LoadedModel:
    """Load a Llama-family model, with its tokenizer and chat template, from a folder or a GGUF file.

    Args:
        path: a Hugging Face folder (`config.json`, safetensors, tokenizer files), or a `.gguf` file.
        dtype: of the weights, the activations and the cache: `jnp.float32` or `jnp.bfloat16`.
        max_length: how many tokens a prompt and its answer may have together; by default what the model
            was made for.
        tokenizer: a `tokenizers.Tokenizer` to take instead of the stored one.
        progress: show a progress bar.

    Returns:
        A `LoadedModel`. One tensor at a time is read and converted, so the peak is the model in
        `dtype`, and its largest tensor.

    Raises:
        ModelError: something is missing, damaged or not supported; names the file, the entry or the tensor.
        MissingExtraError: a package of `jaxgcd[models]` is not installed.

    `docs/models.md` lists the families, options and formats.

    Example:
        >>> load("/no/such/model")
        Traceback (most recent call last):
            ...
        jaxgcd.errors.ModelError: /no/such/model: no such file or folder
    """
    path = Path(path)
    if not os.path.exists(path):  # unlike `Path.exists`, also where a name is too long for a file
        raise ModelError(f"{fspath(path)}: no such file or folder")
    load_kind = load_folder if path.is_dir() else load_gguf
    return load_kind(path, dtype=dtype, max_length=max_length, tokenizer=tokenizer, progress=progress)
