"""How long does `compile_grammar` take, compared with building the same grammar in Lark, how much memory, and
how large are the tables?

    JAXGCD_DATA=<folder> python bench/compile.py [--grammars json java] [--vocabularies llama3] [--lexers ...]

For each grammar, vocabulary and lexer mode, in a process of its own: seconds of Lark alone, of each stage of
`compile_grammar` on a vocabulary that is built, of all together, their ratio; processor seconds; bytes of the
tables, distinct rows; the process's peak memory. The vocabulary is built elsewhere and loaded from a file, so
that the peak is not that of reading a model. Results are kept as they come.
"""

import argparse
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import common
import lark

import jaxgcd

GRAMMARS = ("json", "sql", "go", "java", "python")


def build(name: str, path: Path) -> None:
    """Saves one of the vocabularies."""
    common.VOCABULARIES[name]().save(path)


def measure(job: tuple[str, Path, str]) -> dict[str, Any]:
    """Compiles once, after a small grammar that warms the library up."""
    name, path, lexer = job
    text = common.grammars(name)[name]
    vocabulary = jaxgcd.Vocabulary.load(path)
    jaxgcd.compile_grammar('start: "a"', vocabulary)
    begin = time.perf_counter()
    lark.Lark(text, parser="lalr", lexer=lexer)
    alone = time.perf_counter() - begin
    begin, processor = time.perf_counter(), time.process_time()
    tables = jaxgcd.compile_grammar(text, vocabulary, lexer=lexer)
    ours, processor = time.perf_counter() - begin, time.process_time() - processor
    report = tables.report
    assert report is not None
    return {
        "grammar": name,
        "tokens": vocabulary.size,
        "lexer": lexer,
        "Lark s": alone,
        "jaxgcd s": ours,
        "ratio": ours / alone,
        "processor s": processor,
        **{f"{stage} s": seconds for stage, seconds in report.seconds.items()},
        "bytes": tables.nbytes,
        "rows": report.counts["distinct rows"],
        "peak GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        "exact": report.exact,
    }


def main() -> None:
    """Measures and writes `bench/compile.json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--grammars", nargs="+", default=GRAMMARS)
    parser.add_argument(
        "--vocabularies", nargs="+", default=list(common.VOCABULARIES), choices=common.VOCABULARIES
    )
    parser.add_argument(
        "--lexers", nargs="+", default=["contextual", "basic"], choices=["contextual", "basic"]
    )
    chosen = parser.parse_args()
    common.grammars(*chosen.grammars)  # complains early
    rows = []
    with (
        tempfile.TemporaryDirectory() as folder,
        multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
    ):
        paths = [Path(folder) / name for name in chosen.vocabularies]
        for name, path in zip(chosen.vocabularies, paths, strict=True):
            pool.apply(build, (name, path))
        jobs = [(g, path, mode) for g in chosen.grammars for path in paths for mode in chosen.lexers]
        for row in pool.imap(measure, jobs, chunksize=1):
            common.show(row)
            rows.append(row)
            common.keep("compile", rows)


if __name__ == "__main__":
    main()
