"""Random grammars over three letters that use everything in which lexing and parsing can go astray.

`random_grammar` draws one from a seed. Terminals are drawn to overlap: prefixes of each other, keywords
inside identifiers, ignored strings inside live regexes and live strings inside ignored ones. Regexes look
ahead and behind, past both ends of their lexeme. Rules recur, may be empty, and run into conflicts that
Lark resolves. Lark refuses many of them (reduce/reduce conflicts, empty terminals): the caller draws again.
"""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from oracle import pick

ALPHABETS = ("abc", "abc", "abc", "ab-", "ab-", "ab ", "ab\n", "ab\n", "aAb", "aAb", "aé-")
ESCAPES = {"-": r"\-", "\n": r"\n"}
CLASSES = {"-": (r"\w", r"\W"), " ": (r"\s", r"\S"), "\n": (r"\s", r"\w")}  # by the third letter
LINE_ANCHORS = ("^", "$", "(?m:^)", "(?m:$)")
ANCHORS = (*LINE_ANCHORS, r"\A", r"\Z")
GREEDY = ("*", "+", "?", "{2}", "{1,2}")
QUANTIFIERS = (*GREEDY, "*?", "+?", "??", "{1,2}?", "*+", "++", "?+")


@dataclass(frozen=True)
class RandomGrammar:
    """The grammar as Lark reads it, and the letters of its texts."""

    text: str
    alphabet: str


def random_grammar(rng: random.Random) -> RandomGrammar:
    """A random grammar; Lark may refuse it, and its language may be empty."""
    letters, count = pick(rng, ALPHABETS), pick(rng, [2, 3, 3, 4])
    strings, lines = [_string(rng, letters)], []
    for number in range(count):
        lines.append(f"T{number}{_priority(rng)}: {_terminal(rng, letters, strings, number)}")
    lines += _ignore(rng, letters, strings, count)
    names = [f"T{number}" for number in range(count)]
    rules = _rules(
        rng, [*names, *names, *(_quoted(string) + _any_case(rng, letters) for string in strings[:2])]
    )
    return RandomGrammar("\n".join([*rules, *lines]), letters)


def _priority(rng: random.Random) -> str:
    return pick(rng, ["", "", "", "", "", ".1", ".2", ".-1"])


# Terminals.


def _string(rng: random.Random, letters: str) -> str:
    return "".join(pick(rng, letters) for _ in range(pick(rng, [1, 1, 1, 2, 2, 3])))


def _related(rng: random.Random, letters: str, strings: Sequence[str]) -> str:
    """A string that begins like an earlier one, or goes on behind it."""
    base = pick(rng, strings)
    return pick(rng, [base[:-1] or base, base + pick(rng, letters), base, _string(rng, letters)])


def _quoted(string: str) -> str:
    return '"' + string.replace("\n", "\\n") + '"'


def _any_case(rng: random.Random, letters: str) -> str:
    return "i" if "A" in letters and rng.random() < 0.5 else ""


def _terminal(rng: random.Random, letters: str, strings: list[str], number: int) -> str:
    """The definition of a terminal; strings are added to those that later ones are drawn from."""
    draw = rng.random()
    if draw < 0.3:
        strings.append(
            pick(rng, [strings[0], _related(rng, letters, strings), _related(rng, letters, strings)])
        )
        return _quoted(strings[-1]) + _any_case(rng, letters)
    if draw < 0.4:
        strings += [_related(rng, letters, strings), _related(rng, letters, strings)]
        return f"{_quoted(strings[-2])} | {_quoted(strings[-1])}"
    if draw < 0.46 and number:
        other = f"T{int(rng.random() * number)}"
        return pick(
            rng, [f'{other} "{letters[0]}"', f'{other}? "{letters[1]}"', f'({other} | "{letters[0]}")+']
        )
    flags = pick(rng, ["", "", "", "", "m", "s", "i" if "A" in letters else ""])
    if draw < 0.62:
        strings.insert(0, _string(rng, letters[:2]))
        return f"/{_identifier(rng, letters)}/{flags}"
    return f"/{_looking(rng, letters)}/{flags}"


def _identifier(rng: random.Random, letters: str) -> str:
    """What keywords are strings of."""
    first, both = _escaped(letters[0]), f"[{_escaped(letters[0])}{_escaped(letters[1])}]"
    every = "[" + "".join(map(_escaped, letters)) + "]"
    return pick(rng, [f"{both}+", r"\w+", f"{first}{every}*", f"{both}{every}?", f"{every}+", "[a-z]+"])


def _looking(rng: random.Random, letters: str) -> str:
    """A regex that may look around in front, inside and behind."""
    parts = [_regex(rng, letters, pick(rng, [0, 1, 2]))]
    if rng.random() < 0.4:
        parts.insert(0, _assertion(rng, letters, behind=0.75))
    if rng.random() < 0.3:
        parts += [_assertion(rng, letters, behind=0.5), _regex(rng, letters, 1)]
    if rng.random() < 0.4:
        parts.append(_assertion(rng, letters, behind=0.3))
    if rng.random() < 0.2:
        parts.append("|" + _regex(rng, letters, 1))
    return "".join(parts)


def _assertion(rng: random.Random, letters: str, *, behind: float) -> str:
    """A lookbehind with this probability, else a lookahead; but one in three is an anchor."""
    if rng.random() < 0.33:
        lines = LINE_ANCHORS * 2 if letters[-1] == "\n" else ()
        return pick(rng, [*ANCHORS, *lines, *([r"\b", r"\B"] if letters[-1] in CLASSES else [])])
    sign = pick(rng, "=!")
    if rng.random() < behind:
        return f"(?<{sign}{_fixed_width(rng, letters)})"
    return f"(?{sign}{_regex(rng, letters, 1)}{pick(rng, ['', '', '', '$'])})"


def _fixed_width(rng: random.Random, letters: str) -> str:
    """What a lookbehind looks for: one or two characters, sometimes with an assertion of its own."""
    one, two = _atom(rng, letters), _atom(rng, letters)
    nested = pick(rng, [f"(?={one})", f"(?!{two})", f"(?<!{two})", "^"])
    return pick(rng, [one, one, one, one + two, f"{one}|{two}", nested + one, one + nested])


def _regex(rng: random.Random, letters: str, depth: int) -> str:
    """A random regex; deep inside, only characters."""
    draw = rng.random()
    if depth == 0 or draw < 0.25:
        return _atom(rng, letters)
    if draw < 0.55:
        return _regex(rng, letters, depth - 1) + _regex(rng, letters, depth - 1)
    inner = _regex(rng, letters, depth - 1)
    if draw < 0.7:
        return f"(?:{inner}|{pick(rng, ['', _regex(rng, letters, depth - 1), inner + _atom(rng, letters)])})"
    if draw < 0.78:
        return f"(?>{inner}|{_regex(rng, letters, depth - 1)})"
    return f"(?:{inner}){pick(rng, QUANTIFIERS)}"


def _atom(rng: random.Random, letters: str) -> str:
    """Most often a letter or a few; seldom a class, which has many characters and takes long to compile."""
    if rng.random() < 0.03 and letters[-1] in CLASSES:
        return pick(rng, CLASSES[letters[-1]])
    one, two = _escaped(pick(rng, letters)), _escaped(pick(rng, letters))
    return pick(rng, [one, one, one, f"[{one}{two}]", f"[^{one}]", "."])


def _escaped(letter: str) -> str:
    return ESCAPES.get(letter, letter)


def _ignore(rng: random.Random, letters: str, strings: Sequence[str], count: int) -> list[str]:
    """Up to two `%ignore` lines: a terminal of the rules, a string of them, part of a regex, or a new one."""
    lines = []
    for _ in range(pick(rng, [0, 0, 1, 1, 1, 2])):
        last = _escaped(letters[-1])
        kinds = [f"T{int(rng.random() * count)}", _quoted(_related(rng, letters, strings)), f"/{last}/"]
        kinds += [f"/{last}+/", f"/[{last}{_escaped(pick(rng, letters))}]+/", f"/{_looking(rng, letters)}/"]
        lines.append(f"%ignore {pick(rng, kinds)}")
    return lines


# Rules: shapes in which A, B, C are symbols, X and Y the other rules.

START = (
    "x+",
    "x* y",
    "(x | y)+",
    "(x | A)*",
    "(x A)+ y?",
    "x (A x)*",
    "x (A y)* B?",
    "(A x | B y)+",
    "A* x B?",
    "x A+ | y B",
    "(A B | x)*",
    "A~1..2 x?",
    "A x+ | y",
    "| A start B",
    "A | A start B",
    "start A | x",
    "A start | y",
    "A X B | C X C",
)
SHAPES = (
    "A | B",
    "A B | A C",
    "A B? C*",
    "| A",
    "A | ",
    "(A | B)+",
    "A~2..3",
    "[A] B",
    "r A | B",  # left recursion
    "r A B | ",
    "A r | B",  # right recursion
    "A r | ",
    "A r B | C",  # in the middle
    "A r B | ",
    "A r A | B r B | C",
    "A r | A r B r | C",  # dangling else
    "r A r | B",  # an ambiguous expression
    "A r | r B r | C",
    "X A | B",
    "A X B | C",
    "X A X | B",
)


def _rules(rng: random.Random, symbols: Sequence[str]) -> list[str]:
    """start, x and y; in one of six grammars x and y read the same, and a priority decides."""
    lines = [f"start: {_filled(rng, pick(rng, START), symbols, 'start', ['x', 'y'])}"]
    first, second = pick(rng, SHAPES), pick(rng, SHAPES)
    if rng.random() < 0.17:
        body = _filled(rng, first, symbols, "x", symbols)
        start = pick(rng, ["x A | y B", "(x | y)*", "x | y", "A x B | A y C"])
        start = _filled(rng, start, symbols, "start", symbols)
        return [f"start: {start}", f"x.2: {body}", f"y.1: {body.replace('x', 'y')}"]
    lines.append(f"x: {_filled(rng, first, symbols, 'x', ['y', *symbols])}")
    lines.append(f"y{pick(rng, ['', '', '.2'])}: {_filled(rng, second, symbols, 'y', symbols)}")
    return lines


def _filled(rng: random.Random, shape: str, symbols: Sequence[str], own: str, others: Sequence[str]) -> str:
    """A shape with its letters replaced: A, B and C by different symbols."""
    chosen = dict(zip("ABC", _shuffled(rng, symbols), strict=False))
    chosen |= {letter: pick(rng, others) for letter in "XY"} | {"r": own}
    return re.sub(r"\b[ABCXYr]\b", lambda found: chosen[found[0]], shape)


def _shuffled(rng: random.Random, options: Sequence[str]) -> list[str]:
    """The distinct options in a random order, by the same draws under every Python version."""
    left, order = list(dict.fromkeys(options)), []
    while left:
        order.append(left.pop(int(rng.random() * len(left))))
    return order
