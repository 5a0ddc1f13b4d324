"""How the pieces of a vocabulary, which are strings, spell bytes."""

import functools
import re
from collections.abc import Callable, Sequence

Spell = Callable[[str], bytes]

METASPACE = "\u2581"
"""Stands for a blank in SentencePiece vocabularies: `▁the` is " the"."""

_BYTE = re.compile("<0x([0-9A-Fa-f]{2})>")


def byte_level(piece: str) -> bytes:
    """A piece of a byte-level vocabulary, one character for each byte.

    A piece with a character outside the table stands for itself, as in the tokenizer's own decoder.

    >>> byte_level("Ġna"), byte_level("Ã"), byte_level("日")
    (b' na', b'\\xc3', b'\\xe6\\x97\\xa5')
    """
    table = byte_of_character()
    try:
        return bytes([table[character] for character in piece])
    except KeyError:
        return plain(piece)


@functools.cache
def byte_of_character() -> dict[str, int]:
    """GPT-2's table: printable Latin-1 stands for itself, the other bytes for U+0100 and up, in order."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def plain(piece: str) -> bytes:
    """A piece that stands for itself. A lone surrogate becomes bytes that no text holds."""
    return piece.encode("utf-8", "surrogatepass")


def replaced(rules: Sequence[tuple[str, str]], byte_fallback: bool, piece: str) -> bytes:
    """A piece in which some strings stand for others, and `<0x41>`, with byte fallback, for a byte.

    >>> replaced([(METASPACE, " ")], True, "▁the"), replaced([(METASPACE, " ")], True, "<0xE6>")
    (b' the', b'\\xe6')
    """
    byte = _BYTE.fullmatch(piece) if byte_fallback else None
    if byte:
        return bytes.fromhex(byte[1])
    for old, new in rules:
        piece = piece.replace(old, new)
    return plain(piece)
