"""From the parts of a compiled grammar to the arrays of `Tables`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxgcd._budget import Budget
from jaxgcd.lexing.graph import INITIAL
from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.table import START_STATE, ParseTable
from jaxgcd.parsing.viability import DEAD
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.compiled import Compiled
from jaxgcd.tables.dtypes import dtype_of, settled
from jaxgcd.tables.edges import edge_arrays
from jaxgcd.tables.landings import landings
from jaxgcd.tables.rows import build_rows, pack_bits
from jaxgcd.tables.slots import NO_TERMINAL, Slot
from jaxgcd.tables.walk import Edges, Entries
from jaxgcd.vocabulary import END_OF_TEXT, Vocabulary

IGNORED_BIT = 0
VOCABULARY_ARRAYS = ("eos_words", "bytewise", "token_offset", "token_symbol")
"""The arrays that `vocabulary_arrays` makes."""


def pack(compiled: Compiled, *, max_depth: int, check: str, host: int, budget: Budget) -> Tables:
    """Builds the entries, finishes the stack walk and moves everything to the default device."""
    with budget.stage("walk"):
        entries, columns = _entries(compiled, budget)
        compiled.walk.finish()
    with budget.stage("pack"):
        arrays = _arrays(compiled, entries, budget) | columns | {"host": np.array(host)}
        leaves: dict[str, Any] = jax.device_put(settled(arrays))  # unlike `jnp.asarray`, compiles nothing
    return Tables(
        **leaves,
        size=compiled.vocabulary.size,
        runs=compiled.runs,
        max_depth=max_depth,
        slack=compiled.slack,
        check=check,
    )


def add_parser(table: ParseTable, budget: Budget) -> None:
    """Accounts for the parser's tables, which are known first, and may be larger than anything made of them.

    Raises:
        GrammarTooLarge: they are too large.
    """
    columns = len(table.terminals) + len(table.nonterminals) + _terminal_words(table)
    budget.work = "the grammar"
    sizes = f"{len(table.terminals) - 1:,} terminals and {table.n_states - 1:,} parser states"
    remedy = 'put fixed words that are used alike into one terminal (`WORD: "this" | "that"`)'
    budget.add_table(4 * table.n_states * columns, f"a parser table for {sizes}", remedy)


def _terminal_words(table: ParseTable) -> int:
    """Words of a row of bits with one for each terminal."""
    return -(-len(table.terminals) // 32)


def _arrays(compiled: Compiled, entries: Edges, budget: Budget) -> dict[str, np.ndarray]:
    """All arrays but those that lead to the entries."""
    table, walk = compiled.machine.table, compiled.walk
    lexer = compiled.graph.delta.nbytes + compiled.graph.gates.nbytes
    budget.add_table(lexer + 4 * compiled.graph.n_states * _terminal_words(table), "a lexer")
    arrays = _lexer(compiled)
    arrays |= _parser(compiled, budget)
    arrays |= edge_arrays(walk, entries, table.n_states)
    words, slots = compiled.vocabulary.words, compiled.slots
    row_pages, pages = build_rows(walk.rows, walk.portions, slots.groups, slots.token_classes, words, budget)
    arrays |= {"row_pages": row_pages[:, None], "pages": pages[None]}  # one shard
    return arrays | vocabulary_arrays(compiled.vocabulary)


def vocabulary_arrays(vocabulary: Vocabulary) -> dict[str, np.ndarray]:
    """The arrays that are the same for all grammars."""
    is_eos = np.zeros(vocabulary.size, bool)
    is_eos[list(vocabulary.eos)] = True
    dtype = dtype_of("token_symbol", {"symbols": END_OF_TEXT + 1})
    return {
        "eos_words": pack_bits(is_eos, vocabulary.words),
        "bytewise": pack_bits(_bytewise(vocabulary), vocabulary.words),
        "token_offset": vocabulary.spelling.offset.astype(np.int32),
        "token_symbol": vocabulary.spelling.symbols.astype(dtype),
    }


def _bytewise(vocabulary: Vocabulary) -> np.ndarray:
    """Tokens all of whose symbols are spelled by some token alone."""
    offset, symbols = vocabulary.spelling.offset, vocabulary.spelling.symbols
    lacks = np.ones(END_OF_TEXT + 1, bool)
    lacks[[*vocabulary.single_bytes, END_OF_TEXT]] = False
    lacking = lacks[symbols]
    return (np.diff(offset) > 0) & (np.diff(np.append(0, np.cumsum(lacking))[offset]) == 0)


def _lexer(compiled: Compiled) -> dict[str, np.ndarray]:
    graph = compiled.graph
    emits = max(1, *(len(pairs) for pairs in graph.accepts))
    terminal = np.zeros((graph.n_states, emits), np.int32)
    gates = np.zeros((graph.n_states, emits), np.int32)
    distinct = {exits: number for number, exits in enumerate(dict.fromkeys(graph.exits))}
    can_emit = np.zeros((len(distinct), len(compiled.machine.table.terminals)), bool)
    for exits, number in distinct.items():
        can_emit[number, [IGNORED_BIT if t == IGNORED else t for t, _ in exits]] = True
    for state, pairs in enumerate(graph.accepts):
        for i, (label, gate) in enumerate(pairs):
            terminal[state, i] = NO_TERMINAL if label == IGNORED else label
            gates[state, i] = gate
    return {
        "start_lexer": np.array([INITIAL], np.int32),
        "symbol_class": graph.classes,
        "delta": graph.delta,
        "emit_terminal": terminal,
        "emit_gate": gates,
        "gate_state": graph.gates,
        "gate_reads": (graph.delta[graph.gates] != 0).any(axis=1).astype(np.int32),
        "scanner": np.array(compiled.grammar.scanner_of, np.int32),
        "can_emit": pack_bits(can_emit, _terminal_words(compiled.machine.table))[
            [distinct[exits] for exits in graph.exits]
        ],
    }


def _parser(compiled: Compiled, budget: Budget) -> dict[str, np.ndarray]:
    table = compiled.machine.table
    action = np.zeros((table.n_states, len(table.terminals)), np.int32)
    for state, actions in enumerate(table.action):
        action[state, list(actions)] = list(actions.values())
    goto, landing = landings(table, action, budget)
    takes = action != 0
    takes[:, IGNORED_BIT] = True
    # A reading that has shifted into a state with which no stack can be completed ends there.
    takes[[compiled.viability.viable(state) == DEAD for state in range(table.n_states)]] = False
    return {
        "action": action,
        "goto": goto,
        "landing": landing,
        "takes": pack_bits(takes, _terminal_words(table)),
        "rule_size": np.array([rule.size for rule in table.rules], np.int32),
        "rule_origin": np.array([rule.origin for rule in table.rules], np.int32),
        "start_parser": np.array([START_STATE], np.int32),
    }


def _entries(compiled: Compiled, budget: Budget) -> tuple[Edges, dict[str, np.ndarray]]:
    """Entries of all pairs of a slot and a parser state that can be on top there, slot after slot.

    A slot's base and a state's column add up to an entry's number, so a slot's entries have gaps, which lead
    nowhere, for the states between its own. Number 0 leads nowhere.
    """
    tops = compiled.tops
    base: dict[Slot, int] = {}
    jobs, numbers, end = [], [], 1
    for slot in dict.fromkeys(slot for slots in compiled.slots.of_state for slot in slots):
        states, fans = tops.of(slot), slot.terminal != NO_TERMINAL
        columns = tops.column[states, int(fans)]
        base[slot] = max(1, end - int(columns[0])) if len(states) else end
        jobs.append(Entries(np.full(len(states), slot.group), states, np.full(len(states), fans)))
        numbers.append(base[slot] + columns)
        end = int(numbers[-1][-1]) + 1 if len(states) else end
    budget.add_table(8 * end, "a table of parser states")
    found, depending = compiled.walk.entries(Entries(*map(np.concatenate, zip(*jobs, strict=True))))
    row, node, dependents = np.zeros((3, end), np.int64)
    number = np.concatenate(numbers)
    row[number], node[number], dependents[number] = *found, depending
    return Edges(row, node), {
        **_slots(compiled, base),
        "column": tops.column,
        "dependents": dependents.astype(np.int32),
    }


def _slots(compiled: Compiled, base: dict[Slot, int]) -> dict[str, np.ndarray]:
    """The slots of each lexer state, with the bases of their entries."""
    width = max(1, *(len(slots) for slots in compiled.slots.of_state))
    slot_terminal = np.zeros((compiled.graph.n_states, width), np.int32)
    slot_base = np.zeros((compiled.graph.n_states, width), np.int32)
    for state, found in enumerate(compiled.slots.of_state):
        for i, slot in enumerate(found):
            slot_terminal[state, i] = slot.terminal
            slot_base[state, i] = base[slot]
    return {"slot_terminal": slot_terminal, "slot_base": slot_base}
