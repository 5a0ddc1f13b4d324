"""`compile_grammar`: the pipeline from a grammar and a vocabulary to tables."""

from __future__ import annotations

import dataclasses
import gc
import os
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import lark

from jaxgcd._budget import Budget
from jaxgcd._progress import Bars
from jaxgcd.errors import (
    GrammarError,
    GrammarTooLarge,
    InexactGrammarError,
    InexactGrammarWarning,
    LimitsError,
    VocabularyError,
)
from jaxgcd.grammar import load_grammar
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.lexing.boundaries import Boundaries, boundary_classes
from jaxgcd.lexing.graph import LexerGraph, build_graph
from jaxgcd.lexing.runs import Context, max_runs
from jaxgcd.lexing.scanner import IGNORED, build_scanners
from jaxgcd.limits import Limits
from jaxgcd.parsing.machine import Machine, predecessors, shift_targets, step_slack
from jaxgcd.parsing.table import START_STATE, ParseTable
from jaxgcd.parsing.viability import DEAD, Viability
from jaxgcd.tables.accept import Acceptance
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.compiled import Compiled
from jaxgcd.tables.host import register
from jaxgcd.tables.pack import pack
from jaxgcd.tables.report import Report
from jaxgcd.tables.slots import Slots
from jaxgcd.tables.spanner import build_spanner
from jaxgcd.tables.walk import Walk
from jaxgcd.vocabulary import Vocabulary

CHECKS = ("device", "host")


def compile_grammar(
    grammar: str | os.PathLike[str] | lark.Lark,
    vocabulary: Vocabulary,
    *,
    start: str = "start",
    lexer: str = "contextual",
    check: str = "device",
    exact: bool = False,
    max_depth: int = 64,
    limits: Limits | None = None,
    progress: bool = False,
) -> Tables:
    """Compiles a Lark grammar for a vocabulary.

    Args:
        grammar: the text of a Lark grammar; a `pathlib.Path` to a file with one, in which
            `%import .other.rule` looks beside it; or a `lark.Lark(..., parser="lalr", lexer=lexer)` object.
        vocabulary: the tokens.
        start: the start rule.
        lexer: `"contextual"`, Lark's default, or `"basic"`. The language depends on it.
        check: where token sequences that depend on the whole parser stack are checked: `"device"`, inside the
            jitted step, or `"host"`, by one callback per step to the reference machine.
        exact: raise instead of warning if the masks are not exact.
        max_depth: the most parser states a row's stack may hold; a text that needs more stops with status
            OVERFLOW.
        limits: how long compiling may take, and how large its parts may grow; by default `Limits()`.
        progress: show a bar for each stage on the standard error, with tqdm.

    Returns:
        Tables on the default device. `tables.report` says whether they are exact, how long each stage took
        and how large everything is.

    Raises:
        GrammarError: the grammar is not LALR(1), its language is empty, or it uses something refused.
        UnsupportedRegexError: a terminal's regex is not regular or not supported yet.
        GrammarTooLarge: a limit was exceeded; names it, the terminal or rule responsible, and a remedy.
        InexactGrammarError: `exact=True`, and the masks are not.
        MissingExtraError: `progress=True`, and tqdm is not installed.

    Warns:
        InexactGrammarWarning: the masks may lead to a dead end; lists the reasons.

    Source: the offline part of Park, Zhou and D'Antoni 2025; see `docs/paper.md`.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b"ab", b""], eos=[3])
        >>> tables = jaxgcd.compile_grammar('start: "a" start "b" | "a" "b"', vocabulary)
        >>> tables.report.exact
        True
    """
    if check not in CHECKS:
        raise GrammarError(f"`check={check!r}` is not supported; use one of {', '.join(map(repr, CHECKS))}.")
    if not isinstance(vocabulary, Vocabulary):
        raise VocabularyError(
            f"`vocabulary` must be a `jaxgcd.Vocabulary`, not {type(vocabulary).__name__}; make one with "
            "`Vocabulary(tokens, eos=...)` or `Vocabulary.from_tokenizer(tokenizer)`."
        )
    if not isinstance(max_depth, int) or not isinstance(start, str):
        raise GrammarError(
            f"`max_depth={max_depth!r}` must be an integer and `start={start!r}` a rule's name."
        )
    if max_depth < 2:
        raise GrammarError(f"`max_depth={max_depth}` is too small; a stack holds at least 2 states.")
    if limits is not None and not isinstance(limits, Limits):
        raise LimitsError(f"`limits` must be a `jaxgcd.Limits`, not {type(limits).__name__}.")
    budget = Budget(limits, Bars() if progress else None)
    with _no_collections(), _typed_exhaustion(budget):
        compiled = _compile(grammar, vocabulary, start, lexer, budget)
        host = register(compiled) if check == "host" else 0
        tables = pack(compiled, max_depth=max_depth, check=check, host=host, budget=budget)
    reasons = tuple(_reasons(compiled))
    if reasons and exact:
        raise InexactGrammarError("The masks of this grammar are not exact:\n" + "\n".join(reasons))
    if reasons:
        message = "The masks never miss a token but may lead to a dead end:\n" + "\n".join(reasons)
        warnings.warn(message, InexactGrammarWarning, stacklevel=2)
    report = Report(not reasons, reasons, budget.seconds, {**compiled.counts(), "bytes": tables.nbytes})
    return dataclasses.replace(tables, report=report, compiled=compiled)


def _compile(grammar, vocabulary: Vocabulary, start: str, lexer: str, budget: Budget) -> Compiled:
    patterns = Patterns(budget=budget)
    loaded = load_grammar(grammar, start=start, lexer=lexer, patterns=patterns)
    table, called = loaded.table, loaded.called()
    after = _contexts(table, loaded.scanner_of)
    first = loaded.scanner_of[START_STATE]
    with budget.stage("lexer"):
        labels = {name: number for number, name in enumerate(table.terminals) if name}
        scanners = build_scanners(patterns, loaded.scanners, labels)
        next_scanners = [frozenset(context.scanner for context in contexts) for contexts in after]
        graph = build_graph(
            patterns.formulas, scanners, first, next_scanners, table.end, vocabulary.all_bytes, called, budget
        )
        boundaries = boundary_classes(graph, budget)
    with budget.stage("viability"):
        budget.work = f"the parser's stacks (rule {_widest_rule(table)} occurs in the most states)"
        machine = Machine(table, budget)
        slack = step_slack(machine, sorted({t for exits in boundaries.exits for t, _ in exits}))
        viability = Viability(machine, boundaries, loaded.scanner_of)
        if viability.verdict(START_STATE, boundaries.initial) == DEAD:
            raise GrammarError(_empty_language(table, boundaries))
        runs = max_runs(graph, _context(table, loaded.scanner_of, START_STATE), after, called, budget)
    with budget.stage("spanner"):
        budget.work = f"terminal {called[_widest_terminal(graph)]}"
        may_follow = {terminal: _takes(contexts) for terminal, contexts in enumerate(after)}
        may_follow[IGNORED] = _takes(
            {_context(table, loaded.scanner_of, state) for state in range(START_STATE, table.n_states)}
        )
        spanner = build_spanner(graph, boundaries, vocabulary, may_follow, budget)
    with budget.stage("walk"):
        budget.work = f"the stack walk (rule {_widest_rule(table)} occurs in the most states)"
        slots = Slots(graph, spanner, vocabulary.size)
        acceptance = Acceptance(machine, viability, spanner.classes, loaded.scanner_of, runs)
        walk = Walk(acceptance, slots.groups, predecessors(table), budget)
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
def _typed_exhaustion(budget: Budget) -> Iterator[None]:
    """Makes one error of all ways in which Python itself gives up on something too large."""
    try:
        yield
    except RecursionError:
        raise GrammarTooLarge(
            f"{budget.work}: Python's recursion limit is exceeded; nest it less deeply."
        ) from None
    except MemoryError:
        raise GrammarTooLarge(f"{budget.work}: the memory does not suffice; make it smaller.") from None


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


def _widest_rule(table: ParseTable) -> str:
    """The rule that the most parser states wait for, as the user wrote it."""
    states = Counter(nonterminal for gotos in table.goto for nonterminal in gotos)
    if not states:
        return "start"
    name = table.nonterminals[states.most_common(1)[0][0]]
    made = re.fullmatch(r"__(.+)_(?:star|plus|repeat_\w+)_\d+", name)  # by Lark, for a part of that rule
    return f"`{made[1] if made else name}`"


def _widest_terminal(graph: LexerGraph) -> int:
    """The terminal that can end next in the most lexer states."""
    states = Counter(terminal for exits in graph.exits for terminal in {t for t, _ in exits})
    return max((count, terminal) for terminal, count in states.items() if terminal >= 0)[1]


def _empty_language(table: ParseTable, boundaries: Boundaries) -> str:
    emitted = {t for exits in boundaries.exits for t, _ in exits}
    used = {t for actions in table.action for t in actions}
    never = sorted(table.terminals[t] for t in used - emitted)
    text = "No text that the vocabulary can spell is in the language of this grammar."
    if never:
        text += f" The scanner never emits {', '.join(never)}: another one matches first, or nothing does."
    return text + " Check with `lark.Lark(...).parse` on a text that you expect to be valid."


def _reasons(compiled: Compiled) -> Iterator[str]:
    if not compiled.viability.complete:
        yield (
            "the check which parser stacks can be completed met its limit, so that a conflict "
            "resolved by Lark may lead to a dead end"
        )
    used = compiled.used_bytes()
    for byte in sorted(used - compiled.vocabulary.single_bytes):
        yield f"no token is the single byte 0x{byte:02X}; a text that needs it may not be spelled to its end"
