"""From the parts of a compiled grammar to the arrays of `Tables`."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from jaxgcd._budget import Budget
from jaxgcd.lexing.scanner import IGNORED
from jaxgcd.parsing.machine import shift_targets
from jaxgcd.parsing.table import START_STATE
from jaxgcd.parsing.viability import DEAD
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.compiled import Compiled
from jaxgcd.tables.rows import build_rows, pack_bits
from jaxgcd.tables.slots import NO_TERMINAL, Slot
from jaxgcd.tables.walk import Edge, Entry, Walk

IGNORED_BIT = 0
NO_EDGE = Edge(0, 0)


def pack(compiled: Compiled, *, max_depth: int, check: str, host: int, budget: Budget) -> Tables:
    """Builds the entries, finishes the stack walk and moves everything to the default device."""
    edges = _Edges()
    with budget.stage("walk"):
        entries = _entries(compiled, edges)
        compiled.walk.finish()
    with budget.stage("pack"):
        arrays = _arrays(compiled, edges, budget) | entries | {"host": np.array(host, np.int32)}
        leaves: dict[str, Any] = jax.device_put(arrays)  # unlike `jnp.asarray`, compiles nothing
        return Tables(
            **leaves,
            size=compiled.vocabulary.size,
            runs=compiled.runs,
            max_depth=max_depth,
            slack=compiled.slack,
            check=check,
        )


def _arrays(compiled: Compiled, edges: _Edges, budget: Budget) -> dict[str, np.ndarray]:
    """All arrays but the entries."""
    table, size = compiled.machine.table, compiled.vocabulary.size
    budget.add_table(compiled.graph.delta.nbytes + compiled.graph.gates.nbytes, "a lexer")
    arrays = _lexer(compiled)
    cells = table.n_states * (len(table.terminals) + len(table.nonterminals))
    budget.add_table(4 * cells, "a parser table")
    arrays |= _parser(compiled)
    budget.add_table(4 * len(compiled.walk.nodes) * table.n_states, "a stack walk")
    arrays |= _nodes(compiled.walk, table.n_states, edges)
    arrays["row_pages"], arrays["pages"] = build_rows(
        compiled.walk.rows,
        compiled.slots.groups,
        compiled.slots.token_classes,
        compiled.vocabulary.words,
        budget,
    )
    is_eos = np.zeros(size, bool)
    is_eos[list(compiled.vocabulary.eos)] = True
    spelling = compiled.vocabulary.spelling
    arrays["eos_words"] = pack_bits(is_eos, compiled.vocabulary.words)
    arrays["token_offset"] = spelling.offset.astype(np.int32)
    arrays["token_symbol"] = spelling.symbols.astype(np.int32)
    return arrays


def _lexer(compiled: Compiled) -> dict[str, np.ndarray]:
    graph = compiled.graph
    emits = max(1, *(len(pairs) for pairs in graph.accepts))
    terminal = np.zeros((graph.n_states, emits), np.int32)
    gates = np.zeros((graph.n_states, emits), np.int32)
    can_emit = np.zeros((graph.n_states, len(compiled.machine.table.terminals)), bool)
    for state, pairs in enumerate(graph.accepts):
        for i, (label, gate) in enumerate(pairs):
            terminal[state, i] = NO_TERMINAL if label == IGNORED else label
            gates[state, i] = gate
        can_emit[state, [IGNORED_BIT if t == IGNORED else t for t, _ in graph.exits[state]]] = True
    return {
        "symbol_class": graph.classes,
        "delta": graph.delta,
        "emit_terminal": terminal,
        "emit_gate": gates,
        "gate_state": graph.gates,
        "gate_reads": (graph.delta[graph.gates] != 0).any(axis=1).astype(np.int32),
        "scanner": np.array(compiled.grammar.scanner_of, np.int32),
        "can_emit": pack_bits(can_emit, -(-can_emit.shape[1] // 32)),
    }


def _parser(compiled: Compiled) -> dict[str, np.ndarray]:
    table = compiled.machine.table
    action = np.zeros((table.n_states, len(table.terminals)), np.int32)
    goto = np.zeros((table.n_states, len(table.nonterminals)), np.int32)
    for state in range(table.n_states):
        for terminal, value in table.action[state].items():
            action[state, terminal] = value
        for nonterminal, target in table.goto[state].items():
            goto[state, nonterminal] = target
    takes = action != 0
    takes[:, IGNORED_BIT] = True
    # A reading that has shifted into a state with which no stack can be completed ends there.
    takes[[compiled.viability.viable(state) == DEAD for state in range(table.n_states)]] = False
    return {
        "action": action,
        "goto": goto,
        "takes": pack_bits(takes, -(-takes.shape[1] // 32)),
        "rule_size": np.array([rule.size for rule in table.rules], np.int32),
        "rule_origin": np.array([rule.origin for rule in table.rules], np.int32),
        "end": np.array(table.end, np.int32),
    }


class _Edges:
    """Distinct (row, node) pairs; number 0 leads nowhere."""

    def __init__(self) -> None:
        self.number: dict[Edge, int] = {NO_EDGE: 0}

    def __call__(self, edge: Edge) -> int:
        return self.number.setdefault(edge, len(self.number))


def _entries(compiled: Compiled, edges: _Edges) -> dict[str, np.ndarray]:
    """Entries of all (slot group, parser state on top) pairs, group after group; the columns say where in a
    group.
    """
    table = compiled.machine.table
    targets = shift_targets(table)
    running = sorted({START_STATE, *(s for states in targets for s in states)} - {table.accept})
    column = np.zeros((2, table.n_states), np.int32)
    column[0, running] = np.arange(len(running))
    for states in targets:
        column[1, list(states)] = np.arange(len(states))
    base: dict[Slot, int] = {}
    jobs: list[Entry] = []
    for slot in (slot for slots in compiled.slots.of_state for slot in slots):
        if slot not in base:
            base[slot] = 1 + len(jobs)
            fans = slot.terminal != NO_TERMINAL
            jobs += [Entry(slot.group, top, fans) for top in (targets[slot.terminal] if fans else running)]
    found, depending = compiled.walk.entries(jobs)
    entry, dependents = [0, *map(edges, found)], [0, *depending]
    width = max(1, *(len(slots) for slots in compiled.slots.of_state))
    slot_terminal = np.zeros((compiled.graph.n_states, width), np.int32)
    slot_base = np.zeros((compiled.graph.n_states, width), np.int32)
    for state, found in enumerate(compiled.slots.of_state):
        for i, slot in enumerate(found):
            slot_terminal[state, i] = slot.terminal
            slot_base[state, i] = base[slot]
    return {
        "slot_terminal": slot_terminal,
        "slot_base": slot_base,
        "column": column,
        "entry": np.array(entry, np.int32),
        "dependents": np.array(dependents, np.int32),
    }


def _nodes(walk: Walk, n_states: int, edges: _Edges) -> dict[str, np.ndarray]:
    skip = np.array([node.skip for node in walk.nodes], np.int32)
    node_edge = np.zeros((len(walk.nodes), n_states), np.int32)
    for number, node in enumerate(walk.nodes):
        for state, edge in node.edges.items():
            node_edge[number, state] = edges(edge)
    pairs = np.array(list(edges.number), np.int32)
    return {"node_skip": skip, "node_edge": node_edge, "edge_row": pairs[:, 0], "edge_node": pairs[:, 1]}
