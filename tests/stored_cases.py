"""Small tables and hand-made files for the tests of storage."""

import functools
import hashlib
import json
from pathlib import Path
from typing import Any

import harness
import pytest

import jaxgcd

TOKENS = [b"a", b"b", b"(", b")", b"((", b"))", b"a)", b" ", b"if", b"i", b"f", b"\xc3", b"", b"<s>"]
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[12], special=[13], size=40)
NESTED = 'start: "a" | "(" start ")"'
# `a` begins a lexeme that may still turn out to be `aa(b`: several readings of a text are alive at once.
FALLBACK = 'start: (A | LONG | B)+\nLONG: "aa" "(" "b"\nA: "a"\nB: "b"\nP: "("\n%ignore P'
KEYWORD = 'start: x y | "if" x x\nx: NAME | "(" y ")"\ny: "b" | "(" x "a" |\nNAME: /[ab]+/\n%ignore " "'
GRAMMARS = {"nested": NESTED, "fallback": FALLBACK, "keyword": KEYWORD}


@functools.cache
def compiled(name: str, lexer: str = "contextual", check: str = "device") -> jaxgcd.Tables:
    tables = jaxgcd.compile_grammar(GRAMMARS[name], VOCABULARY, lexer=lexer, check=check, max_depth=16)
    return jaxgcd.pad(tables, {**harness.SMALL_BUCKET, "runs": 3})


def forged(header: bytes, body: bytes, *, version: int = 1, size: int | None = None) -> bytes:
    header += b" " * (-len(header) % 64)
    size = 64 + len(header) + len(body) if size is None else size
    front = b"jaxgcd\r\n" + b"".join(n.to_bytes(8, "little") for n in (version, len(header), size))
    return front + hashlib.sha256(front + header).digest() + header + body


def opened(content: bytes) -> tuple[dict[str, Any], bytes]:
    length = int.from_bytes(content[16:24], "little")
    return json.loads(content[64 : 64 + length]), content[64 + length :]


def save_small(folder: Path) -> Path:
    """The smallest file of tables, and one with what the host needs."""
    tables = jaxgcd.compile_grammar('start: "a" | "(" start ")"', VOCABULARY, check="host")
    jaxgcd.save(folder / "tables", tables)
    return folder / "tables"


def refused(path: Path) -> str:
    """Loading is a `StorageError` that names the file; its text."""
    with pytest.raises(jaxgcd.StorageError) as caught:
        jaxgcd.load(path)
    message = str(caught.value)
    assert repr(str(path)) in message and "Make the file again" in message
    return message
