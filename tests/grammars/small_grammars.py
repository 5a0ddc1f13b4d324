"""Small grammars over at most six letters, hand-made and random, and the vocabularies that go with them.

Each states how long a shortest completion can be (`slack`, plus `growth` for every letter of the prefix):
the oracle's negative verdicts rest on that bound, and `test_oracle.py` checks it over all short texts.
`dead_ends` marks the grammars in which "the next terminal can be produced and shifted" is not enough:
some prefix satisfies it, and yet no accepted text extends it.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from oracle import Language, pick

SIZE = 288  # one number of ids for all vocabularies, so that all grammars share their array shapes


@dataclass(frozen=True)
class Small:
    """A grammar over a few letters, and what the oracle has to know about it."""

    name: str
    grammar: str
    alphabet: str
    slack: int = 3
    growth: int = 0
    longest: int = 8
    dead_ends: bool = False

    def bound(self, length: int) -> int:
        """The greatest length of a shortest completion of a prefix with `length` letters."""
        return self.slack + self.growth * length

    def language(self, lexer: str = "basic") -> Language:
        """A fresh oracle of this grammar."""
        return Language(self.grammar, self.alphabet, self.bound, lexer=lexer)


@dataclass(frozen=True)
class Words:
    """A vocabulary as plain data: the bytes of every token, and which ids end the text or are not text."""

    tokens: tuple[bytes, ...]
    eos: tuple[int, ...]
    special: tuple[int, ...]
    size: int = SIZE


def words(alphabet: Sequence[str], longest: int = 3) -> Words:
    """All strings of one to `longest` letters, the bytes of letters that take several, and odd tokens.

    The odd ones: EOS, a special token whose name spells letters of the alphabet, an empty token, and a
    second token with the bytes of the first letter.
    """
    spelled = [
        "".join(letters) for length in range(1, longest + 1) for letters in product(alphabet, repeat=length)
    ]
    pieces = sorted(
        {bytes([byte]) for letter in alphabet if len(letter.encode()) > 1 for byte in letter.encode()}
    )
    odd = [b"</s>", alphabet[0].encode() * 2, b"", alphabet[0].encode()]
    tokens = (*odd, *(text.encode() for text in spelled), *pieces)
    return Words(tokens, eos=(0,), special=(1,))


MICRO = [
    Small("keyword listed", 'start: STEM SUFFIX\nSTEM: "a" | "abc"\nSUFFIX: "bd"', "abcd"),
    Small(
        "keyword is not a name", 'start: "ab" NAME\nNAME: /[abc]+/\n%ignore " "', "abc ", slack=4, longest=5
    ),
    Small(
        "keyword or name", 'start: NAME "=" NAME | "ab" NAME\nNAME: /[ab]+/\n%ignore " "', "ab= ", longest=6
    ),
    Small("aaabbx", "start: (AAA | ABZ | BX)+\nAAA: /aaa/\nABZ: /a+b+z/\nBX: /b+x/", "abxz", longest=7),
    Small("one to two", r'start: INT ".." INT' "\n" r"INT: /1+(\.1+)?/", "1.", slack=4),
    Small("ignore at both ends", 'start: "a" "b"\n%ignore " "', "ab "),
]

LEXING = [
    Small("longest is not first", 'start: (A | B)+\nA: "ab"\nB: /a|b/', "ab"),
    Small("loop to the start", "start: A*\nA: /a*b/", "ab"),
    Small("one loop to the start", "start: A\nA: /a*b/", "ab"),
    Small("lazy loop to the start", "start: A?\nA: /a*?b/", "ab"),
    Small("two loops to the start", "start: (A | B)*\nA: /a*b/\nB: /a*c/", "abc"),
    Small("ignored loop to the start", "start: \n%ignore /c*b/", "bc"),
    Small("loop to the start and fallback", "start: (A | B | C)+\nA: /(ab)*c/\nB: /a/\nC: /b/", "abc"),
    Small("first alternative wins", "start: A B | B A\nA: /a|ab/\nB: /c|bc/", "abc"),
    Small("range against number", 'start: N (".." N)*\nN: /1(\\.1)?/', "1."),
    Small(
        "comment opens like division",
        'start: N ("/" N)*\nN: "1"\nC: "/*" /[^*]*/ "*/"\n%ignore C',
        "1/*",
        slack=4,
    ),
    Small("comment in a rule", "start: (A | C)+\nA: /[a\\/*]/\nC: /\\/\\*a*\\*\\//", "a/*"),
    Small("lazy", "start: A B?\nA: /a[ab]*?b/\nB: /b+/", "ab"),
    Small("lazy plus and optional", "start: (A | B)+\nA: /a+?b??c/\nB: /a/", "abc"),
    Small("lazy swallows", "start: A A\nA: /x.*?x/", "xy", slack=4),
    Small("empty iteration", 'start: A B*\nA: /x(|a)*/\nB: "a"', "xa"),
    Small("atomic", 'start: A "b"?\nA: /(?>a+|b)c/', "abc"),
    Small("possessive", 'start: A "b"?\nA: /a++b/', "ab"),
    Small("priority beats length", 'start: (IF | NAME)+\nIF.2: "ab"\nNAME: /[abc]+/', "abc"),
    Small("priority of regexes", "start: B (B | A)*\nA.1: /b+/\nB.2: /ab?/", "ab"),
    Small("unless with flags", 'start: IF | NAME "!"\nIF: "ab"\nNAME: /[ab]+/i', "abAB!", longest=4),
    Small("case-insensitive keyword", 'start: IF | NAME "!"\nIF: "ab"i\nNAME: /[ab]+/', "abAB!", longest=4),
    Small("fallback inside fallback", "start: (A | B | C | D)+\nA: /a/\nB: /aab*c/\nC: /b/\nD: /bbc/", "abc"),
    Small("fallback chain", 'start: (A | AB | LONG)+\nA: "a"\nAB: "ab"\nLONG: /(ab)+c/', "abc"),
    Small("ignored fallback", 'start: "a" ("b" "a")*\n%ignore /c/\n%ignore /cb+d/', "abcd", longest=6),
    Small("separator is ignored and used", 'start: A WS A | A "!"\nA: "a"\nWS: " "\n%ignore WS', "a !"),
    Small(
        "ignored string in a live regex",
        'start: NAME+ ";"\nNAME: /[um]+/\n%ignore "um"\n%ignore " "',
        "um; ",
        longest=6,
    ),
    Small("two-letter blank", 'start: ("a" "b")+\n%ignore /c+d/', "abcd"),
    Small("two-byte letters", 'start: A+ "."\nA: /é|è+a/', "aéè."),
    Small("class of two-byte letters", "start: W (S W)*\nW: /\\w+/\nS: /[^\\w]/", "aé.", longest=6),
    Small("four-byte letter", 'start: "[" "\U0001f600" "]"', "[]\U0001f600"),
    Small("followed by itself", "start: A A\nA: /a{1,3}/", "ab", slack=5),
    Small("two equal runs or b", "start: A A | A B\nA: /a+/\nB: /b/", "ab"),
    Small("names or a dot", 'start: NAME NAME | NAME "."\nNAME: /[ab]+/', "ab."),
    Small("first alternative blocks", "start: A B\nA: /ab?/\nB: /b|cb/", "abc"),
    Small(
        "guard of the whole word",
        'start: X Y | X W | W LONG\nX: "x"\nY: "yz"\nW: "w"\nLONG: "xyz"',
        "xyzw",
        slack=4,
    ),
    Small("blank eats the separator", 'start: "a" S "a" | "a" "b"\nS: /-a/\n%ignore /-+/', "ab-"),
    Small("lookahead", "start: A B?\nA: /a(?=b)/\nB: /b+/", "ab"),
    Small("negative lookahead", "start: (A | B)+\nA: /a(?!b)/\nB: /ab+/", "ab"),
    Small("counts that most tokens do not tell apart", "start: A+\nA: /a[bc]{0,6}a/", "abc", longest=7),
    Small("counts of letters of two bytes", "start: A+\nA: /é{0,5}a/", "éa"),
    Small("lookbehind within", "start: (A | B)+\nA: /[ab](?<=a)/\nB: /cb?/", "abc"),
]

RULES = [
    Small(
        "empty rule in front, again and again", 'start: item start | item\nitem: opt "b"\nopt: "a" |', "ab"
    ),
    Small(
        "empty list in front, again and again",
        'block: stmt block |\nstmt: mods "x" ";"\nmods: | "s" mods\nstart: block',
        "xs;",
    ),
    Small("recursive start, middle", 'start: | "(" start ")" start', "()", slack=0, growth=1, longest=6),
    Small("recursive start, right", 'start: "a" | "a" start "b"', "ab", slack=1, growth=1, longest=6),
    Small("left recursion", 'start: l\nl: l "," A | A\nA: /a+/', "a,"),
    Small("right recursion", 'start: r\nr: A "," r | A\nA: /a+/', "a,"),
    Small("middle recursion", 'start: "(" start ")" | "x"', "()x", slack=1, growth=1, longest=4),
    Small(
        "palindrome with a middle",
        'start: "a" start "a" | "b" start "b" | "c"',
        "abc",
        slack=1,
        growth=1,
        longest=4,
    ),
    Small(
        "arithmetic",
        'start: s\ns: s "+" p | p\np: p "*" f | f\nf: "1" | "(" s ")"',
        "1+*()",
        slack=1,
        growth=1,
        longest=3,
    ),
    Small("unary minus", 'start: e\ne: "-" e | e "-" e | "1"', "-1"),
    Small("empty rules", 'start: x y x "."\nx: | "a"\ny: | "b" y', "ab."),
    Small("only empty", "start: x x\nx:", "a"),
    Small("empty text or a", 'start: "a"?', "a"),
    Small("two brackets", 'start: b*\nb: "(" b* ")" | "[" b* "]"', "()[]", slack=0, growth=1, longest=3),
    Small("dangling else", 'start: s\ns: "i" s | "i" s "e" s | "x"', "iex"),
    Small("unproductive alternative", 'start: "a" x | "b"\nx: "c" x', "abc", dead_ends=True),
    Small("reduced by priority", 'start: x "a" | y "b"\nx.2: "c"\ny.1: "c"', "abc"),
    Small("declared terminal", '%declare IND\nstart: A (IND A)? | A "b"\nA: "a"', "ab"),
    Small(
        "ignored swallows keyword",
        'start: "a" "if" "b" | "b" X\nX: "a"\nWS: /[ if]+/\n%ignore WS',
        "abif ",
        longest=4,
        dead_ends=True,
    ),
    Small("newline swallowed", 'start: "a" NL "b" | "a" "c"\nNL: "\\n"\n%ignore /\\s+/', "abc\n ", longest=4),
    Small("shadowed keyword", 'start: "b" IF "b" | "b" NAME ";"\nNAME.2: /[a]+/\nIF: "a"', "ab;"),
    Small("shadowed in a loop", 'start: (NAME | IF "(" start ")")+\nNAME.2: /a/\nIF: "a"', "a()"),
    Small("shift swallows the end", 'start: l "x" | "y"\nl: | "x" l', "xy", dead_ends=True),
    Small("bounded repeat", "start: A~2..3 B\nA: /ab?/\nB: /c{2,3}/", "abc", slack=4),
    Small(
        "list with optional comma",
        'start: "[" (A ("," A)* ","?)? "]"\nA: /a+/\n%ignore " "',
        "[]a, ",
        longest=5,
    ),
    Small(
        "six letters",
        'start: p ("," p)*\np: K ":" V\nK: /[ab]/\nV: "1" | "11"\n%ignore " "',
        "ab:,1 ",
        longest=6,
    ),
]

DEAD_ENDS = [
    Small("run after itself", 'start: "b" A A | "c" A\nA: /a+/', "abc", dead_ends=True),
    Small("three equal runs", "start: A A A | C\nA: /a+/\nC: /c+/", "ac", dead_ends=True),
    Small("name before name", 'start: NAME NAME "." | "." NAME\nNAME: /[ab]+/', "ab.", dead_ends=True),
    Small("swallowed on the right", "start: A B | C B\nA: /a+/\nB.2: /ab/\nC: /c/", "abc", dead_ends=True),
    Small("number before digits", 'start: N D "." | "." N ";"\nN: /1+/\nD: /11?/', "1.;", dead_ends=True),
    Small("greedy tail", "start: X Y | Z Y\nX: /xy*/\nY: /y/\nZ: /z/", "xyz", dead_ends=True),
    Small("brackets decide", 'start: "(" A A ")" | "[" A "]"\nA: /a+/', "()[]a", longest=5, dead_ends=True),
    Small("ignored run blocks", 'start: "a" B "a" | "c" "a"\nB: /bc/\n%ignore /b+/', "abc", dead_ends=True),
    Small("stack decides", 'start: "<" x A | "[" x "]"\nx: A\nA: /a+/', "<[]a", dead_ends=True),
    Small(
        "guard closes the way",
        'start: X Y W | X V | V LONG\nX: "x"\nY: "yz"\nW: "w"\nV: "v"\nLONG: "xyzw"',
        "xyzwv",
        slack=4,
        longest=6,
        dead_ends=True,
    ),
    Small("keyword after a name", 'start: NAME IF | IF "."\nIF: "if"\nNAME: /[if]+/', "if.", dead_ends=True),
    Small(
        "dead behind the first terminal",
        'start: S x | T x NEVER | "tw"\nx: V\nS: "s"\nT: "t"\nV: "v"\n%declare NEVER',
        "stvw",
        dead_ends=True,
    ),
    Small(
        "dead in a second reading",
        'start: S x | T x NEVER | LONG\nx: U x | V\nS: "s"\nT: "t"\nU: "u"\nV: "v"\n'
        "LONG: /tu+w/\n%declare NEVER",
        "stuvw",
        longest=6,
        dead_ends=True,
    ),
    Small("dead inside a loop", 'start: ("(" x ")")*\nx: "." A A | A\nA: /a+/', "()a.", dead_ends=True),
]

EMPTY = [
    ("longest first", "start: A B\nA: /a+/\nB: /ab/"),
    ("equal runs", "start: A A\nA: /a+/"),
    ("unproductive start", 'start: "a" start'),
    ("mutually unproductive", 'start: x\nx: "a" y\ny: "b" x'),
    ("only declared", "%declare A\nstart: A"),
    ("keyword always swallowed", 'start: "a" "if" "b"\nWS: /[ \\tif]+/\n%ignore WS'),
    ("newline always swallowed", 'start: "a" NL "b"\nNL: "\\n"\n%ignore /\\s+/'),
    ("shift swallows everything", 'start: l "x"\nl: | "x" l'),
    ("shadowed by priority", 'start: IF | NAME x\nx: NAME x\nNAME.2: /[a-z]+/\nIF: "if"'),
]


def _regex(rng: random.Random, depth: int) -> str:
    """A random regex over a, b and c, seldom lazy."""
    draw = rng.random()
    if depth == 0 or draw < 0.35:
        return pick(rng, ["a", "b", "c", "[ab]", "[bc]", "[^a]"])
    if draw < 0.6:
        return _regex(rng, depth - 1) + _regex(rng, depth - 1)
    if draw < 0.75:
        return f"(?:{_regex(rng, depth - 1)}|{_regex(rng, depth - 1)})"
    return f"(?:{_regex(rng, depth - 1)}){pick(rng, ['*', '+', '?', '*?', '+?', '??', '{2}'])}"


def _expansion(rng: random.Random, terminals: int) -> str:
    """The right-hand side of a random rule: up to three alternatives of up to three symbols."""
    alternatives = []
    for _ in range(pick(rng, [1, 2, 2, 3])):
        symbols = []
        for _ in range(pick(rng, [0, 1, 2, 2, 3])):
            symbol = f"T{int(rng.random() * terminals)}" if rng.random() < 0.6 else pick(rng, ["x", "y"])
            symbols.append(symbol + pick(rng, ["", "", "", "?", "*", "+"]))
        alternatives.append(" ".join(symbols))
    return " | ".join(alternatives)


def _terminal(rng: random.Random, index: int) -> str:
    """A random terminal: a string or a regex, sometimes with a priority."""
    if rng.random() < 0.35:
        pattern = '"' + "".join(pick(rng, "abc") for _ in range(pick(rng, [1, 1, 2, 2, 3]))) + '"'
    else:
        pattern = f"/{_regex(rng, 3)}/"
    return f"T{index}{pick(rng, ['', '', '', '.2'])}: {pattern}"


def random_grammar(rng: random.Random) -> str:
    """A random grammar over a, b and c; Lark may refuse it, and its language may be empty."""
    terminals = pick(rng, [2, 3, 3, 4])
    lines = [f"{name}: {_expansion(rng, terminals)}" for name in ("start", "x", "y")]
    lines += [_terminal(rng, index) for index in range(terminals)]
    draw = rng.random()
    if draw < 0.3:
        lines.append(f"%ignore T{int(rng.random() * terminals)}")
    elif draw < 0.5:
        lines.append("%ignore /c/")
    return "\n".join(lines)


# (seed, slack, dead_ends): grammars that Lark loads quickly, with at least three texts; slack and dead ends
# measured over all texts of up to eight letters.
SEEDS = [
    (1, 4, False),
    (5, 3, False),
    (19, 4, False),
    (20, 3, True),
    (47, 3, False),
    (56, 2, False),
    (75, 2, False),
    (81, 3, False),
    (85, 3, True),
    (91, 2, False),
    (96, 1, False),
    (119, 2, False),
    (126, 3, False),
    (140, 2, False),
    (170, 3, False),
    (208, 4, False),
    (246, 2, True),
    (252, 2, False),
    (256, 2, False),
    (286, 3, False),
    (297, 1, False),
    (300, 2, False),
    (333, 2, False),
    (340, 3, False),
    (347, 2, False),
]

RANDOM = [
    Small(
        f"random {seed}", random_grammar(random.Random(seed)), "abc", slack=slack, longest=7, dead_ends=dead
    )
    for seed, slack, dead in SEEDS
]

SMALL = [*MICRO, *LEXING, *RULES, *DEAD_ENDS, *RANDOM]
