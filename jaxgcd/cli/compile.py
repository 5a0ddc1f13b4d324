"""`jaxgcd compile`: a grammar for a vocabulary, its sizes, and a file of its tables."""

import json as json_format
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

import jaxgcd

from . import inputs
from .boundary import ExitCode, reported
from .options import (
    CacheFolder,
    Check,
    CheckOption,
    Exact,
    GrammarOptions,
    Json,
    Lexer,
    LexerOption,
    MaxDepth,
    Quiet,
    Seconds,
    Start,
)
from .show import show_report


@reported
def compile_command(
    grammar: Annotated[
        str, typer.Argument(metavar="GRAMMAR", help="A Lark grammar's file, or - for standard input.")
    ],
    vocabulary: Annotated[
        str,
        typer.Argument(
            metavar="VOCABULARY",
            help="A model as in generate (its weights are not read), a tokenizer.json, a SentencePiece "
            "tokenizer.model, or a saved vocabulary.",
        ),
    ],
    save: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the tables there, for generate or jaxgcd.load.")
    ] = None,
    save_vocabulary: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the vocabulary there, for other grammars.")
    ] = None,
    eos: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOKEN", help="With a tokenizer's file: a token that ends a text, or its id. Repeatable."
        ),
    ] = None,
    json: Json = False,
    start: Start = "start",
    lexer: LexerOption = Lexer.contextual,
    check: CheckOption = Check.device,
    max_depth: MaxDepth = 64,
    exact: Exact = False,
    cache: CacheFolder = None,
    seconds: Seconds = None,
    quiet: Quiet = False,
) -> ExitCode:
    """Compile a grammar, and show sizes, times, and whether its masks are exact.

    Masks that are not exact never miss a token, but may lead to a dead end; the
    reasons are listed. --exact makes that an error.

    \b
      jaxgcd compile json.lark smollm2
      jaxgcd compile sql.lark model.gguf --lexer basic --save sql.jaxgcd
      jaxgcd compile json.lark tokenizer.json --eos "<|im_end|>"
      jaxgcd compile json.lark model/ --save-vocabulary tokens.jaxgcd
      jaxgcd compile sql.lark tokens.jaxgcd --exact --json
    """
    options = GrammarOptions(start, lexer.value, check.value, max_depth, exact, cache, seconds)
    if inputs.is_saved(grammar):
        raise typer.BadParameter("this file is compiled already; see jaxgcd inspect", param_hint="GRAMMAR")
    tokens = inputs.load_vocabulary(vocabulary, eos or [])
    if save_vocabulary is not None:
        tokens.save(save_vocabulary)
    tables = inputs.load_tables(grammar, tokens, options, progress=not quiet and sys.stderr.isatty())
    if save is not None:
        jaxgcd.save(save, tables)
    assert tables.report is not None  # they were just compiled
    if json:
        print(json_format.dumps(asdict(tables.report), ensure_ascii=False))
    else:
        show_report(tables.report, title=f"{grammar} for {vocabulary}")
    return ExitCode.OK
