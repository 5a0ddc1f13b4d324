"""Files of tables: what is loaded is what was saved, and nothing else is ever loaded."""

import dataclasses
import functools
import hashlib
import json
import os
import pickle
import threading
import zipfile
from pathlib import Path

import harness
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stored_cases import (
    FALLBACK,
    GRAMMARS,
    KEYWORD,
    NESTED,
    VOCABULARY,
    compiled,
    forged,
    opened,
    refused,
    save_small,
)

import jaxgcd

CASES = [
    *((name, lexer, "device") for name in GRAMMARS for lexer in ("contextual", "basic")),
    ("nested", "contextual", "host"),
    ("keyword", "basic", "host"),
    ("fallback", "contextual", "host"),
]


@functools.partial(jax.jit, static_argnames="steps")
def walks(tables: jaxgcd.Tables, key: jax.Array, steps: int = 12) -> tuple[jax.Array, ...]:
    """Random walks, 16 at once: the masks, the tokens drawn and the statuses on the way."""
    harness.TRACES["walks", jax.tree.structure(tables)] += 1

    def step(state, key):
        words = jaxgcd.allowed(tables, state)
        token, state = jaxgcd.sample(key, tables, state, jnp.zeros((16, tables.size), jnp.float32))
        return state, (words, token, state.status)

    return jax.lax.scan(step, jaxgcd.init(tables, (16,)), jax.random.split(key, steps))[1]


def assert_same(loaded: jaxgcd.Tables, tables: jaxgcd.Tables) -> None:
    """Equal in everything but the number of the machine on the host."""
    assert jax.tree.structure(loaded) == jax.tree.structure(tables)
    assert loaded.report == tables.report and loaded.sizes == tables.sizes
    for field in dataclasses.fields(tables):
        if "dims" in field.metadata and field.name != "host":
            one, other = getattr(loaded, field.name), getattr(tables, field.name)
            assert isinstance(one, jax.Array) and one.aval == other.aval and one.weak_type == other.weak_type
            assert one.committed == other.committed and np.array_equal(one, other), field.name


@pytest.mark.parametrize(("name", "lexer", "check"), CASES)
def test_a_round_trip_changes_nothing_and_traces_nothing(name, lexer, check, tmp_path: Path) -> None:
    tables = compiled(name, lexer, check)
    jaxgcd.save(tmp_path / "tables", tables)
    loaded = jaxgcd.load(str(tmp_path / "tables"))
    assert_same(loaded, tables)
    keys = jax.random.split(jax.random.key(len(name)), 3)
    expected = [walks(tables, key) for key in keys]
    before = harness.TRACES.copy()
    for key, outputs in zip(keys, expected, strict=True):
        for one, other in zip(walks(loaded, key), outputs, strict=True):
            assert np.array_equal(one, other)
    assert before == harness.TRACES, "loading must not cost a trace"
    # Each walk visits something: the walks end, and they differ.
    assert len(np.unique(np.asarray(expected[0][1]), axis=1).T) > 1
    jaxgcd.save(tmp_path / "again", loaded)
    assert (tmp_path / "again").read_bytes() == (tmp_path / "tables").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["again", "tables"], "nothing else is left behind"


def test_the_host_is_asked_the_same_questions_by_loaded_tables(tmp_path: Path) -> None:
    from jaxgcd.tables.host import host_machine

    tables = compiled("nested", "contextual", "host")
    jaxgcd.save(tmp_path / "tables", tables)
    loaded = jaxgcd.load(tmp_path / "tables")
    asked = []
    for some in (tables, loaded):
        machine = host_machine(int(some.host))
        calls, shipped = machine.calls, machine.shipped
        jax.block_until_ready(walks(some, jax.random.key(5)))
        asked.append((machine.calls - calls, machine.shipped - shipped))
    assert asked[0] == asked[1] and min(asked[0]) > 0


@pytest.mark.parametrize("check", ["device", "host"])
def test_the_papers_tables_of_loaded_tables(check: str, tmp_path: Path) -> None:
    tables = compiled("keyword", "contextual", check)
    jaxgcd.save(tmp_path / "tables", tables)
    loaded = jaxgcd.load(tmp_path / "tables")
    counts = tables.report.counts  # type: ignore[union-attr]
    terminals = ["NAME", "IF", "B", "LPAR", "RPAR", "A", "$END"]
    found = 0
    for lexer_state in range(1, counts["lexer states"] + 1):
        for terminal in terminals:
            one = loaded.inverse_spanner(lexer_state, [terminal])
            assert np.array_equal(one, tables.inverse_spanner(lexer_state, [terminal]))
            found += len(one)
        for parser_state in range(1, counts["parser states"] + 1):
            for ask in ("always_accepted", "context_dependent"):
                one = getattr(loaded, ask)(lexer_state, parser_state)
                assert np.array_equal(one, getattr(tables, ask)(lexer_state, parser_state))
                found += len(one)
    assert found > 50


def test_inexact_tables_keep_their_reasons(tmp_path: Path) -> None:
    vocabulary = jaxgcd.Vocabulary([b"ab", b"cd", b""], eos=[2])
    with pytest.warns(jaxgcd.InexactGrammarWarning):
        tables = jaxgcd.compile_grammar("start: /abcd|ab/", vocabulary)
    jaxgcd.save(tmp_path / "tables", tables)
    report = jaxgcd.load(tmp_path / "tables").report  # no warning: it was given when they were compiled
    assert report == tables.report and report is not None and not report.exact and len(report.reasons) == 4


def test_copies_are_saved_with_what_they_still_have(tmp_path: Path) -> None:
    tables = compiled("nested", "contextual", "host")
    for copied in (jax.device_put(compiled("nested")), jax.device_put(tables)):
        jaxgcd.save(tmp_path / "tables", copied)
        loaded = jaxgcd.load(tmp_path / "tables")
        assert_same(loaded, copied)
        assert loaded.report is None
        assert np.array_equal(walks(loaded, jax.random.key(1))[0], walks(copied, jax.random.key(1))[0])
    jaxgcd.save(tmp_path / "tables", jax.device_put(compiled("nested")))
    with pytest.raises(jaxgcd.GrammarError, match="compile_grammar"):
        jaxgcd.load(tmp_path / "tables").inverse_spanner(1, ["A"])


def test_loaded_tables_do_not_hang_on_their_file(tmp_path: Path) -> None:
    """The file may be deleted, overwritten and cut; a mapped one only deleted or replaced."""
    path, tables = tmp_path / "tables", compiled("nested")
    expected = np.asarray(walks(tables, jax.random.key(2))[0])
    jaxgcd.save(path, tables)
    loaded = jaxgcd.load(path)
    with open(path, "r+b") as file:
        file.write(b"x" * os.path.getsize(path))
    path.write_bytes(b"")
    assert_same(loaded, tables)
    assert np.array_equal(walks(loaded, jax.random.key(2))[0], expected)
    jaxgcd.save(path, tables)
    mapped = jaxgcd.load(path, mapped=True)
    jaxgcd.save(path, compiled("keyword"))
    path.unlink()
    assert_same(mapped, tables)
    assert np.array_equal(walks(mapped, jax.random.key(2))[0], expected)


# Damage.


@pytest.fixture(scope="module")
def small_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_small(tmp_path_factory.mktemp("small"))


def test_every_byte_counts(small_file: Path) -> None:
    """One bit of every byte is flipped in turn, all eight of those in front."""
    content = small_file.read_bytes()
    with open(small_file, "r+b", buffering=0) as file:
        for place, byte in enumerate(content):
            for bit in range(8) if place < 64 else (place % 8,):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << bit]), place)
                with pytest.raises(jaxgcd.StorageError):
                    jaxgcd.load(small_file)
            os.pwrite(file.fileno(), bytes([byte]), place)
    jaxgcd.load(small_file)


def test_every_length_is_noticed(small_file: Path, tmp_path: Path) -> None:
    content, path = small_file.read_bytes(), tmp_path / "tables"
    path.write_bytes(content + b"\0")
    assert "truncated or damaged" in refused(path)
    for length in reversed(range(len(content))):
        os.truncate(path, length)
        with pytest.raises(jaxgcd.StorageError):
            jaxgcd.load(path)


@given(st.lists(st.tuples(st.integers(0, 1 << 20), st.binary(max_size=70)), min_size=1, max_size=3))
def test_overwritten_places_are_noticed(small_file: Path, changes: list[tuple[int, bytes]]) -> None:
    content = bytearray(small_file.read_bytes())
    for place, change in changes:
        place %= len(content)
        content[place : place + len(change)] = change
    path = small_file.with_name("changed")
    path.write_bytes(content)
    if bytes(content) == small_file.read_bytes():
        jaxgcd.load(path)
    else:
        refused(path)


def foreign_files(folder: Path) -> dict[str, str]:
    """Files that are no tables, and what the error must say of them."""
    (folder / "empty").write_bytes(b"")
    (folder / "text").write_text("start: /a/\n" * 20)
    (folder / "magic").write_bytes(b"jaxgcd\r\n")
    (folder / "folder").mkdir()
    (folder / "loop").symlink_to(folder / "loop")
    os.mkfifo(folder / "pipe")
    with zipfile.ZipFile(folder / "zip", "w") as archive:
        archive.writestr("tables", "x" * 1000)
    np.savez(folder / "arrays.npz", delta=np.zeros(300))
    (folder / "pickle").write_bytes(pickle.dumps({"delta": 1}))
    VOCABULARY.save(folder / "vocabulary")
    no_file = "not a file of jaxgcd's"
    return {
        **dict.fromkeys(("empty", "text", "zip", "arrays.npz", "pickle"), no_file),
        **{"magic": "truncated", "folder": "directory", "pipe": "not a regular file"},
        **{"loop": "symbolic links", "missing": "No such file", "text/x": "Not a directory"},
        "vocabulary": "holds 'vocabulary', not 'tables'",
    }


def test_foreign_files_are_named(tmp_path: Path) -> None:
    for name, reason in foreign_files(tmp_path).items():
        assert reason in refused(tmp_path / name), name
    assert "not a regular file" in refused(Path(os.devnull))
    for path in (None, 3, ["x"], b"x"):
        with pytest.raises(jaxgcd.StorageError, match="`path` must be"):
            jaxgcd.load(path)  # type: ignore[arg-type]
    with pytest.raises(jaxgcd.StorageError, match="null"):
        jaxgcd.load("a\0b")


# Forged files: the checksums are right, and what they are the checksums of is not. The format is written here
# a second time, from its description.


def test_the_format_is_as_described(small_file: Path) -> None:
    content = small_file.read_bytes()
    header, body = opened(content)
    assert header["digest"] == hashlib.sha256(body).hexdigest()
    text = json.dumps(header, separators=(",", ":")).encode()
    assert forged(text, body) == content
    place = 0
    for name, dtype, shape in header["arrays"]:
        count = int(np.prod(shape))
        array = np.frombuffer(body, dtype, count, place).reshape(shape)
        place += -(-array.nbytes // 64) * 64
        if name == "token_offset":
            assert array.tolist() == [0, 1, 2, 3, 4, 6, 8, 10, 11, 13, 14, 15, 16, 17, *[17] * 27]
    assert place == len(body)


# Saving.


def test_saving_fails_cleanly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tables = tmp_path / "tables", compiled("nested")
    jaxgcd.save(path, tables)
    content = path.read_bytes()
    for wrong in (tmp_path / "no folder" / "tables", tmp_path, Path(os.devnull), path / "x"):
        with pytest.raises(jaxgcd.StorageError, match="Give a path") as caught:
            jaxgcd.save(wrong, tables)
        assert repr(str(wrong)) in str(caught.value)
    assert not Path(os.devnull).is_file()

    def full(number: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(jaxgcd.StorageError, match="No space left"):
        jaxgcd.save(path, compiled("keyword"))
    assert path.read_bytes() == content and os.listdir(tmp_path) == ["tables"]


def test_what_cannot_be_saved(tmp_path: Path) -> None:
    path, tables = tmp_path / "tables", compiled("nested")
    stacked = jax.tree.map(lambda leaf: np.stack([leaf, leaf]), tables)
    with pytest.raises(jaxgcd.StorageError, match="not the tables of one grammar"):
        jaxgcd.save(path, stacked)
    with pytest.raises(jaxgcd.StorageError, match="no values"):
        jax.jit(lambda tables: jaxgcd.save(path, tables))(tables)
    gone = jax.tree.map(lambda leaf: jax.device_put(np.array(leaf)), tables)
    gone.delta.delete()
    with pytest.raises(jaxgcd.StorageError, match="no values"):
        jaxgcd.save(path, gone)
    with pytest.raises(jaxgcd.StorageError, match="must be `jaxgcd"):
        jaxgcd.save(path, VOCABULARY)  # type: ignore[arg-type]
    elsewhere = dataclasses.replace(compiled("nested", "contextual", "host"), host=jnp.int32(10**6))
    with pytest.raises(jaxgcd.StorageError, match="another process"):
        jaxgcd.save(path, elsewhere)
    assert not os.listdir(tmp_path)


def test_readers_see_one_file_or_the_other(tmp_path: Path) -> None:
    path = tmp_path / "tables"
    both = [compiled("nested"), compiled("keyword")]
    jaxgcd.save(path, both[0])
    done = threading.Event()

    def write() -> None:
        for i in range(60):
            jaxgcd.save(path, both[i % 2])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    seen = 0
    while not done.is_set():
        found = jaxgcd.load(path, mapped=bool(seen % 2))
        assert any(np.array_equal(found.action, tables.action) for tables in both)
        seen += 1
    writer.join()
    assert seen and os.listdir(tmp_path) == ["tables"]


def test_nothing_is_pickled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither while saving, nor while loading, nor by the cache; and no module of the library could."""

    def refuse(*arguments: object, **options: object) -> None:
        raise AssertionError("pickle was used")

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler", "_Pickler", "_Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    for check in ("device", "host"):
        tables = jaxgcd.compile_grammar(NESTED, VOCABULARY, check=check, cache=tmp_path / "cache")
        jaxgcd.save(tmp_path / "tables", tables)
        jaxgcd.load(tmp_path / "tables")
        again = jaxgcd.compile_grammar(NESTED, VOCABULARY, check=check, cache=tmp_path / "cache")
        assert again.report is not None and again.report.cached
    VOCABULARY.save(tmp_path / "vocabulary")
    jaxgcd.Vocabulary.load(tmp_path / "vocabulary")
    for module in Path(jaxgcd.__file__).parent.rglob("*.py"):
        words = module.read_text().split()
        assert not {"pickle", "marshal", "shelve", "dill", "joblib"} & set(words), module


@settings(max_examples=20)
@given(st.sampled_from([NESTED, KEYWORD, FALLBACK]), st.sampled_from(["contextual", "basic"]))
def test_a_grammar_is_read_back_as_it_was(grammar: str, lexer: str) -> None:
    from jaxgcd.grammar import load_grammar
    from jaxgcd.tables.stored import grammar_from_json, grammar_to_json

    loaded = load_grammar(grammar, lexer=lexer)
    assert grammar_from_json(grammar_to_json(loaded)) == loaded
