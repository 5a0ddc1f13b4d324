"""The example grammars, judged by python-lark in both lexer modes, and by `json` and SQLite."""

import contextlib
import json
import random
import sqlite3
from pathlib import Path

import pytest
from lark import Lark
from lark.exceptions import LarkError

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture(scope="module", params=["basic", "contextual"])
def accepts(request):
    """`accepts(name, text)`: does Lark parse the text with `examples/<name>.lark`?"""
    parsers = {}

    def accepts(name: str, text: str) -> bool:
        if name not in parsers:
            grammar = (EXAMPLES / f"{name}.lark").read_text()
            parsers[name] = Lark(grammar, parser="lalr", lexer=request.param)
        try:
            parsers[name].parse(text)
        except LarkError:
            return False
        return True

    return accepts


def json_loads(text: str) -> bool:
    """Does `json` read the text, without what it adds to RFC 8259 (NaN and the infinities)?"""

    def refuse(name):
        raise ValueError(name)

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        return False
    return True


JSON_VALID = [
    *("0", "-0", "10", "-1.5", "0.0", "1e5", "1E+05", "2.50e-3", "123456789012345678901234567890"),
    *("true", "false", "null", '""', '"a"', "[]", "{}", "[[]]", '{"":{}}', '"\x7f"', '"é\u2028\U0001f600"'),
    *(r'"\"\\\/\b\f\n\r\t"', r'"\u0041\uD834\udd1e"', r'"\ud800"', '"{[,:]}"', '{"a":1,"a":[true,null]}'),
    *(" 1", "1 ", "\n[\t1 ,\r\n2 ]\n", ' { "a" : [ ] , "b" : { } } ', "[" * 40 + "]" * 40),
]
JSON_INVALID = [
    *("", " ", "00", "01", "-01", "+1", ".5", "1.", "1.e5", "1e", "1e+", "-", "--1", "0x10", "1_000", "１"),
    *("NaN", "Infinity", "-Infinity", "nan", "True", "nul", "nulll", "truefalse", "1 2", "1,2", "undefined"),
    *(
        '"',
        "'a'",
        '"a',
        '"\n"',
        '"\t"',
        '"\x00"',
        '"\x1f"',
        r'"\a"',
        r'"\x41"',
        r'"\u12"',
        r'"\u12g4"',
        '"\\',
    ),
    *("[", "]", "[1,]", "[,1]", "[1 2]", "[1", "[1}", '{"a"}', '{"a":}', '{"a":1,}', "{a:1}", "{1:1}", "{,}"),
    *('{"a" 1}', '{"a":1 "b":2}', "// c\n1", "1 /* c */", "\ufeff1", "\u00a01", "\x0b1", "1\x0c", '"a" "b"'),
]


@pytest.mark.parametrize("text", JSON_VALID)
def test_json_accepts(accepts, text):
    assert json_loads(text)
    assert accepts("json", text)


@pytest.mark.parametrize("text", JSON_INVALID)
def test_json_rejects(accepts, text):
    assert not json_loads(text)
    assert not accepts("json", text)


def random_json(rng: random.Random, depth: int) -> str:
    """A JSON text with random whitespace, at most 20 characters in one place."""

    def space() -> str:
        return "".join(rng.choices(" \t\n\r", k=rng.choice([0, 0, 1, 2, 20])))

    def string() -> str:
        pieces = ["a", "é", "\U0001f600", " ", "0", "{", "'", "/", r"\n", r"\"", r"\\", r"\/", r"\u00eF"]
        return '"' + "".join(rng.choices(pieces, k=rng.randrange(5))) + '"'

    def spaced(separator: str, items: list[str]) -> str:
        return (space() + separator + space()).join(items)

    kind = rng.randrange(4 if depth == 0 else 6)
    items = [random_json(rng, depth - 1) for _ in range(rng.randrange(4))] if kind > 3 else []
    if kind == 4:
        return "[" + space() + spaced(",", items) + ("" if not items else space()) + "]"
    if kind == 5:
        members = [string() + space() + ":" + space() + item for item in items]
        return "{" + space() + spaced(",", members) + ("" if not items else space()) + "}"
    fraction, exponent = rng.choice(["", ".0", ".50"]), rng.choice(["", "e1", "E-02", "e+30"])
    number = rng.choice(["", "-"]) + str(rng.choice([0, 1, 42, 10**20])) + fraction + exponent
    return [string(), number, rng.choice(["true", "false", "null"]), string()][kind]


def test_json_agrees_with_the_json_module_on_random_texts(accepts, prove_factor):
    rng = random.Random(0)
    verdicts = []
    for _ in range(300 * prove_factor):
        text = random_json(rng, 3)
        assert json_loads(text)
        assert accepts("json", text), text
        # One character removed, doubled or replaced: still JSON about as often as not.
        place, new = rng.randrange(len(text)), rng.choice('0123456789-+.eE"\\/ntu{}[]:, \n\x01')
        kept = rng.choice([text[place], ""])
        text = text[:place] + kept + new + text[place + 1 :]
        if longest_space(text) <= 20:
            verdicts.append(json_loads(text))
            assert accepts("json", text) == verdicts[-1], text
    assert 0.1 < sum(verdicts) / len(verdicts) < 0.9


def longest_space(text: str) -> int:
    """The longest run of whitespace."""
    runs = "".join(" " if c in " \t\n\r" else "x" for c in text).split("x")
    return max(map(len, runs))


def test_whitespace_is_bounded(accepts):
    for text in ("%s[%s]%s", "{%s}%s%s", '%s"a"%s%s', "[1%s,%s2%s]", '{"a"%s:%s1%s}', "[[%s]%s,%snull]"):
        for place in range(3):
            spaces = [""] * 3
            for count in (20, 21):
                spaces[place] = " " * count
                filled = text % tuple(spaces)
                assert json_loads(filled)
                assert accepts("json", filled) == (count == 20), filled
    for count in (20, 21):
        assert accepts("sql", f"select a{' ' * count}from t;") == (count == 20)


SQL_VALID = [
    "SELECT * FROM t;",
    "select distinct a, t.b as c, u.* from t u;",
    "SeLeCt count(*), count ( distinct a ), max(t.a) AS m FROM t AS x;",
    "SELECT a FROM t WHERE a = 1;",
    "SELECT a FROM t WHERE a='it''s' AND b<>'' OR NOT c >= -1.5;",
    "SELECT a FROM t WHERE a IN (1, 'x', -2) AND b NOT IN ( select b from u where b=1 );",
    "SELECT a FROM t WHERE (a LIKE 'x%' OR a NOT LIKE '%y')AND (b IS NULL OR b IS NOT NULL);",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b NOT BETWEEN 'a' AND 'b';",
    "SELECT a FROM t WHERE a BETWEEN 1 AND 2;",
    "SELECT a FROM t WHERE NOT NOT (a = 1);",
    "SELECT a FROM t JOIN u ON t.i = u.i INNER JOIN v ON u.k<v.k AND v.id=u.id LEFT OUTER JOIN w ON w.a=u.a;",
    "SELECT a, COUNT(*) FROM t GROUP BY a, b HAVING COUNT(*) > 2;",
    "SELECT a FROM t WHERE a>1 GROUP BY a HAVING sum(b)=1 ORDER BY a DESC, sum(b) LIMIT 5;",
    "SELECT a\n  FROM t\n  ORDER BY a ASC\n  LIMIT 10 OFFSET 20 ;",
    "SELECT selected, fromage, _x1 FROM wherever LIMIT 1;",
    "SELECT max(a)FROM t WHERE a IN('x')AND b IS NULL AND c=1;",
    "SELECT a FROM t WHERE a IS NULL ORDER BY a ASC, b DESC, c DESC;",
    "SELECT a FROM t WHERE (a IS NULL)AND b IN (SELECT b FROM u ORDER BY b DESC);",
]
SQL_INVALID = [
    *("", ";", "SELECT", "SELECT a", "SELECT a;", "SELECT a FROM t", "SELECT FROM t;", "SELECT a FROM;"),
    *("SELECTa FROM t;", "SELECT aFROM t;", "SELECT a FROMt;", "SELECT a, FROM t;", "SELECT a FROM t;;"),
    *("SELECT a FROM t WHERE;", "SELECT a FROM t WHERE a;", "SELECT a FROM t WHERE a = ;"),
    *(
        "SELECT a FROM t WHERE a = 1AND b = 2;",
        "SELECT a FROM t WHERE a = 1ORDER BY a;",
        "SELECT a FROM t LIMIT;",
        "SELECT a FROM t ORDER BY a DESCLIMIT 1;",
        "SELECT a FROM t ORDER BYa;",
        "SELECT a FROM t WHERE a IS NULLx;",
        "SELECT a FROM t WHERE a IS NULLAND b = 1;",
        "SELECT a FROM t WHERE NOTa IN;",
    ),
    *("SELECT a FROM t WHERE a = 'x;", "SELECT a FROM t WHERE a = 1 AND;", "SELECT a FROM t WHERE a == ;"),
    *("SELECT a FROM t WHERE a BETWEEN 1;", "SELECT a FROM t WHERE a BETWEEN 1AND 2;"),
    *("SELECT a FROM t LIMIT 5OFFSET 2;", "SELECT a FROM t LIMIT 1.5;", "SELECT a FROM t LIMIT x;"),
    *("SELECT a FROM t WHERE a IN ();", "SELECT a FROM t WHERE a IN (1,);", "SELECT a FROM t JOIN u;"),
    *("SELECT a FROM t HAVING a = 1;", "SELECT a FROM t ORDER a;", "SELECT a FROM t LIMIT 1 ORDER BY a;"),
    *("DELETE FROM t;", "SELECT a FROM t -- c\n;", "SELECT é FROM t;", "SELECT 1a FROM t;"),
]


def sqlite_parses(text: str) -> bool:
    """Does SQLite read the text? It may miss the tables, the columns or the functions."""
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute(text)
        except sqlite3.OperationalError as error:
            return str(error).startswith("no such")
    return True


@pytest.mark.parametrize("text", SQL_VALID)
def test_sql_accepts(accepts, text):
    assert sqlite_parses(text)
    assert accepts("sql", text)


@pytest.mark.parametrize("text", SQL_INVALID)
def test_sql_rejects(accepts, text):
    assert not accepts("sql", text)


def test_sql_keywords_are_reserved():
    grammar = (EXAMPLES / "sql.lark").read_text()
    basic, contextual = (Lark(grammar, parser="lalr", lexer=lexer) for lexer in ("basic", "contextual"))
    for text in ("SELECT from FROM t;", "SELECT a FROM order;", "SELECT a AS is FROM t;"):
        with pytest.raises(LarkError):
            basic.parse(text)
        assert not sqlite_parses(text)
    contextual.parse("SELECT a FROM order;")  # no keyword can follow FROM, so Lark sees a name


def random_sql(rng: random.Random) -> str:
    """A statement of the subset, with as little or as much whitespace as the rules permit."""
    names = ["a", "b", "t.a", "x_2", "max(b)", "count(*)", "COUNT(DISTINCT a)"]
    values = ["1", "-2.5", "'x'", "''", "'it''s; AND'"]

    def space() -> str:
        return rng.choice(["", "", " ", "\n  "])

    def gap() -> str:
        return rng.choice([" ", "\t", "\r\n"])

    def predicate(depth: int) -> str:
        a, value, other = rng.choice(names), rng.choice(values), rng.choice(values)
        kind = rng.randrange(7 if depth else 5)
        no = rng.choice(["", "NOT "])
        if kind == 0:
            return a + space() + rng.choice(["=", "<", ">", "<=", ">=", "<>", "!="]) + space() + value
        if kind == 1:
            return f"{a} {no}between {value}{gap()}and{gap()}{other}"
        if kind == 2:
            return f"{a} IS {no}NULL"
        if kind == 3:
            return f"{a} {no}LIKE{gap()}'%x%'"
        if kind == 4:
            return f"{a} {no}IN{space()}({space()}{value},{space()}{other}{space()})"
        if kind == 5:
            return f"{no}({space()}{condition(depth - 1)}{space()})"
        return f"{a} {no}in (select b from u where {condition(depth - 1)})"

    def condition(depth: int) -> str:
        parts = [predicate(depth) for _ in range(rng.randrange(1, 4))]
        return "".join(part + gap() + rng.choice(["AND", "or"]) + gap() for part in parts[1:]) + parts[0]

    text = f"SELECT {rng.choice(['*', 'a, b AS c', 'DISTINCT t.*', 'a b,max(b)'])} FROM t"
    if rng.random() < 0.3:
        text += rng.choice([" JOIN", " LEFT JOIN", " INNER JOIN"]) + " u ON t.a = u.a"
    if rng.random() < 0.8:
        text += gap() + "WHERE" + gap() + condition(2)
    if rng.random() < 0.3:
        text += gap() + "GROUP BY a" + rng.choice(["", gap() + "HAVING " + condition(1)])
    if rng.random() < 0.3:
        text += gap() + "ORDER BY a" + rng.choice(["", " DESC", ", b"])
    if rng.random() < 0.3:
        text += gap() + "LIMIT 5" + rng.choice(["", " OFFSET 2"])
    return text + space() + ";"


def test_sql_accepts_random_texts(accepts, prove_factor):
    rng = random.Random(0)
    for _ in range(300 * prove_factor):
        text = random_sql(rng)
        assert sqlite_parses(text), text
        assert accepts("sql", text), text


def test_what_sql_accepts_sqlite_parses(prove_factor):
    """Damaged statements: with reserved keywords (the basic lexer) all that is accepted is SQL."""
    rng = random.Random(0)
    parser = Lark((EXAMPLES / "sql.lark").read_text(), parser="lalr", lexer="basic")
    accepted = 0
    for _ in range(600 * prove_factor):
        text = random_sql(rng)
        place = rng.randrange(len(text))
        new = rng.choice(["", "1", " ", ",", "'", "a", "(", ")", "=", " AND ", " 1 ", "."])
        text = text[:place] + new + text[place + rng.randrange(2) :]
        try:
            parser.parse(text)
        except LarkError:
            continue
        accepted += 1
        assert sqlite_parses(text), text
    assert accepted > 100


def arithmetic_value(parser: Lark, text: str) -> float:
    """Evaluate the tree, to see that operators bind as the grammar says."""

    def value(tree) -> float:
        if not hasattr(tree, "data"):
            return float(tree)
        numbers = [value(child) for child in tree.children]
        operations = {
            "add": lambda a, b: a + b,
            "subtract": lambda a, b: a - b,
            "multiply": lambda a, b: a * b,
            "divide": lambda a, b: a / b,
            "raise": lambda a, b: a**b,
            "negate": lambda a: -a,
        }
        return operations[tree.data](*numbers) if tree.data in operations else numbers[0]

    return value(parser.parse(text))


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_arithmetic_binds_as_python_does(lexer):
    parser = Lark((EXAMPLES / "arithmetic.lark").read_text(), parser="lalr", lexer=lexer)
    texts = [
        *("1", "2.5", "1+2*3", "(1+2)*3", "8-4-2", "8/4/2", "2^3^2", "-2^2", "2^-1", "--3", "2*-3", "((4))"),
        "1 +  2 * ( 3 - 4 ) ^ 2 / 5    ",
    ]
    for text in texts:
        assert arithmetic_value(parser, text) == pytest.approx(eval(text.strip().replace("^", "**")))


@pytest.mark.parametrize(
    "text", ["", "+1", "1+", "()", "(1", "1)", "1 2", "1.", ".5", " 1", "1     +2", "1*/2", "a"]
)
def test_arithmetic_rejects(accepts, text):
    assert not accepts("arithmetic", text)
