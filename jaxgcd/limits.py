"""`Limits`: what compiling one grammar may cost before `compile_grammar` gives up on it."""

from __future__ import annotations

import dataclasses
import math

from jaxgcd.errors import LimitsError


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much time, and how large parts, one call of `compile_grammar` may need.

    Most grammars stay far below all of these, and a grammar that was made to do harm meets one of them within
    seconds; `docs/limits.md` says where each default comes from. What exceeds a limit raises
    `GrammarTooLarge`, which names the limit, the terminal or rule responsible, and a remedy.

    Attributes:
        seconds: wall-clock time of everything.
        lark_seconds: processor time of Lark's own work on a grammar that is given as a text or file.
        lark_objects: Python objects made on the way, in all threads, of 100 to 400 bytes each.
        grammar_characters: the grammar's text, without what it imports.
        rule_symbols: symbols in all rules, once Lark has written `|`, `?`, `*`, `~` and `[]` out as separate
            alternatives.
        regex_characters: characters in the regexes of all terminals, once Lark has put terminals that are
            made of other terminals together.
        regex_nodes: nodes of one terminal's nondeterministic automaton.
        regex_states: states of a deterministic automaton of one terminal, or of one of its lookarounds.
        regex_steps: steps to make the deterministic automata of all terminals.
        scanner_steps: steps of terminals that are read side by side, one symbol each, in all states of the
            scanners together.
        lexer_states: states of the automaton of all scanners together, of the lexer, and of what terminals
            can see on their left.
        formulas: nodes of the decision diagram of what lookarounds wait for.
        parser_actions: actions of Lark's LALR(1) table.
        readings: readings of one text that are alive at the same time.
        reading_sets: sets of such readings, while their number is being bounded.
        stack_cases: cases of the check which parser stacks can be completed. Exceeding this one is no error:
            the masks are then not exact (see `Report`).
        suffix_pairs: pairs of a lexer state and a rest of a token that can be read from there.
        suffix_classes: distinct outcomes of such pairs.
        walk_nodes: nodes of the stack walk.
        table_bytes: the tables on the device but for the vocabulary's own, counted before they are made: with
            four bytes for each number and before equal nodes are found, so that they mostly take less.

    Raises:
        LimitsError: a limit is not a positive number.

    Example:
        >>> Limits(seconds=5).seconds
        5
        >>> Limits(walk_nodes=0)
        Traceback (most recent call last):
            ...
        jaxgcd.errors.LimitsError: `Limits(walk_nodes=0)`: give a positive integer.
    """

    seconds: float = 300.0
    lark_seconds: float = 10.0
    lark_objects: int = 1_000_000
    grammar_characters: int = 1_000_000
    rule_symbols: int = 200_000
    regex_characters: int = 500_000
    regex_nodes: int = 50_000
    regex_states: int = 50_000
    regex_steps: int = 2_000_000
    scanner_steps: int = 2_000_000
    lexer_states: int = 50_000
    formulas: int = 400_000
    parser_actions: int = 1_000_000
    readings: int = 16
    reading_sets: int = 100_000
    stack_cases: int = 500_000
    suffix_pairs: int = 50_000_000
    suffix_classes: int = 1_000_000
    walk_nodes: int = 200_000
    table_bytes: int = 1 << 28

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            if "seconds" in field.name:
                kinds, allowed = (int, float), "number of seconds (`math.inf` for no limit)"
            else:
                kinds, allowed = (int,), "integer"
            if not isinstance(value, kinds) or isinstance(value, bool) or math.isnan(value) or value <= 0:
                raise LimitsError(f"`Limits({field.name}={value!r})`: give a positive {allowed}.")
