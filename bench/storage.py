"""How much faster is it to load compiled tables than to compile them, from a file and from a cache?

    JAXGCD_DATA=<folder> python bench/storage.py [--grammars json ...] [--vocabulary llama3] [--checks ...]

For each grammar, with a vocabulary that is built: seconds of `compile_grammar`; of `save`; of `load`, reading
the file and mapping it; of a hit in a `CompileCache`; sizes of the file and of the cache's entry. Each in a
process of its own that has compiled before; medians of 20 where it takes less than a second. "first" is the
first hit of a fresh process, without JAX's start. At last the vocabulary: built from its tokenizer, loaded.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import common
import jax

import jaxgcd

REPEATS = 20


def seconds(function: Callable[..., Any], *arguments: Any, repeats: int = REPEATS, **options: Any) -> float:
    """The median of some calls."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        function(*arguments, **options)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def measure(job: tuple[str, str, str, str]) -> dict[str, Any]:
    """Compiles, saves and loads one grammar."""
    name, vocabulary_name, check, _ = job
    text, path, cache = common.grammars(name)[name], *_places(job)
    vocabulary = common.VOCABULARIES[vocabulary_name]()
    jaxgcd.compile_grammar('start: "a"', vocabulary)
    options = {"vocabulary": vocabulary, "check": check}
    tables = jaxgcd.compile_grammar(text, **options, cache=cache)
    report = tables.report
    assert report is not None and not report.cached
    quick = sum(report.seconds.values()) < 1
    compiling = seconds(jaxgcd.compile_grammar, text, **options, repeats=REPEATS if quick else 1)
    saving = seconds(jaxgcd.save, path, tables, repeats=1)
    loading, mapping = (seconds(jaxgcd.load, path, mapped=mapped) for mapped in (False, True))
    hit = seconds(jaxgcd.compile_grammar, text, **options, cache=cache)
    (entry,) = cache.iterdir()
    return {
        "grammar": name,
        "check": check,
        "tokens": vocabulary.size,
        "compile s": compiling,
        "save s": saving,
        "load s": loading,
        "mapped s": mapping,
        "hit s": hit,
        "file MB": path.stat().st_size / 1e6,
        "entry MB": entry.stat().st_size / 1e6,
        "compile/load": compiling / loading,
        "compile/hit": compiling / hit,
    }


def first(job: tuple[str, str, str, str]) -> dict[str, float]:
    """The first hit of a fresh process."""
    name, vocabulary_name, check, _ = job
    vocabulary, text = common.VOCABULARIES[vocabulary_name](), common.grammars(name)[name]
    assert vocabulary.strings
    jax.block_until_ready(jax.device_put(0))
    begin = time.perf_counter()
    tables = jaxgcd.compile_grammar(text, vocabulary, check=check, cache=_places(job)[1])
    assert tables.report is not None and tables.report.cached
    return {"first s": time.perf_counter() - begin}


def _places(job: tuple[str, str, str, str]) -> tuple[Path, Path]:
    """Where the file and the cache are."""
    name, _, check, folder = job
    return Path(folder) / f"{name}.{check}.jaxgcd", Path(folder) / f"{name}.{check}.cache"


def measure_vocabulary(job: tuple[str, str]) -> dict[str, Any]:
    """Builds, saves and loads a vocabulary."""
    name, folder = job
    path = Path(folder) / name

    def build() -> jaxgcd.Vocabulary:
        vocabulary = common.VOCABULARIES[name]()
        assert vocabulary.strings and vocabulary.fingerprint
        return vocabulary

    saving = seconds(build().save, path, repeats=1)
    building, loading = seconds(build, repeats=3), seconds(jaxgcd.Vocabulary.load, path, repeats=5)
    size = path.stat().st_size / 1e6
    return {"vocabulary": name, "build s": building, "save s": saving, "load s": loading, "file MB": size}


def main() -> None:
    """Measures and writes `bench/storage.json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--grammars", nargs="+", default=["json", "sql", "java"])
    parser.add_argument("--vocabulary", default="llama3", choices=common.VOCABULARIES)
    parser.add_argument("--checks", nargs="+", default=["device"], choices=["device", "host"])
    chosen = parser.parse_args()
    common.grammars(*chosen.grammars)  # complains early
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
    ):
        jobs = [(g, chosen.vocabulary, check, folder) for g in chosen.grammars for check in chosen.checks]
        rows = [{**pool.apply(measure, (job,)), **pool.apply(first, (job,))} for job in jobs]
        rows.append(pool.apply(measure_vocabulary, ((chosen.vocabulary, folder),)))
    common.write("storage", rows)


if __name__ == "__main__":
    main()
