"""What the package tokenizers does, with its errors as typed ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import TYPE_CHECKING

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def read_tokenizer_json(path: str | PathLike[str]) -> "Tokenizer":
    """The tokenizer of a `tokenizer.json`; `ModelError` if the file is none."""
    library = require("tokenizers", "models")
    with _reported(f"{fspath(path)}: not a tokenizer.json"):
        return library.Tokenizer.from_file(fspath(path))


def encode(tokenizer: "Tokenizer", text: str, *, add_special_tokens: bool = True) -> list[int]:
    """The ids of a text; `ModelError` if the tokenizer cannot write it."""
    with _reported("the tokenizer cannot encode the prompt"):
        return tokenizer.encode(text, add_special_tokens=add_special_tokens).ids


@contextmanager
def _reported(what: str) -> Iterator[None]:
    """The library raises plain `Exception`; a panic of it is a `BaseException`, of a class that it hides."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ModelError(f"{what} ({error})") from error
        raise
