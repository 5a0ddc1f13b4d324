"""Prefixes of grammars with dead ends: which texts `init` takes, against all texts that Lark parses.

In the first of these grammars the parser can stand, behind a text that cannot be completed, where much may
follow behind other texts.
"""

import jax
import pytest
from enumeration import Enumeration
from harness import compile_small
from lark import Lark
from small_grammars import DEAD_ENDS, Small, words

import jaxgcd
from jaxgcd.state import Status

ALIVE_AGAIN = [
    Small("conflict", 'start: | "c" | x | x "b" start\nx.1: | start "a" x start', "abc"),
    Small(
        "lexeme swallows the next",
        "start: | x | x z\nx: D D C | y C y\ny: | A D | C C A\nz: C | w w A z\nw: C B\n"
        'A: "a"\nB.1: "aab"\nC: /a*bb/\nD: "-"',
        "ab-",
    ),
]
ROWS, TRIED = 64, 4  # prefixes at once, letters of each
AGAIN = ("abba", "abc", "bba")  # where the parser stands as if the text could go on


@pytest.mark.parametrize("small", [*ALIVE_AGAIN, *DEAD_ENDS[::2]], ids=lambda small: small.name)
def test_a_prefix_is_taken_iff_some_text_begins_with_it(small: Small) -> None:
    lark = Lark(small.grammar, parser="lalr", lexer="basic")
    language = Enumeration(lark, small.alphabet, 8 if len(small.alphabet) < 4 else 6)
    tables = compile_small(lark, words(small.alphabet)).tables
    texts = list(language.texts(TRIED))
    viable = [text for text in texts if text.encode() in language.viable]
    for first in range(0, len(viable), ROWS):
        some = (viable[first : first + ROWS] * ROWS)[:ROWS]
        assert (jaxgcd.init(tables, prefix=some).status == Status.RUNNING).all()
    dead = [text for text in texts if text.encode() not in language.viable]
    for text in [*(text for text in AGAIN if text in dead), *dead[:: 1 + len(dead) // 8]]:
        with pytest.raises(jaxgcd.PrefixError) as error:
            jaxgcd.init(tables, prefix=text)
        assert error.value.position == max(
            n for n in range(len(text)) if text[:n].encode() in language.viable
        )


def test_what_is_dead_is_stuck_inside_a_jitted_function() -> None:
    """Behind "ab", which is dead, "abba" leads to where much may follow behind other texts."""
    tables = compile_small(ALIVE_AGAIN[0].grammar, words("abc")).tables
    status = jax.jit(lambda tables: jaxgcd.init(tables, prefix=["a", "abba", "ab", "aac"]).status)(tables)
    assert status.tolist() == [Status.RUNNING, Status.STUCK, Status.STUCK, Status.RUNNING]
