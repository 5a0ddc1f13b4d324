"""Compiles hostile grammars, each in a process of its own, and prints what became of them and what they used.

    python tests/hostile_runner.py NAME ...

One line of JSON for each: the type and message of the error (empty if it compiled), and the most memory in
use, in bytes, beyond that of a grammar with one letter. A process that is still at work after `SECONDS`, or
asks for more than `ADDRESS_SPACE`, is killed; its error is then its exit status.
"""

import json
import os
import resource
import signal
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

sys.path += [str(Path(__file__).parent / "grammars")]

from hostile_grammars import HOSTILE

import jaxgcd

SECONDS = 300
"""Far more than anything takes: a protection from hanging, not a measurement."""

ADDRESS_SPACE = 16 << 30


def outcome(grammar: Callable[[], str], limits: dict[str, float]) -> tuple[str, str]:
    """The type and message of the error, or two empty strings."""
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"aaaa", b'",', b""]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            jaxgcd.compile_grammar(
                grammar(),
                jaxgcd.Vocabulary(tokens, eos=[259]),
                limits=jaxgcd.Limits(**limits),  # type: ignore
            )
    except jaxgcd.JaxgcdError as error:
        return type(error).__name__, str(error)
    return "", ""


def apart(grammar: Callable[[], str], limits: dict[str, float]) -> tuple[str, str, int]:
    """The outcome in a process of its own, and its memory in bytes."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
        os.write(writer, json.dumps(outcome(grammar, limits)).encode()[:60_000])
        os._exit(0)
    os.close(writer)
    _, status, used = os.wait4(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        answer = pipe.read()
    error, message = json.loads(answer) if answer and not status else (f"exit status {status}", "")
    return error, message, used.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    *_, usual = apart(lambda: 'start: "a"', {})
    for hostile in HOSTILE:
        if hostile.name in sys.argv[1:]:
            error, message, memory = apart(hostile.grammar, hostile.limits)
            print(json.dumps([hostile.name, error, message, memory - usual]), flush=True)


if __name__ == "__main__":
    main()
