"""`compile_grammar`: the pipeline from a grammar and a vocabulary to tables."""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import lark

from jaxgcd.errors import (
    GrammarError,
    GrammarTooLarge,
    InexactGrammarError,
    InexactGrammarWarning,
)
from jaxgcd.grammar import Grammar, load_grammar
from jaxgcd.lexing.boundaries import Boundaries, boundary_classes
from jaxgcd.lexing.formula import Formulas
from jaxgcd.lexing.graph import build_graph
from jaxgcd.lexing.runs import Context, max_runs
from jaxgcd.lexing.scanner import IGNORED, build_scanners
from jaxgcd.parsing.live import live_table
from jaxgcd.parsing.machine import EndlessReductions, Machine, predecessors, shift_targets, step_slack
from jaxgcd.parsing.table import START_STATE, ParseTable
from jaxgcd.parsing.viability import DEAD, TooMany, Viability
from jaxgcd.tables.accept import Acceptance
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.cache import CompileCache, through_cache
from jaxgcd.tables.compiled import Compiled
from jaxgcd.tables.host import register
from jaxgcd.tables.options import check_types, checked_options
from jaxgcd.tables.pack import pack
from jaxgcd.tables.reference import CompiledReference
from jaxgcd.tables.report import Report
from jaxgcd.tables.slots import Slots
from jaxgcd.tables.spanner import build_spanner
from jaxgcd.tables.walk import Walk
from jaxgcd.vocabulary import Vocabulary

MAX_RUNS = 16
"""The most readings of one text; each takes a parser stack in every row's state."""


def compile_grammar(
    grammar: str | os.PathLike[str] | lark.Lark,
    vocabulary: Vocabulary,
    *,
    start: str = "start",
    lexer: str = "contextual",
    check: str = "device",
    exact: bool = False,
    max_depth: int = 64,
    cache: CompileCache | str | os.PathLike[str] | None = None,
) -> Tables:
    """Compiles a Lark grammar for a vocabulary.

    Args:
        grammar: the text of a Lark grammar; a `pathlib.Path` to a file with one, in which
            `%import .other.rule` looks beside it; or a `lark.Lark(..., parser="lalr", lexer=lexer)` object.
        vocabulary: the tokens.
        start: the start rule.
        lexer: `"contextual"`, Lark's default, or `"basic"`. The language depends on it.
        check: where token sequences that depend on the whole parser stack are checked: `"device"`, inside the
        jitted
            step, or `"host"`, by one callback per step to the reference machine.
        exact: raise instead of warning if the masks are not exact.
        max_depth: the most parser states a row's stack may hold; a text that needs more stops with status
        OVERFLOW.
        cache: a `CompileCache`, or the path of its folder: tables that were compiled before, from the same
            grammar, vocabulary and options by the same version, are loaded from there. By default none.

    Returns:
        Tables on the default device. `tables.report` says whether they are exact, and how long each stage
        took.

    Raises:
        GrammarError: the grammar is not LALR(1), its language is empty, or it uses something refused.
        UnsupportedRegexError: a terminal's regex is not regular or not supported yet.
        GrammarTooLarge: a limit was exceeded.
        InexactGrammarError: `exact=True`, and the masks are not.
        VocabularyError: `vocabulary` is no `Vocabulary`.
        StorageError: `cache` cannot be used.

    Warns:
        InexactGrammarWarning: the masks may lead to a dead end; lists the reasons.
        StorageWarning: the tables could not be written to the cache.

    Source: the offline part of Park, Zhou and D'Antoni 2025; see `docs/paper.md`.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b"ab", b""], eos=[3])
        >>> tables = jaxgcd.compile_grammar('start: "a" start "b" | "a" "b"', vocabulary)
        >>> tables.report.exact
        True
    """
    check_types(vocabulary, start, exact)
    options = {"start": start, **checked_options(lexer, check, max_depth)}
    fresh = functools.partial(_fresh, grammar, vocabulary, **options)
    tables = fresh() if cache is None else through_cache(cache, fresh, grammar, vocabulary, options)
    _judge(tables, exact)
    return tables


def _fresh(
    grammar: str | os.PathLike[str] | lark.Lark,
    vocabulary: Vocabulary,
    *,
    start: str,
    lexer: str,
    check: str,
    max_depth: int,
) -> Tables:
    """Compiles, whatever is in a cache."""
    seconds: dict[str, float] = {}
    with _no_collections():
        with _stage(seconds, "lark"):
            loaded = load_grammar(grammar, start=start, lexer=lexer)
        compiled = compile_loaded(loaded, vocabulary, seconds)
        if not compiled.begins():
            raise GrammarError(_cannot_begin(compiled))
        with _stage(seconds, "pack"):
            host = register(CompiledReference(compiled)) if check == "host" else 0
            tables = pack(compiled, max_depth=max_depth, check=check, host=host)
    reasons = compiled.reasons()
    report = Report(not reasons, reasons, seconds, {**compiled.counts(), "bytes": tables.nbytes})
    return dataclasses.replace(tables, report=report, compiled=compiled)


def _judge(tables: Tables, exact: bool) -> None:
    """Raises or warns where the masks are not exact."""
    reasons = tables.report.reasons if tables.report else ()
    if reasons and exact:
        raise InexactGrammarError("The masks of this grammar are not exact:\n" + "\n".join(reasons))
    if reasons:
        message = "The masks never miss a token but may lead to a dead end:\n" + "\n".join(reasons)
        warnings.warn(message, InexactGrammarWarning, stacklevel=3)


def compile_loaded(loaded: Grammar, vocabulary: Vocabulary, seconds: dict[str, float]) -> Compiled:
    """Everything between reading the grammar and packing; adds the time of each stage to `seconds`."""
    table = loaded.table
    after = _contexts(table, loaded.scanner_of)
    with _stage(seconds, "lexer"):
        formulas = Formulas()
        labels = {name: number for number, name in enumerate(table.terminals) if name}
        scanners = build_scanners(formulas, loaded.scanners, labels)
        next_scanners = [frozenset(context.scanner for context in contexts) for contexts in after]
        first = loaded.scanner_of[START_STATE]
        graph = build_graph(formulas, scanners, first, next_scanners, table.end, vocabulary.all_bytes)
        boundaries = boundary_classes(graph)
    with _stage(seconds, "viability"):
        machine = Machine(table)
        viability = Viability(machine, boundaries, loaded.scanner_of)
        slack = _slack(machine, boundaries)
        if viability.verdict(START_STATE, boundaries.initial) == DEAD:
            raise GrammarError(_empty_language(table, boundaries, slack))
        runs = max_runs(graph, _context(table, loaded.scanner_of, START_STATE), after)
        if runs > MAX_RUNS:
            raise GrammarTooLarge(
                f"A text may have {runs} readings at once, more than {MAX_RUNS}: too many lexemes can be "
                "taken back. Look for terminals that begin with another one and go on without bound."
            )
    if isinstance(slack, EndlessReductions):
        return compile_loaded(_live(loaded, viability, slack), vocabulary, seconds)
    with _stage(seconds, "spanner"):
        may_follow = {terminal: _takes(contexts) for terminal, contexts in enumerate(after)}
        may_follow[IGNORED] = _takes(
            {_context(table, loaded.scanner_of, state) for state in range(START_STATE, table.n_states)}
        )
        merged = viability.merged()
        ends = {state: merged[boundary] for state, boundary in boundaries.of.items()}
        spanner = build_spanner(graph, ends, vocabulary, may_follow)
    with _stage(seconds, "walk"):
        slots = Slots(graph, spanner, vocabulary.size)
        acceptance = Acceptance(machine, viability, spanner.classes, loaded.scanner_of, runs)
        walk = Walk(acceptance, slots.groups, predecessors(table))
    return Compiled(
        vocabulary,
        loaded,
        graph,
        boundaries,
        machine,
        viability,
        spanner,
        acceptance,
        walk,
        slots,
        runs,
        slack,
    )


@contextmanager
def _no_collections() -> Iterator[None]:
    """Without the cyclic garbage collector, which would only walk millions of tuples that all stay."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


@contextmanager
def _stage(seconds: dict[str, float], name: str) -> Iterator[None]:
    begin = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - begin


def _context(table: ParseTable, scanner_of: Sequence[int], state: int) -> Context:
    return Context(scanner_of[state], frozenset(table.action[state]))


def _contexts(table: ParseTable, scanner_of: Sequence[int]) -> list[frozenset[Context]]:
    """For each terminal the contexts that shifting it may lead to."""
    return [
        frozenset(_context(table, scanner_of, state) for state in targets) for targets in shift_targets(table)
    ]


def _takes(contexts: Iterable[Context]) -> dict[int, frozenset[int]]:
    """For each scanner the terminals that a parser state with it takes, among some contexts."""
    takes: dict[int, frozenset[int]] = {}
    for scanner, terminals in contexts:
        takes[scanner] = takes.get(scanner, frozenset()) | terminals
    return takes


def _cannot_begin(compiled: Compiled) -> str:
    return (
        "No text that the vocabulary can spell is in the language of this grammar: no token begins one, and "
        "the empty text is not in it.\n" + "\n".join(compiled.reasons())
    )


def _slack(machine: Machine, boundaries: Boundaries) -> int | EndlessReductions:
    try:
        return step_slack(machine, sorted(_emitted(boundaries)))
    except EndlessReductions as error:
        return error


def _live(loaded: Grammar, viability: Viability, endless: EndlessReductions) -> Grammar:
    """The grammar without the actions that no viable text comes to, some of which never end."""
    table = loaded.table
    try:
        table = live_table(table, viability.stacks()) if viability.complete else table
    except TooMany:
        pass
    except EndlessReductions as error:
        endless = error
    if table == loaded.table:
        raise GrammarError(str(endless))
    return dataclasses.replace(loaded, table=table)


def _emitted(boundaries: Boundaries) -> set[int]:
    return {t for exits in boundaries.exits for t, _ in exits}


def _empty_language(table: ParseTable, boundaries: Boundaries, slack: int | EndlessReductions) -> str:
    used = {t for actions in table.action for t in actions}
    never = sorted(table.terminals[t] for t in used - _emitted(boundaries))
    text = "No text that the vocabulary can spell is in the language of this grammar."
    if never:
        text += f" The scanner never emits {', '.join(never)}: another one matches first, or nothing does."
    if isinstance(slack, EndlessReductions):
        text += f" {slack}"
    return text + " Check with `lark.Lark(...).parse` on a text that you expect to be valid."
