"""`concatenate`: one set of tables for many grammars, so that each row of a batch can follow its own.

The states of one grammar lie behind those of another on every axis that tables share, so that a lexer state
or a parser state says which grammar it belongs to, and the device needs to know nothing of it. Symbol classes
are refined until they serve all grammars; equal pages and equal rows of token bits are stored once.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence

import jax
import numpy as np

from jaxgcd.errors import ShapeError, VocabularyError
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.distinct import Distinct, stacked
from jaxgcd.tables.dtypes import FIELDS, settled
from jaxgcd.tables.host import register_joint
from jaxgcd.tables.unconstrained import unconstrained

Arrays = dict[str, np.ndarray]

_SHARED = {
    *("symbol_class", "row_pages", "pages", "eos_words", "bytewise", "token_offset", "token_symbol", "host")
}

_BLOCKS = [field for name, field in FIELDS.items() if name not in _SHARED]
"""Fields in which one grammar's block lies behind another's."""


def concatenate(tables: Sequence[Tables]) -> Tables:
    """Joins grammars that were compiled for one vocabulary.

    In the result, grammar 0 is "unconstrained": every token that is text is allowed, and EOS. Grammar `i + 1`
    is the `i`-th of `tables`; those that are joined already count as the grammars that they hold. Rows of one
    batch never affect each other:

        state = init(joined, grammar=[2, 0, 1, 1])

    Args:
        tables: at least one. `max_depth` and the number of readings become the largest among them.

    Returns:
        Tables like any others. They have no `report` and no `compiled`: those of the parts say what is exact.

    Raises:
        VocabularyError: the vocabularies differ; names the first token that does.
        ShapeError: there is nothing to join, or some were compiled with `check="host"` and some were not.

    Example:
        >>> import jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> one, two = (jaxgcd.compile_grammar(text, vocabulary) for text in ('start: "a"', 'start: "b"'))
        >>> joined = jaxgcd.concatenate([one, two])
        >>> jaxgcd.allowed(joined, jaxgcd.init(joined, grammar=[0, 1, 2])).tolist()
        [[7], [1], [2]]
    """
    _check(tables)
    parts = [unconstrained(tables[0]), *map(_read, tables)]
    joined = dict(parts[-1])
    joined["symbol_class"] = _refine(parts)
    joined["row_pages"], joined["pages"], rows = _joined_rows(parts)
    bases = _bases(parts)
    for field in _BLOCKS:
        joined[field.name] = _behind(field, parts, bases, rows)
    joined["host"] = np.array(0)
    if tables[0].check == "host":
        places = [(base["lexer_states"], base["parser_states"]) for base in bases[1:]]
        machines = [int(part.host) for part in tables]
        joined["host"] = np.array(register_joint(machines, places, tables[0].words))
    sizes = {name: max(getattr(part, name) for part in tables) for name in ("runs", "max_depth", "slack")}
    return dataclasses.replace(
        tables[0], **jax.device_put(settled(joined)), **sizes, report=None, compiled=None
    )


def _read(tables: Tables) -> Arrays:
    """The arrays of some tables; of joined ones without their grammar 0, which the result has already."""
    arrays = {name: np.asarray(getattr(tables, name)) for name in FIELDS}
    if tables.grammars > 1:
        arrays |= {name: arrays[name][1:] for name in ("start_lexer", "start_parser")}
    return arrays


def _refine(parts: Sequence[Arrays]) -> np.ndarray:
    """Makes the symbol classes of all parts the same; returns them."""
    classes = np.stack([part["symbol_class"] for part in parts])
    _, symbol, refined = np.unique(classes, axis=1, return_index=True, return_inverse=True)
    for part in parts:
        own = part["symbol_class"][symbol]  # for each new class the old one
        part["delta"], part["gate_reads"] = part["delta"][:, own], part["gate_reads"][:, own]
    return refined.reshape(-1)


def _bases(parts: Sequence[Arrays]) -> list[dict[str, int]]:
    """For each part, how far its places on each axis move."""
    lengths = []
    for part in parts:
        sized = {field.metadata["dims"][0]: len(part[field.name]) for field in _BLOCKS}
        lengths.append({axis: length - _dead(axis) for axis, length in sized.items()})
    return [
        {axis: sum(before[axis] for before in lengths[:i]) for axis in own} for i, own in enumerate(lengths)
    ]


def _dead(axis: str) -> int:
    """1 where index 0 of an axis means dead, none or empty, and is shared."""
    return 0 if axis in ("rules", "grammars") else 1


def _behind(
    field: dataclasses.Field,
    parts: Sequence[Arrays],
    bases: Sequence[Mapping[str, int]],
    rows: Sequence[np.ndarray],
) -> np.ndarray:
    """One field of all parts: blocks behind one another, their values moved with what they are places of."""
    axis, into = field.metadata["dims"][0], field.metadata["into"]
    blocks = []
    for i, (part, base) in enumerate(zip(parts, bases, strict=True)):
        block = part[field.name][_dead(axis) if i else 0 :]
        if into == "rows":
            block = rows[i][block]
        elif into is not None:
            block = block.astype(np.int32)
            # Only an action is ever negative: a rule's number, counted down from -1.
            block = block + np.where(block > 0, base[into], np.where(block < 0, -base["rules"], 0))
        blocks.append(block)
    widest = np.max([block.shape[1:] for block in blocks], axis=0)
    filled = [
        np.pad(block, [(0, 0), *((0, most - own) for most, own in zip(widest, block.shape[1:], strict=True))])
        for block in blocks
    ]
    return np.concatenate(filled)


def _joined_rows(parts: Sequence[Arrays]) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Distinct rows and pages of all parts, and for each part the new numbers of its rows."""
    shards = parts[0]["pages"].shape[0]
    stores = [Distinct() for _ in range(shards)]
    distinct, rows = Distinct(), []
    for part in parts:
        pages = [store(own.astype(np.uint32)) for store, own in zip(stores, part["pages"], strict=True)]
        columns = [own[part["row_pages"][:, shard]] for shard, own in enumerate(pages)]
        rows.append(distinct(np.stack(columns, axis=1)))
    return np.stack(distinct.found), stacked(stores), rows


def _check(tables: Sequence[Tables]) -> None:
    if not isinstance(tables, Sequence) or not tables or not all(isinstance(part, Tables) for part in tables):
        raise ShapeError("`concatenate` joins a list of at least one `Tables`.")
    for number, part in enumerate(tables):
        if part.check != tables[0].check:
            raise ShapeError(
                f"Tables {number} were compiled with `check={part.check!r}`, tables 0 with "
                f"`check={tables[0].check!r}`; compile all of them alike."
            )
        if part.shards != tables[0].shards:
            raise ShapeError(f"Tables {number} are split in another way than tables 0; split after joining.")
        _check_vocabulary(number, part, tables[0])


def _check_vocabulary(number: int, part: Tables, first: Tables) -> None:
    offset, symbols = np.asarray(part.token_offset), np.asarray(part.token_symbol)
    if part.size == first.size and np.array_equal(offset, first.token_offset):
        if np.array_equal(symbols[: offset[-1]], np.asarray(first.token_symbol)[: offset[-1]]):
            return
    own, other = _spelling(part), _spelling(first)
    token = next((i for i, (one, two) in enumerate(zip(own, other, strict=False)) if one != two), None)
    what = (
        f"token {token} is not the same"
        if token is not None
        else f"the sizes are {part.size} and {first.size}"
    )
    raise VocabularyError(
        f"Tables {number} were compiled for another vocabulary than tables 0: {what}. A batch has one model "
        "and one vocabulary; compile all grammars for it."
    )


def _spelling(tables: Tables) -> list[bytes]:
    """The symbols of every token."""
    offset, symbols = np.asarray(tables.token_offset), np.asarray(tables.token_symbol).astype(np.int32)
    return [symbols[begin:end].tobytes() for begin, end in itertools.pairwise(offset.tolist())]
