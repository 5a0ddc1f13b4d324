"""What saved tables keep of their grammar: Lark's table and scanners, from which it can be compiled again.

Lark takes no further part in that: its reading of the text, the imports and its tables are behind it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import numpy as np

from jaxgcd.errors import StorageError
from jaxgcd.grammar import Grammar
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.lexing.scanner import ScannerTerminal
from jaxgcd.parsing.table import ParseTable, Rule
from jaxgcd.vocabulary import END_OF_TEXT, Vocabulary

if TYPE_CHECKING:
    from jaxgcd.tables.arrays import Tables
    from jaxgcd.tables.compiled import Compiled


class Stored:
    """The grammar of loaded tables.

    Attributes:
        grammar: what `grammar_to_json` returned.
    """

    def __init__(self, grammar: bytes):
        self.grammar = grammar
        self._compiled: Compiled | None = None

    def compiled(self, tables: Tables) -> Compiled:
        """The parts of the compiled grammar, which the tables do not hold: compiled again, once.

        Raises:
            StorageError: this version of jaxgcd compiles the grammar to other tables.
        """
        from jaxgcd.tables.build import build  # which imports this module

        if self._compiled is None:
            compiled = build(self.table_and_scanners(), _vocabulary_of(tables), Patterns())
            delta = np.asarray(tables.delta)[tuple(map(slice, compiled.graph.delta.shape))]
            if not np.array_equal(delta, compiled.graph.delta):
                raise StorageError(
                    "Another version of jaxgcd compiled these tables, and numbered lexer states otherwise. "
                    "To ask about single states, compile the grammar again with `compile_grammar`."
                )
            self._compiled = compiled
        return self._compiled

    def table_and_scanners(self) -> Grammar:
        """The grammar as it was read from Lark.

        Raises:
            StorageError: a file with right checksums was made by something else than `save`.
        """
        try:
            return grammar_from_json(self.grammar)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
            raise StorageError(
                f"The grammar that was saved with these tables is damaged ({type(error).__name__}: {error}); "
                "compile the grammar again."
            ) from error


def grammar_to_json(grammar: Grammar) -> bytes:
    """A grammar as text. Equal texts, equal grammars."""
    table = grammar.table
    distinct = dict.fromkeys(terminal for scanner in grammar.scanners for terminal in scanner)
    terminals = {terminal: i for i, terminal in enumerate(distinct)}
    found = {
        "terminals": table.terminals,
        "nonterminals": table.nonterminals,
        "rules": [(rule.origin, rule.size, rule.text) for rule in table.rules],
        "action": [list(actions.items()) for actions in table.action],
        "goto": [list(gotos.items()) for gotos in table.goto],
        "accept": table.accept,
        "scanner_terminals": [(t.name, t.pattern, t.ignored, t.keywords) for t in terminals],
        "scanners": [[terminals[terminal] for terminal in scanner] for scanner in grammar.scanners],
        "scanner_of": grammar.scanner_of,
        "lexer": grammar.lexer,
    }
    return json.dumps(found, separators=(",", ":")).encode()


def grammar_from_json(text: bytes) -> Grammar:
    """The inverse of `grammar_to_json`."""
    found = json.loads(text)
    table = ParseTable(
        tuple(found["terminals"]),
        tuple(found["nonterminals"]),
        tuple(Rule(*rule) for rule in found["rules"]),
        tuple(dict(actions) for actions in found["action"]),
        tuple(dict(gotos) for gotos in found["goto"]),
        found["accept"],
    )
    terminals = [
        ScannerTerminal(name, pattern, ignored, tuple(map(tuple, keywords)))
        for name, pattern, ignored, keywords in found["scanner_terminals"]
    ]
    scanners = tuple(tuple(terminals[i] for i in scanner) for scanner in found["scanners"])
    return Grammar(table, scanners, tuple(found["scanner_of"]), found["lexer"])


def _vocabulary_of(tables: Tables) -> Vocabulary:
    """The vocabulary, as far as grammars see it: tokens that are never allowed are empty."""
    offset, symbols = np.asarray(tables.token_offset), np.asarray(tables.token_symbol)
    first = symbols[np.minimum(offset[:-1], len(symbols) - 1)]
    eos = np.flatnonzero((np.diff(offset) == 1) & (first == END_OF_TEXT)).tolist()
    text = (symbols & 0xFF).astype(np.uint8).tobytes()
    tokens = [text[begin:end] for begin, end in zip(offset.tolist(), offset[1:].tolist(), strict=False)]
    return Vocabulary(tokens, eos=eos)
