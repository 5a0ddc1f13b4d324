"""Eight devices, in one process and in two, do as one device does; and what is asked of tables and meshes."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import sharded_run
from jax.sharding import PartitionSpec
from small_tables import compiled

import jaxgcd

SCRIPT = Path(sharded_run.__file__)


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> Path:
    """Tokens, logits, and what one device makes of them."""
    rng = np.random.default_rng(0)
    shape = (sharded_run.LENGTH, sharded_run.ROWS)
    logits = rng.normal(size=(sharded_run.ROWS, sharded_run.SIZE)).astype(np.float32)
    tables, tokens = sharded_run.make_tables(), np.zeros(shape, np.int32)
    step = jax.jit(sharded_run.steps)
    for i in range(len(tokens)):  # any token that is allowed
        words = np.asarray(step(tables, sharded_run.IDS, tokens, logits)[1])[i]
        bits = np.unpackbits(words.astype("<u4").view(np.uint8), axis=-1, bitorder="little")
        tokens[i] = [rng.choice(np.flatnonzero(row)) for row in bits]
    found = jax.tree.leaves(step(tables, sharded_run.IDS, tokens, logits))
    assert (found[-1][1:-1] == jaxgcd.Status.RUNNING).mean() > 0.3
    path = tmp_path_factory.mktemp("sharding") / "expected.npz"
    np.savez(path, tokens=tokens, logits=logits, **{f"expected{i}": leaf for i, leaf in enumerate(found)})
    return path


def start(*arguments: str, devices: int) -> subprocess.Popen:
    environment = {
        **os.environ,
        "JAX_PLATFORMS": "cpu",
        # Unoptimised code compiles in half the time, and computes the same.
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices} --xla_backend_optimization_level=0",
        "PYTHONPATH": os.pathsep.join([str(SCRIPT.parent), str(SCRIPT.parent.parent)]),
    }
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.Popen(
        command, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def output(process: subprocess.Popen) -> list[str]:
    out, error = process.communicate(timeout=480)
    assert process.returncode == 0, error
    # Gloo's threads write into one another's lines.
    return [line for line in out.splitlines() if line.split()[:1] in (["auto"], ["explicit"], ["shard_map"])]


def test_eight_devices_equal_one(expected: Path) -> None:
    assert output(start("one", str(expected), devices=8)) == [
        "auto equal None data model",
        "auto collectives all-reduce",
        "auto draws True None data",
        "explicit equal None data model",
        "explicit collectives all-reduce",
        "explicit loops True data None",
        "explicit draws True None data",
        "shard_map equal None data model",
        "shard_map collectives",
    ]


def test_two_processes_equal_one_device(expected: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    processes = [start("two", str(expected), number, port, devices=4) for number in "01"]
    for process in processes:
        assert output(process) == ["auto equal None data model", "auto collectives all-reduce"]


def flat_rows(tables: jaxgcd.Tables) -> np.ndarray:
    """All rows of token bits, put together from their pages: `uint32[rows, words]`."""
    pages, ids = np.asarray(tables.pages), np.asarray(tables.row_pages)
    own = np.stack([pages[shard][ids[:, shard]] for shard in range(tables.shards)], axis=1)
    own = own.reshape(len(ids), tables.shards, -1)[..., : tables.words // tables.shards]
    return own.reshape(len(ids), -1)


@pytest.mark.parametrize("size", [9_000, 9_024])
def test_a_split_vocabulary_has_the_same_rows(size: int) -> None:
    letters = range(ord("a"), ord("z") + 1)
    tokens = [bytes([letters[i % 5], letters[i // 5 % 7], letters[i // 40]]) for i in range(1_000)] * 8
    tokens += [bytes([letter]) for letter in letters]
    vocabulary = jaxgcd.Vocabulary([*tokens, b""], eos=[len(tokens)], size=size)
    tables = jaxgcd.compile_grammar("start: (A | B)+\nA: /a[a-m]/\nB: /[b-z]/", vocabulary)
    words = -(-size // 32)
    rows = flat_rows(tables)
    assert rows.shape[1] == words == tables.words and tables.sizes["pages_in_shard"] == 3
    for shards in (1, 2, 5, 8):
        split = jaxgcd.split_vocabulary(tables, shards)
        again = jaxgcd.split_vocabulary(jaxgcd.pad(split), 1)
        assert split.words % shards == 0 and split.words - words < shards
        assert (flat_rows(split)[:, :words] == rows).all() and not flat_rows(split)[:, words:].any()
        assert (flat_rows(again)[: len(rows)] == rows).all()
        for name in ("eos_words", "bytewise"):
            assert (getattr(split, name)[:words] == getattr(tables, name)).all()
        # A part of the vocabulary takes a part of the memory.
        assert shards == 1 or split.pages[0].nbytes < 0.6 * tables.pages.nbytes


def test_layouts_that_cannot_be_are_errors() -> None:
    tables = compiled("nested")
    for shards in (0, 1.5):
        with pytest.raises(jaxgcd.ShapeError, match="shards"):
            jaxgcd.split_vocabulary(tables, shards)  # type: ignore[arg-type]
    with pytest.raises(jaxgcd.ShapeError, match="device"):
        jaxgcd.split_vocabulary(compiled("nested", "host"), 2)
    with pytest.raises(jaxgcd.ShapeError, match="split_vocabulary"):
        jaxgcd.partition_specs(tables, "model")
    with pytest.raises(jaxgcd.ShapeError, match="split after"):
        jaxgcd.concatenate([tables, jaxgcd.split_vocabulary(tables, 2)])
    specs = jaxgcd.partition_specs(tables)
    assert set(jax.tree.leaves(specs)) == {PartitionSpec()}
    assert jax.tree.structure(specs) == jax.tree.structure(tables)
