"""Limits: whatever the grammar, compiling ends, in bounded memory, with tables or a typed error."""

import dataclasses
import doctest
import functools
import json
import math
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jax
import lark
import lark.utils
import numpy as np
import pytest
from hostile_grammars import HOSTILE, Hostile
from small_grammars import SMALL, Small

import jaxgcd
from jaxgcd._interrupt import supervised

MEMORY = 1 << 30
"""Bytes beyond what a grammar of one letter takes."""

SLOW = [hostile for hostile in HOSTILE if hostile.slow]
QUICK = [hostile for hostile in HOSTILE if not hostile.slow]


@functools.cache
def outcomes(slow: bool) -> dict[str, tuple[str, str, int]]:
    """The error, its message, and the bytes that were used, for each of the hostile grammars."""
    names = [hostile.name for hostile in HOSTILE if hostile.slow == slow]
    runner = Path(__file__).parent / "hostile_runner.py"
    done = subprocess.run(
        [sys.executable, str(runner), *names],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: tuple(rest) for name, *rest in map(json.loads, done.stdout.splitlines())}


def assert_ends_well(hostile: Hostile) -> None:
    error, message, memory = outcomes(hostile.slow)[hostile.name]
    assert error == hostile.error, message
    for said in hostile.says:
        assert re.search(said, message), message
    assert memory < MEMORY, f"{memory:,} bytes"


@pytest.mark.parametrize("hostile", QUICK, ids=lambda hostile: hostile.name)
def test_what_is_hostile_compiles_or_is_refused(hostile: Hostile) -> None:
    assert_ends_well(hostile)


@pytest.mark.prove
@pytest.mark.parametrize("hostile", SLOW, ids=lambda hostile: hostile.name)
def test_what_is_hostile_and_slow_compiles_or_is_refused(hostile: Hostile) -> None:
    assert_ends_well(hostile)


def test_every_error_says_which_limit_to_raise() -> None:
    refused = [message for error, message, _ in outcomes(False).values() if error == "GrammarTooLarge"]
    names = {field.name for field in dataclasses.fields(jaxgcd.Limits)}
    named = [set(re.findall(r"jaxgcd\.Limits\((\w+)=\.\.\.\)", message)) for message in refused]
    assert all(found <= names for found in named)
    assert sum(map(bool, named)) > len(named) // 2  # the others are about nesting, and about empty lines


VOCABULARY = jaxgcd.Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b""], eos=[257])
NESTED = 'start: "(" start ")" | name ("," name)*\nname: /[a-z]+(?![0-9])/ | "if" | "x" | "xyz"\n%ignore " "'

TINY = {
    "seconds": 1e-9,
    "lark_seconds": 1e-9,
    "lark_objects": 1,
    "grammar_characters": 10,
    "rule_symbols": 1,
    "regex_characters": 1,
    "regex_nodes": 1,
    "regex_states": 1,
    "regex_steps": 1,
    "scanner_steps": 1,
    "lexer_states": 2,
    "formulas": 3,
    "parser_actions": 1,
    "readings": 1,
    "reading_sets": 1,
    "suffix_pairs": 1,
    "suffix_classes": 1,
    "walk_nodes": 1,
    "table_bytes": 100,
}
"""For each limit a value that `MEETS` exceeds."""

MEETS = {
    "lark_seconds": "start: " + " | ".join(f'"k{i}"' for i in range(800)),
    "lark_objects": "start: " + " | ".join(f'"k{i}"' for i in range(800)),
    "readings": 'start: (A | LONG)+\nA: "a"\nLONG: /aaaaab/',
    "reading_sets": 'start: (A | LONG)+\nA: "a"\nLONG: /aaaaab/',
    "regex_characters": "start: A\nA: B B\nB: /[a-z]/",
}


@pytest.mark.parametrize("limit", TINY)
def test_every_limit_can_be_met_and_names_itself(limit: str) -> None:
    limits = jaxgcd.Limits(**{limit: TINY[limit]})
    with pytest.raises(jaxgcd.GrammarTooLarge, match=rf"`limits=jaxgcd\.Limits\({limit}=\.\.\.\)`"):
        jaxgcd.compile_grammar(MEETS.get(limit, NESTED), VOCABULARY, limits=limits)


@pytest.mark.parametrize("small", SMALL[::6], ids=lambda small: small.name)
def test_a_parser_s_actions_are_never_thought_to_be_more_than_they_are(small: Small) -> None:
    built = lark.Lark(small.grammar, parser="lalr")
    actions = sum(map(len, built.parser.parser._parse_table.states.values()))
    jaxgcd.compile_grammar(small.grammar, VOCABULARY, limits=jaxgcd.Limits(parser_actions=actions))
    with pytest.raises(jaxgcd.GrammarTooLarge, match="parser_actions"):
        jaxgcd.compile_grammar(small.grammar, VOCABULARY, limits=jaxgcd.Limits(parser_actions=actions - 1))


def test_the_limit_on_stack_cases_makes_masks_inexact_and_keeps_them_complete() -> None:
    grammar = 'start: "a" start "b" | "c" "//" | "a" "b"\n%ignore /\\/\\/[^\\n]*/'
    with pytest.warns(jaxgcd.InexactGrammarWarning, match="met its limit"):
        weak = jaxgcd.compile_grammar(grammar, VOCABULARY, limits=jaxgcd.Limits(stack_cases=1))
    exact = jaxgcd.compile_grammar(grammar, VOCABULARY)
    fewer, more = (np.asarray(jaxgcd.allowed(tables, jaxgcd.init(tables))) for tables in (exact, weak))
    assert (fewer & more == fewer).all()


def test_all_limits_are_tried() -> None:
    assert {field.name for field in dataclasses.fields(jaxgcd.Limits)} == {*TINY, "stack_cases"}


@pytest.mark.parametrize("value", [0, -1, 1.5, True, "1", None, math.nan])
def test_a_limit_is_a_positive_number(value: object) -> None:
    with pytest.raises(jaxgcd.LimitsError, match=r"Limits\(walk_nodes="):
        jaxgcd.Limits(walk_nodes=value)  # type: ignore[arg-type]
    with pytest.raises(jaxgcd.LimitsError, match="`limits` must be"):
        jaxgcd.compile_grammar('start: "a"', VOCABULARY, limits={"seconds": 1})  # type: ignore[arg-type]


def test_times_may_be_fractions_and_without_end() -> None:
    limits = jaxgcd.Limits(seconds=math.inf, lark_seconds=20.5)
    assert jaxgcd.compile_grammar('start: "a"', VOCABULARY, limits=limits).report


def test_limits_that_are_not_met_change_nothing() -> None:
    small = jaxgcd.compile_grammar(NESTED, VOCABULARY, limits=jaxgcd.Limits(walk_nodes=1000, seconds=100))
    assert jax.tree.all(jax.tree.map(np.array_equal, small, jaxgcd.compile_grammar(NESTED, VOCABULARY)))


def test_bars_for_all_stages_and_silence_by_default(capfd: pytest.CaptureFixture[str]) -> None:
    jaxgcd.compile_grammar(NESTED, VOCABULARY)
    assert capfd.readouterr() == ("", "")
    tables = jaxgcd.compile_grammar(NESTED, VOCABULARY, progress=True)
    out, bars = capfd.readouterr()
    assert not out
    assert tables.report
    assert list(tables.report.seconds) == [
        "lark", "scanners", "lexer", "viability", "spanner", "slots", "walk", "pack",
    ]  # fmt: skip
    for stage in tables.report.seconds:
        assert re.search(rf"{stage} *: ", bars)


def test_the_cache_tells_apart_only_limits_that_change_tables(tmp_path: Path) -> None:
    def cached(**limits: float) -> bool:
        tables = jaxgcd.compile_grammar(
            NESTED,
            VOCABULARY,
            cache=tmp_path,
            limits=jaxgcd.Limits(**limits),  # type: ignore[arg-type]
        )
        assert tables.report
        return tables.report.cached

    assert not cached()
    assert cached(seconds=0.001, walk_nodes=1)  # what is there costs nothing
    assert not cached(stack_cases=400_000)


def test_code_that_never_ends_is_stopped() -> None:
    def forever() -> None:
        while True:
            pass

    def watch(seconds: float) -> None:
        if seconds > 0.1:
            raise TimeoutError

    before = threading.active_count()
    with pytest.raises(TimeoutError):
        supervised(forever, watch)
    assert threading.active_count() == before


def test_what_a_watched_function_raises_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        supervised(lambda: 1 // 0, lambda seconds: None)


def test_the_page_about_limits() -> None:
    page = Path(__file__).parent.parent / "docs" / "limits.md"
    assert doctest.testfile(str(page), module_relative=False).failed == 0


def test_the_page_has_all_defaults() -> None:
    page = (Path(__file__).parent.parent / "docs" / "limits.md").read_text()
    rows = dict(re.findall(r"^\| `(\w+)` \| ([0-9,]+) \|", page, re.M))
    assert {name: int(value.replace(",", "")) for name, value in rows.items()} == dataclasses.asdict(
        jaxgcd.Limits()
    )


BROKEN = [
    "%declare x\nstart: x",
    'start: A\nA: x{"a"}\nx{y}: y',
    "%import.common (INT)\n%import common.WORD\nstart: INT",
    'start: A\n%override A: /5/->foo?r:\nA: "b"',
]
"""Grammars on which Lark itself fails, each with another error."""


@pytest.mark.parametrize("grammar", BROKEN)
def test_whatever_lark_fails_with_is_a_grammar_error(grammar: str) -> None:
    with pytest.raises(Exception) as lark_error:
        lark.Lark(grammar, parser="lalr")
    assert not isinstance(lark_error.value, lark.exceptions.LarkError)
    with pytest.raises(jaxgcd.GrammarError, match="Lark fails on the grammar with"):
        jaxgcd.compile_grammar(grammar, VOCABULARY)


def test_lark_without_the_package_regex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lark.utils, "_has_regex", False)
    with pytest.raises(jaxgcd.GrammarError, match="regex"):
        jaxgcd.compile_grammar(r"start: /\\p{L}x/", VOCABULARY)


def test_an_interrupt_stops_the_code_as_well() -> None:
    """Also one that comes while the thread is waited for."""
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    stop, before = threading.Event(), threading.active_count()

    def forever() -> None:
        while not stop.is_set():
            pass

    timer = threading.Timer(0.3, signal.raise_signal, (signal.SIGINT,))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            supervised(forever, lambda seconds: None)
        timer.join()
        assert threading.active_count() == before
    finally:
        stop.set()
        signal.signal(signal.SIGINT, usual)


@pytest.mark.parametrize("line", ["%import .evil.x", "%import .evil (x)", "%import . evil . x -> y"])
def test_imported_files_are_looked_at_first(line: str, tmp_path: Path) -> None:
    (tmp_path / "main.lark").write_text(f"{line}\nstart: x\n")
    (tmp_path / "evil.lark").write_text("%import .more.y\nx: y\n")
    (tmp_path / "more.lark").write_text('y: A\nA: "' + r"\\\\" * 40 + "\n")
    for cache in (None, tmp_path / "cache"):
        with pytest.raises(jaxgcd.GrammarError, match=r"line 2 of .*more\.lark: the string"):
            jaxgcd.compile_grammar(tmp_path / "main.lark", VOCABULARY, cache=cache)
