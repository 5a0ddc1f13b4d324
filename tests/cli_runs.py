"""Runs of the command line, in this process or in one of its own, and what they write."""

import json
import os
import subprocess
import sys
from pathlib import Path

import lark
from typer.testing import CliRunner

from jaxgcd import cli

GRAMMAR = 'start: item ("c" item)* "1"\nitem: "ab" | "é" | "2" item?\n'
DRAW = ("--temperature", "5", "--max-new-tokens", "40", "--batch-size", "2", "-q")


def write(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def write_tables(folder: Path, grammar: str, model: str) -> tuple[str, str]:
    """The files of the compiled grammar and of the vocabulary."""
    files = str(folder / "tables.jaxgcd"), str(folder / "tokens.jaxgcd")
    assert run("compile", grammar, model, "--save", files[0], "--save-vocabulary", files[1])[0] == 0
    return files


def run(*arguments: str, stdin: str | bytes | None = None) -> tuple[int, str, str]:
    """The exit code, standard output and standard error."""
    result = CliRunner().invoke(cli.app, list(arguments), input=stdin, prog_name="jaxgcd")
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def run_process(*arguments: str, stdin: bytes = b"", **environment: str) -> subprocess.CompletedProcess:
    """The same in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "jaxgcd", *arguments],
        input=stdin,
        capture_output=True,
        env={**os.environ, **environment},
    )


def records(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines()]


def check_texts(texts: list[str], grammar: str = GRAMMAR) -> None:
    """Lark parses all of them."""
    parser = lark.Lark(grammar, parser="lalr")
    for text in texts:
        parser.parse(text)
