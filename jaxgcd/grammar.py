"""A Lark grammar as plain data: what its scanner matches, in order, and its LALR(1) table.

The terminals, their order and their relabelling come from Lark's own scanner object and the table from
Lark's own parser, so that none of Lark's rules is derived a second time. Only `parser="lalr"` grammars with
one start rule are taken; options that change the language or run user code are refused by name.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import lark
from lark.exceptions import LarkError
from lark.load_grammar import GrammarBuilder

from jaxgcd._budget import Budget, shortened
from jaxgcd._interrupt import supervised
from jaxgcd._lark_guard import Sizes, check_sources, sizes_of
from jaxgcd._lark_scanners import read_scanners
from jaxgcd._lark_table import bounded_parser
from jaxgcd.errors import GrammarError, GrammarTooLarge
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.lexing.scanner import ScannerTerminal
from jaxgcd.parsing.table import ParseTable, parse_table_from_lark

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
        shown: what messages call terminals: their names, or what the user wrote where there is none.
    """

    table: ParseTable
    scanners: tuple[tuple[ScannerTerminal, ...], ...]
    scanner_of: tuple[int, ...]
    lexer: str
    shown: Mapping[str, str] = field(default_factory=dict, compare=False)

    def called(self) -> tuple[str, ...]:
        """What messages call each terminal, by the numbers of `table`."""
        return tuple(self.shown.get(name, name) for name in self.table.terminals)


def load_grammar(
    grammar: str | os.PathLike[str] | lark.Lark,
    *,
    start: str = "start",
    lexer: str = "contextual",
    patterns: Patterns | None = None,
) -> Grammar:
    """Reads a Lark grammar, given as its text, as a file, or as a built `lark.Lark` object.

    Args:
        grammar: a `str` is always the text of a Lark grammar; a `pathlib.Path`, or another `os.PathLike`, is
            a file, read as `lark.Lark.open` does, so that `%import .other.rule` looks beside it; or
            `lark.Lark(..., parser="lalr", lexer=lexer)`.
        start: the start rule; of a built object, its only one.
        lexer: `"contextual"`, Lark's default, in which only the terminals that the parser can take next are
            looked for, or `"basic"`, in which all are.
        patterns: keeps the automata of the grammar's regexes, and holds the budget.

    Raises:
        GrammarError: Lark rejects the grammar (not LALR(1): names both rules and the lookahead), the file
            cannot be read, or an option is refused.
        UnsupportedRegexError: a terminal's regex is not regular or not supported.
        GrammarTooLarge: the grammar is too large or nested too deeply.
    """
    if lexer not in LEXERS:
        raise GrammarError(f"`lexer={lexer!r}` is not supported; use one of {', '.join(map(repr, LEXERS))}.")
    patterns = patterns or Patterns()
    budget = patterns.budget
    with budget.stage("lark"):
        if isinstance(grammar, lark.Lark):
            parser = _built(grammar, start, lexer)
        else:
            parser = _build(grammar, start, lexer, budget)
        table, states = parse_table_from_lark(parser, start, budget)
    shown = _shown(parser)
    for terminal in parser.terminals:
        patterns.names.setdefault(terminal.pattern.to_regexp(), shown[terminal.name])
    with budget.stage("scanners"):
        scanners, scanner_of = read_scanners(parser, patterns, states)
    return Grammar(table, scanners, scanner_of, lexer, shown)


def _build(grammar: str | os.PathLike[str], start: str, lexer: str, budget: Budget) -> lark.Lark:
    """Lark's object for a grammar, unless that takes too long or would be too large."""
    if not isinstance(grammar, (str, os.PathLike)):
        raise GrammarError(
            "`grammar` must be a text, a `pathlib.Path` or a `lark.Lark` object, not "
            f"{type(grammar).__name__}."
        )
    sizes: list[Sizes] = []

    def build() -> lark.Lark:
        text, source = read_text(grammar, budget)
        check_sources(text, source, budget)
        builder = GrammarBuilder()
        builder.load_grammar(text, source)
        sizes.append(sizes_of(builder))
        sizes[0].check(budget)
        plugins = {"LALR_Parser": bounded_parser(budget)}
        return lark.Lark(
            builder.build(), parser="lalr", lexer=lexer, start=start, source_path=source, _plugins=plugins
        )

    try:
        return supervised(build, _watch(budget, sizes))
    except RecursionError:
        raise GrammarTooLarge(
            "Lark exceeds Python's recursion limit on this grammar; nest it less."
        ) from None
    except (GrammarError, MemoryError):
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise GrammarError(f"{_place(grammar)} cannot be read: {error}") from error
    except (LarkError, re.error, OverflowError, ValueError) as error:
        raise GrammarError(f"Lark rejects {_place(grammar)}: {shortened(str(error), 4000)}") from error
    except Exception as error:  # some mistakes in a grammar make Lark itself fail, with whatever error
        said = shortened(f"{type(error).__name__}: {error}", 4000)
        raise GrammarError(
            f"Lark fails on {_place(grammar)} with {said}. `lark.Lark(grammar, parser='lalr')` shows where."
        ) from error


def _watch(budget: Budget, sizes: list[Sizes]) -> Callable[[float], None]:
    """Bounds what Lark uses; `sizes` has those of the grammar, or not yet."""
    objects = sys.getallocatedblocks()
    units = {"lark_seconds": "seconds", "lark_objects": "objects (or other threads made them)"}

    def watch(seconds: float) -> None:
        budget.step(0)
        exceeded = {
            "lark_seconds": seconds > budget.limits.lark_seconds,
            "lark_objects": sys.getallocatedblocks() - objects > budget.limits.lark_objects,
        }
        for limit in (name for name, met in exceeded.items() if met):
            subject = f"{sizes[0].summary() if sizes else 'the grammar'}: Lark itself needs"
            remedy = (
                "make one terminal of many words, and several rules of a long one; note that terminals made "
                "of terminals multiply"
            )
            raise budget.exceeded(limit, subject, f"{units[limit]} for it", remedy)

    return watch


def imported_files(text: str, source: str, budget: Budget) -> dict[str, str]:
    """The files that a grammar's text imports, Lark's own ones included, and digests of their contents.

    Raises:
        GrammarTooLarge: it is too large.
        Exception: whatever else Lark raises.
    """

    def read() -> dict[str, str]:
        check_sources(text, source, budget)
        builder = GrammarBuilder()
        builder.load_grammar(text, source)
        return {str(path): digest for path, digest in builder.used_files.items()}

    return supervised(read, _watch(budget, []))


def read_text(grammar: str | os.PathLike[str], budget: Budget) -> tuple[str, str]:
    """A grammar's text, or slightly more of it than is allowed, and where it comes from."""
    if isinstance(grammar, str):
        return grammar, "<string>"
    path = os.fsdecode(grammar)
    with open(path, encoding="utf8") as file:
        return file.read(budget.limits.grammar_characters + 1), path


def _shown(parser: lark.Lark) -> dict[str, str]:
    """What messages call each terminal."""
    grammar = getattr(parser, "grammar", None)  # a saved object has lost it, and what names were given
    terminals = grammar.term_defs if grammar else ((terminal.name, ()) for terminal in parser.terminals)
    given = {name for name, _ in terminals if not name.startswith("__")}
    return {
        terminal.name: terminal.name
        if terminal.name in given
        else shortened(terminal.pattern.raw or f"/{terminal.pattern.to_regexp()}/")
        for terminal in parser.terminals
    }


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
