"""How does the time of `compile_grammar` grow with the vocabulary, and with the grammar?

    JAXGCD_DATA=<folder> python bench/growth.py [--repeats 3]

Vocabularies of 10,000 to 256,000 tokens are samples of the distinct tokens of six real ones, each with all
single bytes, and each a part of the next one; the grammars are JSON, SQL and Java. Grammars of 1 to 16 times
a size are as many dialects of a small programming language, with keywords of their own, behind one choice;
the vocabulary is that of 128,000 tokens. Processor seconds, the least of some repeats, without the time of
Lark. Each curve is fitted by a fixed time and a part that grows in proportion to the size (least squares of
relative errors; the largest error is shown), and by the exponent of its last doubling: 1 is linear, more
is not. Draws `docs/growth.png`.
"""

import argparse
import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import common
import lark
import matplotlib
import numpy as np

import jaxgcd

matplotlib.use("Agg")
from matplotlib import pyplot

SIZES = (10_000, 16_000, 32_000, 64_000, 128_000, 256_000)
TIMES = (1, 2, 4, 8, 16)
GRAMMARS = ("json", "sql", "java")

DIALECT = r"""
program_@: statement_@*
?statement_@: assignment_@ | if_@ | while_@ | call_@ ";" | block_@ | "return_@" expression_@? ";"
block_@: "{" statement_@* "}"
assignment_@: ("let_@" | "var_@")? NAME "=" expression_@ ";"
if_@: "if_@" "(" expression_@ ")" block_@ ("else_@" block_@)?
while_@: "while_@" "(" expression_@ ")" block_@
?expression_@: or_@ ("?" expression_@ ":" expression_@)?
?or_@: and_@ | or_@ "or_@" and_@
?and_@: comparison_@ | and_@ "and_@" comparison_@
?comparison_@: sum_@ | sum_@ ("==" | "<" | ">" | "<=" | ">=") sum_@
?sum_@: product_@ | sum_@ ("+" | "-") product_@
?product_@: unary_@ | product_@ ("*" | "/" | "%") unary_@
?unary_@: ("-" | "!") unary_@ | atom_@ | call_@ | unary_@ "[" expression_@ "]"
call_@: NAME "(" (expression_@ ("," expression_@)*)? ")"
?atom_@: NAME | NUMBER | STRING | "(" expression_@ ")" | "[" (expression_@ ("," expression_@)*)? "]"
"""
SHARED = r"""
NAME: /[a-z][a-z0-9]*/
NUMBER: /[0-9]+(\.[0-9]+)?/
STRING: /"[^"\n]*"/
%ignore /[ \t\n]+/
%ignore /#[^\n]*/
"""


def dialects(count: int) -> str:
    """A grammar of some dialects, each of which begins with a word of its own."""
    names = [f"d{number}" for number in range(count)]
    start = "start: " + " | ".join(f'"{name}" program_{name}' for name in names)
    return "\n".join([start, *(DIALECT.replace("@", name) for name in names), SHARED])


def vocabularies(sizes: Sequence[int]) -> list[jaxgcd.Vocabulary]:
    """Samples of real tokens, each a part of the next one."""
    tokens = {bytes(token) for load in common.VOCABULARIES.values() for token in load().tokens if token}
    tokens |= common.further_tokens()
    more = sorted(token for token in tokens if len(token) > 1)
    random.Random(0).shuffle(more)
    if len(more) + 257 < max(sizes):
        raise SystemExit(f"The vocabularies have only {len(more)} distinct tokens.")
    single = [bytes([byte]) for byte in range(256)]
    return [jaxgcd.Vocabulary([b"", *single, *more[: size - 257]], eos=[0]) for size in sizes]


def seconds(grammar: str, vocabulary: jaxgcd.Vocabulary, repeats: int) -> float:
    """Processor seconds of one compilation, less those of Lark alone."""
    whole = min(spent(lambda: jaxgcd.compile_grammar(grammar, vocabulary)) for _ in range(repeats))
    return whole - min(spent(lambda: lark.Lark(grammar, parser="lalr")) for _ in range(repeats))


def spent(function: Callable[[], object]) -> float:
    """Processor seconds of a call."""
    begin = time.process_time()
    function()
    return time.process_time() - begin


def curve(name: str, axis: Sequence[int], measure: Callable[[int], float], plot: Any) -> list[dict[str, Any]]:
    """Measures along an axis, fits, draws."""
    sizes, times = np.array(axis), np.array([measure(place) for place in range(len(axis))])
    fixed, each = np.linalg.lstsq(
        np.stack([1 / times, sizes / times], axis=1), np.ones(len(sizes)), rcond=None
    )[0]
    error = float(np.abs((fixed + each * sizes) / times - 1).max())
    exponent = float(np.log2(times[-1] / times[-2]) / np.log2(sizes[-1] / sizes[-2]))
    (points,) = plot.loglog(sizes, times, "o", label=f"{name}: last doubling {exponent:.2f}")
    plot.loglog(sizes, fixed + each * sizes, "-", color=points.get_color())
    rows = [{"curve": name, "size": size, "s": time} for size, time in zip(axis, times.tolist(), strict=True)]
    fit = {"fixed s": float(fixed), "s of the largest": float(each * sizes[-1]), "largest error": error}
    return [*rows, {"curve": name, **fit, "last exponent": exponent}]


def main() -> None:
    """Measures, writes `bench/growth.json` and draws."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    texts = common.grammars(*GRAMMARS)
    samples = vocabularies(SIZES)
    for sample in samples:
        jaxgcd.compile_grammar('start: "a"', sample)  # suffixes are found once for each vocabulary
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4))
    rows = []
    for name, text in texts.items():
        rows += curve(name, SIZES, lambda i, text=text: seconds(text, samples[i], repeats), left)
    large = samples[SIZES.index(128_000)]
    rows += curve("dialects", TIMES, lambda i: seconds(dialects(TIMES[i]), large, repeats), right)
    for plot, label in ((left, "tokens"), (right, "dialects of a small language")):
        plot.set_xlabel(label)
        plot.set_ylabel("processor seconds, without Lark")
        plot.legend()
    figure.tight_layout()
    figure.savefig(common.ROOT / "docs" / "growth.png", dpi=100)
    common.write("growth", rows)


if __name__ == "__main__":
    main()
