"""What must be in a file of tables, checked from its header alone.

The fields of `Tables` are the specification: the names, numbers of axes and dtypes of the arrays (by their
sizes), that axes of one name have one length, and the static sizes. A `ValueError` says what is wrong.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from jaxgcd._container import Spec
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.dtypes import FIELDS, dtype_of
from jaxgcd.tables.report import Report
from jaxgcd.tables.stored_reference import AXES

GRAMMAR = "grammar"
"""The array with the grammar's text."""
HOST = "host."
"""How the names of the reference machine's arrays begin."""

_LARGEST = (1 << 31) - 1

Axes = dict[str, tuple[str, ...]]
"""For each array the names of its axes."""


def table_arrays() -> Axes:
    """The arrays of `Tables` that are in a file: all but `host`, which is a number in this process only."""
    return {name: field.metadata["dims"] for name, field in FIELDS.items() if name != "host"}


def static_fields() -> dict[str, str]:
    """The fields of `Tables` that are not arrays and are in a file, with the names of their types."""
    return {field.name: str(field.type) for field in dataclasses.fields(Tables) if "static" in field.metadata}


def specs(arrays: Mapping[str, np.ndarray]) -> dict[str, Spec]:
    """Dtypes and shapes, as they would be in a file."""
    return {name: Spec(array.dtype.newbyteorder("<").str, array.shape) for name, array in arrays.items()}


def check_file(
    facts: dict[str, Any], found: Mapping[str, Spec], marks: Mapping[str, str], shared: Mapping[str, Spec]
) -> None:
    """Checks the header of a file that leaves the arrays `shared` out."""
    if facts.keys() != {"written by", "marks", "static", "report"}:
        raise ValueError("its facts are damaged")
    if facts["marks"] != marks:
        raise ValueError("it belongs to a cache, under another key" if facts["marks"] else "it is no entry")
    check_static(facts["static"])
    if facts["report"] is not None:
        Report.from_facts(facts["report"])
    described = {name for name in found if name == GRAMMAR or name.startswith(HOST)}
    needed = {GRAMMAR, *_host_arrays()} if facts["static"]["check"] == "host" else described & {GRAMMAR}
    if described != needed or found.keys() & shared.keys():
        raise ValueError("its arrays are not those that its facts ask for")
    check_arrays({**found, **shared}, facts["static"], described)


def check_static(static: Any) -> None:
    """Checks the static sizes."""
    if not isinstance(static, dict):
        raise ValueError("its sizes are damaged")
    if {name: type(value).__name__ for name, value in static.items()} != static_fields():
        raise ValueError("its sizes are damaged")
    least = {"size": 1, "runs": 1, "max_depth": 2}
    for name, value in static.items():
        if isinstance(value, int) and not least.get(name, 0) <= value <= _LARGEST:
            raise ValueError(f"its size {name} is {value}")
    if static["check"] not in ("device", "host"):
        raise ValueError(f"its check is {static['check']!r}")


def check_arrays(found: Mapping[str, Spec], static: Mapping[str, Any], described: Collection[str]) -> None:
    """Checks names, axes and dtypes."""
    more = _host_arrays() | {GRAMMAR: ("bytes",)}
    wanted = table_arrays() | {name: axes for name, axes in more.items() if name in described}
    if differing := sorted(found.keys() ^ wanted.keys()):
        raise ValueError(f"its arrays differ from those of this version, for example in {differing[:3]}")
    size = static["size"]
    lengths = {"symbols": 257, "two": 2, "tokens_plus_one": size + 1}
    for name, axes in wanted.items():
        if len(found[name].shape) != len(axes):
            raise ValueError(f"its array {name!r} has {len(found[name].shape)} axes")
        for axis, length in zip(axes, found[name].shape, strict=True):
            if lengths.setdefault(axis, length) != length:
                raise ValueError(f"its array {name!r} has {axis} = {length}, and not {lengths[axis]}")
    for name in wanted:
        if found[name].dtype != (dtype := _dtype(name, lengths)):
            raise ValueError(f"its array {name!r} is {found[name].dtype}, and not {dtype}")
    if empty := [name for name in table_arrays() if 0 in found[name].shape]:
        raise ValueError(f"its array {empty[0]!r} is empty")
    if 32 * lengths["words"] < size:  # more than enough if the vocabulary is split for several devices
        raise ValueError(f"its {lengths['words']} words are too few for {size} tokens")
    own, rest = divmod(lengths["words"], lengths["shards"])
    if rest or lengths["pages_in_shard"] * lengths["page_words"] < own:
        raise ValueError(f"its pages do not fit its {lengths['words']} words")


def _host_arrays() -> Axes:
    return {HOST + name: axes for name, axes in AXES.items()}


def _dtype(name: str, lengths: Mapping[str, int]) -> str:
    """The dtype that an array must have, by the lengths of all axes."""
    if name in FIELDS:
        return dtype_of(name, lengths).newbyteorder("<").str
    return "|u1" if name == GRAMMAR else "<i4"
