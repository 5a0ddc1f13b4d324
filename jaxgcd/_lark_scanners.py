"""Lark's scanners, read off a `lark.Lark` object: which terminals each tries, in order, and how it relabels.

Lark's own code decides, but two things that it does with `re` are done in another way. Which strings a regex
matches is asked of the regex's automaton, since `re` can backtrack for ever, without Python being able to
interrupt it. And the regexes of a scanner are not joined to one and compiled, which takes `re` very long and
tells nothing but that no group name occurs twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

import lark
from lark.lexer import BasicLexer, ContextualLexer, UnlessCallback, _create_unless

from jaxgcd.errors import GrammarError
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.lexing.scanner import ScannerTerminal
from jaxgcd.parsing.table import START_STATE

Scanner = tuple[ScannerTerminal, ...]


def read_scanners(
    parser: lark.Lark, patterns: Patterns, states: Sequence[Any]
) -> tuple[tuple[Scanner, ...], tuple[int, ...]]:
    """The distinct scanners in the order of the parser states, and each state's.

    Args:
        parser: a `lark.Lark` object.
        patterns: makes the automata of its regexes.
        states: Lark's parser states, from `START_STATE` on.

    Raises:
        GrammarError: two terminals of a scanner share a group name.
        UnsupportedRegexError: a regex is not regular.
        GrammarTooLarge: a regex is too large.
    """
    lexer: Any = parser.parser.lexer
    n_states = START_STATE + len(states) + 1  # with the unused one and the artificial accepting one
    reader = _Reader(parser.terminals, patterns)
    if not isinstance(lexer, ContextualLexer):
        return (reader.read(lexer),), (0,) * n_states
    number: dict[Scanner, int] = {}
    read: dict[int, Scanner] = {}
    scanner_of = [0] * n_states
    for state, lark_state in enumerate(states, START_STATE):
        own: Any = lexer.lexers[lark_state]
        if id(own) not in read:
            read[id(own)] = reader.read(own)
        scanner_of[state] = number.setdefault(read[id(own)], len(number))
    return tuple(number), tuple(scanner_of)


class _Reader:
    def __init__(self, terminals: Iterable[Any], patterns: Patterns):
        self._patterns = patterns
        self._matcher = _Matcher(patterns)
        self._groups = {name: groups for name, groups in map(self._group_names, terminals) if groups}
        self._read: dict[tuple[str, tuple[str, ...], bool], ScannerTerminal] = {}

    def read(self, lexer: BasicLexer) -> Scanner:
        """The terminals of a lexer's scanner."""
        self._patterns.budget.step(0)
        terminals, callbacks = _create_unless(
            lexer.terminals, lexer.g_regex_flags, self._matcher, lexer.use_bytes
        )
        self._check_groups([terminal.name for terminal in terminals])
        return tuple(
            self._terminal(terminal, callbacks.get(terminal.name), lexer.ignore_types)
            for terminal in terminals
        )

    def _terminal(self, terminal: Any, callback: Any, ignored: Collection[str]) -> ScannerTerminal:
        keywords = callback.scanner.terminals if isinstance(callback, UnlessCallback) else ()
        key = (terminal.name, tuple(keyword.name for keyword in keywords), terminal.name in ignored)
        if key not in self._read:
            pairs = ((keyword.name, keyword.pattern.to_regexp()) for keyword in keywords)
            self._read[key] = ScannerTerminal(
                terminal.name, terminal.pattern.to_regexp(), terminal.name in ignored, tuple(pairs)
            )
        return self._read[key]

    def _group_names(self, terminal: Any) -> tuple[str, frozenset[str]]:
        """The groups that a terminal's regex names, in the group that Lark puts it into."""
        pattern = terminal.pattern.to_regexp()
        try:
            groups = _parser.parse(f"(?P<{terminal.name}>{pattern})").state.groupdict
        except re.error as error:
            self._patterns.tracker(pattern)  # where the regex alone is at fault, this says it better
            raise GrammarError(
                f"terminal {self._patterns.name(pattern)}: Python's `re` cannot compile the scanner that "
                f"Lark makes of it and others: {error}."
            ) from error
        return terminal.name, frozenset(groups) - {terminal.name}

    def _check_groups(self, terminals: Sequence[str]) -> None:
        taken = set(terminals)
        for terminal in terminals:
            if clash := self._groups.get(terminal, frozenset()) & taken:
                raise GrammarError(
                    f"terminal {terminal}: Python's `re` cannot compile the scanner that Lark makes of it "
                    f"and others, because the group name {min(clash)} is taken; rename the group."
                )
            taken |= self._groups.get(terminal, frozenset())


class _Match(NamedTuple):
    text: str

    def group(self, _: int) -> str:
        return self.text


class _Matcher:
    """What Lark uses of the module `re`, from automata."""

    def __init__(self, patterns: Patterns):
        self._patterns = patterns
        self._known: dict[tuple[str, str], _Match | None] = {}

    def match(self, pattern: str, text: str, flags: int) -> _Match | None:
        """A match if `re.match` finds one that is the whole text; flags other than 0 are refused before."""
        if (pattern, text) not in self._known:
            whole = self._patterns.matches_whole(pattern, text)
            self._known[pattern, text] = _Match(text) if whole else None
        return self._known[pattern, text]

    def compile(self, pattern: str, flags: int) -> None:
        """Nothing: only the terminals of a scanner are looked at."""
