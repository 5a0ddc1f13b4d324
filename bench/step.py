"""What do one mask and one `advance` cost inside a compiled loop, and what does the mask add to a draw?

    JAXGCD_DATA=<folder> python bench/step.py [--grammars json java] [--batches 1 32] [--checks device]

For each grammar, checker and batch size, on the 128,256 tokens of Llama 3, in the contextual lexer mode:
median, 99th percentile and worst time of a mask and of an `advance` over the positions of real texts
(`common.TRACES`), the mean of both together in a plain scan, and the time of one `jax.random.categorical`, of
one on masked logits, the making of the mask included, and of `jaxgcd.sample`, which advances as well. "reads
stack" is the share of positions whose mask looks below the top of the stack. How a step's time is found:
`steps.py`.
"""

import argparse
from collections.abc import Iterator
from typing import Any

import common
import steps

import jaxgcd

GRAMMARS = ("java", "go", "python", "json")
CHECKS = ("device", "host")


def main() -> None:
    """Measures and writes `bench/step.json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--grammars", nargs="+", default=GRAMMARS, choices=GRAMMARS)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 256])
    parser.add_argument("--checks", nargs="+", default=CHECKS, choices=CHECKS)
    parser.add_argument("--vocabulary", default="llama3", choices=common.VOCABULARIES)
    parser.add_argument("--positions", type=int, default=1000, help="the most to measure in each text")
    parser.add_argument("--seconds", type=float, default=5.0, help="the longest to measure one thing")
    parser.add_argument("--cache", help="a folder of compiled tables")
    chosen = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name in chosen.grammars:
        for row in rows_of(name, chosen):
            rows.append(row)
            common.show(row)
            common.keep("step", rows)  # what is measured is there, whatever comes after it


def rows_of(name: str, chosen: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All rows of one grammar, as they are measured."""
    vocabulary = common.VOCABULARIES[chosen.vocabulary]()
    text, cache = common.grammars(name)[name], chosen.cache
    by_check = {check: jaxgcd.compile_grammar(text, vocabulary, check=check, cache=cache) for check in CHECKS}
    places = steps.places(name, vocabulary, by_check["device"])
    share = float(steps.reads_stack(by_check["host"], places.states).mean())
    for check in chosen.checks:
        for batch in chosen.batches:
            row = {"grammar": name, "check": check, "batch": batch, "reads stack": share}
            yield row | steps.measure(
                by_check[check], places, batch, budget=chosen.seconds, most=chosen.positions
            )


if __name__ == "__main__":
    main()
