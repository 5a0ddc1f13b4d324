"""Tokenizers of the library transformers, fast and slow.

A fast one wraps a `tokenizers.Tokenizer`. A slow one is read if it keeps a SentencePiece model or GPT-2's
table of bytes; what is marked as special comes from the class around it.
"""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

from jaxgcd.errors import VocabularyError
from jaxgcd.tokenizers.contents import Contents
from jaxgcd.tokenizers.fast import read_tokenizer
from jaxgcd.tokenizers.pieces import byte_level, byte_of_character, plain
from jaxgcd.tokenizers.sentencepiece import SPECIAL, Kind, kinds, spell

# They write blanks and line breaks in characters of their own, and undo that when they decode.
_REWRITING = {"CpmTokenizer", "CpmTokenizerFast"}


def read_transformers(tokenizer: Any) -> Contents:
    """Read a transformers tokenizer, with its EOS and special tokens."""
    contents = _reader(tokenizer)(tokenizer)
    special = contents.special.union(i for i in tokenizer.all_special_ids if i in contents.tokens)
    eos = tokenizer.eos_token_id
    ends = () if eos is None else tuple(eos) if isinstance(eos, Iterable) else (eos,)
    return dataclasses.replace(contents, special=special, added=contents.added - special, eos=ends)


def _reader(tokenizer: Any) -> Callable[[Any], Contents]:
    if type(tokenizer).__name__ not in _REWRITING:
        if hasattr(tokenizer, "backend_tokenizer"):
            return lambda fast: read_tokenizer(fast.backend_tokenizer)
        if hasattr(tokenizer, "sp_model"):
            return _read_slow_sentencepiece
        if getattr(tokenizer, "byte_decoder", None) == byte_of_character() and _joins(tokenizer):
            return _read_slow_byte_level
    raise VocabularyError(
        f"The pieces of a `{type(tokenizer).__name__}` are not known to concatenate to the text. Supported: "
        "fast tokenizers, slow ones with a SentencePiece model or GPT-2's table of bytes; else build "
        "`Vocabulary(tokens, eos=...)`."
    )


def _joins(tokenizer: Any) -> bool:
    """Does it only join the pieces? CLIP's, with the same table of bytes, makes a blank of `</w>`."""
    try:
        return tokenizer.convert_tokens_to_string(["a</w>", "b", "Ġ", "c"]) == "a</w>b c"
    except Exception:  # a class of any origin, on pieces that it may not know
        return False


def _read_slow_byte_level(tokenizer: Any) -> Contents:
    return _read_slow(tokenizer, lambda piece: (byte_level(piece), False), plain)


def _read_slow_sentencepiece(tokenizer: Any) -> Contents:
    kind_of = kinds(tokenizer.sp_model)

    def read(piece: str) -> tuple[bytes, bool]:
        kind = kind_of.get(piece, Kind.CONTROL)  # the class's own placeholders are no text either
        return spell(piece, kind), kind in SPECIAL

    contents = _read_slow(tokenizer, read, lambda piece: spell(piece, Kind.USER_DEFINED))
    own = {i for piece, i in tokenizer.get_vocab().items() if kind_of.get(piece) == Kind.USER_DEFINED}
    return dataclasses.replace(contents, added=contents.added.union(own - contents.special))


def _read_slow(
    tokenizer: Any, read: Callable[[str], tuple[bytes, bool]], spell_added: Callable[[str], bytes]
) -> Contents:
    """Read id by id; `read` gives a piece's bytes, and whether it is special."""
    added = tokenizer.added_tokens_decoder
    pieces = _by_id((piece, i) for piece, i in tokenizer.get_vocab().items() if i not in added)
    entries = {i: read(piece) for i, piece in pieces.items()}
    tokens = {i: token for i, (token, _) in entries.items()}
    tokens |= {i: spell_added(token.content) for i, token in added.items()}
    special = {i for i, (_, is_special) in entries.items() if is_special}
    special |= {i for i, token in added.items() if token.special}
    return Contents(tokens, frozenset(special), frozenset(added.keys() - special))


def _by_id(pieces: Iterable[tuple[str, int]]) -> dict[int, str]:
    found: dict[int, str] = {}
    for piece, i in pieces:
        if not isinstance(piece, str) or not isinstance(i, int):
            raise VocabularyError(f"The vocabulary gives {piece!r} the id {i!r}, not a string an integer.")
        if found.setdefault(i, piece) != piece:
            raise VocabularyError(f"The vocabulary has two pieces with id {i}: {found[i]!r} and {piece!r}.")
    return found
