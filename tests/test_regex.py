"""One pattern as a leftmost-first automaton, judged by Python's `re`.

The judge matches text with `re`; the judged is simulated here on bytes: the match is the last position
whose formula holds of the rest of the text.
"""

import itertools
import os
import random
import re
import subprocess
import sys

import numpy as np
import pytest

from jaxgcd._budget import Budget
from jaxgcd.errors import GrammarTooLarge, UnsupportedRegexError
from jaxgcd.lexing import charset
from jaxgcd.lexing.automaton import compile_pattern, existence
from jaxgcd.lexing.formula import FALSE, TRUE, Automaton, Formulas
from jaxgcd.lexing.minimise import refine
from jaxgcd.limits import Limits


def holds(formulas: Formulas, formula: int, rest: bytes) -> bool:
    """Whether `formula` holds of a text that goes on with `rest` and ends there."""
    for byte in rest:
        if formula in (FALSE, TRUE):
            break
        formula = formulas.derivative(formula, byte)
    return formulas.at_end(formula)


def match_length(formulas: Formulas, automaton_id: int, text: str) -> int | None:
    """The length in bytes of the automaton's match at the start of `text`."""
    automaton, data = formulas.automata[automaton_id], text.encode()
    state, found = 1, None
    for position in range(len(data) + 1):
        if holds(formulas, automaton.accept[state], data[position:]):
            found = position
        if position < len(data):
            state = automaton.step(state, data[position])
    return found


def expected_length(pattern: re.Pattern, left: str, text: str) -> int | None:
    """The length in bytes of `re`'s match at the start of `text`, where `left` stands before it."""
    match = pattern.match(left + text, len(left))
    return len(match.group().encode()) if match else None


def compile_alone(pattern: str) -> tuple[Formulas, int]:
    """The automaton of a pattern with nothing on its left."""
    formulas = Formulas()
    return formulas, compile_pattern(formulas, pattern, "T").alone[0]


def texts(letters: str, longest: int) -> list[str]:
    return ["".join(t) for n in range(longest + 1) for t in itertools.product(letters, repeat=n)]


def assert_agrees(pattern: str, samples: list[str], lefts: tuple[str, ...] = ("",)) -> None:
    formulas = Formulas()
    tracker = compile_pattern(formulas, pattern, "T")
    judge = re.compile(pattern)
    for left in lefts:
        automata = tracker.automata[tracker.read(left.encode())]
        assert automata is not None, "a character is read to its end"
        for text in samples:
            if left or text or r"\B" not in pattern:  # until Python 3.14 `\B` is false in an empty text
                found = match_length(formulas, automata[0], text)
                assert found == expected_length(judge, left, text), (pattern, left, text)


# Random patterns.

QUANTIFIERS = "* + ? *? +? ?? {2} {0,2} {1,2}? {2,} {1,}? *+ ++ ?+ {1,2}+".split()
LOOKBEHINDS = ["a", "b", "ab", "[ab]b", "a|b", "ba|aa", "a(?=b)", "a(?!b)", "(?<=a)b", r"a\b", "(?>a)b"]
ANCHORS = [r"\b", r"\B", "$", r"\Z", "^", "(?m:^)", "(?m:$)"]
UNICODE_CLASSES = [
    ".",
    "[^a]",
    "[a-z]",
    "[é-\u212a]",
    r"\w",
    r"\W",
    r"\s",
    "[^é]",
    r"\d",
    r"[^\w]",
    r"[\s😀]",
]


def random_pattern(rng: random.Random, atoms: list[str], depth: int) -> str:
    def part() -> str:
        return random_pattern(rng, atoms, depth - 1)

    if depth <= 0 or rng.random() < 0.25:
        return rng.choice(atoms)
    shapes = {
        "sequence": (20, lambda: part() + part()),
        "choice": (15, lambda: f"(?:{part()}|{part()})"),
        "empty": (5, lambda: f"(?:|{part()})"),
        "repeat": (22, lambda: f"(?:{part()}){rng.choice(QUANTIFIERS)}"),
        "atomic": (4, lambda: f"(?>{part()})"),
        "lookahead": (8, lambda: f"(?{rng.choice('=!')}{part()})"),
        "lookbehind": (5, lambda: f"(?<{rng.choice('=!')}{rng.choice(LOOKBEHINDS)})"),
        "anchor": (4, lambda: rng.choice(ANCHORS)),
        "flags": (3, lambda: f"(?{rng.choice(['i', 's', 'm', 'a', 'u', '-i', 's-m'])}:{part()})"),
    }
    weights = [weight for weight, _ in shapes.values()]
    return rng.choices([make for _, make in shapes.values()], weights)[0]()


def check_random(seed: int, count: int, atoms: list[str], letters: str, longest: int) -> None:
    """Compares `count` random patterns, for some texts on their left."""
    rng = random.Random(seed)
    samples = texts(letters, longest)
    lefts = ("", "a", "b\n", *("".join(rng.choices(letters, k=n)) for n in (1, 2, 3)))
    for _ in range(count):
        assert_agrees(random_pattern(rng, atoms, rng.choice([2, 3, 4])), samples, lefts)


@pytest.mark.parametrize("seed", range(4))
def test_random_patterns_over_two_letters(seed: int, prove_factor: int) -> None:
    check_random(seed, 250 * prove_factor, ["a", "b", ".", "[^a]", "", "ab", "a|b"], "ab", 7)


@pytest.mark.parametrize("letters", ["kK\u212a", "aé\n", "😀é ", "sſ\ue000"])
def test_random_patterns_over_characters_of_all_lengths(letters: str, prove_factor: int) -> None:
    check_random(0, 60 * prove_factor, [*letters, *UNICODE_CLASSES], letters, 4)


# Patterns by hand.

STRING = r'[ubf]?r?("(?!"").*?(?<!\\)(\\\\)*?"' + r"|'(?!'').*?(?<!\\)(\\\\)*?')"
CASES = [
    # lark's common.lark, and terminals of real grammars
    (r'".*?(?<!\\)(\\\\)*?"', ['"', '""', '"a"', r'"a\""', r'"\\"', r'"\\\"x"', '"a"b"', '"a\n"', r'"\"']),
    (r"\/\*(\*(?!\/)|[^*])*\*\/", ["/**/", "/***/", "/* a */ */", "/* *", "/*é*/", "/*\n*/x"]),
    (
        r"(?i:[ubf]?r?(\"(?!\"\").*?\"|'(?!'').*?'))",
        ['"a"', '""', '"""', '""x', "bR'x'", "r''", "u'''a'''", "'a"],
    ),
    (f"(?is:{STRING})", ['"a\nb"', '"""', '""', r"f'\'x'", r'"a\\"b"', "'" + "\\" * 5 + "'", "'\\"]),
    (r"(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:e[+-]?\d+)?", ["1.", "1.5", ".5", ".", "1.e3", "1.e", "1.e+"]),
    (r"//[^\n]*", ["//", "//a\nb", "/", "//é"]),
    (r"(\r?\n[\t ]*)+", ["\n", "\r\n \n x", "\r", "\n\t\r"]),
    # lookahead at the end of a lexeme
    ("a(?!b)", ["a", "ab", "ac", "aé"]),
    ("a(?=b)", ["a", "ab", "ac"]),
    ("a+(?=b|$)", ["aa", "aab", "aac", "aa\n", "aa\nb"]),
    (r"[a-z]+(?![a-z ])", ["if", "if x", "x", "if("]),
    ("if(?!f)|[a-z]+?", ["if", "iff", "ifx", "i"]),
    ("(?=ab|ac)a(?!c)", ["ab", "ac", "a", "ad"]),
    ("a(?=b(?=c)|d(?!e))", ["abc", "abd", "ad", "ade", "ab"]),
    ("(?:(?!end).)*", ["", "en", "send", "eend", "endend", "enenen"]),
    # the end of the text
    ("a$", ["a", "a\n", "a\n\n", "ab", "a\nb"]),
    ("(?m)a$", ["a", "a\nb", "ab", "aé"]),
    (r"a\Z", ["a", "a\n", "aé"]),
    ("[ab$]+$", ["ab", "a$", "ab\n", "abc"]),
    # to the left, inside the lexeme
    (r"a\b", ["a", "ab", "a b", "aé", "a-"]),
    (r"a\B", ["a", "ab", "a b", "aé", "a-"]),
    (r"(?a)a\b", ["aé", "ab"]),
    (r"x.\bb", ["x-b", "xab", "xéb", "x b"]),
    ("(?m)a\n^b", ["a\nb", "ab"]),
    ("a(?<!b)c|a", ["ac", "a"]),
    (r"é.(?<=é😀)x", ["é😀x", "éax", "é😀"]),
    ("(?<!a)b|b", ["b", "ab"]),
    ("x(?:^|y)", ["x", "xy"]),
    # to the left, outside the lexeme
    ("(?<!a)b", ["b", "ab"]),
    ("(?<=a)b", ["b", "ab"]),
    ("a?(?<=a)b", ["b", "ab"]),
    ("(?<=a-)b|(?<!-)b(?=c)", ["b", "bc"]),
    (r"\bb", ["b"]),
    (r"\B", ["b", "-", "é"]),
    ("^a", ["a"]),
    (r"\Aa", ["a"]),
    ("(?m)^a", ["a"]),
    ("a(?<=-a)", ["a", "aa"]),
    ("(?=^a|b)", ["a", "b"]),
    ("a|(?!(?<=-)b)b", ["a", "b"]),
    ("(?>^a|b)c", ["ac", "bc"]),
    (r"a(?<=\ba)", ["a"]),
    (r"(?<=\w\b.)b|c", ["b", "c"]),
    ("(?<=a(?=bc)).c|b", ["bc", "b", "bb"]),
    ("(?<=(?<!a)-)b|bc", ["b", "bc"]),
    ("(?<!(?<!a)b)b(?<!(?<!a)b)", ["b", "bb"]),
    ("(?<=a)(?!(?<=b))b|(?<=-)(?!(?<=a))b", ["b", "bb"]),
    # case
    ("(?i)[a-z]+", ["k", "\u212a", "ſ", "ı", "İ", "é"]),
    ("(?i:s)", ["s", "S", "ſ"]),
    ("(?ai:s)", ["s", "S", "ſ"]),
    ("(?i)[σßǆﬅ]", [*"σςΣßẞǆǅﬅﬆ", "ss"]),
    ("(?i)[^k]", ["k", "K", "\u212a", "a"]),
    ("(?i)\U00010428", ["\U00010400", "\U00010428", "x"]),
    ("(?i:a)b", ["AB", "Ab", "ab"]),
    ("(?i)a(?-i:b)", ["AB", "Ab", "ab"]),
    # priorities and empty iterations
    ("a|ab", ["ab", "a"]),
    ("(?:a|ab)(?:c|bcd)", ["abcd", "abc", "ac"]),
    ("x(|a)*", ["xaa", "x"]),
    ("x(|a)+", ["xaa", "x"]),
    ("x(|a){2,3}", ["xaaa", "x"]),
    ("x(a|)*", ["xaa", "x"]),
    ("(a*)*b|a", ["aab", "aa"]),
    ("(?:a??)*?b", ["aab", "b"]),
    ("a{2,3}?", ["a", "aa", "aaa"]),
    ("a{0}b", ["b", "ab"]),
    # no way back
    ("(?>a+|b)c", ["aac", "bc", "ac", "c"]),
    ("(?>a|ab)c", ["abc", "ac"]),
    ("(?>a*?)b", ["ab", "b"]),
    ("(?>a(?=b)|ac)c?", ["ab", "ac", "acc", "a"]),
    ("a++b", ["aab", "aa"]),
    ("a++a", ["aa", "aaa"]),
    ("(?:ab?){2}+b?", ["abab", "aab", "ab", "ababb"]),
    ("(?:a|ab){2}+", ["aba", "aa", "abab"]),
    ("x(?:a|){1,3}+", ["xaaaa", "x"]),
    # classes and flags
    (".", ["\U0001f600", "\n", "\x85", "\r", "\x00", "\uffff"]),
    ("(?s).", ["\n", "\r"]),
    (r"\d+", ["1٣", "²"]),
    (r"(?a)\d+", ["1٣", "٣"]),
    (r"\w+", ["aé_9ªⅧ中", "-"]),
    (r"[^\W\d]\w*", ["a1", "1a", "é٣"]),
    (r"\s+", [" \t\x1c\x85\u2003", "\u200b"]),
    ("(?x) a b # comment", ["ab", "a b"]),
    (r"[\x00-\U0010ffff]", ["\x00", "\U0010ffff"]),
    ("(?P<q>a)c?", ["ac", "a"]),
    # nothing and never
    ("", ["", "a"]),
    ("a?", ["", "a", "b"]),
    ("(?!)", ["", "a"]),
    (r"a[^\s\S]", ["a", "ab"]),
    (r"\Z", ["", "a"]),
    (r"(?:a|\Z)b*", ["", "ab", "b"]),
]


@pytest.mark.parametrize(("pattern", "samples"), CASES, ids=[pattern for pattern, _ in CASES])
def test_patterns_by_hand(pattern: str, samples: list[str]) -> None:
    lefts = ("", "a", "-", "é\n", "a-", "--")
    assert_agrees(pattern, [*samples, *(f"{text} tail" for text in samples)], lefts)


@pytest.mark.parametrize(
    "pattern",
    [
        r"(a)\1",
        r"(?P<x>a)(?P=x)",
        r"(a)?(?(1)b|c)",
        "(?L)a",
        "a(",
        "a(?i)b",
        "(?<=a+)b",
        r"a(?<=(?=a*)b*)",
    ],
)
def test_what_is_not_supported_is_an_error_that_names_the_terminal(pattern: str) -> None:
    with pytest.raises(UnsupportedRegexError, match="MY_TERMINAL"):
        compile_pattern(Formulas(), pattern, "MY_TERMINAL")


TINY = Limits(regex_nodes=100, regex_states=100)


@pytest.mark.parametrize(
    "pattern", ["a{101}", "(?:a|b)*a(?:a|b){9}", "(?:(?=.{9}b)a|b)*", "(?:" * 4000 + ")" * 4000]
)
def test_what_is_too_large_is_an_error_that_names_limit_and_terminal(pattern: str) -> None:
    with pytest.raises(GrammarTooLarge, match=r"MY_TERMINAL.*(100|nested)"):
        compile_pattern(Formulas(), pattern, "MY_TERMINAL", budget=Budget(TINY))


# Counted repeats. Their automata are chains: each iteration is a state, or a few.

COUNTED = [
    ("a{0,2000}b", "a" * 1999, "a"),
    ("a{0,2000}?b", "a" * 1999, "a"),
    ("a{0,2000}+a?b", "a" * 1999, "a"),
    ("(?:a?){0,2000}b", "a" * 1999, "a"),
    ("(?:ab?){999,1000}c", "ab" * 998, "ab"),
    (r'"(?:[^"\\]|\\.){0,2000}"', '"' + 999 * r"é\"", "a"),
    ("(?=[^b]{0,200}b)a*", "a" * 199, "a"),
]


@pytest.mark.parametrize(("pattern", "text", "more"), COUNTED, ids=[pattern for pattern, _, _ in COUNTED])
def test_large_counts_end_where_re_ends_them(pattern: str, text: str, more: str) -> None:
    """Texts of one iteration less and more than the greatest count, complete and not."""
    samples = [text + count * more + end for count in range(4) for end in ("", "b", "c", '"')]
    assert_agrees(pattern, samples)


TOO_LARGE = {
    "a{1,100000}": Limits(),
    "(?:a{0,2000}){0,2000}": Limits(),
    r"\w{0,2000}x": Limits(regex_states=10_000),
    "(?:a*b*){0,200}c": Limits(regex_steps=80_000),
}


@pytest.mark.parametrize("pattern", TOO_LARGE)
def test_counts_that_are_too_large_are_an_error_that_names_the_terminal(pattern: str) -> None:
    """Each iteration is written out, in a bounded number of nodes, states and steps."""
    counted = re.escape(pattern[pattern.rindex("{") : pattern.rindex("}") + 1])
    with pytest.raises(GrammarTooLarge, match=rf"terminal MY_TERMINAL: .* shorten its repeat `{counted}`"):
        compile_pattern(Formulas(), pattern, "MY_TERMINAL", budget=Budget(TOO_LARGE[pattern]))


# Characters.

CLASSES = r"""
[a-z] [^a-z\d] [K] k [^k] i ſ [σßǆﬅ] [à-ÿ] [\W_k] [\d\s] \D \S [Ⅰ\w] [ⓐ-ⓩ\W] ẞ İ [^\u0130i] [\x00-\xff]
[\U00010400-\U0001044f] \U00010428 [\u0100-\U00010410x] [\uabcd\ud800-\ue001]
""".split()


@pytest.mark.parametrize("flags", [0, re.IGNORECASE, re.ASCII, re.IGNORECASE | re.ASCII])
def test_classes_have_the_members_that_re_finds_among_all_characters(flags: int) -> None:
    codes = [*range(0xD800), *range(0xE000, 0x110000)]
    everything = "".join(map(chr, codes))
    for pattern in CLASSES:
        (opcode, argument), *_ = re._parser.parse(pattern, flags)
        items = argument if opcode is charset.op.IN else [(charset.op.LITERAL, argument)]
        if opcode is charset.op.NOT_LITERAL:
            items = [(charset.op.NEGATE, None), *items]
        runs = re.finditer(f"(?:{pattern})+", everything, flags)
        expected = charset.union((codes[run.start()], codes[run.end() - 1]) for run in runs)
        assert charset.from_items(items, flags) == expected, pattern


def read(automaton: Automaton, data: bytes) -> int:
    state = 1
    for byte in data:
        state = automaton.step(state, byte)
    return state


def test_prefixes_of_characters_live_and_ill_formed_bytes_die() -> None:
    formulas, number = compile_alone("(?s).")
    automaton = formulas.automata[number]
    rng = random.Random(0)
    edges = [0, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, 0x10FFFF]
    for code in [
        *edges,
        *(rng.choice([rng.randrange(0xD800), rng.randrange(0xE000, 0x110000)]) for _ in range(500)),
    ]:
        data = chr(code).encode()
        assert automaton.accept[read(automaton, data)] == TRUE
        for end in range(1, len(data)):
            half = read(automaton, data[:end])
            assert automaton.alive[half] and automaton.accept[half] == FALSE
    # A lone continuation byte, overlong forms, surrogates, beyond U+10FFFF, a broken sequence.
    for (
        spelled
    ) in "80 bf c080 c1bf e08080 e09fbf eda080 edbfbf f0808080 f48f7f f4908080 f5 ff e28061".split():
        assert read(automaton, bytes.fromhex(spelled)) == 0, spelled


def test_lookaheads_are_decided_at_the_first_byte_that_decides_them() -> None:
    formulas, number = compile_alone(r"a\Z")
    accept = formulas.automata[number].accept[read(formulas.automata[number], b"a")]
    assert accept not in (FALSE, TRUE) and formulas.at_end(accept)
    for first in "bé中😀\ud7ff\ue000\U0010ffff":
        assert formulas.derivative(accept, first.encode()[0]) == FALSE


# Formulas.


def test_formulas_are_equal_exactly_if_they_mean_the_same() -> None:
    formulas, number = compile_alone("abc")
    atoms = [formulas.atom(number, state) for state in (1, 2, 3)]
    by_meaning: dict[tuple[bool, ...], int] = {}
    known = [FALSE, TRUE, *atoms]
    rng = random.Random(0)
    meanings = {FALSE: (False,) * 8, TRUE: (True,) * 8}
    for index, atom in enumerate(atoms):
        meanings[atom] = tuple(bool(case >> index & 1) for case in range(8))
    for _ in range(2000):
        first, second = rng.choice(known), rng.choice(known)
        pairs = list(zip(meanings[first], meanings[second], strict=True))
        for made, meaning in [
            (formulas.both(first, second), tuple(a and b for a, b in pairs)),
            (formulas.either(first, second), tuple(a or b for a, b in pairs)),
            (formulas.without(first, second), tuple(a and not b for a, b in pairs)),
            (formulas.negate(first), tuple(not a for a, _ in pairs)),
        ]:
            assert meanings.setdefault(made, meaning) == meaning
            assert by_meaning.setdefault(meaning, made) == made
            if made not in known:
                known.append(made)
    # All 256 Boolean functions of three atoms, and no more nodes for them than functions.
    assert len(by_meaning) == 2 ** len(meanings[TRUE])


def test_an_atom_is_a_match_after_one_more_byte() -> None:
    formulas, number = compile_alone("a+|b(?=a)")
    atom = formulas.atom(number, 1)
    assert [holds(formulas, atom, rest) for rest in (b"", b"a", b"b", b"ba", b"c", b"ca")] == [
        False, True, False, True, False, False,
    ]  # fmt: skip
    dead_end = compile_pattern(formulas, "ab?", "T").alone[0]
    state = read(formulas.automata[dead_end], b"ab")
    assert formulas.automata[dead_end].accept[state] == TRUE and formulas.atom(dead_end, state) == FALSE


def test_existence_means_the_same_with_fewer_states() -> None:
    rng, samples, fewer = random.Random(0), texts("ab", 6), 0
    for _ in range(300):
        pattern = random_pattern(rng, ["a", "b", ".", "ab"], 3)
        formulas, number = compile_alone(pattern)
        some = existence(formulas, number)
        for text in samples:
            rest = text.encode()
            plain, coarse = formulas.atom(number, 1), formulas.atom(some, 1)
            assert holds(formulas, plain, rest) == holds(formulas, coarse, rest), (pattern, text)
        sizes = [len(formulas.automata[n].accept) for n in (number, some)]
        assert sizes[1] <= sizes[0] + 1, "the accepting state, if the start was another such"
        fewer += sizes[1] < sizes[0]
    assert fewer


# The arrays.


def test_automata_are_minimal_and_keep_their_invariants() -> None:
    for pattern, _ in CASES:
        formulas, number = compile_alone(pattern)
        for automaton in formulas.automata:
            states = len(automaton.accept)
            assert automaton.classes.dtype == np.uint8 and automaton.trans.dtype == np.int32
            assert automaton.trans.shape == (states, automaton.classes.max() + 1)
            assert not automaton.trans[0].any() and automaton.accept[0] == FALSE
            assert automaton.alive.tolist() == automaton.trans.any(axis=1).tolist()
            blocks = refine(automaton.trans, np.array(automaton.accept))
            assert blocks.max() + 1 == states or (states == 2 and not automaton.trans.any())
            assert len({column.tobytes() for column in automaton.trans.T}) == automaton.trans.shape[1]
        assert compile_pattern(formulas, pattern, "OTHER").alone[0] == number


def test_equal_languages_of_equal_priority_share_an_automaton() -> None:
    formulas = Formulas()
    same = [compile_pattern(formulas, p, "T").alone for p in ("[ab]c*", "a(?:c)*|b(?:cc|c)*", "(?:b|a)c{0,}")]
    assert len(set(same)) == 1
    assert compile_pattern(formulas, "[ab]c*?", "T").alone not in same


DIGEST = """
import hashlib
from jaxgcd.lexing.automaton import compile_pattern, existence
from jaxgcd.lexing.formula import Formulas
formulas, digest = Formulas(), hashlib.sha256()
for pattern in ["(?i)[k-s]+(?=a|b(?!c))", "(?>a*|b)(?:c|)*$", "ax[éè-😀]*(?<!xé)y", "(?:(?=.*x)a)*+"]:
    existence(formulas, compile_pattern(formulas, pattern, "T").alone[0])
for automaton in formulas.automata:
    digest.update(automaton.classes.tobytes() + automaton.trans.tobytes() + repr(automaton.accept).encode())
print(digest.hexdigest())
"""


def test_automata_do_not_depend_on_the_hash_seed() -> None:
    digests = set()
    for seed in ("1", "2", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1
