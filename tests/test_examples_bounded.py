"""`record.lark` and `select.lark`: what they hold, by `json` and SQLite, and that all of it is short."""

import json
import re
import sqlite3
from pathlib import Path

import pytest
from bounded import longest_text
from lark import Lark
from lark.exceptions import LarkError

EXAMPLES = Path(__file__).parent.parent / "examples"
GRAMMARS = {name: (EXAMPLES / f"{name}.lark").read_text() for name in ("record", "select")}
PARSERS = {name: Lark(grammar, parser="lalr") for name, grammar in GRAMMARS.items()}

RECORD = {"name": "Zoë", "age": 7, "alive": True, "kind": "animal", "tags": ["a dog", "日本"]}
LONGEST_RECORD = RECORD | {
    "name": 40 * "😀",
    "age": None,
    "alive": False,
    "kind": "person",
    "tags": 3 * [16 * "😀"],
}
QUERIES = (
    "SELECT * FROM a;",
    "SELECT a, COUNT(*), SUM(b1) FROM a WHERE b1 >= -3.5 AND a LIKE 'ü%' ORDER BY b1 DESC LIMIT 10;",
    "SELECT MAX(a) FROM a WHERE a <> '' OR b1 = 0 LIMIT 9999;",
)
NAME = 20 * "a"
TEST = f"{NAME} LIKE '{20 * '😀'}'"
LONGEST_QUERY = (
    f"SELECT COUNT({NAME}), COUNT({NAME}), COUNT({NAME}) FROM {NAME}"
    f" WHERE {TEST} AND {TEST} ORDER BY {NAME} DESC LIMIT 9999;"
)


def parses(name: str, text: str) -> bool:
    try:
        PARSERS[name].parse(text)
    except LarkError:
        return False
    return True


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"age": None},
        {"age": 999},
        {"alive": False},
        {"tags": []},
        {"tags": ["x"] * 3},
        {"name": "x" * 40},
    ],
)
def test_records(changes) -> None:
    assert parses("record", json.dumps(RECORD | changes, ensure_ascii=False))


@pytest.mark.parametrize(
    "changes",
    [
        {"age": 1000},
        {"age": -1},
        {"age": 1.5},
        {"alive": None},
        {"kind": "dog"},
        {"tags": ["x"] * 4},
        {"tags": [""]},
        {"tags": ["x" * 17]},
        {"name": ""},
        {"name": "x" * 41},
        {"name": 'a"b'},
        {"more": 1},
    ],
)
def test_what_is_no_record(changes) -> None:
    assert not parses("record", json.dumps(RECORD | changes, ensure_ascii=False))


@pytest.mark.parametrize("text", QUERIES)
def test_queries(text) -> None:
    """SQLite runs what Lark parses."""
    assert parses("select", text)
    with sqlite3.connect(":memory:") as database:
        database.execute("CREATE TABLE a (a TEXT, b1 REAL)")
        database.execute(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM a",
        "SELECT a,b1 FROM a;",
        "SELECT a, a, a, a FROM a;",
        "SELECT SUM(*) FROM a;",
        "SELECT * FROM a LIMIT 0;",
        "SELECT * FROM a WHERE a = 'b;",
        "SELECT * FROM a WHERE a = 1 AND a = 1 AND a = 1;",
    ],
)
def test_what_is_no_query(text) -> None:
    assert not parses("select", text)


@pytest.mark.parametrize(
    ("name", "longest", "quotes"),
    [("record", json.dumps(LONGEST_RECORD, ensure_ascii=False), 8), ("select", LONGEST_QUERY, 4)],
)
def test_the_bound_that_the_grammar_tells(name, longest, quotes) -> None:
    """It takes the quotes of strings of 😀 for characters of four bytes, too."""
    assert parses(name, longest)
    told = re.search(r"(\d+)\s+(?://\s+)?bytes", GRAMMARS[name])
    assert told is not None
    assert int(told[1]) == longest_text(PARSERS[name]) == len(longest.encode()) + 3 * quotes
