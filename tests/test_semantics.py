"""Lark's semantics, case by case: what tells its lexer and parser apart from similar ones.

Verdicts are literal data, and the first test asks python-lark for every one of them.
"""

from dataclasses import dataclass, field
from itertools import product

import harness
import numpy as np
import pytest
from lark import Lark
from lark.exceptions import LarkError
from oracle import Segmenter
from small_grammars import Words

import jaxgcd

WORDS = (b"listed", b"list", b"listen", b"liste", b"ed", b"aa", b"()", b" ab", b"if", "é".encode(), b"1..2")
BYTES = Words(
    (*(bytes([byte]) for byte in range(256)), *WORDS, b"</s>", b"a"),
    eos=(256 + len(WORDS),),
    special=(257 + len(WORDS),),
)
SEGMENTER = Segmenter(BYTES.tokens, skip=(*BYTES.eos, *BYTES.special))


@dataclass(frozen=True)
class Case:
    """A grammar and Lark's verdict (lalr, basic lexer) on some texts.

    `refusal`: "never" (it must compile), "always" (its language is empty, or Lark cannot run it), or
    "may" (assertions that look out of their lexeme: right, or a typed refusal).
    """

    name: str
    grammar: str
    texts: dict[str, bool] = field(default_factory=dict)
    refusal: str = "never"


def case(
    name: str, grammar: str, yes: tuple[str, ...] = (), no: tuple[str, ...] = (), refusal: str = "never"
) -> Case:
    return Case(name, grammar, {text: True for text in yes} | {text: False for text in no}, refusal)


MICRO = [
    case(
        "stem and suffix",
        'start: STEM SUFFIX\nSTEM: "list" | "listen"\nSUFFIX: "ed"',
        ("listed", "listened"),
        ("list", "listen", "listen ed", "ed"),
    ),
    case(
        "keyword, then a name",
        'start: "class" NAME\nNAME: /[a-z]+/\n%ignore " "',
        ("class foo", "class classy"),
        ("classfoo", "class class"),
    ),
    case(
        "keyword is reserved",
        'start: NAME "=" NAME | "if" NAME\nNAME: /[a-z]+/\n%ignore " "',
        ("x = y", "if x", "iff = y"),
        ("if = x", "x = if"),
    ),
    case(
        "fallback",
        "start: (AAA | ABZ | BX)+\nAAA: /aaa/\nABZ: /a+b+z/\nBX: /b+x/",
        ("aaabbx", "aaabbz", "aaaaaabx", "aaaabz"),
        ("aabbx", "aaab", "aaaabx"),
    ),
    case(
        "number, dots, number",
        r'start: INT ".." INT' "\n" r"INT: /[0-9]+(\.[0-9]+)?/",
        ("1..2", "1.5..2", "1..2.5"),
        ("1.2", "1...2", "1."),
    ),
    case("ignored at both ends", 'start: "a" "b"\n%ignore " "', (" ab", "ab ", "a  b"), ("", " ", "ba")),
    case(
        "longest first, no way back",
        "start: A B\nA: /a+/\nB: /ab/",
        no=("aab", "ab", "aaab"),
        refusal="always",
    ),
]

RELABELLING = [
    case(
        "keyword inside an ignored regex",
        'start: "a" "if" "b"\nWS: /[ \\tif]+/\n%ignore WS',
        no=("a if b", "aifb", "ab"),
        refusal="always",
    ),
    case(
        "newline inside an ignored regex",
        'start: "a" NL "b"\nNL: "\\n"\n%ignore /\\s+/',
        no=("a\nb", "ab", "a \n b"),
        refusal="always",
    ),
    case(
        "newline regex behind an ignored one",
        'start: "a" NL "b"\nNL: /\\n/\n%ignore /\\s+/',
        no=("a\nb",),
        refusal="always",
    ),
    case(
        "ignored string inside a live regex",
        'start: NAME+ ";"\nNAME: /[a-z]+/\n%ignore "um"\n%ignore " "',
        ("x y;", "x ume;"),
        ("x um y;", "um;", "; um"),
    ),
    case(
        "ignored terminal in a rule",
        'start: A WS A | A "!"\nA: "a"\nWS: " "\n%ignore WS',
        ("a!", "a !"),
        ("a a", "aa"),
    ),
    case(
        "keyword tested alone against a lookahead",
        'start: (IF|NAME|" ")+\nIF: "if"\nNAME: /[a-z]+(?![a-z ])/',
        ("if", "x"),
        ("if x",),
        "may",
    ),
    case(
        "keyword tested alone against $",
        'start: (IF|NAME|" "|"x")+\nIF: "if"\nNAME: /[a-z]+$/',
        ("if", "ifx"),
        ("if x",),
        "may",
    ),
    case(
        "flag on the regex only",
        'start: IF | NAME "!"\nIF: "if"\nNAME: /[a-z]+/i',
        ("if", "IF!"),
        ("IF", "if!"),
    ),
    case(
        "flag on the string only",
        'start: IF | NAME "!"\nIF: "if"i\nNAME: /[a-z]+/',
        ("if", "IF", "x!"),
        ("iF", "if!"),
    ),
    case(
        "priorities differ: no keyword",
        'start: IF NAME | NAME\nIF.2: "if"\nNAME: /[a-z]+/',
        ("iffy", "xif"),
        ("if",),
    ),
]

ASSERTIONS = [
    case("^ is the start of the text", "start: A A\nA: /^a/", no=("aa", "a"), refusal="always"),
    case("^ with m", 'start: (A|NL)+\nA: /^a/m\nNL: "\\n"', ("a\na", "a\n\na"), ("aa",), "may"),
    case("lookbehind over the border", 'start: A B\nA: "a"\nB: /(?<=a)b/', ("ab",), ("b",), "may"),
    case("negative lookbehind", 'start: (A|X) B\nA: "a"\nX: "x"\nB: /(?<!a)b/', ("xb",), ("ab",), "may"),
    case("no word border inside a word", 'start: A B\nA: "a"\nB: /\\bb/', no=("ab",), refusal="always"),
    case("word border behind a sign", 'start: A B\nA: "-"\nB: /\\bb/', ("-b",), ("b",), "may"),
    case("negative lookahead at the end", "start: A\nA: /a(?!b)/", ("a",), ("ab",), "may"),
    case("positive lookahead at the end", 'start: A B?\nA: /a(?=b)/\nB: "b"', ("ab",), ("a",), "may"),
    case("$ before a last newline", 'start: A "\\n"*\nA: /a$/', ("a", "a\n"), ("a\n\n",), "may"),
    case("\\Z", 'start: A "\\n"*\nA: /a\\Z/', ("a",), ("a\n",), "may"),
]

REGEXES = [
    case(
        "case folding of letters",
        "start: A\nA: /[a-z]+/i",
        ("k", "K", "\u212a", "\u017f", "\u0131", "\u0130"),
        ("é",),
    ),
    case("case folding of a string", 'start: A\nA: "s"i', ("s", "S", "\u017f"), ("ss",)),
    case("case folding beyond ASCII", "start: A\nA: /[σßǆﬅ]/i", ("ς", "Σ", "ẞ", "ǅ", "ﬆ"), ("ss", "s")),
    case("atomic group", 'start: A "b"?\nA: /(?>a+|b)c/', ("aac", "bc", "ac", "acb"), ("ab",)),
    case("possessive repeat", 'start: A "b"?\nA: /a++b/', ("aab", "abb"), ("aa",)),
    case("an empty iteration is preferred", 'start: A B*\nA: /x(|a)*/\nB: "a"', ("xaa", "x"), ("a",)),
    case("an empty iteration ends the loop", "start: A\nA: /x(|a)*/", ("x",), ("xaa", "xa")),
    case("named group", 'start: A B\nA: /(?P<q>a)c?/\nB: "b"', ("ab", "acb"), ("accb",)),
    case("any character", "start: /./", ("\U0001f600", "\x85", "\r"), ("\n", "")),
    case("a bar binds in a concatenation", 'start: A\nA: /a|b/ "c"', ("a", "bc"), ("ac", "b")),
    case("lazy is not greedy", "start: A A\nA: /x.*?x/", ("xyxxx", "xxxx"), ("xyx", "xxx")),
    case("\\w is Unicode", "start: W\nW: /\\w+/", ("é", "a1_", "日本"), (".", "")),
    case("\\d and \\s are Unicode", "start: W\nW: /\\d\\s/", ("1 ", "٣\u2003"), ("a ",)),
]

PARSING = [
    case("optional empty text", 'start: "a"?', ("", "a"), ("aa",)),
    case("a declared terminal never comes", 'start: A (_IND A)?\n%declare _IND\nA: "a"', ("a",), ("aa", "")),
    case("only ignored text at the end", 'start: "a"\n%ignore " "', ("a ", " a"), ("a b", " ")),
    case(
        "recursive start in the middle",
        'start: | "(" start ")" start',
        ("", "()", "(())()"),
        ("(", ")", "())"),
    ),
    case(
        "recursive start to the right",
        'start: "a" | "a" start "b"',
        ("a", "aab", "aaabb"),
        ("", "ab", "aa", "abb"),
    ),
    case("the larger priority wins", 'start: X | Y "!"\nX.1: /a+/\nY.2: /a/', ("a!",), ("a", "aa")),
    case("reduced by priority", 'start: x "1" | y "2"\nx.2: "c"\ny.1: "c"', ("c1", "c2"), ("c",)),
    case("a shift takes all", 'start: l "x"\nl: | "x" l', no=("", "x", "xx"), refusal="always"),
    case("only unproductive rules", 'start: "a" start', no=("", "a", "aa"), refusal="always"),
]

REFUSED = [
    case("flags in the middle", 'start: A B\nA: /(?i)a/\nB: "b"', refusal="always"),
    case("one group name twice", "start: A B\nA: /(?P<q>a)/\nB: /(?P<q>b)/", refusal="always"),
    case("back reference", 'start: A B\nA: /(a|b)\\1/\nB: "b"', refusal="always"),
    case("a comment swallows a parenthesis", 'start: A B\nA: /a # c/x\nB: "b"', refusal="always"),
    case("\\p is for the regex module", "start: /\\p{L}/", refusal="always"),
    case("a cycle of empty rules", 'start: a\na: e a "x" | f "y"\ne.2:\nf:\n', refusal="always"),
    case("a cycle of one-symbol rules", 'start: a\na.2: b | "x"\nb.1: a', refusal="always"),
    case("not LALR", 'start: x "a" | y "a"\nx: "c"\ny: "c"', refusal="always"),
]

CASES = [*MICRO, *RELABELLING, *ASSERTIONS, *REGEXES, *PARSING, *REFUSED]


def compiled(grammar: str) -> harness.Compiled:
    return harness.compile_small(grammar, BYTES)


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


@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_the_verdicts_are_larks(example: Case) -> None:
    for text, verdict in example.texts.items():
        try:
            Lark(example.grammar, parser="lalr", lexer="basic").parse(text)
        except LarkError:
            assert not verdict, text
        else:
            assert verdict, text


@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_stepping_agrees_with_lark_or_refuses(example: Case) -> None:
    if example.refusal == "always":
        with pytest.raises(jaxgcd.GrammarError):
            compiled(example.grammar)
        return
    try:
        tables = compiled(example.grammar)
    except jaxgcd.GrammarError:
        assert example.refusal == "may"
        return
    assert accepts(tables, list(example.texts)) == list(example.texts.values())


STEM = MICRO[0].grammar


@pytest.mark.parametrize(
    "cut", [(b"listed",), (b"list", b"ed"), (b"liste", b"d"), tuple(b"%c" % b for b in b"listed")]
)
def test_listed_in_every_cut(cut: tuple[bytes, ...]) -> None:
    """The reading is `list` + `ed`, also when a token ends inside the longer word `listen`."""
    assert after(compiled(STEM), *cut) == {b"</s>"}


def test_after_liste_both_go_on() -> None:
    """`liste` is `list` + `e(d)` or `liste(n)`: two runs."""
    tables = compiled(STEM)
    assert after(tables, b"liste") == {b"d", b"n"}
    assert after(tables, b"list") == {b"e", b"ed"}
    assert after(tables, b"listen") == {b"e", b"ed"}
    assert after(tables) == {b"l", b"list", b"liste", b"listen", b"listed"}


def test_nothing_is_reduced_under_a_guessed_lookahead() -> None:
    """After `c` both rules are open; which one it is, only the next terminal tells."""
    tables = compiled('start: x "1" | y "2"\nx: "c"\ny: "c"')
    assert after(tables, b"c") == {b"1", b"2"}


def test_a_recursive_start_is_not_finished_early() -> None:
    tables = compiled('start: | "(" start ")" start')
    assert after(tables) == {b"</s>", b"(", b"()"}
    assert after(tables, b"(") == {b"(", b")", b"()"}
    assert after(tables, b"()") == {b"</s>", b"(", b"()"}
    tables = compiled('start: "a" | "a" start "b"')
    assert after(tables) == {b"a", b"aa"}
    assert after(tables, b"a") == {b"</s>", b"a", b"aa"}
    assert after(tables, b"aa") == {b"a", b"b", b"aa"}
    assert after(tables, b"aa", b"b") == {b"</s>"}


def test_the_empty_text_is_a_text() -> None:
    assert after(compiled('start: "b"?')) == {b"</s>", b"b"}
    assert after(compiled("start: x x\nx:")) == {b"</s>"}


def test_the_larger_priority_wins() -> None:
    tables = compiled('start: X | Y "!"\nX.1: /a+/\nY.2: /a/')
    assert after(tables) == {b"a"} and after(tables, b"a") == {b"!"}


def test_lazy_is_not_greedy() -> None:
    """A greedy string would go on behind its first closing quote."""
    assert after(compiled('start: S\nS: /".*?"/'), b'"', b"1", b'"') == {b"</s>"}
    assert b"1" in after(compiled('start: S\nS: /".*"/'), b'"', b"1", b'"')


def test_w_is_unicode() -> None:
    """Letters beyond ASCII are word characters, so the bytes that begin them are allowed."""
    allowed = after(compiled("start: W\nW: /\\w+/"))
    assert "é".encode() in allowed and b"\xc3" in allowed and b"a" in allowed
    assert b"\xc2" in allowed  # U+00AA, U+00B5 and U+00BA are letters, too
    assert b"." not in allowed and b"\xa9" not in allowed


def test_half_a_character_is_a_prefix_and_an_ill_formed_one_is_not() -> None:
    tables = compiled("start: /./")
    continuation = {bytes([byte]) for byte in range(0x80, 0xC0)}
    leads = {bytes([byte]) for byte in range(0xC2, 0xF5)}  # C0, C1: overlong; F5 and up: past U+10FFFF
    assert {token for token in after(tables) if token >= b"\x80" and len(token) == 1} == leads
    assert after(tables, b"\xc3") == continuation
    assert after(tables, b"\xed") == {bytes([byte]) for byte in range(0x80, 0xA0)}  # surrogates are no text
    assert after(tables, b"\xe0") == {bytes([byte]) for byte in range(0xA0, 0xC0)}  # below A0: overlong
    assert after(tables, b"\xf4") == {bytes([byte]) for byte in range(0x80, 0x90)}  # above: past U+10FFFF


def test_special_tokens_are_not_text() -> None:
    """The last token has the bytes of `a` and is special; EOS has bytes, too, and they are not text."""
    mask = harness.masks(compiled('start: ("a" | "</s>")+'), [[]])[0]
    assert mask[tokens(b"a")[0]] and not mask[BYTES.special[0]] and not mask[BYTES.eos[0]]
    assert not mask[len(BYTES.tokens) :].any()


def test_a_declared_terminal_keeps_no_sentence_alive() -> None:
    """Behind `a` only `b` can follow: nothing in a text becomes `IND`."""
    tables = compiled('%declare IND\nstart: "a" IND "c" | "a" "b" | "c" IND')
    assert after(tables) == {b"a"} and after(tables, b"a") == {b"b"}


def test_every_cut_of_a_text_ends_in_the_same_mask() -> None:
    """All ways to cut ` listed` into tokens, with what may stand before and behind it ignored."""
    tables = compiled(STEM + '\n%ignore " "')
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
