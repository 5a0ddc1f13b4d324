"""Lark's semantics, case by case: what tells its lexer and parser apart from similar ones.

Verdicts are literal data, and the first test asks python-lark for every one of them.
"""

import random
import re
from dataclasses import dataclass
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


MODES = ("contextual", "basic")
both_modes = pytest.mark.parametrize("lexer", MODES)


@dataclass(frozen=True)
class Refusal:
    """Which error a grammar is refused with, and a part of its message."""

    error: type[jaxgcd.GrammarError]
    message: str


EMPTY = Refusal(jaxgcd.GrammarError, "No text that the vocabulary can spell is in the language")
RE = Refusal(jaxgcd.GrammarError, "Python's `re` cannot compile the scanner")
LARK = Refusal(jaxgcd.GrammarError, "Lark rejects the grammar")
REFERENCE = Refusal(jaxgcd.UnsupportedRegexError, "terminal A: a back-reference")
CONDITION = Refusal(jaxgcd.UnsupportedRegexError, "terminal A: a conditional group")
LOOP = Refusal(jaxgcd.GrammarError, "never end")


@dataclass(frozen=True)
class Case:
    """A grammar and Lark's verdicts on some texts, in each of the lexer's modes.

    Where it is refused, Lark parses none of the texts: its language is empty, or Lark cannot run it. The
    exceptions are `REFERENCE` and `CONDITION`, which no automaton can do.
    """

    name: str
    grammar: str
    texts: dict[str, dict[str, bool]]
    refusals: dict[str, Refusal]


def case(
    name: str,
    grammar: str,
    yes: tuple[str, ...] = (),
    no: tuple[str, ...] = (),
    refused: Refusal | None = None,
    *,
    contextual: tuple[str, ...] = (),
    basic: tuple[str, ...] = (),
    refused_in: tuple[str, ...] = MODES,
) -> Case:
    """`yes` and `no`: Lark's word in both modes; `contextual`, `basic`: what it parses in that mode only."""
    verdicts = dict.fromkeys(yes, MODES) | dict.fromkeys(no, ())
    verdicts |= dict.fromkeys(contextual, ("contextual",)) | dict.fromkeys(basic, ("basic",))
    texts = {lexer: {text: lexer in modes for text, modes in verdicts.items()} for lexer in MODES}
    return Case(name, grammar, texts, dict.fromkeys(refused_in, refused) if refused else {})


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
        ("class", "foo", "class foo foo"),
        contextual=("classfoo", "class class"),
    ),
    case(
        "keyword is reserved",
        'start: NAME "=" NAME | "if" NAME\nNAME: /[a-z]+/\n%ignore " "',
        ("x = y", "if x", "iff = y"),
        ("if = x", "if", "ifx"),
        contextual=("x = if", "if if"),
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
        refused=EMPTY,
    ),
]

RELABELLING = [
    case(
        "keyword inside an ignored regex",
        'start: "a" "if" "b"\nWS: /[ \\tif]+/\n%ignore WS',
        no=("a if b", "aifb", "ab"),
        refused=EMPTY,
    ),
    case(
        "newline inside an ignored regex",
        'start: "a" NL "b"\nNL: "\\n"\n%ignore /\\s+/',
        no=("a\nb", "ab", "a \n b"),
        refused=EMPTY,
    ),
    case(
        "newline regex behind an ignored one",
        'start: "a" NL "b"\nNL: /\\n/\n%ignore /\\s+/',
        no=("a\nb",),
        refused=EMPTY,
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
    ),
    case(
        "keyword tested alone against $",
        'start: (IF|NAME|" "|"x")+\nIF: "if"\nNAME: /[a-z]+$/',
        ("if", "ifx"),
        ("if x",),
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
    case("^ is the start of the text", "start: A A\nA: /^a/", no=("aa", "a"), refused=EMPTY),
    case("^ with m", 'start: (A|NL)+\nA: /^a/m\nNL: "\\n"', ("a\na", "a\n\na"), ("aa",)),
    case("lookbehind over the border", 'start: A B\nA: "a"\nB: /(?<=a)b/', ("ab",), ("b",)),
    case("negative lookbehind", 'start: (A|X) B\nA: "a"\nX: "x"\nB: /(?<!a)b/', ("xb",), ("ab",)),
    case("no word border inside a word", 'start: A B\nA: "a"\nB: /\\bb/', no=("ab",), refused=EMPTY),
    case("word border behind a sign", 'start: A B\nA: "-"\nB: /\\bb/', ("-b",), ("b",)),
    case("negative lookahead at the end", "start: A\nA: /a(?!b)/", ("a",), ("ab",)),
    case("positive lookahead at the end", 'start: A B?\nA: /a(?=b)/\nB: "b"', ("ab",), ("a",)),
    case("$ before a last newline", 'start: A "\\n"*\nA: /a$/', ("a", "a\n"), ("a\n\n",)),
    case("\\Z", 'start: A "\\n"*\nA: /a\\Z/', ("a",), ("a\n",)),
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
    case("a shift takes all", 'start: l "x"\nl: | "x" l', no=("", "x", "xx"), refused=EMPTY),
    case("only unproductive rules", 'start: "a" start', no=("", "a", "aa"), refused=EMPTY),
]

# In contextual mode each parser state has its own scanner; in basic mode all terminals compete everywhere.
CONTEXTS = [
    case(
        "a keyword where none can be is a name",
        'start: "if" NAME\nNAME: /[a-z]+/\n%ignore " "',
        ("if x",),
        ("if", "x", "xif"),
        contextual=("if if", "ifif", "ifx", "iff"),
    ),
    case(
        "a keyword in the middle only",
        'start: NAME "in" NAME | "in" NAME\nNAME: /[a-z]+/\n%ignore " "',
        ("x in y", "in x"),
        ("xin y", "in"),
        contextual=("x in in", "in in", "x iny"),
    ),
    case(
        "a keyword at the start of a statement only",
        'start: stmt+\nstmt: NAME "=" NAME ";" | "print" NAME ";"\nNAME: /[a-z]+/\n%ignore " "',
        ("print x;", "x = y;print z;"),
        ("print=x;", "printx;"),
        contextual=("x=print;", "print print;"),
    ),
    case(
        "a higher priority elsewhere",
        'start: "x" A | "y" B\nA: /a+/\nB.2: /a/',
        ("ya",),
        ("yaa", "x"),
        contextual=("xa", "xaa"),
    ),
    case(
        "a lower priority elsewhere",
        'start: T "!" | "x" T "?"\nT.-1: /[a-z]+/',
        ("a!", "xa?"),
        ("x!", "xx!", "a?"),
        contextual=("xx?",),
    ),
    case(
        "a longer terminal elsewhere",
        'start: "x" N "y" | "z" H\nN: /[0-9]+/\nH.1: /[0-9a-f]+/',
        ("z12", "z1f"),
        ("x1fy", "z"),
        contextual=("x12y",),
    ),
    case(
        "an ignored string is inside a regex only where the regex can be",
        'start: NAME ";"\nNAME: /[a-z]+/\n%ignore "um"\n%ignore " "',
        ("x;", "xum;", "umum;"),
        ("um x;", "um;"),
        contextual=("x um;", "x umum ;"),
    ),
    case(
        "an ignored regex against terminals of other states",
        'start: "a" X "b" | "c" Y\nX: /-+/\nY: /-/\n%ignore /-\\s/',
        ("a-b", "a--b"),
        ("a- b", "a- -b", "c---"),
        contextual=("c-", "c- -"),
    ),
    case(
        "basic parses what contextual does not: relabelled in one scanner, shadowed in the other",
        'start: IF " x" | T "y" | "!" R\nIF: "if"\nT: /if(?= x)/\nR: /[a-z]+/',
        ("!x",),
        ("ify", "if"),
        contextual=("!if",),
        basic=("if x",),
    ),
    case(
        "merged states share a scanner, whatever lies below",
        'start: "(" x A | "[" x B\nx: "x"\nA: /a/\nB: /a+/',
        ("[xa", "[xaa"),
        ("(xa", "(xaa", "(x"),
    ),
    case(
        "a state of its own tells them apart",
        'start: "(" A | "[" B\nA: /a/\nB: /a+/',
        ("[a", "[aa"),
        ("(aa",),
        contextual=("(a",),
    ),
    case(
        "the scanner changes after the shorter match",
        "start: (A | B) C\nA: /a/\nB: /ab+c/\nC: /b+d/\nD: /b/",
        ("abd", "abbd", "abcbd"),
        ("abc", "ab", "abcd"),
    ),
]

REFUSED = [
    case("flags in the middle", 'start: A B\nA: /(?i)a/\nB: "b"', refused=RE),
    case(
        "one group name twice in one scanner",
        "start: A B\nA: /(?P<q>a)/\nB: /(?P<q>b)/",
        no=("a", ""),
        refused=RE,
        contextual=("ab",),
        refused_in=("basic",),
    ),
    case("back reference", 'start: A B\nA: /(a|b)\\1/\nB: "b"', refused=REFERENCE),
    case("named back reference", "start: A\nA: /(?P<q>a|b)(?P=q)/", ("aa", "bb"), ("ab", "a"), REFERENCE),
    case("conditional group", "start: A\nA: /(?P<q>a)?(?(q)b|c)/", ("ab", "c"), ("ac", "b"), CONDITION),
    case("a comment swallows a parenthesis", 'start: A B\nA: /a # c/x\nB: "b"', refused=LARK),
    case("\\p is for the regex module", "start: /\\p{L}/", refused=LARK),
    case("a cycle of empty rules", 'start: a\na: e a "x" | f "y"\ne.2:\nf:\n', refused=LOOP),
    case("a cycle of one-symbol rules", 'start: a\na.2: b | "x"\nb.1: a', refused=LOOP),
    case("not LALR", 'start: x "a" | y "a"\nx: "c"\ny: "c"', refused=LARK),
]

CASES = [*MICRO, *RELABELLING, *ASSERTIONS, *REGEXES, *PARSING, *CONTEXTS, *REFUSED]


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


@both_modes
@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_the_verdicts_are_larks(example: Case, lexer: str) -> None:
    texts = example.texts[lexer]
    if texts:  # none where Lark cannot load the grammar, or never returns
        lark = Lark(example.grammar, parser="lalr", lexer=lexer)
        assert {text: parses(lark, text) for text in texts} == texts


@both_modes
@pytest.mark.parametrize("example", CASES, ids=lambda example: example.name)
def test_stepping_agrees_with_lark_or_refuses(example: Case, lexer: str) -> None:
    """Byte by byte, and in three random segmentations."""
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
