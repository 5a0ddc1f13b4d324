"""How long does `compile_grammar` take, compared with building the same grammar in Lark, and how large are
the tables?

    JAXGCD_DATA=<folder> python bench/compile.py

For each grammar and lexer mode with the 32,000-token vocabulary: seconds of Lark alone (best of 3), seconds
of `compile_grammar` on a vocabulary whose suffixes are known (best of 3), their ratio, and bytes of the
tables.
"""

import time
from collections.abc import Callable
from typing import Any

import common
import lark

import jaxgcd


def best(function: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """The shortest time of a call, and its result."""
    times, result = [], None
    for _ in range(repeats):
        begin = time.perf_counter()
        result = function()
        times.append(time.perf_counter() - begin)
    return min(times), result


def main() -> None:
    """Measures and writes `bench/compile.json`."""
    vocabulary = common.mistral()
    suffixes = len(vocabulary.strings)
    rows = []
    for name, text in common.grammars().items():
        for lexer in ("basic", "contextual"):
            alone, _ = best(lambda: lark.Lark(text, parser="lalr", lexer=lexer))  # noqa: B023
            ours, tables = best(lambda: jaxgcd.compile_grammar(text, vocabulary, lexer=lexer))  # noqa: B023
            stages = {f"{stage} s": seconds for stage, seconds in tables.report.seconds.items()}
            rows.append(
                {"grammar": name, "lexer": lexer, "Lark s": alone, "jaxgcd s": ours, "ratio": ours / alone}
                | {"bytes": tables.nbytes, "exact": tables.report.exact, **stages}
            )
    print(f"{vocabulary.size} tokens, {suffixes} suffixes")
    common.write("compile", rows)


if __name__ == "__main__":
    main()
