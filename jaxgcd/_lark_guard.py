"""What is checked before Lark works on a grammar, because Lark itself would hang or exhaust the memory.

Some of it cannot be interrupted: while a regex of Lark's own backtracks, Python does nothing else. And the
rules that Lark writes out can be exponentially larger than what the user wrote.
"""

from __future__ import annotations

import os
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeVar

from lark import Token, Tree
from lark.load_grammar import REPEAT_BREAK_THRESHOLD, SMALL_FACTOR_THRESHOLD, GrammarBuilder
from lark.utils import small_factors

from jaxgcd._budget import Budget, shortened
from jaxgcd.errors import GrammarError, GrammarTooLarge

T = TypeVar("T")

LINE_ENDS = 1000
"""The most line ends in a row: Lark needs time that grows with the square of their number."""

BACKSLASHES = 6
"""The most escaped backslashes behind a quote or slash that is never closed: each doubles Lark's time, at
least."""

_CAP = 10**12  # sizes are not counted further than this

_RELATIVE_IMPORT = re.compile(r"%import[ \t]*(\.[\w. \t]*\w)")

_PIECE = re.compile(
    r"""
    (?://|\#)[^\n]*+                  # a comment
  | "(?>\\["\\]|[^"\n])*+"            # a string
  | /(?!/)(?>\\[/\\]|[^/])*+/         # a regex
  | (?P<open>["/])                    # one that is not closed
  | [^"/\#]++
    """,
    re.VERBOSE,
)


def check_sources(text: str, source: str, budget: Budget) -> None:
    """Checks a grammar's text, and those of the files that it imports, directly or through others.

    Args:
        text: the grammar.
        source: its file, or "<string>".
        budget: what may be used up.

    Raises:
        GrammarTooLarge: one is too long, or has too many empty lines in a row.
        GrammarError: a string or regex has no end.
    """
    todo, seen = [(text, source)], {source}
    while todo:
        text, source = todo.pop()
        budget.step(0)
        _check_text(text, "the grammar" if source == "<string>" else source, budget)
        for path in _imported(text, source):
            if path not in seen:
                seen.add(path)
                with open(path, encoding="utf8", errors="replace") as file:  # Lark will say what is wrong
                    todo.append((file.read(budget.limits.grammar_characters + 1), path))


def _imported(text: str, source: str) -> Iterator[str]:
    """The files that Lark may read for relative imports."""
    if source == "<string>":
        main = getattr(sys.modules["__main__"], "__file__", None)
        folder = os.path.dirname(os.path.abspath(main)) if main else os.path.abspath(os.curdir)
    else:
        folder = os.path.dirname(source)
    for dotted in _RELATIVE_IMPORT.findall(text):
        names = re.split(r"\s*\.\s*", dotted.strip(" \t."))
        for parts in (names, names[:-1]):  # with names in brackets behind it, or with the name of a rule
            path = os.path.join(folder, *parts) + ".lark"
            if parts and os.path.isfile(path):
                yield path


def _check_text(text: str, name: str, budget: Budget) -> None:
    if len(text) > budget.limits.grammar_characters:
        raise budget.exceeded("grammar_characters", f"The text of {name} has", "characters", "shorten it")
    for ends in re.finditer(r"(?:\r?\n)++", text):
        if ends[0].count("\n") > LINE_ENDS:
            raise GrammarTooLarge(
                f"line {_line(text, ends.start())} of {name}: more than {LINE_ENDS:,} line ends in a "
                "row, which Lark needs very long to read; delete the empty lines."
            )
    escaped = [found.start() for found in re.finditer(r"\\\\", text)]
    for piece in _PIECE.finditer(text):
        if piece["open"] and len(escaped) - bisect_left(escaped, piece.start()) > BACKSLASHES:
            kind = "string" if piece["open"] == '"' else "regex"
            raise GrammarError(
                f"line {_line(text, piece.start())} of {name}: the {kind} that begins with "
                f"`{text[piece.start() : piece.start() + 20]}` has no end; close it with `{piece['open']}`."
            )


def _line(text: str, place: int) -> int:
    return 1 + text.count("\n", 0, place)


@dataclass(frozen=True)
class Sizes:
    """How large a grammar is once Lark has written it out.

    Attributes:
        rules: symbols in the alternatives of each rule.
        terminals: about how many characters each terminal's regex has.
    """

    rules: dict[str, int]
    terminals: dict[str, int]

    def check(self, budget: Budget) -> None:
        """Raises `GrammarTooLarge`, which names the largest rule or terminal, if they are too large."""
        if sum(self.rules.values()) > budget.limits.rule_symbols:
            subject = f"{self.summary()}; all rules together have"
            remedy = "choices, options and repeats in one alternative multiply: make rules of them"
            raise budget.exceeded("rule_symbols", subject, "symbols", remedy)
        if sum(self.terminals.values()) > budget.limits.regex_characters:
            name, size = _largest(self.terminals)
            subject = f"terminal {name}: its regex has {size} characters, and those of all terminals have"
            raise budget.exceeded("regex_characters", subject, "characters", "shorten it, or make it a rule")

    def summary(self) -> str:
        """The grammar's size in words."""
        if not self.rules:
            return "the grammar"
        name, size = _largest(self.rules)
        return f"the grammar ({len(self.rules):,} rules; the largest, `{name}`, has {size} symbols)"


def sizes_of(builder: GrammarBuilder) -> Sizes:
    """Predicts the sizes of a grammar that was loaded, but not checked by Lark, which can take for ever."""
    lengths: dict[int, int] = {}
    rules, terminals = {}, {}
    for name, definition in builder._definitions.items():
        if definition.tree is None:  # only declared
            continue
        if definition.is_term:
            terminals[name] = _fold(definition.tree, _regex_length, lengths)
        else:
            rules[name] = _rule_symbols(definition.tree)
    return Sizes(rules, terminals)


def _largest(sizes: Mapping[str, int]) -> tuple[str, str]:
    """The largest one's name and size."""
    name = max(sizes, key=lambda name: sizes[name])
    return shortened(name), _number(sizes[name])


def _number(size: int) -> str:
    return f"{size:,}" if size < _CAP else "astronomically many"


def _fold(tree: Tree, combine: Callable[[Tree, list[T]], T], known: dict[int, T]) -> T:
    """Combines a tree from its leaves to its root; shared parts once, and without recursion."""
    todo = [tree]
    while todo:
        parts = [child for child in todo[-1].children if isinstance(child, Tree)]
        missing = [part for part in parts if id(part) not in known]
        if missing:
            todo += missing
        else:
            node = todo.pop()
            known[id(node)] = combine(node, [known[id(part)] for part in parts])
    return known[id(tree)]


# Rules. A size is (number of alternatives, their symbols together, symbols of the rules made on the way).

_Size = tuple[int, int, int]


def _rule_symbols(tree: Tree) -> int:
    alternatives, symbols, extra = _fold(tree, _written_out, {})
    return min(_CAP, alternatives + symbols + extra)


def _written_out(tree: Tree, parts: list[_Size]) -> _Size:
    if tree.data in ("expansions", "maybe"):
        size = _either(parts)
        return _either([size, (1, 0, 0)]) if tree.data == "maybe" else size
    if tree.data in ("expansion", "alias"):
        return _sequence(parts)
    if tree.data == "expr":
        return _repeated(parts[0], *(str(argument) for argument in tree.children[1:]))
    return 1, 1, sum(extra for _, _, extra in parts)


def _either(parts: Iterable[_Size]) -> _Size:
    alternatives, symbols, extra = (sum(column) for column in zip((0, 0, 0), *parts, strict=True))
    return min(_CAP, alternatives), min(_CAP, symbols), min(_CAP, extra)


def _sequence(parts: Iterable[_Size]) -> _Size:
    size = (1, 0, 0)
    for alternatives, symbols, extra in parts:
        size = (
            min(_CAP, size[0] * alternatives),
            min(_CAP, size[0] * symbols + size[1] * alternatives),
            min(_CAP, size[2] + extra),
        )
    return size


def _repeated(part: _Size, operator: str, *bounds: str) -> _Size:
    if operator == "?":
        return _either([part, (1, 0, 0)])
    if operator in "*+":  # a new rule: `part | new part`
        alternatives, symbols, extra = part
        return (1 + (operator == "*"), 1, min(_CAP, extra + 3 * alternatives + 2 * symbols))
    least, most = int(bounds[0]), int(bounds[-1])
    if most < REPEAT_BREAK_THRESHOLD:
        return _either(_sequence([part] * count) for count in range(least, most + 1))
    made = [_factors(part, least), _factors(part, most - least + 1)]
    return 1, 2, min(_CAP, part[2] + sum(made))


def _factors(part: _Size, count: int) -> int:
    """The symbols of the rules that Lark makes for a large number of repeats: `target target part part`, and
    for options each shorter beginning of that.
    """
    symbols = 0
    for level, (factor, rest) in enumerate(small_factors(max(count, 0), SMALL_FACTOR_THRESHOLD)):
        target = (1, 1, 0) if level else part
        whole = [target] * factor + [part] * rest
        for length in range(len(whole) + 1):
            alternatives, own, _ = _sequence(whole[:length])
            symbols += 2 * alternatives + own
    return symbols


def _regex_length(tree: Tree, parts: list[int]) -> int:
    """About how many characters a terminal's regex will have."""
    own = sum(len(child) for child in tree.children if isinstance(child, Token))
    return min(_CAP, own + sum(parts) + 3 * len(tree.children))
