"""Files of tables whose checksums are right and whose contents are not: forged headers, sizes, dtypes."""

import hashlib
import json
import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_cases import compiled, forged, opened, refused, save_small

import jaxgcd
from jaxgcd.tables import layout


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small(tmp_path_factory.mktemp("small"))


@pytest.mark.parametrize(("name", "dtype"), [("delta", "<i4"), ("action", "<i4"), ("edge_skip", "<u2")])
def test_sizes_say_which_dtype_an_array_has(name: str, dtype: str, small_file: Path, tmp_path: Path) -> None:
    """The same numbers in another one are refused: such tables would not share the traces of their bucket."""
    header, body = opened(small_file.read_bytes())
    parts, place = [], 0
    for found in header["arrays"]:
        array = np.frombuffer(body, found[1], int(np.prod(found[2])), place)
        place += -(-array.nbytes // 64) * 64
        if found[0] == name:
            found[1], array = dtype, array.astype(dtype)
        parts.append(array.tobytes() + bytes(-array.nbytes % 64))
    header["digest"] = hashlib.sha256(b"".join(parts)).hexdigest()
    path = tmp_path / "tables"
    path.write_bytes(forged(json.dumps(header).encode(), b"".join(parts)))
    assert f"{name!r} is {dtype}, and not" in refused(path)


def entry(header: dict[str, Any], name: str) -> list[Any]:
    return next(found for found in header["arrays"] if found[0] == name)


def set_shape(name: str, *shape: Any):
    return lambda header: entry(header, name).__setitem__(2, list(shape))


def set_static(name: str, value: Any):
    return lambda header: header["facts"]["static"].__setitem__(name, value)


BOMBS = {
    "many elements": set_shape("pages", 10**12, 128),
    "elements of nothing": set_shape("pages", 10**12, 0),
    "int32 overflow": set_shape("pages", 2**32, 128),
    "int64 overflow": set_shape("pages", 2**31 - 1, 2**31 - 1),
    "negative": set_shape("pages", -1, 128),
    "boolean": set_shape("pages", True, 128),
    "float": set_shape("pages", 2.0, 128),
    "text": set_shape("pages", "2", 128),
    "too many axes": set_shape("pages", *[1] * 5),
    "more axes": set_shape("edge_row", 1, 1),
    "axes that differ": set_shape("edge_row", 1),
    "pages that are too small": set_shape("pages", 1, 64, 1),
    "objects": lambda header: entry(header, "delta").__setitem__(1, "|O"),
    "floats": lambda header: entry(header, "delta").__setitem__(1, "<f4"),
    "shorts": lambda header: entry(header, "delta").__setitem__(1, "<i2"),
    "a dtype that is none": lambda header: entry(header, "delta").__setitem__(1, 4),
    "one array too few": lambda header: header["arrays"].pop(),
    "one array too many": lambda header: header["arrays"].append(["more", "<i4", [0]]),
    "an array twice": lambda header: header["arrays"].append(header["arrays"][0]),
    "many arrays": lambda header: header["arrays"].extend([str(i), "<i4", [0]] for i in range(20_000)),
    "no list": lambda header: header.update(arrays={}),
    "no entries": lambda header: header.update(arrays=[1, 2]),
    "no facts": lambda header: header.update(facts=None),
    "other facts": lambda header: header["facts"].update(more=1),
    "another kind": lambda header: header.update(kind="beams"),
    "a deep stack": set_static("max_depth", 10**12),
    "no stack": set_static("max_depth", 0),
    "no readings": set_static("runs", 0),
    "a size that is none": set_static("size", True),
    "another size": set_static("size", 41),
    "a check that is none": set_static("check", "nowhere"),
    "the other check": set_static("check", "device"),
    "no statics": lambda header: header["facts"].update(static=[]),
    "a report that is none": lambda header: header["facts"].update(report={"exact": 1}),
    "reasons that are none": lambda header: header["facts"]["report"].update(reasons=[1]),
    "counts that are none": lambda header: header["facts"]["report"].update(counts={"a": "b"}),
    "a cache's": lambda header: header["facts"].update(marks={"key": "x"}),
}


@pytest.mark.parametrize("name", BOMBS)
def test_forged_headers_are_refused_before_any_memory_is_taken(
    name: str, small_file: Path, tmp_path: Path
) -> None:
    header, body = opened(small_file.read_bytes())
    BOMBS[name](header)
    path = tmp_path / "tables"
    path.write_bytes(forged(json.dumps(header).encode(), body))
    tracemalloc.start()
    message = refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(message) < 1000
    assert peak < 1 << 20 or name == "many arrays", "the header itself may be 4 MiB"


LENGTHS = {axis for axes in layout.table_arrays().values() for axis in axes} - {
    "symbols", "tokens_plus_one", "two", "words",
}  # fmt: skip
"""The axes that may have any length."""


@pytest.mark.parametrize("axis", sorted(LENGTHS))
def test_an_axis_of_no_length_is_refused(axis: str, tmp_path: Path) -> None:
    """In all arrays, so that nothing else is wrong."""
    jaxgcd.save(tmp_path / "tables", compiled("nested"))
    header, body = opened((tmp_path / "tables").read_bytes())
    axes = layout.table_arrays()
    place, kept = 0, []
    for found in header["arrays"]:
        name, dtype, shape = found
        raw = body[place : place + int(np.prod(shape)) * np.dtype(dtype).itemsize]
        place += -(-len(raw) // 64) * 64
        if axis in axes.get(name, ()):
            shape[axes[name].index(axis)], raw = 0, b""
        kept.append(raw + bytes(-len(raw) % 64))
    header["digest"] = hashlib.sha256(b"".join(kept)).hexdigest()
    (tmp_path / "tables").write_bytes(forged(json.dumps(header).encode(), b"".join(kept)))
    assert "is empty" in refused(tmp_path / "tables")


@pytest.mark.parametrize("grammar", [b"{}", b"[]", b"\xff", b'{"terminals":1}', b"[" * 100_000])
def test_a_forged_grammar_is_refused_when_it_is_needed(
    grammar: bytes, small_file: Path, tmp_path: Path
) -> None:
    header, body = opened(small_file.read_bytes())
    *_, last = header["arrays"]
    assert last[0] == "grammar"
    body = body[: -(-last[2][0] // 64) * -64] + grammar + bytes(-len(grammar) % 64)
    last[2], header["digest"] = [len(grammar)], hashlib.sha256(body).hexdigest()
    (tmp_path / "tables").write_bytes(forged(json.dumps(header).encode(), body))
    with pytest.raises(jaxgcd.StorageError, match="is damaged"):
        jaxgcd.load(tmp_path / "tables").context_dependent(1, 1)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"[" * 100_000, "recursion"),
        (b'{"kind":' + b"9" * 5000 + b"}", "digits"),
        (b"\xff\xfe", "decode"),
        (b"", "Expecting value"),
        (b"[]", "header is damaged"),
        (b" " * (5 << 20), "header is damaged"),
    ],
)
def test_headers_that_are_no_json_of_ours(header: bytes, reason: str, tmp_path: Path) -> None:
    (tmp_path / "tables").write_bytes(forged(header, b""))
    assert reason in refused(tmp_path / "tables")


def test_other_versions_are_named(small_file: Path, tmp_path: Path) -> None:
    header, body = opened(small_file.read_bytes())
    text, path = json.dumps(header).encode(), tmp_path / "tables"
    for version, reason in {2: "newer jaxgcd", 0: "older jaxgcd", 2**63: "newer jaxgcd"}.items():
        path.write_bytes(forged(text, body, version=version))
        message = refused(path)
        assert reason in message and f"format {version}" in message and "reads format 1" in message


def test_a_file_of_holes_is_refused_by_its_length(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    path.write_bytes(forged(b"{}", b"", size=1 << 42))
    os.truncate(path, 1 << 42)
    assert "more than" in refused(path)
