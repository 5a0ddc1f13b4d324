"""`Compiled`: all parts of a compiled grammar on the host, and the paper's tables read off them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxgcd.errors import GrammarError
from jaxgcd.grammar import Grammar
from jaxgcd.lexing.boundaries import Boundaries
from jaxgcd.lexing.graph import END_OF_TEXT, INITIAL, LexerGraph
from jaxgcd.parsing.machine import Machine
from jaxgcd.parsing.table import START_STATE
from jaxgcd.parsing.viability import Viability
from jaxgcd.tables.accept import Acceptance
from jaxgcd.tables.outcomes import ACCEPTED
from jaxgcd.tables.slots import Slots
from jaxgcd.tables.spanner import Spanner
from jaxgcd.tables.tops import Tops
from jaxgcd.tables.walk import Walk
from jaxgcd.vocabulary import Vocabulary


@dataclass(frozen=True)
class Compiled:
    """What the stages of the pipeline produced; `pack` turns it into arrays."""

    vocabulary: Vocabulary
    grammar: Grammar
    graph: LexerGraph
    boundaries: Boundaries
    machine: Machine
    viability: Viability
    spanner: Spanner
    acceptance: Acceptance
    walk: Walk
    slots: Slots
    tops: Tops
    runs: int
    slack: int

    def inverse_spanner(self, lexer_state: int, terminals: Sequence[str]) -> np.ndarray:
        """See `Tables.inverse_spanner`."""
        unknown = [name for name in terminals if name not in self.machine.table.terminals or not name]
        if unknown or not terminals:
            raise GrammarError(
                f"{unknown or 'An empty sequence'}: give at least one of the grammar's terminals, by name: "
                f"{', '.join(self.machine.table.terminals[1:])}."
            )
        sequence = [self.machine.table.terminals.index(name) for name in terminals]
        return self._tokens(
            lexer_state, lambda classes: [self._produces(c, sequence) for c in classes.tolist()]
        )

    def always_accepted(self, lexer_state: int, parser_state: int) -> np.ndarray:
        """See `Tables.always_accepted`."""
        return self._tokens(lexer_state, lambda classes: self._codes(classes, parser_state) == ACCEPTED)

    def context_dependent(self, lexer_state: int, parser_state: int) -> np.ndarray:
        """See `Tables.context_dependent`."""
        return self._tokens(lexer_state, lambda classes: self._codes(classes, parser_state) > ACCEPTED)

    def begins(self) -> bool:
        """Whether some token, or the end of the text, may come first."""
        members = [
            self.slots.groups[group].members for terminal, group in self.slots.of_state[INITIAL]
        ]  # without terminals
        classes = np.concatenate([np.zeros(0, np.int64), *members])
        return bool((self._codes(classes, START_STATE) == ACCEPTED).any())

    def reasons(self) -> tuple[str, ...]:
        """Why the masks may lead to a dead end; none if they are exact."""
        limit = (
            "the check which parser stacks can be completed met its limit, so that a conflict "
            "resolved by Lark may lead to a dead end"
        )
        single = "no token is the single byte 0x{:02X}; a text that needs it may not be spelled to its end"
        lacking = sorted(self.used_bytes() - self.vocabulary.single_bytes)
        return (*([] if self.viability.complete else [limit]), *map(single.format, lacking))

    def used_bytes(self) -> set[int]:
        """Bytes that some transition of the lexer reads."""
        alive = set(np.flatnonzero(self.graph.delta.any(axis=0)).tolist())
        return {byte for byte in range(END_OF_TEXT) if int(self.graph.classes[byte]) in alive}

    def counts(self) -> dict[str, int]:
        """Sizes of the parts, for the report."""
        return {
            "terminals": len(self.machine.table.terminals) - 1,
            "parser states": self.machine.table.n_states - 1,
            "lexer states": self.graph.n_states - 1,
            "boundary classes": len(self.boundaries.exits),
            "suffixes": len(self.vocabulary.strings.first) - 1,
            "suffix classes": len(self.spanner.classes) - 1,
            "scanners": len(self.grammar.scanners),
            "runs": self.runs,
            "walk nodes": len(self.walk.skip) - 1,
            "walk edges": len(self.walk.edges[0]),
            "distinct rows": len(self.walk.rows) - 1,
        }

    def _tokens(self, lexer_state: int, wanted) -> np.ndarray:
        if not 0 < lexer_state < self.graph.n_states:
            raise GrammarError(
                f"{lexer_state} is not a lexer state; they are 1 to {self.graph.n_states - 1}."
            )
        classes = self.spanner.of_state(lexer_state, self.vocabulary.size)
        present = np.unique(classes[classes > 0])
        return np.flatnonzero(np.isin(classes, present[wanted(present)])).astype(np.int32)

    def _codes(self, classes: np.ndarray, parser_state: int) -> np.ndarray:
        if not 0 < parser_state < self.machine.table.n_states:
            raise GrammarError(
                f"{parser_state} is not a parser state; they are 1 to {self.machine.table.n_states - 1}."
            )
        return self.acceptance.entries(np.full(len(classes), parser_state), classes)

    def _produces(self, suffix_class: int, sequence: list[int]) -> bool:
        classes, after = self.spanner.classes, {suffix_class}
        for terminal in sequence:
            fans = (dict(classes.members[suffix_class].follow).get(terminal) for suffix_class in after)
            after = {other for fan in fans if fan is not None for other in classes.fan_classes(fan).values()}
        return any(classes.members[suffix_class].open for suffix_class in after)
