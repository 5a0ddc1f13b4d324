"""The fast enumeration and the list of features against plain ways to find them out."""

import random

import pytest
from enumeration import Enumeration
from grammar_features import FEATURES, features, looks_left
from lark import Lark
from lark.exceptions import LarkError
from random_grammars import random_grammar
from small_grammars import DEAD_ENDS, SMALL, Small

LEXERS = pytest.mark.parametrize("lexer", ["basic", "contextual"])

# For every feature a grammar over a, b and c that has it and one that almost does.
PAIRS = {
    "terminal begins another": ('start: A B\nA: "a"\nB: "ab"', 'start: A B\nA: "b"\nB: "ab"'),
    "terminals share a text": ("start: A B\nA: /a+/\nB: /ab|aa/", 'start: A B\nA: "a"\nB: /ab|aa/'),
    "terminal priority": ('start: A B\nA.2: "a"\nB: "b"', 'start: A B\nA: "a"\nB: "b"'),
    "keyword": ('start: A B\nA: /a+/\nB: "aa"', 'start: A B\nA: /a+/\nB.2: "aa"'),
    "keyword that stays": ('start: A B\nA: /a+/\nB: "aa"i', 'start: A B\nA: /a+/\nB: "aa"'),
    "ignored": ('start: "a"\n%ignore "b"', 'start: "a" "b"'),
    "ignored and in a rule": ('start: "a" B\nB: "b"\n%ignore B', 'start: "a"\nB: "b"\n%ignore B'),
    "ignored string in a live regex": ('start: A\nA: /a+/\n%ignore "a"', 'start: A\nA: /a+/\n%ignore "b"'),
    "live string in an ignored regex": ('start: "a"\n%ignore /a+/', 'start: "a"\n%ignore /b+/'),
    "lookahead": ("start: A\nA: /a(?=b)|a/", "start: A\nA: /a(?!b)/"),
    "negative lookahead": ("start: A\nA: /a(?!b)/", "start: A\nA: /a(?=b)/"),
    "lookbehind": ("start: A\nA: /a(?<=a)/", "start: A\nA: /a(?<!b)/"),
    "negative lookbehind": ("start: A\nA: /a(?<!b)/", "start: A\nA: /a(?<=a)/"),
    "leading lookahead": ("start: A\nA: /(?=a)ab?/", "start: A\nA: /a(?=b)b/"),
    "inner lookahead": ("start: A\nA: /a(?=b)b/", "start: A\nA: /(?=a)ab?/"),
    "trailing lookahead": ("start: A\nA: /a(?=b)/", "start: A\nA: /a(?=b)b/"),
    "leading lookbehind": ("start: A\nA: /b|(?<=b)a/", "start: A\nA: /a(?<=a)b/"),
    "inner lookbehind": ("start: A\nA: /a(?<=a)b/", "start: A\nA: /a(?<=a)/"),
    "trailing lookbehind": ("start: A\nA: /a(?<=a)/", "start: A\nA: /a(?<=a)b/"),
    r"\b": ("start: A\nA: /a\\b/", "start: A\nA: /a\\B/"),
    r"\B": ("start: A\nA: /a\\B/", "start: A\nA: /a\\b/"),
    "^": ("start: A\nA: /^a/", "start: A\nA: /[^a]/"),
    "$": ("start: A\nA: /a$/", "start: A\nA: /a\\Z/"),
    r"\A": ("start: A\nA: /\\Aa/", "start: A\nA: /^a/"),
    r"\Z": ("start: A\nA: /a\\Z/", "start: A\nA: /a$/"),
    "multiline anchor": ("start: A\nA: /^a/m", "start: A\nA: /^a/"),
    "leading anchor": ("start: A\nA: /^a/", "start: A\nA: /a$/"),
    "looks left of its lexeme": ("start: A\nA: /a(?<=ba)/", "start: A\nA: /ba(?<=ba)/"),
    "lazy quantifier": ("start: A\nA: /a+?/", "start: A\nA: /a+/"),
    "possessive quantifier": ("start: A\nA: /a++/", "start: A\nA: /a+/"),
    "atomic group": ("start: A\nA: /(?>a|ab)/", "start: A\nA: /(?:a|ab)/"),
    "flags": ("start: A\nA: /a/i", "start: A\nA: /a/"),
    "empty rule": ('start: "a" x\nx: | "b"', 'start: "a" x\nx: "a" | "b"'),
    "optional": ('start: "a" "b"?', 'start: "a" "b"'),
    "repeated": ('start: "a" "b"+', 'start: "a" "b"'),
    "left recursion": ('start: start "a" | "b"', 'start: "a" start | "b"'),
    "right recursion": ('start: "a" start | "b"', 'start: start "a" | "b"'),
    "middle recursion": ('start: "a" start "a" | "b"', 'start: "a" start | "b"'),
    "rule priority": ('start: x\nx.2: "a"', 'start: x\nx: "a"'),
    "shift/reduce conflict": ('start: start "a" start | "b"', 'start: start "a" | "b"'),
    "reduce/reduce conflict": ('start: x | y\nx.2: "a"\ny: "a"', 'start: x | y\nx.2: "a"\ny: "b"'),
}


def loaded(seed: int, lexer: str) -> Lark | None:
    """The random grammar of this seed, if Lark loads it."""
    try:
        return Lark(random_grammar(random.Random(seed)).text, parser="lalr", lexer=lexer)
    except LarkError:
        return None


@LEXERS
@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.name)
def test_small_grammars(small: Small, lexer: str) -> None:
    """The verdicts on up to 400 texts are those of `Lark.parse`, and what is viable follows from them."""
    lark = Lark(small.grammar, parser="lalr", lexer=lexer)
    longest = 5 if len(small.alphabet) < 4 else 3
    language = Enumeration(lark, small.alphabet, longest)
    texts = list(language.texts(longest))
    assert language.accepted == {text for text in texts if language.parses(text)}
    encoded = [text.encode() for text in language.accepted]
    assert language.viable == {text[:end] for text in encoded for end in range(len(text) + 1)}


@LEXERS
def test_random_grammars(lexer: str, prove_factor: int) -> None:
    """All 3,280 texts of up to seven letters, in steps."""
    larks = [loaded(seed, lexer) for seed in range(20 * prove_factor)]
    assert sum(lark is not None for lark in larks) > 10 * prove_factor
    for seed, lark in enumerate(larks):
        if lark is not None:
            language = Enumeration(lark, random_grammar(random.Random(seed)).alphabet, 3)
            language.extend(7)
            assert not language.check(language.texts(7)), seed
            assert language.accepted == {text for text in language.texts(7) if language.accepts(text)}


@LEXERS
def test_where_lark_hangs(lexer: str) -> None:
    """At the end of "a" and "ca", before the "b" of "ddb"; such texts are not accepted, others are."""
    grammar = 'start: "c"? x "b"? | "d" "d" e "c"\nx.2: x | "a"\ne: f e "c" | g "b"\nf.2:\ng:'
    language = Enumeration(Lark(grammar, parser="lalr", lexer=lexer), "abcd", 4)
    hanging = {
        text: behind for text in language.texts(4) if (behind := language.hangs_behind(text)) is not None
    }
    assert language.accepted == {"ab", "cab"}
    assert {"a": "a", "ca": "ca", "ddb": "dd", "ddbc": "dd"}.items() <= hanging.items()
    assert language.hangs(3) and not language.hangs(0) and "ab" not in hanging


def test_what_looks_how_far_left() -> None:
    widths = {"ab+": 0, "(?=a)b": 0, "(?<=ab)c": 2, "(?<!a(?<=bc))d": 3, r"\ba": 1, "a(?<=(?<!b|c)a)$": 3}
    assert {pattern: looks_left(pattern) for pattern in widths} == widths


def test_long_completions_are_found() -> None:
    """Five letters with a bracket of three letters each; and a letter that looks far ahead."""
    language = Enumeration(Lark('start: "b" | "a" start "bcc"', parser="lalr"), "abc", 4)
    assert language.completes(b"a") and language.completes(b"aaaaa") and not language.completes(b"aac")
    language = Enumeration(Lark("start: A A\nA: /a(?=bbbbb)|b{6}c/", parser="lalr"), "abc", 7)
    assert (
        not language.accepted
        and language.completes(b"a")
        and b"abb" in language.viable
        and not language.completes(b"aa")
    )


@pytest.mark.parametrize("small", DEAD_ENDS, ids=lambda small: small.name)
def test_dead_ends_are_not_completed(small: Small) -> None:
    """Wherever the oracle with its stated bound says that there is no completion."""
    oracle = small.language()
    language = Enumeration(oracle.lark, small.alphabet, 4)
    for text in language.texts(3):
        if oracle.viable(text[:-1].encode()):
            assert language.completes(text.encode(), outlooks=100) == oracle.viable(text.encode()), text


@pytest.mark.parametrize("feature", FEATURES)
def test_features(feature: str) -> None:
    """The first grammar of each pair has the feature, the second has not."""
    has, lacks = (Lark(grammar, parser="lalr", lexer="basic") for grammar in PAIRS[feature])
    assert feature in features(has, "abc") and feature not in features(lacks, "abc")
    assert features(has, "abc") | features(lacks, "abc") <= set(FEATURES)
