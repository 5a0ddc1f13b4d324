"""`save` and `load`: tables in a file, in the format of `jaxgcd._container`.

A file holds all arrays of `Tables`, its static sizes and its report; the grammar as it was read from Lark
(`jaxgcd.tables.stored`); and for `check="host"` what the reference machine knows. What is read is checked
against the fields of `Tables` before any memory is taken: names, dtypes, numbers of axes, and that axes of
one name have one length. The numbers inside the arrays are not checked; the checksum says that they are those
that were written.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from typing import Any

import jax
import numpy as np

from jaxgcd import _container
from jaxgcd._container import Spec
from jaxgcd._version import version
from jaxgcd.errors import StorageError
from jaxgcd.tables import layout
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.describe import describe
from jaxgcd.tables.host import HostMachine, host_machine, register
from jaxgcd.tables.layout import GRAMMAR, HOST
from jaxgcd.tables.reference import CompiledReference
from jaxgcd.tables.report import Report
from jaxgcd.tables.stored import Stored, grammar_to_json
from jaxgcd.tables.stored_reference import AXES, TABLE_ARRAYS, StoredReference

KIND = "tables"


def save(path: str | os.PathLike[str], tables: Tables) -> None:
    """Writes tables to a file, or replaces the file at once.

    Args:
        path: where to; a file that is there is replaced. Readers see the old file or the new one.
        tables: what `compile_grammar`, `pad` or `load` returned. A copy that went through a JAX
            transformation has lost its report and its grammar, and they are not in its file either.

    Raises:
        StorageError: the file cannot be written, or these are no such tables.

    Example:
        >>> import os, tempfile, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b"', vocabulary)
        >>> path = os.path.join(tempfile.mkdtemp(), "ab.jaxgcd")
        >>> jaxgcd.save(path, tables)
        >>> jaxgcd.allowed(jaxgcd.load(path), jaxgcd.init(tables)).tolist()
        [1]
    """
    if not isinstance(tables, Tables):
        raise StorageError(f"`tables` must be `jaxgcd.Tables`, not {type(tables).__name__}.")
    write_tables(path, tables, {}, shared=())


def load(path: str | os.PathLike[str], *, mapped: bool = False) -> Tables:
    """Reads tables that `save` wrote.

    They do what the saved ones do, and share their traces. What `Tables.inverse_spanner`, `always_accepted`
    and `context_dependent` answer is not in the file: the first such question compiles the grammar again.

    Args:
        path: the file.
        mapped: map the file into memory instead of reading it. On the CPU the tables are then the file's own
            pages, shared by all processes that map it, so it must not be changed in place (`save` never does
            that) while they are in use. On accelerators it saves one copy while loading.

    Returns:
        Tables on the default device.

    Raises:
        StorageError: the file cannot be read, is not of this kind, comes from another version, or is damaged.
            The checksum detects damage, not malice: load files only from where you would take programs.
    """
    return read_tables(path, {}, {}, mapped=mapped)


def write_tables(
    path: str | os.PathLike[str], tables: Tables, marks: Mapping[str, str], shared: Collection[str]
) -> None:
    """Writes tables without the arrays `shared`, which the reader has; `marks` say whose they are."""
    arrays = _arrays(tables)
    static = {name: getattr(tables, name) for name in layout.static_fields()}
    try:
        layout.check_arrays(layout.specs(arrays), static, ())
    except ValueError as error:
        raise StorageError(f"These are not the tables of one grammar: {error}; save them so.") from error
    facts = {
        "written by": version(),
        "marks": dict(marks),
        "static": static,
        "report": tables.report and dataclasses.asdict(tables.report),
    }
    kept = {name: array for name, array in arrays.items() if name not in shared}
    _container.write(path, KIND, facts, {**kept, **_described(tables, arrays)})


def read_tables(
    path: str | os.PathLike[str],
    marks: Mapping[str, str],
    shared: Mapping[str, np.ndarray],
    *,
    mapped: bool = False,
) -> Tables:
    """Reads what `write_tables` wrote with the same marks; `shared` are the arrays that it left out."""

    def check(facts: dict[str, Any], specs: dict[str, Spec]) -> None:
        layout.check_file(facts, specs, marks, layout.specs(shared))

    facts, found = _container.read(path, KIND, check, mapped=mapped)
    arrays = {name: shared[name] if name in shared else found[name] for name in layout.table_arrays()}
    grammar = Stored(found[GRAMMAR].tobytes()) if GRAMMAR in found else None
    host = 0
    if grammar and facts["static"]["check"] == "host":
        host = register(_reference(arrays, found, grammar))
    leaves = jax.device_put({**arrays, "host": np.array(host, np.int32)})
    report = Report.from_facts(facts["report"]) if facts["report"] else None
    return Tables(**jax.block_until_ready(leaves), **facts["static"], report=report, compiled=grammar)


def _arrays(tables: Tables) -> dict[str, np.ndarray]:
    try:
        return {name: np.asarray(getattr(tables, name)) for name in layout.table_arrays()}
    except (jax.errors.TracerArrayConversionError, RuntimeError) as error:
        raise StorageError(
            "The arrays of these tables have no values: they were donated or deleted, or `save` was called "
            "inside a JAX transformation. Save what `compile_grammar` returned."
        ) from error


def _described(tables: Tables, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The grammar, and for `check="host"` the reference machine."""
    reference = _machine(tables).reference if tables.check == "host" else None
    found: dict[str, np.ndarray] = {}
    compiled = tables.compiled
    if isinstance(reference, CompiledReference):
        found = describe(reference, arrays)
        compiled = reference.compiled
    elif isinstance(reference, StoredReference):
        found = {name: reference.arrays[name] for name in AXES}
        compiled = reference.grammar
    found = {HOST + name: array for name, array in found.items()}
    if compiled is None:
        return found
    text = compiled.grammar if isinstance(compiled, Stored) else grammar_to_json(compiled.grammar)
    return {**found, GRAMMAR: np.frombuffer(text, np.uint8)}


def _machine(tables: Tables) -> HostMachine:
    try:
        machine = host_machine(int(tables.host))
    except KeyError:
        raise StorageError(
            "The reference machine of these tables (`check='host'`) is in another process; save them there."
        ) from None
    if not isinstance(machine, HostMachine):
        raise StorageError(
            "Joined tables with `check='host'` have a reference machine for each grammar, which a file does "
            "not hold; save the tables that were joined, and join them again."
        )
    return machine


def _reference(
    arrays: Mapping[str, np.ndarray], found: Mapping[str, np.ndarray], grammar: Stored
) -> StoredReference:
    """The reference machine, with arrays of its own: the others are let go once they are on the device."""
    own = {name: found[HOST + name] for name in AXES} | {name: arrays[name] for name in TABLE_ARRAYS}
    words = arrays["eos_words"].shape[-1]
    return StoredReference({name: array.copy() for name, array in own.items()}, grammar, words)
