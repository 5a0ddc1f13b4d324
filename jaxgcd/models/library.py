"""What the package tokenizers does, with its errors as typed ones."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from jaxgcd.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def encode(tokenizer: "Tokenizer", text: str, *, add_special_tokens: bool = True) -> list[int]:
    """The ids of a text; `ModelError` if the tokenizer cannot write it."""
    with reported("the tokenizer cannot encode the prompt"):
        return tokenizer.encode(text, add_special_tokens=add_special_tokens).ids


@contextmanager
def reported(what: str, remedy: str = "") -> Iterator[None]:
    """Errors of tokenizers and transformers inside become a `ModelError`, which says what was not possible.

    They are of many kinds, plain `Exception` among them; and where tokenizers panics, it raises a
    `BaseException` of a class that it does not export.
    """
    try:
        yield
    except (ModelError, ImportError):
        raise
    except BaseException as error:
        if isinstance(error, Exception) or type(error).__name__ == "PanicException":
            raise ModelError(f"{what} ({error}){remedy}") from error
        raise
