"""Assertions that look left of their lexeme: what earlier lexemes read decides, in both lexer modes."""

import functools
import random
from itertools import product

import harness
import numpy as np
import pytest
from bytewise import parses
from lark import Lark
from oracle import Segmenter, pick
from small_grammars import Small, Words, words

import jaxgcd
from jaxgcd._budget import Budget
from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.lexing.left import TEXT_START, joint
from jaxgcd.lexing.scanner import ScannerTerminal, build_scanners
from jaxgcd.limits import Limits

LEXERS = pytest.mark.parametrize("lexer", ["basic", "contextual"])

# Lark's verdicts, the same in both modes.
QUIRKS = {
    "^ only at text start": ("start: A A\nA: /^a/", {"aa": False, "a": False}),
    "^ multiline": ('start: (A|NL)+\nA: /^a/m\nNL: "\\n"', {"a\na": True, "aa": False, "a\n\na": True}),
    "lookbehind sees previous terminal": ('start: A B\nA: "a"\nB: /(?<=a)b/', {"ab": True, "a": False}),
    "neg lookbehind sees previous terminal": (
        'start: (A|X)  B\nA: "a"\nX: "x"\nB: /(?<!a)b/',
        {"ab": False, "xb": True},
    ),
    "\\b across terminals": ('start: A B\nA: "a"\nB: /\\bb/', {"ab": False}),
    "\\b across terminals 2": ('start: A B\nA: "-"\nB: /\\bb/', {"-b": True}),
    "\\A is the start of the text": ('start: A "b" A?\nA: /\\Aa/', {"ab": True, "aba": False}),
    "\\B across terminals": ('start: A B\nA: "a" | "-"\nB: /\\Bb/', {"ab": True, "-b": False}),
    "ignored lexemes are seen": ('start: A B\nA: "a"\nB: /(?<= )b/\n%ignore " "', {"a b": True, "ab": False}),
    "the start is seen through ignored ones": ('start: A\nA: /^a/\n%ignore " "', {"a ": True, " a": False}),
    "a keyword is tested alone": (
        'start: (IF | NAME | "-")+\nIF: "if"\nNAME: /(?<!-)[a-z]+/',
        {"if": True, "-if": False, "if-": True},
    ),
}

SMALL = [
    Small("lookbehind", 'start: (A | B)+\nA: "a"\nB: /(?<=a)b/', "ab"),
    Small("negative lookbehind", "start: (A | B)+\nA: /a/\nB: /(?<!a)b/", "ab"),
    Small("two back", 'start: (A | B | C)+\nA: "a"\nB: "b"\nC: /(?<=ab)c|(?<!b)cc/', "abc"),
    Small("half outside", 'start: (A | B)+\nA: "a"\nB: /b+(?<=abb)|b(?<!ab)/', "ab"),
    Small("word start", "start: W (S W)*\nW: /\\ba+/\nS: /-|\\Bb/", "ab-"),
    Small("no word start", "start: (A | B)+\nA: /a\\b|-/\nB: /\\Bb/", "ab-"),
    Small("lines", 'start: (H | A | NL)+\nH: /^b/m\nA: "a"\nNL: "\\n"', "ab\n"),
    Small("the first line", 'start: H? (A | B)*\nH: /^#a*/\nA: "a"\nB: /b|#/', "ab#"),
    Small("start of text", "start: (F | A)+\nF: /\\Aab/\nA: /a|b/", "ab"),
    Small("ignored in between", 'start: A B*\nA: "a"\nB: /(?<= )b|(?<=b)bb/\n%ignore " "', "ab "),
    Small("ignored only there", 'start: (A | B)+\nA: "a"\nB: "b"\n%ignore /(?<!b)c+/', "abc"),
    Small("fallback", "start: (A | AB | B)+\nA: /a/\nAB: /(?<!b)ab+c/\nB: /(?<=a)b|c/", "abc"),
    Small("two-byte letters", "start: (A | B)+\nA: /é/\nB: /(?<=é)b|(?<!è)é?è/", "éèb"),
    Small("looks both ways", "start: (A | B)+\nA: /a/\nB: /(?<=a(?=bb))b|(?<!a)b/", "ab"),
    Small("inside a lookahead", 'start: (A | B)+\nA: /a(?=(?<!ba)b|a)|a$/\nB: "b"', "ab"),
    Small("another scanner", 'start: "(" X ")" | "[" Y "]"\nX: /(?<=\\()a/\nY: /(?<!a)a+?/', "()[]a"),
]


@LEXERS
@pytest.mark.parametrize("name", QUIRKS)
def test_quirks(name: str, lexer: str) -> None:
    grammar, verdicts = QUIRKS[name]
    alphabet = sorted(set("".join(verdicts)))
    assert accepted_by_lark(grammar, lexer, list(verdicts)) == list(verdicts.values())
    assert accepted(grammar, lexer, words(alphabet), list(verdicts)) == list(verdicts.values())


@LEXERS
@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.name)
def test_whole_masks(small: Small, lexer: str) -> None:
    """The mask after every viable text of up to four letters."""
    vocabulary, language = words(small.alphabet, longest=2), small.language(lexer)
    segmenter = Segmenter(vocabulary.tokens, skip=(*vocabulary.eos, *vocabulary.special))
    prefixes = [text for text in texts(small.alphabet, 4) if language.viable(text.encode())]
    compiled = harness.compile_small(small.grammar, vocabulary, lexer=lexer)
    trail = harness.trails(compiled, [segmenter.bytewise(text.encode()) for text in prefixes])
    wanted = [
        language.mask(
            text.encode(),
            vocabulary.tokens,
            eos=vocabulary.eos,
            special=vocabulary.special,
            size=vocabulary.size,
        )
        for text in prefixes
    ]
    assert compiled.exact, compiled.reasons
    wrong = np.argwhere(trail.masks != np.stack(wanted))[:5]
    assert not len(wrong), [(prefixes[row], vocabulary.tokens[token]) for row, token in wrong]


# Random grammars.

BEHIND = ["a", "b", "-", "[ab]", "[^a]", "ab", "b.", "a(?=b)", "(?<!a)b", "a\\b", "^a", "a|-"]
SHAPES = [
    "start: (T0 | T1 | T2)+",
    "start: T0 (T1 | T2)*",
    "start: x*\nx: T0 T1 | T2",
    "start: (T0 | T1)+\n%ignore T2",
]


def random_terminal(rng: random.Random) -> str:
    """A regex over a, b and -, most often with an assertion at its start."""
    behind = f"(?<{pick(rng, '=!')}{pick(rng, BEHIND)})"
    first = pick(rng, [behind, behind, behind, "\\b", "\\B", "^", "(?m:^)", "\\A", ""])
    body = pick(rng, ["a", "b", "-", "[ab]", "[b-]", "."]) + pick(rng, ["", "", "a", "b", "+", "*?-", "b+"])
    last = pick(rng, ["", "", "", "\\b", "(?!b)", "$", behind])
    return f"{first}{body}{last}" + pick(rng, ["", "", "", "|a", "|-", "|(?<=b)a+"])


def random_grammar(rng: random.Random) -> str:
    """Three such terminals in one of a few rules."""
    lines = [f"T{number}: /{random_terminal(rng)}/" for number in range(3)]
    return "\n".join([pick(rng, SHAPES), *lines])


@LEXERS
def test_random_grammars_accept_what_lark_parses(lexer: str, prove_factor: int) -> None:
    """All texts of up to six letters, byte by byte."""
    vocabulary, rng = words("ab-", longest=1), random.Random(3)
    samples, some = list(texts("ab-", 6)), 0
    for _ in range(10 * prove_factor):
        grammar = random_grammar(rng)
        wanted = accepted_by_lark(grammar, lexer, samples)
        found = accepted(grammar, lexer, vocabulary, samples)
        wrong = [text for text, a, b in zip(samples, found, wanted, strict=True) if a != b]
        assert not wrong, f"{wrong[:5]}\n{grammar}"
        some += any(wanted)
    assert some > 5 * prove_factor, "most of these grammars mean something"


# Trackers and starts.


def scanners_of(*patterns: str):
    terminals = [ScannerTerminal(f"T{n}", pattern, False, ()) for n, pattern in enumerate(patterns)]
    return build_scanners(Patterns(), [terminals, terminals[:1]], {})


def test_terminals_that_do_not_look_left_cost_nothing() -> None:
    scanners = scanners_of("a(?<=a)b", r'".*?(?<!\\)(\\\\)*?"', r"\w+\b", "(?<!a)b|b")
    assert not scanners.left.asks and scanners.left.read(b"ab") == TEXT_START
    assert scanners.start == [[-1, 1], [-1, 2]]


def test_a_scanner_has_a_start_for_each_way_the_left_matters() -> None:
    scanners = scanners_of("a", "^b", r"\bc")
    # At the start of the text, behind a word character, and behind another one; the second scanner has no
    # terminal that asks.
    assert [len(set(row) - {-1}) for row in scanners.start] == [3, 1]
    states = [scanners.left.read(text.encode()) for text in ("", "é", "é-", "-", "中")]
    chosen = [scanners.start[0][state] for state in states]
    assert len(set(chosen)) == 3 and chosen[1] == chosen[4] and chosen[2] == chosen[3]
    inside = scanners.left.read("é".encode()[:1])
    assert scanners.start[0][inside] == -1


def test_too_many_left_contexts_are_an_error() -> None:
    trackers = [scanners_of(pattern).left for pattern in ("(?<=a.{4})b", "(?<=b.{4})b")]
    with pytest.raises(GrammarTooLarge, match="lookbehinds"):
        joint(trackers, ["A", "B"], Budget(Limits(lexer_states=20)))


# What the tests ask.


def texts(alphabet: str, longest: int) -> list[str]:
    return ["".join(t) for n in range(longest + 1) for t in product(alphabet, repeat=n)]


def accepted_by_lark(grammar: str, lexer: str, samples: list[str]) -> list[bool]:
    return [parses(_lark(grammar, lexer), text) for text in samples]


@functools.lru_cache(maxsize=2)
def _lark(grammar: str, lexer: str) -> Lark:
    return Lark(grammar, parser="lalr", lexer=lexer)


def accepted(grammar: str, lexer: str, vocabulary: Words, samples: list[str]) -> list[bool]:
    """The library's verdicts, byte by byte; an empty language accepts nothing."""
    segmenter = Segmenter(vocabulary.tokens, skip=(*vocabulary.eos, *vocabulary.special))
    try:
        compiled = harness.compile_small(grammar, vocabulary, lexer=lexer)
    except jaxgcd.GrammarError as error:
        assert "is in the language" in str(error), error
        return [False] * len(samples)
    return harness.trails(compiled, [segmenter.bytewise(text.encode()) for text in samples]).accepts()
