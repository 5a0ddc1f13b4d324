"""Grammars judged text by text: a vocabulary of all bytes and some words, and the verdicts of both sides."""

import re

import harness
import numpy as np
import pytest
from lark import Lark
from lark.exceptions import LarkError
from oracle import Segmenter
from semantics_cases import MODES
from small_grammars import Words

WORDS = (b"listed", b"list", b"listen", b"liste", b"ed", b"aa", b"()", b" ab", b"if", "é".encode(), b"1..2")
BYTES = Words(
    (*(bytes([byte]) for byte in range(256)), *WORDS, b"</s>", b"a"),
    eos=(256 + len(WORDS),),
    special=(257 + len(WORDS),),
)
SEGMENTER = Segmenter(BYTES.tokens, skip=(*BYTES.eos, *BYTES.special))

both_modes = pytest.mark.parametrize("lexer", MODES)


def compiled(grammar: str, lexer: str) -> harness.Compiled:
    return harness.compile_small(grammar, BYTES, lexer=lexer)


def accepts(tables: harness.Compiled, texts: list[str]) -> list[bool]:
    """Stepping byte by byte."""
    return harness.trails(tables, [SEGMENTER.bytewise(text.encode()) for text in texts]).accepts()


def tokens(*names: bytes) -> list[int]:
    """Ids of tokens by their bytes."""
    return [SEGMENTER.ids[name][0] for name in names]


def after(tables: harness.Compiled, *names: bytes) -> set[bytes]:
    """The tokens that are allowed after some tokens, EOS as b"</s>"; all of these must have been allowed."""
    trail = harness.trails(tables, [tokens(*names)])
    assert trail.drawn.all(), names
    return {BYTES.tokens[token] for token in np.flatnonzero(trail.masks[0])}


def parses(lark: Lark, text: str) -> bool:
    """Lark's verdict; an error of `re`, met only while parsing, is no."""
    try:
        lark.parse(text)
    except (LarkError, re.error):
        return False
    return True
