"""A Lark grammar as plain data: what its scanner matches, in order, and its LALR(1) table.

The terminals, their order and their relabelling come from Lark's own scanner object and the table from
Lark's own parser, so that none of Lark's rules is derived a second time. Only `parser="lalr"` grammars with
one start rule are taken; options that change the language or run user code are refused by name.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import cast

import lark
from lark.exceptions import LarkError
from lark.lexer import BasicLexer, ContextualLexer, UnlessCallback

from jaxgcd.errors import GrammarError, GrammarTooLarge
from jaxgcd.lexing.automaton import compile_pattern
from jaxgcd.lexing.formula import Formulas
from jaxgcd.lexing.scanner import ScannerTerminal
from jaxgcd.parsing.table import START_STATE, ParseTable, parse_table_from_lark

LEXERS = ("contextual", "basic")

# Options of `lark.Lark` that change the language or run user code while lexing or parsing, with the value
# that leaves them off.
_REFUSED_OPTIONS = {
    "postlex": None,
    "transformer": None,
    "lexer_callbacks": {},
    "use_bytes": False,
    "regex": False,
    "g_regex_flags": 0,
    "_plugins": {},
}


@dataclass(frozen=True)
class Grammar:
    """A Lark grammar, read.

    Attributes:
        table: the LALR(1) table with its symbols.
        scanners: the distinct scanners, each a list of terminals in order of preference; the basic lexer has
            one.
        scanner_of: which scanner reads on, for each parser state on top of the stack.
        lexer: `"basic"` or `"contextual"`.
    """

    table: ParseTable
    scanners: tuple[tuple[ScannerTerminal, ...], ...]
    scanner_of: tuple[int, ...]
    lexer: str


def load_grammar(
    grammar: str | os.PathLike[str] | lark.Lark, *, start: str = "start", lexer: str = "contextual"
) -> Grammar:
    """Reads a Lark grammar, given as its text, as a file, or as a built `lark.Lark` object.

    Args:
        grammar: a `str` is always the text of a Lark grammar; a `pathlib.Path`, or another `os.PathLike`, is
            a file, read as `lark.Lark.open` does, so that `%import .other.rule` looks beside it; or
            `lark.Lark(..., parser="lalr", lexer=lexer)`.
        start: the start rule; of a built object, its only one.
        lexer: `"contextual"`, Lark's default, in which only the terminals that the parser can take next are
            looked for, or `"basic"`, in which all are.

    Raises:
        GrammarError: Lark rejects the grammar (not LALR(1): names both rules and the lookahead), the file
            cannot be read, or an option is refused.
        GrammarTooLarge: the grammar is nested too deeply for Lark.
    """
    if lexer not in LEXERS:
        raise GrammarError(f"`lexer={lexer!r}` is not supported; use one of {', '.join(map(repr, LEXERS))}.")
    parser = (
        _built(grammar, start, lexer) if isinstance(grammar, lark.Lark) else _build(grammar, start, lexer)
    )
    try:
        table, states = parse_table_from_lark(parser, start)
        scanners, scanner_of = _scanners(parser, table, states)
    except re.error as error:
        for terminal in parser.terminals:  # a reference to a group is an error of its own, by name
            compile_pattern(Formulas(), terminal.pattern.to_regexp(), terminal.name)
        raise GrammarError(
            f"Python's `re` cannot compile the scanner of this grammar: {error}. Look for a group name that "
            "two terminals share."
        ) from error
    return Grammar(table, scanners, scanner_of, lexer)


def _build(grammar: str | os.PathLike[str], start: str, lexer: str) -> lark.Lark:
    if not isinstance(grammar, (str, os.PathLike)):
        raise GrammarError(
            "`grammar` must be a text, a `pathlib.Path` or a `lark.Lark` object, not "
            f"{type(grammar).__name__}."
        )
    try:
        if isinstance(grammar, str):
            return lark.Lark(grammar, parser="lalr", lexer=lexer, start=start)
        return lark.Lark.open(os.fsdecode(grammar), parser="lalr", lexer=lexer, start=start)
    except RecursionError:
        raise GrammarTooLarge(
            "Lark exceeds Python's recursion limit on this grammar; nest it less."
        ) from None
    except (LarkError, re.error, OSError, OverflowError, ValueError) as error:
        raise GrammarError(f"Lark rejects {_place(grammar)}: {error}") from error


def _place(grammar: str | os.PathLike[str]) -> str:
    """What a message calls the grammar."""
    if not isinstance(grammar, str):
        return f"the grammar in {os.fsdecode(grammar)!r}"
    if grammar.endswith(".lark"):
        return "the grammar (a `str` is a text; for a file give a `pathlib.Path`)"
    return "the grammar"


def _built(parser: lark.Lark, start: str, lexer: str) -> lark.Lark:
    options = parser.options
    if options.parser != "lalr":
        raise GrammarError(
            f"The grammar was built with `parser={options.parser!r}`; build it with `parser='lalr'`."
        )
    if options.lexer != lexer:
        raise GrammarError(
            f"The grammar was built with `lexer={options.lexer!r}` but `lexer={lexer!r}` was asked for; "
            "the two must agree, as the language depends on it."
        )
    for name, neutral in _REFUSED_OPTIONS.items():
        if (getattr(options, name) or neutral) != neutral:
            raise GrammarError(
                f"The grammar was built with the option `{name}`, which changes the language or runs Python "
                "code while parsing; that cannot be compiled. Build it without."
            )
    if list(options.start) != [start]:
        raise GrammarError(
            f"The grammar was built with the start rules {list(options.start)}; build it with "
            f"`start={start!r}` alone, as further start rules change the LALR lookaheads."
        )
    return parser


def _scanners(
    parser: lark.Lark, table: ParseTable, states: list
) -> tuple[tuple[tuple[ScannerTerminal, ...], ...], tuple[int, ...]]:
    """The distinct scanners in the order of the parser states, and each state's."""
    lexer = parser.parser.lexer
    number: dict[tuple[ScannerTerminal, ...], int] = {}
    if not isinstance(lexer, ContextualLexer):
        return (_scanner_terminals(cast(BasicLexer, lexer)),), (0,) * table.n_states
    read: dict[int, tuple[ScannerTerminal, ...]] = {}
    scanner_of = [0] * table.n_states
    for state, lark_state in enumerate(states, START_STATE):
        own = cast(BasicLexer, lexer.lexers[lark_state])
        terminals = read.setdefault(id(own), ()) or _scanner_terminals(own)
        read[id(own)] = terminals
        scanner_of[state] = number.setdefault(terminals, len(number))
    return tuple(number), tuple(scanner_of)


def _scanner_terminals(lexer: BasicLexer) -> tuple[ScannerTerminal, ...]:
    scanner = lexer.scanner  # builds `lexer.callback` as well
    result = []
    for terminal in scanner.terminals:
        callback = lexer.callback.get(terminal.name)
        keywords = callback.scanner.terminals if isinstance(callback, UnlessCallback) else ()
        result.append(
            ScannerTerminal(
                terminal.name,
                terminal.pattern.to_regexp(),
                terminal.name in lexer.ignore_types,
                tuple((keyword.name, keyword.pattern.to_regexp()) for keyword in keywords),
            )
        )
    return tuple(result)
