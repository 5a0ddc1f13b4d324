"""`compile_grammar`: the pipeline from a grammar and a vocabulary to tables."""

from __future__ import annotations

import dataclasses
import functools
import gc
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import lark

from jaxgcd._budget import Budget
from jaxgcd._progress import Bars
from jaxgcd.errors import (
    GrammarTooLarge,
    InexactGrammarError,
    InexactGrammarWarning,
    LimitsError,
)
from jaxgcd.grammar import load_grammar
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.limits import Limits
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.build import build
from jaxgcd.tables.cache import CompileCache, through_cache
from jaxgcd.tables.host import register
from jaxgcd.tables.options import check_types, checked_options
from jaxgcd.tables.pack import add_parser, pack
from jaxgcd.tables.reference import CompiledReference
from jaxgcd.tables.report import Report
from jaxgcd.vocabulary import Vocabulary


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
        cache: a `CompileCache`, or the path of its folder: tables that were compiled before, from the same
            grammar, vocabulary and options by the same version, are loaded from there. By default none.
        limits: how long compiling may take, and how large its parts may grow; by default `Limits()`.
        progress: show a bar for each stage on the standard error, with tqdm.

    Returns:
        Tables on the default device. `tables.report` says whether they are exact, and how long each stage
        took and how large everything is.

    Raises:
        GrammarError: the grammar is not LALR(1), its language is empty, or it uses something refused.
        UnsupportedRegexError: a terminal's regex is not regular or not supported yet.
        GrammarTooLarge: a limit was exceeded; names it, the terminal or rule responsible, and a remedy.
        InexactGrammarError: `exact=True`, and the masks are not.
        VocabularyError: `vocabulary` is no `Vocabulary`.
        StorageError: `cache` cannot be used.
        LimitsError: `limits` is not a `Limits`.
        MissingExtraError: `progress=True`, and tqdm is not installed.

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
    if limits is not None and not isinstance(limits, Limits):
        raise LimitsError(f"`limits` must be a `jaxgcd.Limits`, not {type(limits).__name__}.")
    budget = Budget(limits, Bars() if progress else None)
    options = {"start": start, **checked_options(lexer, check, max_depth)}
    fresh = functools.partial(_fresh, grammar, vocabulary, budget, **options)
    if cache is None:
        tables = fresh()
    else:
        # Of all limits this one alone changes tables.
        key = options | {"stack_cases": budget.limits.stack_cases}
        tables = through_cache(cache, fresh, grammar, vocabulary, key, budget)
    _judge(tables, exact)
    return tables


def _fresh(
    grammar: str | os.PathLike[str] | lark.Lark,
    vocabulary: Vocabulary,
    budget: Budget,
    *,
    start: str,
    lexer: str,
    check: str,
    max_depth: int,
) -> Tables:
    """Compiles, whatever is in a cache."""
    patterns = Patterns(budget)
    with _no_collections(), _typed_exhaustion(budget):
        loaded = load_grammar(grammar, start=start, lexer=lexer, patterns=patterns)
        add_parser(loaded.table, budget)
        compiled = build(loaded, vocabulary, patterns)
        host = register(CompiledReference(compiled)) if check == "host" else 0
        tables = pack(compiled, max_depth=max_depth, check=check, host=host, budget=budget)
    reasons = compiled.reasons()
    report = Report(not reasons, reasons, budget.seconds, {**compiled.counts(), "bytes": tables.nbytes})
    return dataclasses.replace(tables, report=report, compiled=compiled)


def _judge(tables: Tables, exact: bool) -> None:
    """Raises or warns where the masks are not exact."""
    reasons = tables.report.reasons if tables.report else ()
    if reasons and exact:
        raise InexactGrammarError("The masks of this grammar are not exact:\n" + "\n".join(reasons))
    if reasons:
        message = "The masks never miss a token but may lead to a dead end:\n" + "\n".join(reasons)
        warnings.warn(message, InexactGrammarWarning, stacklevel=3)


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
