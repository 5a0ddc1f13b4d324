"""The compile cache: a hit is what compiling would give, and whatever could make it differ is a miss."""

import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import lark
import numpy as np
import pytest

import jaxgcd
from jaxgcd._budget import Budget
from jaxgcd.tables import key as keys
from jaxgcd.tables.cache import through_cache

ROOT = Path(__file__).parent.parent
TOKENS = [b"a", b"b", b"(", b")", b"((", b"a)", b"ab", b""]
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[7])
NESTED = 'start: "a" | "(" start ")"'
INEXACT = 'start: "a" "c"', jaxgcd.Vocabulary([b"a", b"ac", b""], eos=[2])


def hit(*arguments: Any, **options: Any) -> bool:
    """Compiles, and says whether that was a hit."""
    report = jaxgcd.compile_grammar(*arguments, **options).report
    assert report is not None and report.cached == (list(report.seconds) == ["load"])
    return report.cached


def assert_same(one: jaxgcd.Tables, other: jaxgcd.Tables) -> None:
    assert jax.tree.structure(one) == jax.tree.structure(other)
    for (path, leaf), expected in zip(jax.tree.leaves_with_path(one), jax.tree.leaves(other), strict=True):
        assert leaf.aval == expected.aval and leaf.committed == expected.committed
        assert np.array_equal(leaf, expected) or jax.tree_util.keystr(path) == ".host"
    assert one.report is not None and other.report is not None
    assert (one.report.exact, one.report.reasons) == (other.report.exact, other.report.reasons)
    assert one.report.counts == other.report.counts


def entries(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.jaxgcd"))


@pytest.mark.parametrize("check", ["device", "host"])
def test_a_hit_gives_what_was_compiled(check: str, tmp_path: Path) -> None:
    cache = jaxgcd.CompileCache(tmp_path / "new" / "folder")
    compiled, found = (jaxgcd.compile_grammar(NESTED, VOCABULARY, check=check, cache=cache) for _ in "12")
    assert compiled.report is not None and not compiled.report.cached
    assert found.report is not None and found.report.cached and set(found.report.seconds) == {"load"}
    assert "(cached)" in str(found.report) and "(cached)" not in str(compiled.report)
    assert_same(found, compiled)
    assert_same(jaxgcd.compile_grammar(NESTED, VOCABULARY, check=check), compiled)
    assert np.array_equal(found.context_dependent(1, 1), compiled.context_dependent(1, 1))
    assert hit(NESTED, VOCABULARY, check=check, cache=str(cache.directory)), "a path will do"
    # Without the arrays of the vocabulary, an entry is no file that `load` could read.
    with pytest.raises(jaxgcd.StorageError, match="belongs to a cache"):
        jaxgcd.load(entries(tmp_path / "new" / "folder")[0])


def test_inexact_grammars_warn_and_fail_on_a_hit_as_on_a_miss(tmp_path: Path) -> None:
    messages = []
    for cached in (False, True):
        with pytest.warns(jaxgcd.InexactGrammarWarning) as caught:
            assert hit(*INEXACT, cache=tmp_path) == cached
        messages.append(str(caught[0].message))
        assert caught[0].filename == __file__, "the warning points to the caller"
    assert messages[0] == messages[1] and "0x63" in messages[0]
    for folder in (tmp_path, tmp_path / "empty"):
        with pytest.raises(jaxgcd.InexactGrammarError, match="0x63"):
            jaxgcd.compile_grammar(*INEXACT, exact=True, cache=folder)
    assert hit(NESTED, VOCABULARY, exact=True, cache=tmp_path) is False
    assert hit(NESTED, VOCABULARY, exact=True, cache=tmp_path) is True


def test_errors_are_those_of_compiling(tmp_path: Path) -> None:
    for grammar, match in (
        ("start: (", "rejects"),
        (tmp_path / "missing.lark", "No such file"),
        ("%import .missing (x)\nstart: x", "missing"),
        (lark.Lark(NESTED, parser="lalr", postlex=_postlex()), "postlex"),
        (3, "must be a text"),
    ):
        for _ in "12":
            with pytest.raises(jaxgcd.GrammarError, match=match):
                jaxgcd.compile_grammar(grammar, VOCABULARY, cache=tmp_path)  # type: ignore[arg-type]
    assert not entries(tmp_path)


def _postlex() -> Any:
    class Postlex:
        always_accept = ()

        def process(self, stream: Any) -> Any:
            return stream

    return Postlex()


# Keys.


def key(grammar: Any = NESTED, vocabulary: jaxgcd.Vocabulary = VOCABULARY, **options: Any) -> str:
    options = {"start": "start", "lexer": "contextual", "check": "device", "max_depth": 64, **options}
    found = keys.compile_key(grammar, vocabulary, options, Budget())
    assert found is not None and len(found) == 40
    return found


def test_whatever_the_tables_follow_from_changes_the_key(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "nested.lark").write_text(NESTED)
    contextual, basic = (lark.Lark(NESTED, parser="lalr", lexer=mode) for mode in ("contextual", "basic"))
    found = {
        "as it is": key(),
        "a comment": key(NESTED + "  // more"),
        "start": key(start="other"),
        "lexer": key(lexer="basic"),
        "check": key(check="host"),
        "max_depth": key(max_depth=63),
        "tokens": key(vocabulary=jaxgcd.Vocabulary([b"b", b"a", *TOKENS[2:]], eos=[7])),
        "eos": key(vocabulary=jaxgcd.Vocabulary(TOKENS, eos=[6])),
        "special": key(vocabulary=jaxgcd.Vocabulary(TOKENS, eos=[7], special=[0])),
        "size": key(vocabulary=jaxgcd.Vocabulary(TOKENS, eos=[7], size=9)),
        "a built object": key(contextual),
        "another built object": key(basic, lexer="basic"),
        "a built object of another language": key(lark.Lark('start: "a"', parser="lalr")),
    }
    for module, name in (("lark", "__version__"), ("unicodedata", "unidata_version")):
        with monkeypatch.context() as patch:
            keys._environment.cache_clear()
            patch.setattr(sys.modules[module], name, "0")
            found[module] = key()
    for name, value in (
        ("FORMAT", 10**6),
        ("version", lambda: "0"),
        ("__file__", str(tmp_path / "a" / "b" / "c")),
    ):
        with monkeypatch.context() as patch:
            keys._environment.cache_clear()
            patch.setattr(keys, name, value)
            found[name] = key()
    keys._environment.cache_clear()
    assert len(set(found.values())) == len(found)
    same = jaxgcd.Vocabulary(list(TOKENS), eos=(7,), size=8)
    assert key(vocabulary=same) == key() == key(tmp_path / "nested.lark") == found["as it is"]
    assert key(lark.Lark(NESTED, parser="lalr")) == found["a built object"]


def test_the_key_does_not_depend_on_the_process() -> None:
    code = f"""
import lark, jaxgcd
from jaxgcd._budget import Budget
from jaxgcd.tables.key import compile_key
vocabulary = jaxgcd.Vocabulary({TOKENS!r}, eos=[7], special=[0, 1, 2, 3])
options = {{"max_depth": 64, "start": "start", "lexer": "contextual", "check": "device"}}
for grammar in ({NESTED!r}, lark.Lark({NESTED!r}, parser="lalr")):
    print(compile_key(grammar, vocabulary, options, Budget()))
"""
    environment = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": str(ROOT)}
    output = subprocess.check_output([sys.executable, "-c", code], env=environment, text=True)
    vocabulary = jaxgcd.Vocabulary(TOKENS, eos=[7], special=[0, 1, 2, 3])
    assert output.split() == [key(g, vocabulary) for g in (NESTED, lark.Lark(NESTED, parser="lalr"))]


def imports_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Callable[[], Any]]:
    """Ways to give a grammar that imports `part.lark`, which imports `inner.lark`, in a folder."""
    (folder / "part.lark").write_text('%import .inner.letter\npair: letter letter | "(" pair ")"')
    text = "start: pair+\n%import .part.pair"
    (folder / "main.lark").write_text(text)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(folder / "script.py"), raising=False)
    return {
        "file": lambda: folder / "main.lark",
        "text": lambda: text,
        "odd text": lambda: "start: pair+\n%import \\\n  .part (pair)",
        "built": lambda: lark.Lark(text, parser="lalr"),
    }


@pytest.mark.parametrize("way", ["file", "text", "odd text", "built"])
def test_a_change_of_an_imported_file_is_a_miss(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grammar = imports_of(tmp_path, monkeypatch)[way]
    inner = tmp_path / "inner.lark"
    masks = []
    for letter, cached in (("a", False), ("b", False), ("a", True), ("b", True)):
        inner.write_text(f'letter: "{letter}"')
        tables = jaxgcd.compile_grammar(grammar(), VOCABULARY, cache=tmp_path / "cache")
        assert tables.report is not None and tables.report.cached == cached
        masks.append(tables.always_accepted(1, 1).tolist())  # nothing lies below the start state: the mask
    assert masks == [[0, 2, 4], [1, 2, 4]] * 2
    assert len(entries(tmp_path / "cache")) == 2


def test_imports_from_the_library_and_unused_words_need_no_look(tmp_path: Path) -> None:
    """Where all imports are from Lark's library, Lark is not asked; the key is the text's."""
    for text in (
        "%import common.INT\nstart: INT",
        "// %import\nstart: /%import/",
        "%import common (INT)\nstart: INT",
    ):
        assert key(text) != key(text + " ")
    (tmp_path / "common.lark").write_text('INT: "a"')
    (tmp_path / "main.lark").write_text("%import common.INT\nstart: INT")
    before = key(tmp_path / "main.lark")
    (tmp_path / "common.lark").write_text('INT: "b"')
    assert key(tmp_path / "main.lark") == before, "Lark does not look beside a grammar for `common`"
    built = lark.Lark.open(str(tmp_path / "main.lark"), parser="lalr")
    assert built.parse("12")


def test_a_grammar_that_changes_while_it_is_compiled_is_not_kept(tmp_path: Path) -> None:
    path = tmp_path / "main.lark"
    path.write_text('start: "a"')

    def fresh() -> jaxgcd.Tables:
        path.write_text('start: "b"')
        return jaxgcd.compile_grammar(path, VOCABULARY)

    options = {"start": "start", "lexer": "contextual"}
    through_cache(tmp_path / "cache", fresh, path, VOCABULARY, options, Budget())
    assert not entries(tmp_path / "cache")


# Entries.


def test_damaged_and_misplaced_entries_are_replaced(tmp_path: Path) -> None:
    expected = jaxgcd.compile_grammar(NESTED, VOCABULARY, cache=tmp_path)
    (entry,) = entries(tmp_path)
    sound = entry.read_bytes()
    jaxgcd.compile_grammar('start: "a"', VOCABULARY, cache=tmp_path / "other")
    jaxgcd.save(tmp_path / "saved", expected)
    damaged = {
        "cut": sound[: len(sound) // 2],
        "empty": b"",
        "flipped": sound[:-100] + bytes([sound[-100] ^ 1]) + sound[-99:],
        "another": entries(tmp_path / "other")[0].read_bytes(),
        "saved": (tmp_path / "saved").read_bytes(),
    }
    for name, content in damaged.items():
        entry.write_bytes(content)
        assert not hit(NESTED, VOCABULARY, cache=tmp_path), name
        found = jaxgcd.compile_grammar(NESTED, VOCABULARY, cache=tmp_path)
        assert found.report is not None and found.report.cached
        assert_same(found, expected)
    entry.unlink()
    entry.mkdir()  # it can be neither read nor replaced
    with pytest.warns(jaxgcd.StorageWarning, match="not kept in the cache") as caught:
        assert not hit(NESTED, VOCABULARY, cache=tmp_path)
    assert entry.name in str(caught[0].message)


def test_a_cache_that_cannot_be_written_to_still_compiles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = jaxgcd.CompileCache(tmp_path)
    assert not hit(NESTED, VOCABULARY, cache=cache)

    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("replace", "utime"):
        monkeypatch.setattr(os, name, refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert hit(NESTED, VOCABULARY, cache=cache), "reading needs no permission to write"
    with pytest.warns(jaxgcd.StorageWarning, match="Permission denied") as caught:
        assert not hit('start: "a"', VOCABULARY, cache=cache)
    assert caught[0].filename == __file__
    assert len(entries(tmp_path)) == 1 and len(os.listdir(tmp_path)) == 1


def test_a_folder_that_was_deleted_is_made_again(tmp_path: Path) -> None:
    cache = jaxgcd.CompileCache(tmp_path / "cache")
    (tmp_path / "cache").rmdir()
    assert not hit(NESTED, VOCABULARY, cache=cache)
    assert hit(NESTED, VOCABULARY, cache=cache)


def test_the_least_recently_used_entries_are_deleted(tmp_path: Path) -> None:
    """Entries of about one size; room for three."""
    grammars = [f'start: "a" "b"~{n}' for n in range(1, 6)]
    jaxgcd.compile_grammar(grammars[0], VOCABULARY, cache=tmp_path)
    (entry,) = entries(tmp_path)
    size = entry.stat().st_size
    cache = jaxgcd.CompileCache(tmp_path, max_bytes=int(3.5 * size))
    mine = [tmp_path / name for name in ("mine.jaxgcd", "0" * 39 + ".jaxgcd", "notes.txt")]
    for path in mine:
        path.write_bytes(b"x" * size)
        os.utime(path, (0, 0))
    for grammar in grammars[1:3]:
        assert not hit(grammar, VOCABULARY, cache=cache)
    for path in set(entries(tmp_path)) - set(mine):  # long ago, the first one last
        os.utime(path, (1000, 1000 + (path == entry)))
    assert hit(grammars[1], VOCABULARY, cache=cache), "used now"
    assert not hit(grammars[3], VOCABULARY, cache=cache)  # deletes the third
    kept = [hit(grammar, VOCABULARY, cache=cache) for grammar in (grammars[0], grammars[1], grammars[3])]
    assert kept == [True] * 3
    assert not hit(grammars[2], VOCABULARY, cache=cache)
    assert sum(path.stat().st_size for path in set(entries(tmp_path)) - set(mine)) <= cache.max_bytes
    assert all(path.exists() for path in mine), "only entries are deleted"


def test_tables_that_are_too_large_alone_are_not_kept_and_drive_out_none(tmp_path: Path) -> None:
    jaxgcd.compile_grammar(NESTED, VOCABULARY, cache=tmp_path)
    (entry,) = entries(tmp_path)
    small = jaxgcd.CompileCache(tmp_path, max_bytes=entry.stat().st_size + 1)
    assert not hit('start: "a"~60 | "b"~70', VOCABULARY, cache=small)
    assert entries(tmp_path) == [entry]
    none = jaxgcd.CompileCache(tmp_path / "none", max_bytes=0)
    assert [hit(NESTED, VOCABULARY, cache=none) for _ in "12"] == [False, False]


def test_what_a_process_left_behind_is_deleted_in_time(tmp_path: Path) -> None:
    old, new = tmp_path / ".jaxgcd-0123.tmp", tmp_path / ".jaxgcd-4567.tmp"
    for path in (old, new):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 2 * 3600,) * 2)
    jaxgcd.compile_grammar(NESTED, VOCABULARY, cache=tmp_path)
    assert not old.exists() and new.exists()


def test_limits_and_folders_are_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variable = "JAXGCD_CACHE_MAX_BYTES"
    monkeypatch.delenv(variable, raising=False)
    assert jaxgcd.CompileCache(tmp_path).max_bytes == 2**30
    monkeypatch.setenv(variable, "12345")
    assert jaxgcd.CompileCache(tmp_path).max_bytes == 12345
    assert repr(jaxgcd.CompileCache(tmp_path, max_bytes=1)) == f"CompileCache({str(tmp_path)!r}, max_bytes=1)"
    for wrong in ("much", "-1", ""):
        monkeypatch.setenv(variable, wrong)
        with pytest.raises(jaxgcd.StorageError, match=variable):
            jaxgcd.CompileCache(tmp_path)
    for given in (-1, 1.5, float("inf"), "x"):
        with pytest.raises(jaxgcd.StorageError, match="max_bytes"):
            jaxgcd.CompileCache(tmp_path, max_bytes=given)  # type: ignore[arg-type]
    monkeypatch.delenv(variable)
    (tmp_path / "file").write_bytes(b"")
    for folder in (tmp_path / "file", tmp_path / "file" / "x", "a\0b", True, 3):
        with pytest.raises(jaxgcd.StorageError):
            jaxgcd.compile_grammar(NESTED, VOCABULARY, cache=folder)  # type: ignore[arg-type]


PROCESS = """
import hashlib, json, sys, jax, numpy as np, jaxgcd
tokens, grammars, folder, limit = json.loads(input())
vocabulary = jaxgcd.Vocabulary([token.encode() for token in tokens], eos=[len(tokens) - 1])
cache = jaxgcd.CompileCache(folder, max_bytes=limit)
found = []
for grammar in grammars:
    tables = jaxgcd.compile_grammar(grammar, vocabulary, cache=cache)
    digest = hashlib.sha256(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(tables)))
    found.append([grammar, digest.hexdigest(), tables.report.cached])
print(json.dumps(found))
"""


def test_many_processes_share_a_cache(tmp_path: Path) -> None:
    """Three processes at once, each in an order of its own, with room for half of the entries."""
    grammars = [NESTED, *(f'start: "a" "b"~{n} | "(" start ")"' for n in range(1, 6))]
    jaxgcd.compile_grammar(grammars[-1], VOCABULARY, cache=tmp_path)
    limit = 3 * entries(tmp_path)[0].stat().st_size
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), "XLA_FLAGS": ""}
    processes = []
    for number in range(3):
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PROCESS],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        order = (grammars[number:] + grammars[:number]) * 15
        assert process.stdin is not None
        process.stdin.write(json.dumps([[t.decode() for t in TOKENS], order, str(tmp_path), limit]) + "\n")
        process.stdin.flush()
        processes.append(process)
    results = [json.loads(process.communicate(timeout=300)[0]) for process in processes]
    assert all(process.returncode == 0 for process in processes)
    digests = {(grammar, digest) for result in results for grammar, digest, _ in result}
    assert len(digests) == len(grammars), "each grammar has one outcome, compiled or loaded"
    assert len({cached for result in results for *_, cached in result}) == 2, "some were hits, some were not"
    assert sum(path.stat().st_size for path in entries(tmp_path)) <= limit
    assert all(path.suffix == ".jaxgcd" for path in tmp_path.iterdir())
