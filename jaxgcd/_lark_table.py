"""A bound on Lark's LALR(1) table before Lark makes it, which can take gigabytes.

Each symbol of a grammar leads to parser states of its own. Whatever terminal can follow the symbol is read in
one of these, so the table has at least as many actions as there are pairs of a symbol and a
terminal that can follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from lark.parsers.lalr_parser import LALR_Parser

from jaxgcd._budget import Budget, shortened
from jaxgcd.parsing.table import written_name

_END = 1
"""The bit of the end of the text, in sets of terminals as bits."""


class _Production(NamedTuple):
    origin: str
    symbols: tuple[str, ...]


def bounded_parser(budget: Budget) -> Callable[..., LALR_Parser]:
    """Makes Lark's parser, for its option `_plugins`.

    Raises:
        GrammarTooLarge: its table would be too large.
    """

    def make(parser_conf: Any, **options: bool) -> LALR_Parser:
        productions = [
            _Production(rule.origin.name, tuple(symbol.name for symbol in rule.expansion))
            for rule in parser_conf.rules
        ]
        _check(productions, parser_conf.start, budget)
        return LALR_Parser(parser_conf, **options)

    return make


def _check(productions: list[_Production], start: Iterable[str], budget: Budget) -> None:
    first, nullable = _first(productions)
    follow = dict.fromkeys(first, 0) | dict.fromkeys(start, _END)
    actions, order = 0, -1
    changed = True
    while changed:
        changed = False
        for origin, symbols in productions[::order]:
            after = follow[origin]
            for symbol in reversed(symbols):
                if after & ~follow[symbol]:
                    actions -= follow[symbol].bit_count()
                    follow[symbol] |= after
                    actions += follow[symbol].bit_count()
                    changed = True
                after = first[symbol] | (after if symbol in nullable else 0)
            if actions > budget.limits.parser_actions:
                raise _exceeded(productions, follow, budget)
        order = -order


def _exceeded(productions: list[_Production], follow: dict[str, int], budget: Budget) -> Exception:
    name = max((origin for origin, _ in productions), key=lambda origin: follow[origin].bit_count())
    rule, terminals = shortened(written_name(name)), follow[name].bit_count()
    subject = f"`{rule}` can be followed by {terminals:,} terminals or more; with such symbols the table has"
    remedy = "make one terminal of many words that are used alike"
    return budget.exceeded("parser_actions", subject, "actions", remedy)


def _first(productions: list[_Production]) -> tuple[dict[str, int], set[str]]:
    """The terminals, as bits, that each symbol can begin with, and the symbols that can be empty."""
    nonterminals = {origin for origin, _ in productions}
    terminals = {symbol for _, symbols in productions for symbol in symbols} - nonterminals
    first = {name: _END << 1 + bit for bit, name in enumerate(sorted(terminals))}
    first |= dict.fromkeys(nonterminals, 0)
    nullable: set[str] = set()
    order = 1
    changed = True
    while changed:
        changed = False
        for origin, symbols in productions[::order]:
            found, empty = first[origin], True
            for symbol in symbols:
                found |= first[symbol]
                if symbol not in nullable:
                    empty = False
                    break
            if found != first[origin] or (empty and origin not in nullable):
                first[origin], changed = found, True
                nullable |= {origin} if empty else set()
        order = -order  # soon there with chains of rules, whichever way they stand
    return first, nullable
