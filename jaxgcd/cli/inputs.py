"""What the commands read: grammars, vocabularies, models, prompts."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import typer

import jaxgcd
from jaxgcd import _container
from jaxgcd._extras import require
from jaxgcd.errors import StorageError, VocabularyError
from jaxgcd.tables.pack import vocabulary_arrays

from .options import GrammarOptions

if TYPE_CHECKING:
    from jaxgcd.models import LoadedModel

STDIN = "-"
INSTALLED_MODEL = "smollm2"


def read_text(path: str) -> str:
    """A UTF-8 file, or standard input for `-`."""
    if path == STDIN:
        return sys.stdin.read()
    try:
        return Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise OSError(0, f"not a UTF-8 text ({error})", path) from error


def model_path(name: str) -> Path:
    """A folder or file; `smollm2` is the one that is installed as a package."""
    from jaxgcd import models

    return models.smollm2_path() if name == INSTALLED_MODEL and not Path(name).exists() else Path(name)


def load_model(name: str, dtype: str, *, progress: bool) -> "LoadedModel":
    """A model with its tokenizer, by its path or name."""
    from jaxgcd import models

    return models.load(model_path(name), dtype=dtype, progress=progress)


def load_vocabulary(name: str, eos: Sequence[str]) -> jaxgcd.Vocabulary:
    """From a saved vocabulary, a tokenizer's file, or a model, whose weights are not read."""
    path = Path(name)
    if path.suffix not in (".json", ".model"):
        if eos:
            raise typer.BadParameter("only for tokenizer.json and tokenizer.model", param_hint="--eos")
        if is_saved(name):
            return jaxgcd.Vocabulary.load(path)
        from jaxgcd import models

        return models.load_vocabulary(model_path(name))
    with path.open("rb"):  # a missing file is an `OSError` here; the libraries have errors of their own
        pass
    if path.suffix == ".model":
        return _from_sentencepiece(path, eos)
    from jaxgcd.models.library import reported

    with reported(f"{path}: not a tokenizer.json"):
        tokenizer = require("tokenizers", "models").Tokenizer.from_file(str(path))
    if not eos:
        raise typer.BadParameter(
            "a tokenizer.json does not say which tokens end a text: give one, or more", param_hint="--eos"
        )
    return jaxgcd.Vocabulary.from_tokenizer(
        tokenizer, eos=[_token_id(tokenizer.token_to_id(text), text) for text in eos]
    )


def _from_sentencepiece(path: Path, eos: Sequence[str]) -> jaxgcd.Vocabulary:
    processor = require("sentencepiece", "models").SentencePieceProcessor()
    try:
        processor.Load(str(path))
    except Exception as error:  # a `RuntimeError` or an `OSError`, by version
        raise VocabularyError(f"{path}: not a SentencePiece model ({error})") from error
    ids = [_token_id(processor.piece_to_id(text), text, processor.unk_id()) for text in eos]
    return jaxgcd.Vocabulary.from_tokenizer(processor, eos=ids or None)


def _token_id(found: int | None, text: str, unknown: int | None = None) -> int:
    """The id of a token that was given by its text, or as a number."""
    if found not in (None, unknown):
        return found
    if (number := as_id(text)) is not None:
        return number
    raise typer.BadParameter(f"the tokenizer has no token {text!r}", param_hint="--eos")


def as_id(text: str) -> int | None:
    """The token id that a text is, if it is one."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= 20 else None


def is_saved(path: str) -> bool:
    """Whether a file was written by `jaxgcd.save` or `Vocabulary.save`; a missing one was not."""
    if not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(_container.MAGIC)) == _container.MAGIC


def load_tables(
    grammar: str, vocabulary: jaxgcd.Vocabulary, options: GrammarOptions, *, progress: bool
) -> jaxgcd.Tables:
    """A grammar compiled for a vocabulary, or the tables of a file that were."""
    if not is_saved(grammar):
        source = read_text(STDIN) if grammar == STDIN else Path(grammar)
        return jaxgcd.compile_grammar(
            source,
            vocabulary,
            start=options.start,
            lexer=options.lexer,
            check=options.check,
            max_depth=options.max_depth,
            exact=options.exact,
            cache=options.cache,
            limits=jaxgcd.Limits(seconds=options.seconds) if options.seconds else None,
            progress=progress,
        )
    if options != GrammarOptions():
        raise typer.BadParameter(
            "this file is compiled already: --start, --lexer, --check, --max-depth, --exact, --cache and "
            "--seconds are for its grammar's text",
            param_hint="GRAMMAR",
        )
    tables = jaxgcd.load(grammar)
    if tables.grammars > 1:
        raise StorageError(f"{grammar}: holds {tables.grammars} joined grammars; give a file that holds one")
    for name, array in vocabulary_arrays(vocabulary).items():
        found = np.asarray(getattr(tables, name))  # `pad` may have added bytes that no token has
        if name == "token_symbol":
            found = found[: len(array)]
        if not np.array_equal(found, array):
            raise StorageError(f"{grammar}: compiled for another vocabulary than this model's; compile again")
    return tables


def read_prompts(arguments: Sequence[str], files: Sequence[str], lines: Sequence[str]) -> list[str]:
    """All prompts: those of the command line, then files that are one each, then files with one a line.

    Where none is given, standard input is one. The line break that ends a file is no part of its prompt.
    """
    if not (arguments or files or lines):
        if sys.stdin.isatty():
            raise typer.BadParameter(
                "give a prompt, --file or --lines, or pipe one into standard input", param_hint="PROMPT"
            )
        files = [STDIN]
    prompts = [argument_text(argument) for argument in arguments]
    prompts += [read_text(path).removesuffix("\n") for path in files]
    prompts += [line for path in lines for line in read_text(path).split("\n") if line.strip()]
    if not prompts:
        raise typer.BadParameter("no prompt: all lines are blank", param_hint="--lines")
    return prompts


def argument_text(argument: str) -> str:
    """A command-line argument as the UTF-8 that it was, also where the locale made something else of it."""
    try:
        return os.fsencode(argument).decode("utf-8")
    except UnicodeDecodeError:
        raise typer.BadParameter(f"{argument!r} is not UTF-8", param_hint="PROMPT") from None


def check_one_reader(*paths: str) -> None:
    """Standard input can be read once."""
    if paths.count(STDIN) > 1:
        raise typer.BadParameter("standard input (-) can be only one of the inputs")
