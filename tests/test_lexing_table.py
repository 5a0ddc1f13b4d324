"""The tables of `docs/lexing.md`: the verdicts are python-lark's and the library's, the named tests exist."""

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from bytewise import accepts, both_modes, compiled, parses
from lark import Lark
from semantics_cases import EMPTY, MICRO, MODES

import jaxgcd

TESTS = Path(__file__).parent
PAGE = (TESTS.parent / "docs" / "lexing.md").read_text(encoding="utf8")
RULES, REFUSALS = ["rule", "grammar", "texts", *MODES, "test"], ["what", "error", "test"]


@dataclass(frozen=True)
class Row:
    """A rule, a grammar, and by lexer mode the verdict on each text and whether the language is empty."""

    rule: str
    grammar: str
    verdicts: dict[str, dict[str, bool]]
    empty: dict[str, bool]
    test: str


def tables(header: list[str]) -> list[list[str]]:
    """The cells of all rows of the tables with these headings."""
    found: list[list[str]] = []
    inside = False
    for line in PAGE.splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        inside = cells == header or (inside and bool(cells))
        if inside and cells != header and set(cells[0]) != {"-"}:
            found.append(cells)
    return found


def spans(cell: str) -> list[str]:
    """The pieces of code in a cell, which `<br>` or a comma separates."""
    return re.findall(r"`(.*?)`(?=<br>|, `|$)", cell)


def text_of(span: str) -> str:
    return re.sub(r"\\n|\\u([0-9a-f]{4})", lambda m: chr(int(m[1], 16)) if m[1] else "\n", span)


def row_of(rule: str, grammar: str, texts: str, contextual: str, basic: str, test: str) -> Row:
    verdicts, empty = {}, {}
    for lexer, cell in zip(MODES, (contextual, basic), strict=True):
        letters = cell.removesuffix(" (empty)").split(", ")
        assert set(letters) <= {"T", "F"}, cell
        verdicts[lexer] = {
            text_of(span): letter == "T" for span, letter in zip(spans(texts), letters, strict=True)
        }
        empty[lexer] = cell.endswith(" (empty)")
    return Row(rule, "\n".join(spans(grammar)), verdicts, empty, spans(test)[0])


ROWS = [row_of(*cells) for cells in tables(RULES)]
REFUSED = [(what, spans(error)[0], spans(test)[0]) for what, error, test in tables(REFUSALS)]


def test_the_page_has_its_rows() -> None:
    """Among them the micro-grammars in which other tools differ from Lark, and some that its modes divide."""
    assert len(ROWS) >= 50 and len(REFUSED) >= 10
    assert len({row.rule for row in ROWS}) == len(ROWS)
    assert {example.grammar for example in MICRO} <= {row.grammar for row in ROWS}
    assert any(row.verdicts["basic"] != row.verdicts["contextual"] for row in ROWS)


@both_modes
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.rule)
def test_verdicts(row: Row, lexer: str) -> None:
    wanted = row.verdicts[lexer]
    parser = Lark(row.grammar, parser="lalr", lexer=lexer)
    assert {text: parses(parser, text) for text in wanted} == wanted
    if not row.empty[lexer]:
        assert accepts(compiled(row.grammar, lexer), list(wanted)) == list(wanted.values())
        return
    assert not any(wanted.values())
    with pytest.raises(EMPTY.error, match=EMPTY.message):
        compiled(row.grammar, lexer)


def test_named_tests_exist() -> None:
    """As pytest collects them; a row's test runs in both modes."""
    names = [row.test for row in ROWS] + [test for _, _, test in REFUSED]
    files = sorted({str(TESTS / name.split("::")[0]) for name in names})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    done = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    collected = set(done.stdout.replace("tests/", "").splitlines())
    for row in ROWS:
        missing = {f"{row.test[:-1]}-{lexer}]" for lexer in MODES} - collected
        assert row.test.endswith("]") and not missing, row.rule
    for _, error, test in REFUSED:
        assert issubclass(getattr(jaxgcd, error), jaxgcd.GrammarError)
        assert {test, f"{test[:-1]}-basic]"} & collected, test
