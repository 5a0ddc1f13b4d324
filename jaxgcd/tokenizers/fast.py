"""Tokenizers of the library `tokenizers`, read from their own `tokenizer.json`.

A piece spells what the tokenizer's decoder makes of it, whatever cuts the text on the way in. Two kinds
of decoder leave the pieces of a text side by side: byte-level, and replacements (a metaspace for a
blank) with or without byte fallback. Those that put blanks between pieces, or whose pieces carry marks of
a word's inside or end (WordPiece, CLIP's `</w>`), are refused.
"""

import functools
import json
from collections.abc import Mapping
from typing import Any

from jaxgcd.errors import VocabularyError
from jaxgcd.tokenizers.contents import Contents
from jaxgcd.tokenizers.pieces import Spell, byte_level, plain, replaced

_Component = Mapping[str, Any]


def read_tokenizer(tokenizer: Any) -> Contents:
    """Read a `tokenizers.Tokenizer`. It does not know its EOS."""
    try:
        settings = json.loads(tokenizer.to_str())
    except Exception as error:  # the library raises plain `Exception`s
        raise VocabularyError(
            f"This tokenizer cannot be written as JSON, so its parts are unknown ({error}); build "
            "`Vocabulary(tokens, eos=...)`."
        ) from error
    model, added = settings["model"], {token["id"]: token for token in settings["added_tokens"]}
    spell, spell_added = _spellings(settings)
    tokens = {i: spell(piece) for i, piece in _pieces(model).items()}
    tokens |= {i: spell_added(token["content"]) for i, token in added.items()}
    special = _unknown(model).union(i for i, token in added.items() if token["special"])
    return Contents(tokens, special, frozenset(added.keys() - special))


def _pieces(model: _Component) -> dict[int, str]:
    if model["type"] == "Unigram":  # a list, in which a piece can occur twice
        return {i: piece for i, (piece, _) in enumerate(model["vocab"])}
    return {i: piece for piece, i in model["vocab"].items()}


def _unknown(model: _Component) -> frozenset[int]:
    """The id of the token that stands for what cannot be spelled."""
    i = model.get("unk_id") if model["type"] == "Unigram" else model["vocab"].get(model.get("unk_token"))
    return frozenset() if i is None else frozenset([i])


def _components(node: Any) -> list[_Component]:
    """All pre-tokenizers, decoders or normalizers of a (possibly nested) sequence, in order."""
    if node is None:
        return []
    inner = next((node[key] for key in ("pretokenizers", "decoders", "normalizers") if key in node), None)
    return [node] if inner is None else [leaf for child in inner for leaf in _components(child)]


def _spellings(settings: Mapping[str, Any]) -> tuple[Spell, Spell]:
    """How this tokenizer's pieces spell bytes: a function for the model's pieces, one for added tokens."""
    stages = {key: _components(settings[key]) for key in ("normalizer", "pre_tokenizer", "decoder")}
    model, decoder = settings["model"], stages["decoder"]
    mark = model.get("continuing_subword_prefix") or model.get("end_of_word_suffix")
    rules = _rules(decoder)
    is_byte_level = any(part["type"] == "ByteLevel" for parts in stages.values() for part in parts)
    if not decoder and not is_byte_level:
        rules = _rules([part for part in stages["pre_tokenizer"] if part["type"] == "Metaspace"]) or None
    if mark or rules is None or (is_byte_level and rules):
        names = ", ".join(part["type"] for part in decoder) or "none"
        marked = f": they are marked by {mark!r}" if mark else ""
        raise VocabularyError(
            f"The pieces of this {model['type']} tokenizer (decoder: {names}) do not concatenate to the text"
            f"{marked}. Supported: byte-level and metaspace; else build `Vocabulary(tokens, eos=...)`."
        )
    if is_byte_level:
        return byte_level, plain
    fallback = model.get("byte_fallback") or any(part["type"] == "ByteFallback" for part in decoder)
    return functools.partial(replaced, rules, fallback), functools.partial(replaced, rules, False)


def _rules(parts: list[_Component]) -> list[tuple[str, str]] | None:
    """What a decoder replaces in each piece; None if it does more than join the pieces.

    Behind `Fuse` it sees the whole text: there a blank taken from the start is the dummy prefix, and only
    a single character can be replaced as if piece by piece.
    """
    rules, fused = [], False
    for part in parts:
        match part:
            case {"type": "ByteLevel" | "ByteFallback"}:
                pass
            case {"type": "Fuse"}:
                fused = True
            case {"type": "Strip", "content": " ", "stop": 0} if fused:
                pass
            case {"type": "Metaspace", "replacement": mark}:
                rules.append((mark, " "))
            case {"type": "Replace", "pattern": {"String": old}, "content": new} if not (fused and old[1:]):
                rules.append((old, new))
            case _:
                return None
    return rules
