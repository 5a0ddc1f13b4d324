"""What Lark's grammars can say and how they can be handed over, judged by python-lark in both lexer modes."""

import io
import os
import random
import re
import sys
from pathlib import Path

import harness
import lark
import pytest
from bytewise import BYTES, SEGMENTER, accepts, both_modes, compiled, parses
from lark.indenter import PythonIndenter
from lark.lexer import BasicLexer, LexerThread, PatternStr
from semantics_cases import Case, case

import jaxgcd

TEMPLATES = [
    case(
        "a template",
        'start: _separated{A, ","}\n_separated{x, sep}: x (sep x)*\nA: "a"',
        ("a", "a,a"),
        ("", "a,", ",a"),
    ),
    case(
        "a template in a template",
        'start: both{"x", "y"}\nboth{p, q}: pair{p} | pair{q}\npair{p}: p "+" p',
        ("x+x", "y+y"),
        ("x+y", "x"),
    ),
    case(
        "a recursive template",
        'start: nested{"(", ")"}\nnested{l, r}: l nested{l, r} r | "x"',
        ("x", "((x))"),
        ("((x)", "()"),
    ),
]

IMPORTS = [
    case("a common terminal", '%import common.INT\nstart: INT ("+" INT)*', ("1", "1+23"), ("1+", "a")),
    case(
        "some terminals, and a renamed one",
        "%import common (DIGIT, LETTER)\n%import common.WS -> BLANK\n%ignore BLANK\nstart: (LETTER DIGIT)+",
        ("a1 b 2", "\na1"),
        ("a", "1a"),
    ),
    case(
        "a common terminal made of hidden ones",
        "%import common.ESCAPED_STRING\nstart: ESCAPED_STRING",
        ('"a\\"b"', '""'),
        ('"a', '"\\"'),
    ),
    case(
        "a terminal of another grammar of Lark's package",
        "%import python.DEC_NUMBER\nstart: DEC_NUMBER",
        ("12", "0", "1_000"),
        ("1_", "x"),
    ),
]

CHANGES = [
    case("%extend a rule", 'start: x\nx: "a"\n%extend x: "b" | x "c"', ("a", "b", "bcc"), ("c", "ab")),
    case("%extend a terminal", 'start: X+\nX: "a"\n%extend X: "b"', ("a", "ba"), ("c", "")),
    case("%override a rule", 'start: x+\nx: "a"\n%override x: "b"', ("b", "bb"), ("a", "ab")),
    case("%override a terminal", 'start: X+\nX: "a"\n%override X: "b"', ("b", "bb"), ("a", "ab")),
    case(
        "%extend an imported terminal",
        '%import common.INT\n%extend INT: "many"\nstart: INT ("," INT)*',
        ("1,many", "many"),
        ("man", "1many"),
    ),
    case(
        "%override an imported terminal",
        '%import common.INT\n%override INT: /[0-3]/\nstart: INT+ "."',
        ("12.", "0."),
        ("4.", "."),
    ),
]

DECLARED = [
    case(
        "sentences that need a declared terminal are not viable",
        '%declare IND\nstart: "a" IND "c" | "a" "b" | "c" IND',
        ("ab",),
        ("ac", "c", "a"),
    ),
    case(
        "a declared terminal in a loop",
        '%declare IND DED\nstart: stmt+\nstmt: A ";" | A ":" IND stmt+ DED\nA: "a"',
        ("a;", "a;a;"),
        ("a:a;", "a:", "a"),
    ),
]

PRIORITIES = [
    case("a terminal's", 'start: X | Y "!"\nX.1: /a+/\nY.2: /a/', ("a!",), ("a", "aa")),
    case("a terminal's, below zero", 'start: X | Y "!"\nX: /a/\nY.-1: /aa?/', ("a",), ("a!", "aa!")),
    case("a rule's", 'start: x | y "!"\nx.1: A\ny.2: A\nA: "a"', ("a", "a!"), ("", "aa")),
    case("a rule's, where both could be reduced", 'start: x | y\nx.1: A\ny.2: A "!"?\nA: "a"', ("a", "a!")),
]

TREES = [
    case("aliases", 'start: x -> y\nx: "a" -> b\n | "c" -> d', ("a", "c"), ("", "b", "ac")),
    case("inlined rules", '?start: x | _y\n?x: "a" | "(" x ")"\n_y: "b"', ("a", "((a))", "b"), ("(b)", "()")),
    case("kept tokens", '!start: "a" _x\n!_x: "b"', ("ab",), ("a", "b")),
    case("placeholders", 'start: ["a"] ["b" "c"]', ("", "a", "bc", "abc"), ("b", "ac", "ba")),
]

SYNTAX = [
    case(
        "counts",
        'start: "a"~2 ("b" "c"?)~1..2',
        ("aab", "aabcb", "aabcbc"),
        ("ab", "aa", "aabbb", "aaab"),
    ),
    case("large counts", 'start: "a"~0..2000 "b"', ("b", "aaab"), ("", "a", "ba")),
    case("ranges", 'start: X+\nX: "a".."c" "é".."í"', ("aé", "cíbê"), ("dé", "aî", "a")),
    case(
        "terminals of terminals",
        'start: N\nN: S? D+ ("." D+)?\nS: "+" | "-"\nD: "0".."9"',
        ("1", "-1.5", "+20"),
        ("1.", "--1", ""),
    ),
    case("groups", 'start: ("a" | "b" "c")* ["d"] ("e" | )', ("", "abcade", "bce"), ("b", "da")),
    case("comments", '// one\nstart: "a" // two\n  | "b"\n# three\n', ("a", "b"), ("//", "")),
    case("one token for equal strings", 'start: "if" X "if"\nX: "x"', ("ifxif",), ("ifx", "if")),
    case("strings escape", r'start: "\x41\u00e9\"\\" "\n"', ('Aé"\\\n',), ('Aé"\\', "A")),
]

FEATURES = [*TEMPLATES, *IMPORTS, *CHANGES, *DECLARED, *PRIORITIES, *TREES, *SYNTAX]


def assert_agrees(grammar: object, parser: lark.Lark, texts: list[str], **options: str) -> None:
    """Compiles `grammar`; both sides' verdicts on the texts, of which Lark must parse one and refuse one."""
    wanted = [parses(parser, text) for text in texts]
    assert True in wanted and False in wanted
    assert accepts(harness.compile_small(grammar, BYTES, **options), texts) == wanted


@both_modes
@pytest.mark.parametrize("example", FEATURES, ids=lambda example: example.name)
def test_features(example: Case, lexer: str) -> None:
    texts = example.texts[lexer]
    parser = lark.Lark(example.grammar, parser="lalr", lexer=lexer)
    assert {text: parses(parser, text) for text in texts} == texts
    assert accepts(compiled(example.grammar, lexer), list(texts)) == list(texts.values())


@both_modes
@pytest.mark.parametrize("start", ["start", "item", "pair"])
def test_any_rule_can_be_the_start(start: str, lexer: str) -> None:
    """One at a time: a second start rule changes the lookaheads of the LALR table."""
    grammar = 'start: pair ("," pair)*\npair: item "=" item\nitem: "x" | "(" start ")"'
    parser = lark.Lark(grammar, parser="lalr", lexer=lexer, start=start)
    texts = ["x", "x=x", "(x=x)", "(x=x)=x", "x=x,x=x", ""]
    assert_agrees(grammar, parser, texts, lexer=lexer, start=start)


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ("start: x", "Rule 'x' used but not defined"),
        ('start: "a"\n%extend x: "b"', "Can't extend rule x"),
        ('start: "a"\n%override X: "b"', "Cannot override a nonexisting terminal X"),
        ('start: x{"a", "b"}\nx{y}: y', "Wrong number of template arguments used for x"),
        ('start: A\nA: "a" A', "Recursion in terminal 'A'"),
        ("%import common.NO -> X\nstart: X", "'X' used but not defined"),
        ("%import nowhere.X\nstart: X", "nowhere.lark"),
        ('%declare X\n%ignore X\nstart: "a"', "Ignore terminals are not defined: {'X'}"),
        ('start: x "a" | y "a"\nx: "c"\ny: "c"', "Reduce/Reduce collision in Terminal('A')"),
        ('other: "a"', "undefined rule: NonTerminal('start')"),
        ("start: X\nX." + "9" * 5000 + ': "a"', "integer string conversion"),
        ("start: " + "(" * 2000 + '"a"' + ")" * 2000, "recursion limit"),
    ],
    ids=lambda text: text[:24],
)
def test_what_lark_rejects_is_an_error_with_larks_reason(grammar: str, message: str) -> None:
    with pytest.raises(jaxgcd.GrammarError, match=re.escape(message)):
        compiled(grammar, "contextual")


# Files.

FILES = {
    "main.lark": '%import .parts.lists (items, NUMBER)\n%import .words.WORD -> NAME\n%ignore " "\n'
    'start: NAME "=" items',
    "parts/lists.lark": '%import .deep.numbers.NUMBER\nitems: "[" (NUMBER ("," NUMBER)*)? "]"',
    "parts/deep/numbers.lark": "NUMBER: /[0-9]+/",
    "words.lark": "WORD: /[a-z]+/",
    "changed.lark": "%import .main.start\n%import .words.WORD\n%extend start: WORD",
}
TEXTS = ["x = [1, 23]", "x=[]", "x=[1,]", "=[1]", "x=[a]", "x", "", "[1]"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with grammars that import each other."""
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf8")
    return tmp_path


@both_modes
@pytest.mark.parametrize("name", ["main.lark", "changed.lark"])
def test_a_file_imports_from_its_folder(folder: Path, name: str, lexer: str) -> None:
    parser = lark.Lark.open(str(folder / name), parser="lalr", lexer=lexer)
    assert_agrees(folder / name, parser, TEXTS, lexer=lexer)


class Entry(os.PathLike[str]):
    """A path that is not a `Path`."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __fspath__(self) -> str:
        return self.path


def test_a_file_may_be_relative_and_any_path(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder / "parts")
    parser = lark.Lark.open("lists.lark", parser="lalr", start="items")
    for path in (Path("lists.lark"), Path("../parts/lists.lark"), Entry(folder / "parts" / "lists.lark")):
        assert_agrees(path, parser, ["[1,2]", "[]", "[", "1"], lexer="contextual", start="items")


def test_a_file_is_utf8_whatever_the_locale(tmp_path: Path) -> None:
    (tmp_path / "g.lark").write_text('start: "é" | "日本"', encoding="utf8")
    parser = lark.Lark.open(str(tmp_path / "g.lark"), parser="lalr")
    assert_agrees(tmp_path / "g.lark", parser, ["é", "日本", "Ã©", ""])


def test_a_text_is_never_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for text in ("main.lark", str(folder / "main.lark")):
        with pytest.raises(
            jaxgcd.GrammarError, match=r"a `str` is a text; for a file give a `pathlib\.Path`"
        ):
            compiled(text, "contextual")


def test_files_that_cannot_be_read_are_errors_that_name_them(folder: Path) -> None:
    (folder / "latin.lark").write_bytes('start: "é"'.encode("latin-1"))
    (folder / "outer.lark").write_text("%import .latin.start")
    (folder / "lost.lark").write_text("%import .nowhere.x\nstart: x")
    for name, message in [
        ("no.lark", "No such file"),
        ("parts", "directory"),
        ("latin.lark", "utf-8"),
        ("outer.lark", "utf-8"),
        ("lost.lark", "nowhere.lark"),
        ("words.lark", "undefined rule"),
        ("a\0b.lark", "null"),
    ]:
        with pytest.raises(jaxgcd.GrammarError, match=re.escape(repr(str(folder / name)))) as caught:
            compiled(folder / name, "contextual")
        assert message in str(caught.value)


def kind(value: object) -> str:
    return type(value).__name__


@pytest.mark.parametrize("grammar", [None, 5, b'start: "a"', ["start"], io.StringIO('start: "a"')], ids=kind)
def test_what_is_no_grammar_is_an_error_that_says_what_is(grammar: object) -> None:
    with pytest.raises(jaxgcd.GrammarError, match=r"a text, a `pathlib\.Path` or a `lark\.Lark` object, not"):
        compiled(grammar, "contextual")


# Built objects.

BUILT = r"""
start: (NAME | when | pair)+
?when: "if" [NAME] -> cond
!pair: "(" NAME "," NAME ")"
NAME: /[a-z]+/
%ignore /[ \n]+/
"""
BUILT_TEXTS = ["if x", "iff", "(a, b)if\n", "x (a,if)", "(a b)", "", "( a,b", "listed (é"]
SHAPING = {
    "keep_all_tokens": {"keep_all_tokens": True},
    "maybe_placeholders": {"maybe_placeholders": False},
    "propagate_positions": {"propagate_positions": True},
    "tree_class": {"tree_class": type("Mine", (lark.Tree,), {})},
    "debug": {"debug": True},
    "ordered_sets": {"ordered_sets": False},
    "source_path": {"source_path": "elsewhere.lark"},
    "import_paths": {"import_paths": ["elsewhere"]},
    "start as a list": {"start": ["start"]},
}


def assert_same_tables_at_work(grammar: lark.Lark, lexer: str) -> None:
    """The same masks as from the text of `BUILT`, after some tokens of each text and after all."""
    rng = random.Random(0)
    sequences = [SEGMENTER.random(text.encode(), rng) for text in BUILT_TEXTS]
    sequences += [sequence[:-1] for sequence in sequences]
    ours = harness.trails(compiled(grammar, lexer), sequences)
    theirs = harness.trails(compiled(BUILT, lexer), sequences)
    assert (ours.masks == theirs.masks).all() and (ours.drawn == theirs.drawn).all()
    assert (ours.ends == theirs.ends).all() and ours.ends.any() and not ours.ends.all()


@both_modes
def test_a_built_object_is_its_grammar(lexer: str) -> None:
    parser = lark.Lark(BUILT, parser="lalr", lexer=lexer)
    assert_agrees(parser, parser, BUILT_TEXTS, lexer=lexer)
    assert_same_tables_at_work(parser, lexer)


@pytest.mark.parametrize("options", SHAPING.values(), ids=SHAPING)
def test_options_that_shape_the_tree_have_no_effect(options: dict) -> None:
    assert_same_tables_at_work(lark.Lark(BUILT, parser="lalr", **options), "contextual")


@both_modes
def test_saved_and_cached_objects_are_taken(tmp_path: Path, lexer: str) -> None:
    buffer, cache = io.BytesIO(), str(tmp_path / "cache")
    lark.Lark(BUILT, parser="lalr", lexer=lexer).save(buffer)
    buffer.seek(0)
    cached = [lark.Lark(BUILT, parser="lalr", lexer=lexer, cache=cache) for _ in range(2)]
    for parser in (lark.Lark.load(buffer), *cached):
        assert_same_tables_at_work(parser, lexer)
    assert cached[1].source_path == "<deserialized>", "the second one was read from the cache"


def rename(terminal: lark.lexer.TerminalDef) -> None:
    if terminal.name == "B":
        terminal.pattern = PatternStr("c")


@both_modes
@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({"priority": None}, ""),
        ({"priority": "invert"}, 'x.1: C\ny.2: C "!"?\nC: "cc"\n%extend start: x | y "3"'),
        ({"edit_terminals": rename}, ""),
    ],
    ids=["no priorities", "priorities turned round", "edited terminals"],
)
def test_what_an_object_was_built_with_counts(options: dict, more: str, lexer: str) -> None:
    """Priorities that are off, or turned round, and edited terminals: the object holds the result."""
    grammar = f'start: A "1" | B "2"\nA.2: /a/\nB: /[ab]/\n{more}'
    texts = ["a1", "a2", "b2", "c2", "cc", "cc3", "cc!3"]
    parser = lark.Lark(grammar, parser="lalr", lexer=lexer, **options)
    plain = lark.Lark(grammar, parser="lalr", lexer=lexer)
    assert [parses(parser, text) for text in texts] != [parses(plain, text) for text in texts]
    assert_agrees(parser, parser, texts, lexer=lexer)


@both_modes
def test_a_grammar_of_a_package_is_taken(folder: Path, lexer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "parts" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(str(folder))
    parser = lark.Lark.open_from_package("parts", "lists.lark", parser="lalr", lexer=lexer, start="items")
    monkeypatch.delitem(sys.modules, "parts")
    assert_agrees(parser, parser, ["[1,2]", "[]", "[", "1"], lexer=lexer, start="items")


REFUSED = {
    "postlex": ("the option `postlex`", {"postlex": PythonIndenter()}),
    "transformer": ("the option `transformer`", {"transformer": lark.Transformer()}),
    "lexer_callbacks": ("the option `lexer_callbacks`", {"lexer_callbacks": {"NAME": lambda token: token}}),
    "plug-ins": ("the option `_plugins`", {"_plugins": {"LexerThread": LexerThread}}),
    "use_bytes": ("the option `use_bytes`", {"use_bytes": True}),
    "regex": ("the option `regex`", {"regex": True}),
    "g_regex_flags": ("the option `g_regex_flags`", {"g_regex_flags": re.IGNORECASE}),
    "earley": ("`parser='earley'`", {"parser": "earley", "lexer": "basic"}),
    "cyk": ("`parser='cyk'`", {"parser": "cyk"}),
    "the other lexer": ("`lexer='basic'`", {"lexer": "basic"}),
    "a lexer of one's own": ("`lexer=<class 'lark.lexer.BasicLexer'>`", {"lexer": BasicLexer}),
    "several starts": ("the start rules ['start', 'pair']", {"start": ["start", "pair"]}),
    "another start": ("the start rules ['pair']", {"start": "pair"}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_options_that_are_refused(name: str) -> None:
    """By name: they change the language, or run code of the user's."""
    if name == "regex":
        pytest.importorskip("regex", reason="Lark's option `regex` needs it")
    message, options = REFUSED[name]
    declared = "%declare _NEWLINE _INDENT _DEDENT LPAR RPAR LSQB RSQB LBRACE RBRACE"  # the post-lexer's
    parser = lark.Lark(BUILT + declared, **{"parser": "lalr", **options})
    with pytest.raises(jaxgcd.GrammarError, match=re.escape(message)):
        compiled(parser, "contextual")


@pytest.mark.parametrize("lexer", ["auto", "dynamic", "", None, BasicLexer], ids=str)
def test_other_lexers_are_refused(lexer: object) -> None:
    with pytest.raises(jaxgcd.GrammarError, match=r"`lexer=.*` is not supported; use one of 'contextual'"):
        harness.compile_small(BUILT, BYTES, lexer=lexer)
