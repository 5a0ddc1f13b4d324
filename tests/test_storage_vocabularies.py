"""Files of vocabularies: what is loaded is what was saved, and nothing else is ever loaded."""

import dataclasses
import hashlib
import io
import json
import os
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stored_cases import NESTED, VOCABULARY, compiled, forged, opened

import jaxgcd


def vocabularies() -> st.SearchStrategy[jaxgcd.Vocabulary]:
    def build(tokens: list[bytes], special: int, padding: int) -> jaxgcd.Vocabulary:
        every = [b"!", *tokens, b"<eos>"]
        ids = [1 + special % len(tokens)] if tokens else []
        return jaxgcd.Vocabulary(every, eos=[len(every) - 1], special=ids, size=len(every) + padding)

    few = st.lists(st.binary(max_size=5), max_size=30)
    return st.builds(build, few, st.integers(0, 100), st.integers(0, 70))


@given(vocabularies())
def test_vocabularies_round_trip(
    tmp_path_factory: pytest.TempPathFactory, vocabulary: jaxgcd.Vocabulary
) -> None:
    path = tmp_path_factory.getbasetemp() / "vocabulary"
    vocabulary.save(path)
    loaded = jaxgcd.Vocabulary.load(path)
    fresh = jaxgcd.Vocabulary(
        vocabulary.tokens, eos=vocabulary.eos, special=sorted(vocabulary.special), size=vocabulary.size
    )
    assert loaded == vocabulary == fresh and hash(loaded) == hash(fresh) and repr(loaded) == repr(fresh)
    assert (loaded.tokens, loaded.eos, loaded.special) == (fresh.tokens, fresh.eos, fresh.special)
    for name in ("spelling", "strings"):
        one, other = getattr(loaded, name), getattr(fresh, name)
        for field in dataclasses.fields(other):
            found, expected = getattr(one, field.name), getattr(other, field.name)
            assert np.array_equal(found, expected) and found.dtype == expected.dtype
            assert not found.flags.writeable
    assert loaded.usable == fresh.usable and loaded.all_bytes == fresh.all_bytes


def test_nothing_is_derived_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = jaxgcd.compile_grammar(NESTED, VOCABULARY)
    VOCABULARY.save(tmp_path / "vocabulary")
    module = sys.modules["jaxgcd.vocabulary"]
    for name in ("_suffixes", "_spell"):
        monkeypatch.setattr(module, name, None)
    loaded = jaxgcd.Vocabulary.load(tmp_path / "vocabulary")
    again = jaxgcd.compile_grammar(NESTED, loaded)
    for one, other in zip(jax.tree.leaves(again), jax.tree.leaves(tables), strict=True):
        assert np.array_equal(one, other)


def test_damaged_vocabularies(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary"
    VOCABULARY.save(path)
    content = path.read_bytes()
    with open(path, "r+b", buffering=0) as file:
        for place, byte in enumerate(content):
            os.pwrite(file.fileno(), bytes([byte ^ 1 << place % 8]), place)
            with pytest.raises(jaxgcd.StorageError):
                jaxgcd.Vocabulary.load(path)
            os.pwrite(file.fileno(), bytes([byte]), place)
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        with pytest.raises(jaxgcd.StorageError):
            jaxgcd.Vocabulary.load(path)
    jaxgcd.save(path, compiled("nested"))
    with pytest.raises(jaxgcd.StorageError, match="holds 'tables', not 'vocabulary'"):
        jaxgcd.Vocabulary.load(path)


@pytest.mark.parametrize(
    ("name", "dtype", "change"),
    [
        ("offset", "<i8", lambda array: array[::-1]),
        ("offset", "<i8", lambda array: array + 1),
        ("eos", "<i4", lambda array: array + 1000),
        ("strings.first", "<i4", lambda array: array),
        ("strings.rest", "<i4", lambda array: array[None]),
        ("text", "|u1", lambda array: array[:-1]),
        ("spelling.offset", "<i4", lambda array: array[:-1]),
        ("spelling.offset", "<i4", lambda array: np.sort(array)[::-1]),
        ("spelling.symbols", "<i2", lambda array: array + 257),
        ("spelling.symbols", "<i2", lambda array: array[:0]),
        ("strings.first", "<i2", lambda array: array - 300),
        ("strings.first", "<i2", lambda array: array[:0]),
        ("strings.rest", "<i4", lambda array: array * 0 + np.arange(len(array))),
        ("strings.rest", "<i4", lambda array: array * 0),
        ("strings.length", "<i4", lambda array: array + 1),
        ("strings.length", "<i4", lambda array: np.append(array, 1)),
        ("strings.token_string", "<i4", lambda array: array + 1000),
        ("strings.token_string", "<i4", lambda array: array * 0),
    ],
)
def test_forged_vocabularies(name: str, dtype: str, change, tmp_path: Path) -> None:
    """Right checksums, wrong arrays."""
    path = tmp_path / "vocabulary"
    VOCABULARY.save(path)
    header, body = opened(path.read_bytes())
    place, out = 0, io.BytesIO()
    for found in header["arrays"]:
        array = np.frombuffer(body, found[1], int(np.prod(found[2])), place).reshape(found[2])
        place += -(-array.nbytes // 64) * 64
        if found[0] == name:
            array = change(array).astype(dtype)
            found[1:] = [dtype, list(array.shape)]
        out.write(array.tobytes() + bytes(-array.nbytes % 64))
    header["digest"] = hashlib.sha256(out.getvalue()).hexdigest()
    path.write_bytes(forged(json.dumps(header).encode(), out.getvalue()))
    with pytest.raises(jaxgcd.StorageError, match="Make the file again"):
        jaxgcd.Vocabulary.load(path)
