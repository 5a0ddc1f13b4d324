"""A model's vocabulary without its weights: all that a grammar is compiled for."""

from os import PathLike, fspath
from pathlib import Path

from jaxgcd.errors import ModelError
from jaxgcd.vocabulary import Vocabulary

from . import folder, gguf
from .folder_config import read_config
from .loaded import checked_eos


def load_vocabulary(path: str | PathLike[str]) -> Vocabulary:
    """The vocabulary of a model's folder or GGUF file, equal to `models.load(path).vocabulary()`.

    Raises:
        ModelError: something is missing, damaged or not supported; names the file or the entry.
        VocabularyError: the tokenizer cannot be used.

    Example:
        >>> load_vocabulary("/no/such/model")
        Traceback (most recent call last):
            ...
        jaxgcd.errors.ModelError: /no/such/model: no such file or folder
    """
    path = Path(path)
    if not path.exists():
        raise ModelError(f"{fspath(path)}: no such file or folder")
    try:
        return _of_folder(path) if path.is_dir() else _of_gguf(path)
    except KeyError as error:
        raise ModelError(f"{fspath(path)}: no entry {error.args[0]!r} in this GGUF file") from error
    except ModelError as error:
        place = "" if str(error).startswith(fspath(path)) else f"{fspath(path)}: "
        raise ModelError(f"{place}{error}") from error


def _of_folder(path: Path) -> Vocabulary:
    settings = folder.read_settings(path)
    size = read_config(settings).vocab_size
    eos = checked_eos(folder.read_eos_ids(path, settings), size)
    return Vocabulary.from_tokenizer(folder.read_tokenizer(path), size=size, eos=eos)


def _of_gguf(path: Path) -> Vocabulary:
    fields, stored = gguf.open_gguf(path)
    size = gguf.vocab_size(stored)
    eos = checked_eos(gguf.read_eos_ids(fields), size)
    return Vocabulary.from_tokenizer(gguf.read_tokenizer(fields), size=size, eos=eos)
