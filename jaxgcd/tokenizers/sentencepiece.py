"""SentencePiece models. A metaspace is a blank; a byte piece (`<0x41>`) is a byte.

Pieces and their kinds are read from the model itself, a protocol buffer: the library does not say which
pieces a user defined. The format: https://github.com/google/sentencepiece, `sentencepiece_model.proto`.
"""

import enum
from collections.abc import Iterator
from typing import Any

from jaxgcd.errors import VocabularyError
from jaxgcd.tokenizers.contents import Contents
from jaxgcd.tokenizers.pieces import METASPACE, replaced


class Kind(enum.IntEnum):
    """Kinds of pieces, by their number in the model."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


SPECIAL = {Kind.UNKNOWN, Kind.CONTROL, Kind.UNUSED}


def read_processor(processor: Any) -> Contents:
    """Read a `sentencepiece.SentencePieceProcessor`."""
    tokens, special, added = {}, set(), set()
    for i, (piece, kind) in enumerate(kinds(processor).items()):
        tokens[i] = spell(piece, kind)
        if kind in SPECIAL:
            special.add(i)
        elif kind == Kind.USER_DEFINED:
            added.add(i)
    eos = processor.eos_id()
    return Contents(tokens, frozenset(special), frozenset(added), (eos,) if eos >= 0 else ())


def spell(piece: str, kind: Kind) -> bytes:
    """The bytes of a piece."""
    return replaced([(METASPACE, " ")], kind == Kind.BYTE, piece)


def kinds(processor: Any) -> dict[str, Kind]:
    """The kind of every piece, in the order of their ids. SentencePiece has no two pieces alike."""
    message = processor.serialized_model_proto()
    pieces = dict(_piece(value) for field, value in _fields(message) if field == 1)
    if len(pieces) != processor.get_piece_size():
        count = processor.get_piece_size()
        raise VocabularyError(f"The SentencePiece model holds {len(pieces)} pieces, but says it has {count}.")
    return pieces


def _piece(message: bytes) -> tuple[str, Kind]:
    """Field 1 is the piece, field 3 its kind (normal, if missing)."""
    fields = dict(_fields(message))
    return fields.get(1, b"").decode(), Kind(fields.get(3, Kind.NORMAL))


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a protocol buffer's message: (number, value), a value being an integer or bytes."""
    place, fixed = 0, {1: 8, 5: 4}
    while place < len(message):
        key, place = _varint(message, place)
        field, wire = key >> 3, key & 7
        if wire == 0:
            value, place = _varint(message, place)
        else:
            length, place = (fixed[wire], place) if wire in fixed else _varint(message, place)
            value, place = message[place : place + length], place + length
        yield field, value


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """An integer in groups of seven bits, the lowest first, and the place behind it."""
    value = shift = 0
    while True:
        byte = message[place]
        value, shift, place = value | (byte & 0x7F) << shift, shift + 7, place + 1
        if byte < 0x80:
            return value, place
