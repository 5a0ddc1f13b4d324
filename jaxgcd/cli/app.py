"""The commands, put together."""

import os
import sys
from typing import Annotated, Any

import typer

from jaxgcd._version import version

from .compile import compile_command
from .generate import generate_command
from .inspect import inspect_command

_HELP = """
Texts from a language model that a Lark grammar parses, and nothing else.

\b
  jaxgcd generate smollm2 json.lark "Describe a person as JSON." --stream
  jaxgcd compile json.lark smollm2 --save json.jaxgcd
  jaxgcd generate smollm2 json.jaxgcd --lines questions.txt --json

\b
Exit codes:
  0    done; every answer is a complete text of the grammar, or ended by a --stop
  1    an error: a file, a grammar, a model; the message says which
  2    wrong use of the command line
  3    some answer is not complete: it met --max-new-tokens, or a limit
  130  interrupted;  141  the reader of the output has gone
"""

app = typer.Typer(
    name="jaxgcd",
    help=_HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("generate")(generate_command)
app.command("compile")(compile_command)
app.command("inspect")(inspect_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"jaxgcd {version()}")
        raise typer.Exit


@app.callback()
def _options(
    shown: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of all commands."""


def main() -> None:
    """Runs the command line with the arguments of the process, and exits.

    Standard input and output are UTF-8 in any locale: texts of a grammar are.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by whoever started the process: empty, or discarded
            setattr(sys, name, open(os.devnull, mode))
        stream: Any = getattr(sys, name)
        stream.reconfigure(encoding="utf-8")
    app(prog_name="jaxgcd")
