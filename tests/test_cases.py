"""The conformance cases of the data folder: Lark grammars with texts, in both lexer modes.

Every verdict is checked on the installed Lark first. A grammar is either compiled, and then all its texts are
stepped through token by token, or it is in `REFUSED` with the reason.
"""

import json
import os
import random
import zlib
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import harness
import numpy as np
import pytest
from lark import Lark
from lark.exceptions import LarkError
from oracle import Segmenter, pick, split_utf8

import jaxgcd

MODES = ("contextual", "basic")
PIECES = 16  # tokens of several bytes that the texts of each grammar add to the vocabulary
SEGMENTATIONS = 3  # random ones for each text, besides the single bytes
SHAPE = (64, 64)  # sequences at once, tokens per sequence: the longest text has 63 bytes
BUCKET = {**harness.SMALL_BUCKET, "token_symbols": 4096}  # a few hundred tokens of up to eight bytes
WALKS, WALK = 8, 48  # random walks along the masks, and the tokens after which one is given up

# Grammars that are refused in both modes, with the reason, a part of the message, and the letters that can
# tell: a lexeme of `a(?=b)c` has two letters and one of `a^b$c` three, and each text is one lexeme.
REFUSED = {
    "b:test_lark.py:271": ("empty: `c` cannot match where `b` was seen", "No text", "abcABC", 3),
    "b:test_lark.py:279": ("empty: `^` behind an `a`, without the flag m", "No text", "abcABC\n", 4),
}


@dataclass(frozen=True)
class Case:
    """A grammar and Lark's verdicts on some texts, by lexer mode (None where it does not load)."""

    id: str
    source: str
    grammar: str
    loads: dict[str, bool]
    texts: tuple[dict[str, str | bool | None], ...]

    def verdicts(self, lexer: str) -> dict[str, bool]:
        """Each text with what the file says about it."""
        return {str(text["text"]): bool(text[lexer]) for text in self.texts}

    def __str__(self) -> str:
        return f"{self.source}-{self.id.split(':', 1)[1]}"


def read_cases() -> list[Case]:
    """All cases; none if there is no data folder, an error if there is one without them."""
    folder = os.environ.get("JAXGCD_DATA")
    if not folder:
        return []
    items = json.loads((Path(folder) / "cases" / "lark_cases.json").read_text())
    return [Case(**{**item, "texts": tuple(item["texts"])}) for item in items]


CASES = read_cases()
COMPILED = [case for case in CASES if case.id not in REFUSED]  # the others: `test_refusals`
no_data = pytest.param(None, id="no-data")  # skipped by `data_dir`
each_case = pytest.mark.parametrize("case", CASES or [no_data], ids=str)
each_compiled = pytest.mark.parametrize("case", COMPILED or [no_data], ids=str)
both_modes = pytest.mark.parametrize("lexer", MODES)
pytestmark = pytest.mark.usefixtures("data_dir")


@dataclass(frozen=True)
class Words:
    """A vocabulary as plain data; no token is special."""

    tokens: tuple[bytes, ...]
    eos: tuple[int, ...]
    special: tuple[int, ...] = ()

    @property
    def size(self) -> int:
        return len(self.tokens)


def words_of(cases: list[Case]) -> Words:
    """Every byte, pieces of all texts (also of half characters), and EOS."""
    rng, pieces = random.Random(0), {}
    for case in cases:
        datas = [data for text in case.verdicts("basic") if len(data := text.encode()) > 1]
        for _ in range(PIECES if datas else 0):
            data = pick(rng, datas)
            begin = int(rng.random() * (len(data) - 1))
            pieces[data[begin : begin + 2 + int(rng.random() * 7)]] = None
    tokens = (*(bytes([byte]) for byte in range(256)), *pieces, b"</s>")
    return Words(tokens, eos=(len(tokens) - 1,))


WORDS = words_of(CASES)
SEGMENTER = Segmenter(WORDS.tokens, skip=WORDS.eos)


def lark_of(case: Case, lexer: str) -> Lark:
    return Lark(case.grammar, parser="lalr", lexer=lexer)


def parses(lark: Lark, data: bytes) -> bool:
    """Whether these bytes are whole characters that Lark parses."""
    parts = split_utf8(data)
    if parts is None or parts[1]:
        return False
    try:
        lark.parse(parts[0])
    except LarkError:
        return False
    return True


def spell(tokens: list[int]) -> bytes:
    return b"".join(WORDS.tokens[token] for token in tokens)


def compiled(case: Case, lexer: str) -> harness.Compiled:
    """The tables in the bucket of the small grammars, so that all cases share one trace."""
    return harness.compile_small(case.grammar, WORDS, shape=SHAPE, bucket=BUCKET, lexer=lexer)


def test_there_are_cases_of_every_source() -> None:
    """35 grammars and 206 texts, as the file was handed over; all load in both modes."""
    assert len(CASES) == 35 and sum(len(case.texts) for case in CASES) == 206
    assert {case.source for case in CASES} == {"llguidance", "xgrammar", "llama.cpp"}
    assert all(case.loads == {"contextual": True, "basic": True} for case in CASES)
    assert set(REFUSED) <= {case.id for case in CASES}


@both_modes
@each_case
def test_the_verdicts_are_larks(case: Case, lexer: str) -> None:
    lark = lark_of(case, lexer)
    assert {text: parses(lark, text.encode()) for text in case.verdicts(lexer)} == case.verdicts(lexer)


@both_modes
@each_compiled
def test_stepping_agrees_with_lark(case: Case, lexer: str) -> None:
    """Right texts pass and wrong ones do not, in every segmentation, and EOS comes where Lark would parse."""
    rng, lark = random.Random(zlib.crc32(f"{case.id} {lexer}".encode())), lark_of(case, lexer)
    verdicts, sequences, owners = case.verdicts(lexer), [], []
    for text in verdicts:
        cuts = [SEGMENTER.bytewise(text.encode())]
        cuts += [SEGMENTER.random(text.encode(), rng) for _ in range(SEGMENTATIONS)]
        sequences += cuts
        owners += [text] * len(cuts)
    trail = harness.trails(compiled(case, lexer), sequences)
    accepted = trail.accepts()
    wrong = [
        (text, [WORDS.tokens[token] for token in sequence], verdict)
        for text, sequence, verdict in zip(owners, sequences, accepted, strict=True)
        if verdict != verdicts[text]
    ]
    assert not wrong, "(text, tokens, the library's verdict)"
    for sequence, drawn, ends in zip(sequences, trail.drawn, trail.ends, strict=True):
        reached = len(sequence) if drawn.all() else int(drawn.argmin())
        wanted = [parses(lark, spell(sequence[:count])) for count in range(reached + 1)]
        assert ends[: reached + 1].tolist() == wanted, spell(sequence)


@both_modes
@each_compiled
def test_walks_along_the_masks_end_in_texts_of_lark(case: Case, lexer: str) -> None:
    """Where EOS is allowed Lark parses the text, no mask is empty, and some walk comes to an end.

    So a grammar whose language is empty cannot compile unnoticed.
    """
    rng, lark = random.Random(zlib.crc32(case.id.encode())), lark_of(case, lexer)
    tables = compiled(case, lexer)
    walks: list[list[int]] = [[] for _ in range(WALKS)]
    ended: list[bytes] = []
    for _ in range(WALK):
        going = []
        for walk, mask in zip(walks, harness.masks(tables, walks), strict=True):
            ends, mask[list(WORDS.eos)] = mask[WORDS.eos[0]], False
            assert ends == parses(lark, spell(walk)), spell(walk)
            assert ends or mask.any(), f"dead end behind {spell(walk)}"
            if ends and (not mask.any() or rng.random() < 0.5):
                ended.append(spell(walk))
            else:
                going.append([*walk, pick(rng, np.flatnonzero(mask).tolist())])
        if not (walks := going):
            break
    assert ended


@both_modes
@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str, lexer: str) -> None:
    """Lark parses none of the texts that could be in the language, and the library says so."""
    (case,) = (case for case in CASES if case.id == name)
    _, message, letters, longest = REFUSED[name]
    lark = lark_of(case, lexer)
    assert not any(case.verdicts(lexer).values())
    texts = ("".join(text) for length in range(longest + 1) for text in product(letters, repeat=length))
    assert not any(parses(lark, text.encode()) for text in texts)
    with pytest.raises(jaxgcd.GrammarError, match=message):
        compiled(case, lexer)


def test_all_cases_share_one_trace() -> None:
    """Whatever cases ran before in this process, together with the first and the last."""
    for case in (CASES[0], CASES[-1]):
        harness.masks(compiled(case, "contextual"), [[]])
    keys = [key for key in harness.TRACES if key[0] == SHAPE]
    assert len(keys) == 1 and harness.TRACES[keys[0]] == 1
