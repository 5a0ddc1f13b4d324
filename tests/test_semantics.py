"""Lark's semantics, case by case: what tells its lexer and parser apart from similar ones.

Verdicts are literal data, and the first test asks python-lark for every one of them.
"""

import ast
import random
import re
from itertools import product
from pathlib import Path

import harness
import numpy as np
import pytest
from bytewise import BYTES, SEGMENTER, accepts, after, both_modes, compiled, parses, tokens
from lark import Lark
from semantics_cases import CASES, CONDITION, MICRO, REFERENCE, Case
from small_grammars import Words

import jaxgcd


@both_modes
@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_the_verdicts_are_larks(example: Case, lexer: str) -> None:
    texts = example.texts[lexer]
    if texts:  # none where Lark cannot load the grammar, or never returns
        lark = Lark(example.grammar, parser="lalr", lexer=lexer)
        assert {text: parses(lark, text) for text in texts} == texts


@both_modes
@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_agrees_with_lark(example: Case, lexer: str) -> None:
    """Byte by byte, and in three random segmentations; or the refusal that the case names."""
    texts, refusal = example.texts[lexer], example.refusals.get(lexer)
    if refusal:
        with pytest.raises(refusal.error, match=re.escape(refusal.message)):
            compiled(example.grammar, lexer)
        return
    tables, rng = compiled(example.grammar, lexer), random.Random(0)
    assert dict(zip(texts, accepts(tables, list(texts)), strict=True)) == texts
    for _ in range(3):
        sequences = [SEGMENTER.random(text.encode(), rng) for text in texts]
        accepted = harness.trails(tables, sequences).accepts()
        assert dict(zip(texts, accepted, strict=True)) == texts, sequences


@both_modes
@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_only_what_has_no_text_is_refused(example: Case, lexer: str) -> None:
    """And every grammar that is not refused has a text here, so that masking everything would show."""
    refusal, has_text = example.refusals.get(lexer), any(example.texts[lexer].values())
    assert refusal in (REFERENCE, CONDITION) or (refusal is None) == has_text


def test_every_quirk_has_a_case(data_dir: Path) -> None:
    """The corner cases of python-lark that were handed over: each grammar, with its texts, is a case here.

    But for texts that Lark cannot be asked about, and the lone surrogate, which is no text in UTF-8: see
    `test_half_a_character_is_a_prefix_and_an_ill_formed_one_is_not`.
    """
    module = ast.parse((data_dir / "reference" / "quirks.py").read_text())
    (quirks,) = (node.value for node in module.body if isinstance(node, ast.Assign))
    cases = {example.grammar: example.texts["basic"] for example in CASES}
    for name, grammar, texts in ast.literal_eval(quirks):
        judged = cases[grammar.replace(" \n", "\n").replace("  ", " ")]
        assert not judged or set(texts) <= {*judged, "\ud800"}, name


STEM = MICRO[0].grammar


@pytest.mark.parametrize(
    "cut", [(b"listed",), (b"list", b"ed"), (b"liste", b"d"), tuple(b"%c" % b for b in b"listed")]
)
@both_modes
def test_listed_in_every_cut(cut: tuple[bytes, ...], lexer: str) -> None:
    """The reading is `list` + `ed`, also when a token ends inside the longer word `listen`."""
    assert after(compiled(STEM, lexer), *cut) == {b"</s>"}


@both_modes
def test_after_liste_both_go_on(lexer: str) -> None:
    """`liste` is `list` + `e(d)` or `liste(n)`: two runs."""
    tables = compiled(STEM, lexer)
    assert after(tables, b"liste") == {b"d", b"n"}
    assert after(tables, b"list") == {b"e", b"ed"}
    assert after(tables, b"listen") == {b"e", b"ed"}
    assert after(tables) == {b"l", b"list", b"liste", b"listen", b"listed"}


def test_the_readings_of_one_text_are_counted_and_limited() -> None:
    """While `LONG` is open, each of the last letters may have begun one; each reading takes a stack."""
    grammar = 'start: (A | LONG)+\nA: "a"\nLONG: /a{%d}b/'
    for count in (1, 4, 16):
        tables = harness.compile_any(grammar % count, harness.vocabulary_of(BYTES)).tables
        assert tables.report.counts["runs"] == count
    with pytest.raises(jaxgcd.GrammarTooLarge, match=r"LONG.* more than 16 readings at once"):
        compiled(grammar % 17, "basic")


@both_modes
def test_nothing_is_reduced_under_a_guessed_lookahead(lexer: str) -> None:
    """After `c` both rules are open; which one it is, only the next terminal tells."""
    tables = compiled('start: x "1" | y "2"\nx: "c"\ny: "c"', lexer)
    assert after(tables, b"c") == {b"1", b"2"}


@both_modes
def test_a_recursive_start_is_not_finished_early(lexer: str) -> None:
    tables = compiled('start: | "(" start ")" start', lexer)
    assert after(tables) == {b"</s>", b"(", b"()"}
    assert after(tables, b"(") == {b"(", b")", b"()"}
    assert after(tables, b"()") == {b"</s>", b"(", b"()"}
    tables = compiled('start: "a" | "a" start "b"', lexer)
    assert after(tables) == {b"a", b"aa"}
    assert after(tables, b"a") == {b"</s>", b"a", b"aa"}
    assert after(tables, b"aa") == {b"a", b"b", b"aa"}
    assert after(tables, b"aa", b"b") == {b"</s>"}


@both_modes
def test_the_empty_text_is_a_text(lexer: str) -> None:
    assert after(compiled('start: "b"?', lexer)) == {b"</s>", b"b"}
    assert after(compiled("start: x x\nx:", lexer)) == {b"</s>"}


@both_modes
def test_the_larger_priority_wins(lexer: str) -> None:
    tables = compiled('start: X | Y "!"\nX.1: /a+/\nY.2: /a/', lexer)
    assert after(tables) == {b"a"} and after(tables, b"a") == {b"!"}


@both_modes
def test_lazy_is_not_greedy(lexer: str) -> None:
    """A greedy string would go on behind its first closing quote."""
    assert after(compiled('start: S\nS: /".*?"/', lexer), b'"', b"1", b'"') == {b"</s>"}
    assert b"1" in after(compiled('start: S\nS: /".*"/', lexer), b'"', b"1", b'"')


def test_a_terminal_counts_to_two_thousand() -> None:
    """In tokens of 500 letters: no other text of this suite is so long."""
    grammar, words = "start: A\nA: /a{0,2000}b/", Words((b"</s>", b"a" * 500, b"a", b"b"), (0,), (), size=4)
    tables = harness.compile_any(grammar, harness.vocabulary_of(words), shape=harness.SMALL_SHAPE)
    lark, sequences = Lark(grammar, parser="lalr", lexer="basic"), ([1, 1, 1, 1, 3], [1, 1, 1, 1, 2, 3], [3])
    texts = [b"".join(words.tokens[token] for token in sequence).decode() for sequence in sequences]
    assert harness.trails(tables, sequences).accepts() == [parses(lark, text) for text in texts]
    masks = harness.masks(tables, [[1, 1, 1], [1, 1, 1, 2], [1, 1, 1, 1]])
    assert [np.flatnonzero(mask).tolist() for mask in masks] == [[1, 2, 3], [2, 3], [3]]


@both_modes
def test_w_is_unicode(lexer: str) -> None:
    """Letters beyond ASCII are word characters, so the bytes that begin them are allowed."""
    allowed = after(compiled("start: W\nW: /\\w+/", lexer))
    assert "é".encode() in allowed and b"\xc3" in allowed and b"a" in allowed
    assert b"\xc2" in allowed  # U+00AA, U+00B5 and U+00BA are letters, too
    assert b"." not in allowed and b"\xa9" not in allowed


@both_modes
def test_half_a_character_is_a_prefix_and_an_ill_formed_one_is_not(lexer: str) -> None:
    tables = compiled("start: /./", lexer)
    continuation = {bytes([byte]) for byte in range(0x80, 0xC0)}
    leads = {bytes([byte]) for byte in range(0xC2, 0xF5)}  # C0, C1: overlong; F5 and up: past U+10FFFF
    assert {token for token in after(tables) if token >= b"\x80" and len(token) == 1} == leads
    assert after(tables, b"\xc3") == continuation
    assert after(tables, b"\xed") == {bytes([byte]) for byte in range(0x80, 0xA0)}  # surrogates are no text
    assert after(tables, b"\xe0") == {bytes([byte]) for byte in range(0xA0, 0xC0)}  # below A0: overlong
    assert after(tables, b"\xf4") == {bytes([byte]) for byte in range(0x80, 0x90)}  # above: past U+10FFFF


@both_modes
def test_special_tokens_are_not_text(lexer: str) -> None:
    """The last token has the bytes of `a` and is special; EOS has bytes, too, and they are not text."""
    mask = harness.masks(compiled('start: ("a" | "</s>")+', lexer), [[]])[0]
    assert mask[tokens(b"a")[0]] and not mask[BYTES.special[0]] and not mask[BYTES.eos[0]]
    assert not mask[len(BYTES.tokens) :].any()


@both_modes
def test_a_declared_terminal_keeps_no_sentence_alive(lexer: str) -> None:
    """Behind `a` only `b` can follow: nothing in a text becomes `IND`."""
    tables = compiled('%declare IND\nstart: "a" IND "c" | "a" "b" | "c" IND', lexer)
    assert after(tables) == {b"a"} and after(tables, b"a") == {b"b"}


@both_modes
def test_every_cut_of_a_text_ends_in_the_same_mask(lexer: str) -> None:
    """All ways to cut ` listed` into tokens, with what may stand before and behind it ignored."""
    tables = compiled(STEM + '\n%ignore " "', lexer)
    lengths = [
        cut for count in range(1, 8) for cut in product((1, 2, 4, 5, 6), repeat=count) if sum(cut) == 7
    ]
    found = {tuple(_cut(b" listed", cut)) for cut in lengths} - {()}
    assert len(found) >= 4
    assert all(after(tables, *cut) == {b"</s>", b" "} for cut in found)


def _cut(data: bytes, lengths: tuple[int, ...]) -> list[bytes]:
    """The parts of these lengths; empty if one of them is no token."""
    ends = [sum(lengths[: count + 1]) for count in range(len(lengths))]
    parts = [data[end - length : end] for end, length in zip(ends, lengths, strict=True)]
    return parts if all(part in SEGMENTER.ids for part in parts) else []
