"""Grammars made to use up time or memory, and what becomes of each: how it is refused, or that it compiles.

Each text is made on demand, since some are large. `limits` are the defaults if there are none.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field

QUICK_LARK = {"lark_seconds": 0.5}
"""Lark is stopped early, where nothing but Lark's own time is at stake."""


@dataclass(frozen=True)
class Hostile:
    """A grammar, and its end.

    `error` is the name of the type, or empty if the grammar compiles; `says` are regexes that the message
    matches. With `slow` it takes seconds, or is only stopped by the time limit for Lark, at its default.
    """

    name: str
    grammar: Callable[[], str]
    error: str = "GrammarTooLarge"
    says: tuple[str, ...] = ()
    limits: dict[str, float] = field(default_factory=dict)
    slow: bool = False


def terminal(regex: str) -> Callable[[], str]:
    """A grammar with one terminal."""
    return lambda: f"start: TERMINAL\nTERMINAL: /{regex}/"


def lines(*parts: str) -> str:
    return "\n".join(parts)


def vocabulary(count: int) -> list[str]:
    """Random words."""
    rng = random.Random(0)
    return ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 10))) for _ in range(count)]


def many_rules(count: int) -> str:
    return lines(
        "start: " + " | ".join(f"r{i}" for i in range(count)), *(f'r{i}: "k{i}"' for i in range(count))
    )


def chain(count: int, before: str = "", otherwise: str = "") -> str:
    """`r0: r1`, `r1: r2` and so on."""
    rules = (f"r{i}: {before} r{i + 1} {otherwise.format(i)}" for i in range(count))
    return lines("start: r0", *rules, f'r{count}: "a"')


def many_item_sets(count: int) -> str:
    """The LR(0) automaton has more than 2 to the power of `count` states: each keeps apart which sets of the
    `a`s can still go on.
    """
    rows = ["start: " + " | ".join(f"a{i}" for i in range(count))]
    for i in range(count):
        others = [f'"t{j}" {{}}{i}' for j in range(count) if j != i]
        rows.append(f"a{i}: " + " | ".join([*(o.format("a") for o in others), f'"t{i}" b{i} | "s{i}"']))
        rows.append(f"b{i}: " + " | ".join([*(o.format("b") for o in others), f'"u{i}"']))
    return lines(*rows)


COUNTED = [
    Hostile(
        "a count", terminal("a{1,100000}"), says=(r"terminal TERMINAL: ", r"`\{1,100000\}`", "regex_nodes")
    ),
    Hostile("a lazy count", terminal("a{1,100000}?b"), says=(r"TERMINAL", "regex_nodes")),
    Hostile("a counted class", terminal(r"\w{1,100000}"), says=(r"terminal TERMINAL: ", r"`\{1,100000\}`")),
    Hostile(
        "a counted string",
        terminal(r'"(\\["\\\/bfnrt]|\\u[0-9a-fA-F]{4}|[^"\\\x00-\x1f]){0,2000}"'),
        error="",
        slow=True,
    ),
    Hostile(
        "a counted string among others",
        lambda: lines(
            "start: (SHORT | LONG | NAME)+",
            r"SHORT: /'[a-z]{0,9}'/",
            r'LONG: /"([^"\\\n]|\\.){0,400}"/',
            "NAME: /[a-z]+/",
        ),
        limits={"lexer_states": 2000},
        says=(r"terminal LONG: for it, the scanners need", r"`\{0,400\}`"),
    ),
    Hostile(
        "nested counts", terminal("((a{1,100}){1,100}){1,100}"), says=(r"terminal TERMINAL: ", "regex_nodes")
    ),
    Hostile(
        "a count beyond `re`", terminal("a{1,99999999999999999999}"), error="GrammarError", says=("large",)
    ),
    Hostile(
        "a counted anonymous terminal",
        lambda: "start: /[ab]{2,70000}/",
        says=(r"terminal /\[ab\]\{2,70000\}/: ",),
    ),
    Hostile(
        "a terminal of repeats", lambda: 'start: A\nA: "x"~1..100000', says=("terminal A: ", "regex_nodes")
    ),
    Hostile("a rule of repeats", lambda: 'start: "x"~1..100000', error=""),
    Hostile("nested repeats", lambda: 'start: (("x"~1..100)~1..100)~1..100', error=""),
    Hostile(
        "repeats of choices",
        lambda: 'start: ("x" | "y")~40',
        says=("`start`, has astronomically many symbols", "rule_symbols"),
    ),
]

REGEXES = [
    Hostile("(a|a)*", terminal("(a|a)*b"), error=""),
    Hostile("(a*)*", terminal("(a*)*b"), error=""),
    Hostile("stars, nested", terminal("(" * 40 + "a" + ")*" * 40 + "b"), error=""),
    Hostile(
        "exponential",
        terminal("(a|b)*a(a|b){20}"),
        says=("terminal TERMINAL: its automaton needs more than 50,000 states", "regex_states"),
        slow=True,
    ),
    Hostile("exponential, small", terminal("(a|b)*a(a|b){8}"), error=""),
    Hostile(
        "a matcher that backtracks",  # `re.match` of the regex on the string takes 2**40 steps
        lambda: lines('start: TERMINAL | "' + "a" * 40 + '"', "TERMINAL: /(a|a)*b/"),
        error="",
    ),
    Hostile(
        "many words",
        lambda: "start: A\nA: /" + "|".join(vocabulary(50_000)) + "/",
        says=("terminal A: ", "regex_nodes"),
        slow=True,
    ),
    Hostile(
        "a class of many ranges", terminal("[" + "".join(map(chr, range(0x100, 0xD800, 2))) + "]+"), error=""
    ),
    Hostile(
        "classes without case",
        terminal("".join(f"[{chr(0x100 + i)}-ͷ]" for i in range(60)) + "(?i:é)"),
        error="",
    ),
    Hostile(
        "many lookaheads",
        terminal("".join(f"(?=[a-z]*{letter})" for letter in "abcdefghijklmnopqrst") + "[a-z]+"),
        says=("terminal TERMINAL: ",),
        slow=True,
    ),
    Hostile("some lookaheads", terminal("".join(f"(?=[a-f]*{c})" for c in "abcdef") + "[a-f]+"), error=""),
    Hostile(
        "a long lookbehind",
        lambda: lines("start: A+ B", "A: /(?<=a[ab]{20})c|[ab]/", 'B: "d"'),
        says=("terminal A: ", "regex_steps"),
        slow=True,
    ),
    Hostile("groups, nested", terminal("(" * 10_000 + "a" + ")" * 10_000), says=("recursion|nested",)),
    Hostile("atomic groups", terminal("(?>" * 30 + "a|ab" + ")+" * 30 + "c"), error=""),
    Hostile(
        "periods",
        lambda: lines(
            "start: (A | B | C | D | E)+",
            *(f"{n}: /(a{{{p}}})+{n.lower()}/" for n, p in zip("ABCDE", (7, 11, 13, 17, 19), strict=True)),
        ),
        says=("terminals ., ., ., . and 1 more: to tell them apart, the scanners need", "lexer_states"),
    ),
    Hostile(
        "lexemes that are taken back",
        lambda: lines("start: (A | LONG)+", 'A: "a"', "LONG: /a{40}b/"),
        says=("LONG", "16 readings at once"),
    ),
]

RULES = [
    Hostile(
        "10,000 rules",
        lambda: many_rules(10_000),
        says=("10,001 rules|the grammar", "lark_seconds"),
        limits=QUICK_LARK,
    ),
    Hostile("1,000 rules", lambda: many_rules(1_000), error="", slow=True),
    Hostile(
        "10,000 rules in a chain",
        lambda: chain(10_000),
        says=("10,002 rules|the grammar", "lark_seconds"),
        limits=QUICK_LARK,
    ),
    Hostile("300 rules in a chain", lambda: chain(300), error=""),
    Hostile(
        "10,000 rules, right recursion",
        lambda: chain(10_000, before='"a"'),
        says=("lark_seconds|recursion",),
        limits=QUICK_LARK,
    ),
    Hostile(
        "1,000 levels of precedence",
        lambda: chain(1_000, otherwise='| r{0} "o{0}" r{0}'),
        says=("1,002 rules|the grammar", "lark_seconds"),
        limits=QUICK_LARK,
    ),
    Hostile(
        "10,000 terminals",
        lambda: lines(
            "start: (" + " | ".join(f"T{i}" for i in range(10_000)) + ")+",
            *(f'T{i}: "k{i}"' for i in range(10_000)),
        ),
        says=("`start`, has 50,002 symbols|the grammar", "lark_seconds|lark_objects"),
        limits=QUICK_LARK,
    ),
    Hostile(
        "300 terminals side by side",
        lambda: (
            "start: ("
            + " | ".join(f"T{i}" for i in range(300))
            + ")+\n"
            + "\n".join(f"T{i}: /[a-x]*w{chr(97 + i % 20)}{chr(97 + i // 20)}[a-z]*/" for i in range(300))
        ),
        says=("terminals T0, ", "tell them apart", "scanner_steps"),
        slow=True,
    ),
    Hostile(
        "10,000 alternatives",
        lambda: "start: " + " | ".join(f'"k{i}"' for i in range(10_000)),
        says=("10,000 terminals|10,001 terminals", "terminals"),
        slow=True,
    ),
    Hostile(
        "5,000 alternatives",
        lambda: "start: " + " | ".join(f'"k{i}"' for i in range(5_000)),
        error="",
        slow=True,
    ),
    Hostile(
        "5,000 words",
        lambda: "start: " + " | ".join(f'"{word}"' for word in sorted(set(vocabulary(5_000)))),
        error="",
        slow=True,
    ),
    Hostile(
        "1,000 alternatives",
        lambda: "start: " + " | ".join(f'"k{i}"' for i in range(1_000)),
        error="",
        slow=True,
    ),
    Hostile(
        "500 words in any order",
        lambda: "start: (" + " | ".join(f'"{word}"' for word in sorted(set(vocabulary(500)))) + ")+",
        says=("symbols", "lark_objects"),
        slow=True,
    ),
    Hostile(
        "5,000 words in any order",
        lambda: "start: word+\nword: " + " | ".join(f'"{word}"' for word in sorted(set(vocabulary(5_000)))),
        says=("`word` can be followed by [0-9],[0-9]{3} terminals or more", "parser_actions"),
        slow=True,
    ),
    Hostile(
        "200 words that begin alike",
        lambda: "start: (" + " | ".join('"' + "a" * i + 'b"' for i in range(1, 201)) + ")+",
        error="",
        slow=True,
    ),
    Hostile(
        "choices that multiply",
        lambda: "start: " + '("a" | "b") ' * 24,
        says=("`start`, has 419,430,400 symbols", "rule_symbols"),
    ),
    Hostile(
        "options that multiply",
        lambda: "start: " + " ".join(f'"t{i}"?' for i in range(1_000)),
        says=("`start`", "rule_symbols"),
    ),
    Hostile(
        "terminals that multiply",
        lambda: lines("start: A0", *(f"A{i}: A{i + 1} A{i + 1}" for i in range(16)), 'A16: "a"'),
        says=("terminal A0: ", "regex_characters"),
    ),
    Hostile(
        "terminals that multiply without end",
        lambda: lines("start: A0", *(f"A{i}: " + f"A{i + 1} " * 8 for i in range(12)), 'A12: "a"'),
        says=("lark_seconds",),
        limits=QUICK_LARK,
    ),
    Hostile(
        "templates without end",
        lambda: lines("start: t{a}", 'a: "a"', 't{x}: "b" t{u{x}} | "d"', 'u{x}: x "c"'),
        says=("`t`|the grammar", "lark_seconds"),
        limits=QUICK_LARK,
    ),
    Hostile(
        "exponentially many parser states",
        lambda: many_item_sets(16),
        says=("33 rules|the grammar", "lark_seconds|lark_objects"),
        limits=QUICK_LARK,
    ),
    Hostile(
        "cycles of empty rules", lambda: 'start: a "x"\na: b |\nb: a |', error="GrammarError", says=("Lark",)
    ),
    Hostile(
        "a cycle that Lark resolves",
        lambda: lines('start: a "x"', "a.2: b", 'b: a | "y"'),
        error="",
    ),
]

TEXTS = [
    Hostile("parentheses", lambda: "start: " + "(" * 5_000 + '"a"' + ")" * 5_000, says=("nest",)),
    Hostile("some parentheses", lambda: "start: " + "(" * 100 + '"a"' + ")" * 100, error=""),
    Hostile("a long text", lambda: 'start: "a"\n' + "// comment\n" * 200_000, says=("grammar_characters",)),
    Hostile("a long string", lambda: 'start: "' + "a" * 60_000 + '"', says=('terminal "aaa', "regex_nodes")),
    Hostile("empty lines", lambda: 'start: "a"' + "\n" * 40_000 + 'b: "b"', says=("line 1 ", "line ends")),
    Hostile(
        "a string without end",  # Lark's own regex takes 2**60 steps to find that out
        lambda: 'start: "a"\na: "' + r"\\" * 60 + "\n",
        error="GrammarError",
        says=("line 2 of the grammar: the string that begins with",),
    ),
    Hostile(
        "a regex without end",
        lambda: "start: /a" + r"\\" * 60 + "\n",
        error="GrammarError",
        says=("line 1 of the grammar: the regex that begins with",),
    ),
]

HOSTILE = [*COUNTED, *REGEXES, *RULES, *TEXTS]
