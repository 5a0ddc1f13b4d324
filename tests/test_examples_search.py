"""`examples/tree_search.py`: what it finds is in the language, and nearer than what is drawn."""

import re
import runpy
from pathlib import Path

import jax
import lark
import pytest

pytest.importorskip("mctx")
EXAMPLE = Path(__file__).parent.parent / "examples" / "tree_search.py"


def test_a_tree_search_stays_in_the_grammar_and_finds_better_texts(capsys) -> None:
    module = runpy.run_path(str(EXAMPLE))
    with jax.numpy_dtype_promotion("standard"):  # which `mctx` needs
        module["main"]()
    parser = lark.Lark(module["GRAMMAR"], parser="lalr")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(module["WANTED"])
    distance = {"drawn": 0, "found": 0}
    for line in lines:
        wanted = int(line.split()[1])
        for kind in distance:
            text = re.search(rf"{kind} (\S+)", line)[1]
            if not text.endswith("..."):
                parser.parse(text)
            distance[kind] += abs(sum(map(int, re.findall(r"\d+", text))) - wanted)
            assert kind == "drawn" or not text.endswith("...")
    assert distance["found"] < distance["drawn"] / 4
