"""The grammar of every text, as tables: what joined tables call grammar 0.

Its lexer state 1 reads every byte and stays, and goes to 2 at the end of the text; its parser has one state,
which shifts `$END` (terminal 1).
"""

from __future__ import annotations

import numpy as np

from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.rows import pack_bits
from jaxgcd.vocabulary import END_OF_TEXT

_END = 1


def unconstrained(tables: Tables) -> dict[str, np.ndarray]:
    """The arrays of one grammar, with the vocabulary of some tables: all tokens that are text, and EOS."""
    arrays = {
        "start_lexer": [1],
        "start_parser": [1],
        "symbol_class": np.arange(END_OF_TEXT + 1) // END_OF_TEXT,
        "delta": [[0, 0], [1, 2], [0, 0]],
        "emit_terminal": [[0], [0], [_END]],
        "emit_gate": [[0], [0], [0]],
        "gate_state": [[0]],
        "gate_reads": [[0, 0]],
        "scanner": [0, 0, 0],
        "can_emit": [[0], [1 << _END], [1 << _END]],
        "takes": [[0], [1 << _END], [0]],
        "action": [[0, 0], [0, 2], [0, 0]],
        "goto": [[0], [0], [0]],
        "landing": [[0, 0]],
        "rule_size": np.zeros(0),
        "rule_origin": np.zeros(0),
        "slot_terminal": [[0], [0], [0]],
        "slot_base": [[0], [1], [0]],
        "column": [[0, 0], [0, 0], [0, 0]],
        "place": [0, 0, 0],
        "entry": [0, 1],
        "edge_row": [0, 1],
        "edge_node": [0, 0],
        "edge_skip": [0, 0],
        "node_edge": [[0]],
        "dependents": [0, 0],
    }
    pages = _every_token(tables)
    row_pages = np.zeros((2, *pages.shape[:2]), int)
    row_pages[1] = 1 + np.arange(pages.shape[1])
    arrays |= {"row_pages": row_pages, "pages": np.pad(pages, [(0, 0), (1, 0), (0, 0)])}
    return {name: np.array(array).astype(np.int64) for name, array in arrays.items()}


def _every_token(tables: Tables) -> np.ndarray:
    """The row of all tokens that spell something, `uint32[shards, pages in a shard, words in a page]`."""
    shards, _, page_words = tables.pages.shape
    bits = np.diff(np.asarray(tables.token_offset)) > 0
    words = pack_bits(bits, tables.words).reshape(shards, -1)
    filled = np.zeros((shards, tables.row_pages.shape[-1] * page_words), np.uint32)
    filled[:, : words.shape[1]] = words
    return filled.reshape(shards, -1, page_words)
