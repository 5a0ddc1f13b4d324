"""Tables in fewer bytes: dtypes by sizes alone, on both sides of every limit, with the same masks."""

import functools

import jax
import numpy as np
import pytest
import small_tables
from small_tables import BUCKET, GRAMMARS, compiled, follow, padded, wander

import jaxgcd

ROWS, LENGTH = 10, 10
# Each array of numbers that may be narrow, by the axis that its numbers are places on.
PLACES = {
    "lexer_states": ("start_lexer", "delta", "gate_state"),
    "parser_states": ("start_parser", "landing", "column"),
    "gates": ("emit_gate",),
    "landings": ("goto",),
    "entries": ("slot_base",),
    "edges": ("entry", "node_edge"),
    "rows": ("edge_row",),
    "nodes": ("edge_node",),
    "places": ("place",),
    "pages": ("row_pages",),
    "nonterminals": ("rule_origin",),
    "terminals": ("emit_terminal", "slot_terminal"),
    "scanners": ("scanner",),
    "symbol_classes": ("symbol_class",),
}
ALWAYS = {
    **dict.fromkeys(("gate_reads", "token_symbol"), "uint16"),
    **dict.fromkeys(("rule_size", "edge_skip", "token_offset", "dependents", "host"), "int32"),
    **dict.fromkeys(("can_emit", "takes", "pages", "eos_words", "bytewise"), "uint32"),
}


def dtypes(tables: jaxgcd.Tables) -> dict[str, str]:
    """Of all arrays, by name."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tables)
    return {path[0].name: str(leaf.dtype) for path, leaf in leaves}


@pytest.mark.parametrize("axis", PLACES)
def test_65_535_places_fit_two_bytes_and_one_more_does_not(axis: str) -> None:
    for size in (2**16 - 1, 2**16):
        found = dtypes(jaxgcd.pad(compiled("nested"), {axis: size}))
        wide = PLACES[axis] if size > 2**16 - 1 else ()
        expected = {name: "uint16" for names in PLACES.values() for name in names}
        expected |= {"action": "int32" if axis == "parser_states" else "int16"}
        assert found == ALWAYS | expected | dict.fromkeys(wide, "int32"), size


@pytest.mark.parametrize("axis", ["parser_states", "rules"])
def test_actions_count_states_up_and_rules_down(axis: str) -> None:
    for size, dtype in ((2**15 - 1, "int16"), (2**15, "int32")):
        assert dtypes(jaxgcd.pad(compiled("nested"), {axis: size}))["action"] == dtype


@functools.cache
def wide(name: str) -> jaxgcd.Tables:
    """One grammar in a bucket in which every number needs four bytes."""
    axes = (
        "lexer_states",
        "parser_states",
        "landings",
        "entries",
        "edges",
        "nodes",
        "rows",
        "pages",
        "gates",
    )
    return jaxgcd.pad(compiled(name), {**BUCKET, **dict.fromkeys(axes, 40_000)})


def test_a_bucket_decides_and_its_grammars_share_a_trace() -> None:
    tables = {name: jaxgcd.pad(compiled(name), {**BUCKET, "edges": 2**16}) for name in ("nested", "lists")}
    assert {dtypes(some)["node_edge"] for some in tables.values()} == {"int32"}
    for name, some in tables.items():
        assert dtypes(jaxgcd.pad(compiled(name), some)) == dtypes(some)
        trail = wander(padded(name), jaxgcd.init(padded(name), ROWS), 1, LENGTH)
        other = follow(some, jaxgcd.init(some, ROWS), trail.tokens, np.zeros((ROWS, LENGTH)))
        assert (other.words == trail.words).all() and (other.status == trail.status).all()
    assert small_tables.traces(tables["nested"], (ROWS,), LENGTH) == 1


def test_joined_tables_outgrow_the_dtypes_of_their_parts() -> None:
    """Three of 40,000 places on every axis, between narrow ones: numbers of the last ones are above 2**16."""
    names = ["lists", "fallback", "nested", "many", "right"]
    parts = [compiled("lists"), *map(wide, names[1:4]), compiled("right")]
    joined = jaxgcd.concatenate(parts)
    narrow = {name for name, dtype in dtypes(joined).items() if dtype in ("uint16", "int16")}
    alone = {"symbol_class", "rule_origin", "emit_terminal", "slot_terminal", "scanner", "place"}
    assert narrow == alone | {"gate_reads", "token_symbol", "edge_row", "row_pages"}  # equal rows become one
    ids = [row % len(parts) for row in range(ROWS)]
    state = jaxgcd.init(joined, grammar=[number + 1 for number in ids])
    assert int(state.stack.max()) > 2**16 and state.lexer.dtype == state.stack.dtype == np.int32
    trail = wander(joined, state, 2, LENGTH)
    for number, name in enumerate(names):
        rows = np.array(ids) == number
        single = follow(
            padded(name), jaxgcd.init(padded(name), len(ids)), trail.tokens, np.zeros(trail.tokens.shape)
        )
        assert (single.words[rows] == trail.words[rows]).all(), name
        assert (single.status[rows] == trail.status[rows]).all(), name


@pytest.mark.parametrize("name", GRAMMARS)
def test_nodes_and_states_that_are_alike_are_stored_once(name: str) -> None:
    tables = compiled(name)
    node_edge, place = np.asarray(tables.node_edge), np.asarray(tables.place)
    for axis, empty in ((0, node_edge[0]), (1, node_edge[:, 0])):
        assert np.unique(node_edge, axis=axis).shape == node_edge.shape and not empty.any()
    assert set(place.tolist()) == set(range(tables.sizes["places"]))
    edges = np.stack([tables.edge_row, tables.edge_skip, tables.edge_node], axis=1)
    assert len(np.unique(edges, axis=0)) == len(edges)
