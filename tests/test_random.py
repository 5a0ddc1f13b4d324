"""Random grammars, random texts, random segmentations: stepping accepts what Lark parses."""

import random
from itertools import product

import harness
from hypothesis import given
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError
from oracle import Segmenter, pick
from small_grammars import has_cycle, random_grammar, words

import jaxgcd

LETTERS = "abc"
VOCABULARY = words(LETTERS)
SEGMENTER = Segmenter(VOCABULARY.tokens, skip=(*VOCABULARY.eos, *VOCABULARY.special))
SHORT = ["".join(letters) for length in range(7) for letters in product(LETTERS, repeat=length)]


def next_grammar(seed: int, lexer: str) -> tuple[str, Lark]:
    """The first random grammar from this seed on that Lark loads, and on which its parser cannot loop."""
    while True:
        grammar = random_grammar(random.Random(seed))
        try:
            lark = Lark(grammar, parser="lalr", lexer=lexer)
        except (LarkError, AssertionError):
            seed += 1
            continue
        if not has_cycle(lark):
            return grammar, lark
        seed += 1


def parses(lark: Lark, text: str) -> bool:
    """Lark's verdict."""
    try:
        lark.parse(text)
    except LarkError:
        return False
    return True


def texts(lark: Lark, rng: random.Random) -> list[str]:
    """32 random texts of up to 8 letters and 32 that Lark parses (if it parses any of up to 6)."""
    anything = ["".join(pick(rng, LETTERS) for _ in range(int(rng.random() * 9))) for _ in range(32)]
    accepted = [text for text in SHORT if parses(lark, text)]
    return anything + ([pick(rng, accepted) for _ in range(32)] if accepted else [])


@given(st.integers(0, 10**6), st.sampled_from(["basic", "contextual"]))
def test_stepping_accepts_what_lark_parses(seed: int, lexer: str) -> None:
    grammar, lark = next_grammar(10**7 + seed * 10**3, lexer)  # far from the seeds of the small grammars
    chosen = texts(lark, rng := random.Random(seed))
    try:
        compiled = harness.compile_small(grammar, VOCABULARY, lexer=lexer)
    except jaxgcd.GrammarError as error:
        assert not any(map(parses, [lark] * len(chosen), chosen)), f"refused: {error}\n{grammar}"
        return
    sequences = [SEGMENTER.random(text.encode(), rng) for text in chosen]
    accepted = harness.trails(compiled, sequences).accepts()
    wrong = [text for text, verdict in zip(chosen, accepted, strict=True) if verdict != parses(lark, text)]
    assert not wrong, f"{wrong}\n{grammar}"
