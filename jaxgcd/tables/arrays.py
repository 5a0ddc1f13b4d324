"""`Tables`: a compiled grammar as a pytree of arrays, and its size buckets."""

from __future__ import annotations

import dataclasses
import functools
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jaxtyping import Array, Int32, UInt32

from jaxgcd.errors import GrammarError, ShapeError
from jaxgcd.tables.stored import Stored

if TYPE_CHECKING:
    from jaxgcd.tables.compiled import Compiled
    from jaxgcd.tables.report import Report


def _sized(*dims: str) -> Any:
    """An array field; its axes' names say which sizes two tables of one bucket share."""
    return dataclasses.field(metadata={"dims": dims})


def _static() -> Any:
    return dataclasses.field(metadata={"static": True})


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=[
        *(
            "symbol_class",
            "delta",
            "emit_terminal",
            "emit_gate",
            "gate_state",
            "gate_reads",
            "scanner",
            "can_emit",
            "takes",
            "action",
            "goto",
        ),
        *("rule_size", "rule_origin", "end", "slot_terminal", "slot_base", "column", "entry", "edge_row"),
        *("edge_node", "node_skip", "node_edge", "row_pages", "pages", "eos_words", "token_offset"),
        *("token_symbol", "dependents", "host"),
    ],
    meta_fields=["size", "runs", "max_depth", "slack", "check"],
    drop_fields=["report", "compiled"],
)
@dataclasses.dataclass(frozen=True)
class Tables:
    """A grammar compiled for a vocabulary. Make it with `compile_grammar`, pass it to jitted functions as an
    argument.

    A pytree whose leaves are arrays and whose static fields are sizes only, so that two grammars of the same
    sizes (see `pad`) share one trace. `report` and `compiled` stay on the host: they belong to the object
    that `compile_grammar` or `load` returned, and are None on copies that went through a JAX transformation.

    Index 0 means dead, none or empty in every axis but that of `rule_size` and `rule_origin`.
    """

    symbol_class: Int32[Array, " symbols"] = _sized("symbols")
    """Symbol (byte, or 256 for the end of the text) to symbol class."""
    delta: Int32[Array, "lexer_states symbol_classes"] = _sized("lexer_states", "symbol_classes")
    """The next lexer state within the same lexeme; 0 is dead, 1 the initial state."""
    emit_terminal: Int32[Array, "lexer_states emits"] = _sized("lexer_states", "emits")
    """Terminals of the lexemes that may end here; 0 for one that is ignored."""
    emit_gate: Int32[Array, "lexer_states emits"] = _sized("lexer_states", "emits")
    """The gate behind such a lexeme; 0 where there is none."""
    gate_state: Int32[Array, "gates scanners"] = _sized("gates", "scanners")
    """The lexer state behind a gate, by the scanner that reads on."""
    gate_reads: Int32[Array, "gates symbol_classes"] = _sized("gates", "symbol_classes")
    """1 where some scanner reads a symbol behind a gate."""
    scanner: Int32[Array, " parser_states"] = _sized("parser_states")
    """The scanner that reads on with a parser state on top of the stack."""
    can_emit: UInt32[Array, "lexer_states terminal_words"] = _sized("lexer_states", "terminal_words")
    """Terminals (bits; bit 0 an ignored one) with which the current lexeme can end."""
    takes: UInt32[Array, "parser_states terminal_words"] = _sized("parser_states", "terminal_words")
    """Terminals (bits; bit 0 always set) for which a parser state has an action."""
    action: Int32[Array, "parser_states terminals"] = _sized("parser_states", "terminals")
    """> 0: shift to that state; < 0: reduce by rule `-action - 1`; 0: error."""
    goto: Int32[Array, "parser_states nonterminals"] = _sized("parser_states", "nonterminals")
    rule_size: Int32[Array, " rules"] = _sized("rules")
    rule_origin: Int32[Array, " rules"] = _sized("rules")
    end: Int32[Array, ""] = _sized()
    """The terminal `$END`."""
    slot_terminal: Int32[Array, "lexer_states slots"] = _sized("lexer_states", "slots")
    """The terminal that is stepped before a slot is checked; 0 for none."""
    slot_base: Int32[Array, "lexer_states slots"] = _sized("lexer_states", "slots")
    """Where the slot's entries begin; 0 where there is no such slot."""
    column: Int32[Array, "2 parser_states"] = _sized("two", "parser_states")
    """A parser state's place among a slot's entries: without, and with a terminal stepped."""
    entry: Int32[Array, " entries"] = _sized("entries")
    """The first edge of a slot's check."""
    edge_row: Int32[Array, " edges"] = _sized("edges")
    """Tokens accepted on an edge (a row)."""
    edge_node: Int32[Array, " edges"] = _sized("edges")
    """The node behind an edge of the stack walk."""
    node_skip: Int32[Array, " nodes"] = _sized("nodes")
    """Stack states that a node passes over before it reads one."""
    node_edge: Int32[Array, "nodes parser_states"] = _sized("nodes", "parser_states")
    """The edge that the state read leads to."""
    row_pages: Int32[Array, "rows pages_in_row"] = _sized("rows", "pages_in_row")
    pages: UInt32[Array, "pages page_words"] = _sized("pages", "page_words")
    """Distinct pages of token bits; token `i` is bit `i & 31` of word `i >> 5`."""
    eos_words: UInt32[Array, " words"] = _sized("words")
    """The EOS tokens as bits."""
    token_offset: Int32[Array, " tokens_plus_one"] = _sized("tokens_plus_one")
    token_symbol: Int32[Array, " token_symbols"] = _sized("token_symbols")
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
    """The most parser states a row's stack may hold."""
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
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return sum(leaf.nbytes for leaf in jax.tree.leaves(self))

    @property
    def sizes(self) -> dict[str, int]:
        """The length of each named axis, and the sizes that are not array axes."""
        found = {"runs": self.runs, "slack": self.slack}
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
                "These tables went through a JAX transformation and have lost their description; "
                "ask the object that `compile_grammar` or `load` returned."
            )
        return self.compiled.compiled(self) if isinstance(self.compiled, Stored) else self.compiled


_UNPADDED = {"symbols", "words", "page_words", "pages_in_row", "tokens_plus_one", "two"}
_NOT_ARRAYS = {"runs", "slack"}


def pad(tables: Tables, like: Tables | dict[str, int] | None = None) -> Tables:
    """Enlarges tables to a size bucket, so that grammars of one bucket share one trace.

    Args:
        tables: what to enlarge. Masks do not change.
        like: tables of the bucket, or sizes as in `Tables.sizes`. By default each axis grows to the next
            power of two.

    Raises:
        ShapeError: the tables are larger than the bucket along some axis, or of another vocabulary size.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> one = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> two = jaxgcd.compile_grammar('start: "b"', vocabulary)
        >>> jaxgcd.pad(two, like=one).sizes == one.sizes
        True
    """
    own = tables.sizes
    target = dict(own)
    if like is None:
        target.update({name: _next_power(n) for name, n in own.items() if name not in _UNPADDED})
    else:
        target.update(like.sizes if isinstance(like, Tables) else like)
    if unknown := set(target) - set(own):
        raise ShapeError(f"There are no sizes {sorted(unknown)}; they are {sorted(own)}.")
    for name, length in own.items():
        if target[name] < length or (name in _UNPADDED and target[name] != length):
            raise ShapeError(
                f"The tables have {name} = {length}, which does not fit the bucket's {target[name]}."
            )
    changes: dict[str, Any] = {name: target[name] for name in _NOT_ARRAYS}
    for field in dataclasses.fields(tables):
        dims = field.metadata.get("dims", ())
        array = np.asarray(getattr(tables, field.name)) if dims else None
        if array is not None:
            width = [(0, target[dim] - length) for dim, length in zip(dims, array.shape, strict=True)]
            changes[field.name] = jax.device_put(np.pad(array, width))
    return dataclasses.replace(tables, **changes)


def _next_power(length: int) -> int:
    return 1 << max(length - 1, 0).bit_length()
