"""`Tables`: a compiled grammar as a pytree of arrays."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, TypeVar

import jax
import numpy as np
from jaxtyping import Array, Int, Int32, Integer, UInt32

from jaxgcd.errors import GrammarError
from jaxgcd.tables.stored import Stored

if TYPE_CHECKING:
    from jaxgcd.tables.compiled import Compiled
    from jaxgcd.tables.report import Report


def _sized(*dims: str, into: str | None = None, below: tuple[str, ...] = ()) -> Any:
    """An array field: its axes' names, the axis that its values are places on, others that they are below.

    The names say which sizes two tables of one bucket share; `into`, and the first of `dims`, what moves when
    grammars are put behind one another; `into` and `below`, how large the values may be (`dtypes`).
    """
    below = below if into is None else (into, *below)
    return dataclasses.field(metadata={"dims": dims, "into": into, "below": below})


def _static() -> Any:
    return dataclasses.field(metadata={"static": True})


Kind = TypeVar("Kind", bound=type)


def _pytree(kind: Kind) -> Kind:
    """Registers a dataclass: its arrays are leaves, its sizes are static, the rest stays behind."""
    fields = dataclasses.fields(kind)
    arrays = [field.name for field in fields if "dims" in field.metadata]
    sizes = [field.name for field in fields if "static" in field.metadata]
    dropped = [field.name for field in fields if field.name not in {*arrays, *sizes}]
    try:
        return jax.tree_util.register_dataclass(kind, arrays, sizes, dropped)
    except ValueError:  # before 0.10, JAX takes the list apart once too often
        return jax.tree_util.register_dataclass(kind, arrays, sizes, [dropped])  # type: ignore[arg-type]


@_pytree
@dataclasses.dataclass(frozen=True)
class Tables:
    """Grammars compiled for a vocabulary. Make it with `compile_grammar`, pass it to jitted functions as an
    argument.

    A pytree whose leaves are arrays and whose static fields are sizes only, so that two grammars of the same
    sizes (see `pad`) share one trace. `report` and `compiled` stay on the host: they belong to the object
    that `compile_grammar` or `load` returned, and are None on copies that went through a JAX transformation.

    Arrays annotated `Integer` are `uint16` where the axis that their values are places on, or are below, has
    at most 65,535 places, and else `int32`; `action` is `int16` or `int32`. That follows from `sizes` alone.

    Index 0 means dead, none or empty in every axis but those of grammars, symbols and rules. In the tables
    that `concatenate` makes, lexer states, parser states, rules, entries and so on of one grammar lie behind
    those of another; terminals, nonterminals and scanners are each grammar's own.
    """

    start_lexer: Integer[Array, " grammars"] = _sized("grammars", into="lexer_states")
    """The lexer state before any text; 0 where there is no such grammar."""
    start_parser: Integer[Array, " grammars"] = _sized("grammars", into="parser_states")
    """The parser state at the bottom of the stack."""
    symbol_class: Integer[Array, " symbols"] = _sized("symbols", below=("symbol_classes",))
    """Symbol (byte, or 256 for the end of the text) to symbol class."""
    delta: Integer[Array, "lexer_states symbol_classes"] = _sized(
        "lexer_states", "symbol_classes", into="lexer_states"
    )
    """The next lexer state within the same lexeme; 0 is dead."""
    emit_terminal: Integer[Array, "lexer_states emits"] = _sized(
        "lexer_states", "emits", below=("terminals",)
    )
    """Terminals of the lexemes that may end here; 0 for one that is ignored."""
    emit_gate: Integer[Array, "lexer_states emits"] = _sized("lexer_states", "emits", into="gates")
    """The gate behind such a lexeme; 0 where there is none."""
    gate_state: Integer[Array, "gates scanners"] = _sized("gates", "scanners", into="lexer_states")
    """The lexer state behind a gate, by the scanner that reads on."""
    gate_reads: Integer[Array, "gates symbol_classes"] = _sized("gates", "symbol_classes", below=("two",))
    """1 where some scanner reads a symbol behind a gate."""
    scanner: Integer[Array, " parser_states"] = _sized("parser_states", below=("scanners",))
    """The scanner that reads on with a parser state on top of the stack."""
    can_emit: UInt32[Array, "lexer_states terminal_words"] = _sized("lexer_states", "terminal_words")
    """Terminals (bits; bit 0 an ignored one) with which the current lexeme can end."""
    takes: UInt32[Array, "parser_states terminal_words"] = _sized("parser_states", "terminal_words")
    """Terminals (bits; bit 0 always set) for which a parser state has an action."""
    action: Int[Array, "parser_states terminals"] = _sized(
        "parser_states", "terminals", into="parser_states", below=("rules",)
    )
    """> 0: shift to that state; < 0: reduce by rule `-action - 1`; 0: error."""
    goto: Integer[Array, "parser_states nonterminals"] = _sized(
        "parser_states", "nonterminals", into="landings"
    )
    """The landing behind a reduction that reveals a parser state."""
    landing: Integer[Array, "landings terminals"] = _sized("landings", "terminals", into="parser_states")
    """The parser state on top before a terminal, once all reductions of one symbol that follow are done."""
    rule_size: Int32[Array, " rules"] = _sized("rules")
    rule_origin: Integer[Array, " rules"] = _sized("rules", below=("nonterminals",))
    slot_terminal: Integer[Array, "lexer_states slots"] = _sized(
        "lexer_states", "slots", below=("terminals",)
    )
    """The terminal that is stepped before a slot is checked; 0 for none."""
    slot_base: Integer[Array, "lexer_states slots"] = _sized("lexer_states", "slots", into="entries")
    """Where the slot's entries begin; 0 where there is no such slot."""
    column: Integer[Array, "parser_states 2"] = _sized("parser_states", "two", below=("parser_states",))
    """A parser state's place among a slot's entries: without, and with a terminal stepped."""
    place: Integer[Array, " parser_states"] = _sized("parser_states", below=("places",))
    """Where nodes look for a parser state: states that all nodes read alike share a place."""
    entry: Integer[Array, " entries"] = _sized("entries", into="edges")
    """The first edge of a slot's check."""
    edge_row: Integer[Array, " edges"] = _sized("edges", into="rows")
    """Tokens accepted on an edge (a row)."""
    edge_node: Integer[Array, " edges"] = _sized("edges", into="nodes")
    """The node behind an edge of the stack walk."""
    edge_skip: Int32[Array, " edges"] = _sized("edges")
    """Stack states that are passed over before that node reads one."""
    node_edge: Integer[Array, "nodes places"] = _sized("nodes", "places", into="edges")
    """The edge that the state read leads to, by its place."""
    row_pages: Integer[Array, "rows shards pages_in_shard"] = _sized(
        "rows", "shards", "pages_in_shard", below=("pages",)
    )
    """The pages that a row of token bits consists of, for each shard of the vocabulary."""
    pages: UInt32[Array, "shards pages page_words"] = _sized("shards", "pages", "page_words")
    """A shard's distinct pages of token bits; token `i` is bit `i & 31` of word `i >> 5`."""
    eos_words: UInt32[Array, " words"] = _sized("words")
    """The EOS tokens as bits."""
    bytewise: UInt32[Array, " words"] = _sized("words")
    """The tokens all of whose bytes are tokens on their own, and EOS, as bits."""
    token_offset: Int32[Array, " tokens_plus_one"] = _sized("tokens_plus_one")
    token_symbol: Integer[Array, " token_symbols"] = _sized("token_symbols", below=("symbols",))
    """The symbols of all tokens, those of token `i` from `token_offset[i]` on."""
    dependents: Int32[Array, " entries"] = _sized("entries")
    """How many suffix classes of an entry depend on the stack below (for `check="host"`)."""
    host: Int32[Array, ""] = _sized()
    """Which reference machine on the host checks them; 0 for none."""
    size: int = _static()
    """Width of the logits."""
    runs: int = _static()
    """The most readings of one text that can be alive at once (the axis `K` of `State`)."""
    max_depth: int = _static()
    """The most parser states that a row's stack may hold, unless `init` is told another number."""
    slack: int = _static()
    """How far a stack may grow while one terminal is stepped."""
    check: str = _static()
    """`"device"` or `"host"`: where context-dependent sequences are checked."""
    report: Report | None = None
    compiled: Compiled | Stored | None = None

    @property
    def words(self) -> int:
        """Words of a packed mask, `ceil(size / 32)`."""
        return self.eos_words.shape[-1]

    @property
    def grammars(self) -> int:
        """How many grammars `init` can begin: one, or more after `concatenate`."""
        return self.start_lexer.shape[-1]

    @property
    def shards(self) -> int:
        """Into how many parts of equal size the vocabulary's words are split."""
        return self.pages.shape[0]

    @property
    def width(self) -> int:
        """Width of the logits: `size`, or inside `shard_map` a device's part of it."""
        return min(self.size, 32 * self.words)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self))

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each named axis, and the sizes that are not array axes."""
        found = {"runs": self.runs, "max_depth": self.max_depth, "slack": self.slack}
        for field in dataclasses.fields(self):
            if dims := field.metadata.get("dims"):
                found.update(zip(dims, getattr(self, field.name).shape, strict=True))
        return found

    def inverse_spanner(self, lexer_state: int, terminals: tuple[str, ...] | list[str]) -> np.ndarray:
        """The paper's `T_inv(q, α)`: tokens that can produce a terminal sequence from a lexer state.

        Args:
            lexer_state: as in `State.lexer`.
            terminals: names; all but the last are completed by the token, the last one at least begun.
                Ignored terminals are left out.

        Returns:
            Sorted token ids, `int32[n]`.

        Source: the inverse token spanner table of Park, Zhou and D'Antoni 2025.
        """
        return self._described().inverse_spanner(lexer_state, terminals)

    def always_accepted(self, lexer_state: int, parser_state: int) -> np.ndarray:
        """The paper's `A(q, p)`: tokens that are accepted whatever lies below the stack's top.

        Args:
            lexer_state: as in `State.lexer`.
            parser_state: the top of the stack, as in `State.stack`.

        Returns:
            Sorted token ids, `int32[n]`.

        Source: the always-accepted table of Park, Zhou and D'Antoni 2025.
        """
        return self._described().always_accepted(lexer_state, parser_state)

    def context_dependent(self, lexer_state: int, parser_state: int) -> np.ndarray:
        """The tokens of the paper's `D(q, p)`: whether they are accepted depends on the stack below its top.

        Returns:
            Sorted token ids, `int32[n]`.
        """
        return self._described().context_dependent(lexer_state, parser_state)

    def _described(self) -> Compiled:
        if self.compiled is None:
            raise GrammarError(
                "These tables went through a JAX transformation or were joined, and have lost their "
                "description; ask the object that `compile_grammar` or `load` returned."
            )
        return self.compiled.compiled(self) if isinstance(self.compiled, Stored) else self.compiled
