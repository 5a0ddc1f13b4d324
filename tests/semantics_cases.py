"""Lark's semantics as data: grammars, and python-lark's verdicts on some texts in each lexer mode.

`test_semantics.py` asks python-lark for every verdict, and the library for the same.
"""

from dataclasses import dataclass

import jaxgcd

MODES = ("contextual", "basic")


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
        no=("a if b", "aifb", "a b", "ab"),
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
        "two keywords fit: the first in the scanner's order",
        'start: ANY "1" | KEY "2" | NAME "3"\nANY: "if"i\nKEY: "if"\nNAME: /[a-z]+/',
        ("if1", "IF1", "x3"),
        ("if2", "if3", "IF2", "IF3"),
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
    case("$ with m", 'start: (A | NL)+\nA: /a+$/m\nNL: "\\n"', ("a", "aa\na", "a\n\n"), ("", "ab")),
    case("the very start", 'start: A "b" A?\nA: /\\Aa/', ("ab",), ("aba",)),
    case("inside a word", 'start: A B\nA: "a" | "-"\nB: /\\Bb/', ("ab",), ("-b",)),
    case("an ignored lexeme is seen", 'start: A B\nA: "a"\nB: /(?<= )b/\n%ignore " "', ("a b",), ("ab",)),
    case(
        "lookahead in front",
        "start: A B\nA.1: /(?=ab|c)[a-c]/\nB: /.+/",
        ("ab", "abc"),
        ("ac", "bb"),
        contextual=("cc", "cab"),
    ),
    case("lookahead inside", "start: A\nA: /a(?!bb)b*c/", ("ac", "abc"), ("abbc", "ab")),
    case("lookbehind inside", "start: A\nA: /.b?(?<!ab)c/", ("ac", "bbc"), ("abc", "ab")),
    case("lookbehind at the end", 'start: A "b"*\nA: /[ab]+(?<=a)/', ("ba", "bab", "abab"), ("b", "c")),
    case(
        "lookahead over the next terminals",
        'start: A B C\nA: /a(?=bc)/\nB: "b"\nC: /[cd]/',
        ("abc",),
        ("abd", "ab"),
    ),
    case("the very end", 'start: A "\\n"*\nA: /a\\Z/', ("a",), ("a\n",)),
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
    case("flag s", "start: A\nA: /a.b/s", ("a\nb", "axb"), ("ab",)),
    case("flag x", "start: A\nA: /a b/x", ("ab",), ("a b",)),
    case("flag u", "start: A\nA: /\\w/u", ("é", "a"), ("-",)),
    case(
        "several flags, and with x even a line break is white space",
        "start: A\nA: /a .\\n ^b/imsx",
        ("A\nb", "a\nB"),
        ("a\n\nb", "axb"),
    ),
    case("a flag holds in its part only", 'start: A\nA: "a"i "b"', ("ab", "Ab"), ("aB", "AB")),
    case("scoped flags", "start: A\nA: /(?i:a(?-i:b))c/", ("abc", "Abc"), ("aBc", "abC")),
    case("ASCII in a part", "start: A\nA: /(?a:\\w)\\w/", ("aé", "ab"), ("éa", "é")),
    case("classes", "start: A\nA: /[^\\W\\d_][\\d\\s]/", ("a1", "é "), ("11", "_1", "aa")),
    case("counted", "start: A\nA: /a{2,3}b{,2}c{2}d{2,}/", ("aaccdd", "aaabbccddd"), ("accdd", "aabbbccdd")),
    case("counted and lazy", "start: A A\nA: /a{1,3}?b?/", ("aab", "abab", "aa"), ("a", "aaa")),
    case("nested groups", "start: A\nA: /((a)|(?P<q>b(c)?))+/", ("abca", "b"), ("c", "ac")),
    case("lazy is not greedy", "start: A A\nA: /x.*?x/", ("xyxxx", "xxxx"), ("xyx", "xxx")),
    case("word characters are Unicode", "start: W\nW: /\\w+/", ("é", "a1_", "日本"), (".", "")),
    case("digits and blanks are Unicode", "start: W\nW: /\\d\\s/", ("1 ", "٣\u2003"), ("a ",)),
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
    case("a shift takes all", 'start: l "x"\nl: | "x" l', no=("", "x", "xx", "xxx"), refused=EMPTY),
    case("only unproductive rules", 'start: "a" start', no=("", "a", "aa"), refused=EMPTY),
]

ORDER = [
    case("the larger priority first", 'start: W "1" | P "2"\nW: /a+/\nP.1: /a/', ("a2",), ("a1", "aa1")),
    case("then the wider terminal", 'start: N "1" | W "2"\nN: /a/\nW: /ab?/', ("a2", "ab2"), ("a1",)),
    case("then the longer regex", 'start: P "1" | Q "2"\nP: /[ab]/\nQ: /[abb]/', ("a2", "b2"), ("a1",)),
    case("then the smaller name", 'start: P "1" | Q "2"\nP: /[ab]/\nQ: /[ba]/', ("a1", "b1"), ("a2",)),
    case(
        "the first alternative, not the longest",
        'start: N "c" | N "bc"\nN: /a|ab/',
        ("ac", "abc"),
        ("abbc", "ab"),
    ),
    case(
        "a wide terminal that matches little comes first",
        'start: (W | N)+ "."\nW: /ab|a(?=c)|dddd/\nN: /abc/',
        ("ab.", "dddd."),
        ("abc.", "ac."),
    ),
]

FALLBACK = [
    case(
        "an ignored lexeme behind which a scanner reads nothing",
        'start: (x T3)+ y?\nx: x T2 T1 | \ny.2: T0 T0 T0 | "a"\nT0: /(?:[^\\n][^b]|[\\na]b)(?!a)/s\n'
        'T1: "aa" | "a"\nT2.-1: /[a-z]+/\nT3: T2? "b"\n%ignore /[\\n]+/',
        ("\n\nab", "\n\n\nba", "\n\naab"),
        ("", "\n", "ba\na"),
        contextual=("a\n\nab", "\na\nab", "a\nab\n"),
    ),
    case(
        "a longer terminal that is open at the end of the text",
        'start: (A | LONG)+\nA: "a"\nLONG: "aab"',
        ("a", "aa", "aab", "aaab", "aaba"),
        ("ab", "aabb", "b"),
    ),
    case(
        "a fallback inside a fallback",
        "start: (A | B | C | D)+\nA: /a/\nB: /aab*c/\nC: /b/\nD: /bbc/",
        ("aabb", "aabbc", "abbc", "aabbbb"),
        ("c", "abc", "aabbcc"),
    ),
    case(
        "four readings at once",
        'start: (A | LONG)+\nA: "a"\nLONG: /a{4}b/',
        ("aaa", "aaaab", "aaaaab", "aaaaaaaabaa"),
        ("aaab", "b", "aaaabb"),
    ),
    case(
        "an ignored terminal is taken back",
        'start: "a" ("b" "a")*\n%ignore /c/\n%ignore /cb+d/',
        ("acbd", "acba", "cac", "ccbda"),
        ("acbbda", "acb", "acd"),
    ),
    case(
        "a comment that is never closed",
        'start: N ("/" "*"? N)*\nN: "1"\nC: "/*" /[^*]*/ "*/"\n%ignore C',
        ("1/1", "1/*1", "1/*1*/", "1/*1*//1"),
        ("1/*", "1/*1*", "1/*1*//"),
    ),
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
    case("a reference to another terminal", "start: A B\nA: /(a)\\1/\nB: /bbb/", refused=REFERENCE),
    case("conditional on a number", "start: A\nA: /(a)?(?(1)b|c)/", refused=CONDITION),
    case("a flag that Python lacks", "start: /a/l", refused=LARK),
    case("bytes flags", "start: /(?L:a)/", refused=LARK),
    case("a lookbehind of any width", "start: /(?<=a+)b/", refused=LARK),
    case("an empty lexeme", "start: A\nA: /a?/", refused=LARK),
    case("a count beyond Python's", "start: /a{4294967295}/", refused=LARK),
    case("named back reference", "start: A\nA: /(?P<q>a|b)(?P=q)/", ("aa", "bb"), ("ab", "a"), REFERENCE),
    case("conditional group", "start: A\nA: /(?P<q>a)?(?(q)b|c)/", ("ab", "c"), ("ac", "b"), CONDITION),
    case("a comment swallows a parenthesis", 'start: A B\nA: /a # c/x\nB: "b"', refused=LARK),
    case("p is for the regex module", "start: /\\p{L}/", refused=LARK),
    case("a cycle of empty rules", 'start: a\na: e a "x" | f "y"\ne.2:\nf:\n', refused=LOOP),
    case("a cycle of one-symbol rules", 'start: a\na.2: b | "x"\nb.1: a', refused=LOOP),
    case("not LALR", 'start: x "a" | y "a"\nx: "c"\ny: "c"', refused=LARK),
]

CASES = [*MICRO, *RELABELLING, *ORDER, *FALLBACK, *ASSERTIONS, *REGEXES, *PARSING, *CONTEXTS, *REFUSED]
