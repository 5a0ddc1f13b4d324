"""Where errors become messages, and every command gets its exit code."""

import enum
import functools
import os
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn, ParamSpec, TextIO

import jax
import typer

from jaxgcd.errors import InexactGrammarWarning, JaxgcdError, StorageWarning

P = ParamSpec("P")


class ExitCode(enum.IntEnum):
    """What a process reports to whoever started it."""

    OK = 0
    """Done; every answer is a complete text of the grammar, or ended by a stop that was asked for."""
    FAILED = 1
    """An error in what was given: a file, a grammar, a model."""
    USAGE = 2
    """The command line is wrong."""
    INCOMPLETE = 3
    """Some answer is not a complete text of the grammar, and was not asked to stop."""
    INTERRUPTED = 130
    """128 and SIGINT, as shells count."""
    BROKEN_PIPE = 141
    """128 and SIGPIPE: the reader of the output has gone."""


def reported(command: Callable[P, ExitCode]) -> Callable[P, NoReturn]:
    """A command that shows no traceback for what its user can mend, and ends with an `ExitCode`.

    Anything else is a fault of ours, and keeps its traceback.
    """

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> NoReturn:
        try:
            with warnings.catch_warnings():
                _show_our_warnings()
                code = command(*args, **kwargs)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_output()
            code = ExitCode.BROKEN_PIPE
        except KeyboardInterrupt:
            say("interrupted")
            code = ExitCode.INTERRUPTED
        except (JaxgcdError, OSError, UnicodeError, MemoryError, jax.errors.JaxRuntimeError) as error:
            say(f"error: {described(error)}")
            code = ExitCode.FAILED
        raise typer.Exit(int(code))

    return guarded


def say(message: str) -> None:
    """A line for the person, beside the output."""
    with suppress(BrokenPipeError):
        print(f"jaxgcd: {message}", file=sys.stderr, flush=True)


def described(error: BaseException) -> str:
    """What went wrong, in terms of what was given."""
    if isinstance(error, OSError) and not isinstance(error, JaxgcdError) and error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {error.strerror}"
    if isinstance(error, MemoryError) or "RESOURCE_EXHAUSTED" in str(error):
        return f"out of memory ({error}); a smaller --batch-size, or --dtype bfloat16, needs less"
    return str(error)


def _show_our_warnings() -> None:
    """Show them as lines, whatever filters the interpreter was started with."""

    def show(message: Warning | str, category: type[Warning], *_: object) -> None:
        say(f"warning: {message}")

    for category in (InexactGrammarWarning, StorageWarning):
        warnings.simplefilter("always", category)
    warnings.showwarning = show


def _discard_output() -> None:
    """Let what is still buffered go nowhere, or the interpreter complains about it when it ends."""
    stream: TextIO = sys.stdout
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
