"""Tokens of 4,096 bytes, the most that a vocabulary takes: as many lexemes, more than Python recurses."""

import harness
import numpy as np
import pytest

import jaxgcd
from jaxgcd.tables.suffixes import SuffixClasses

LONGEST = 4096
TOKENS = (
    b"a" * LONGEST,
    b"a" * (LONGEST - 1) + b"b",
    b"a" * (LONGEST // 2) + b"b" * (LONGEST // 2),
    b"b" * LONGEST,
    b"b" + b"a" * (LONGEST - 1),
    b"a",
    b"b",
    b"",
)
EOS = 7
# Sizes of all tables here, so that they share their traces.
BUCKET = {**harness.SMALL_BUCKET, "nodes": 4 * LONGEST, "edges": 4 * LONGEST, "token_symbols": 6 * LONGEST}


@pytest.fixture(scope="module")
def vocabulary() -> jaxgcd.Vocabulary:
    return jaxgcd.Vocabulary(TOKENS, eos=[EOS])


def mask(tables: jaxgcd.Tables, state: jaxgcd.State) -> list[int]:
    words = np.asarray(jaxgcd.allowed(tables, state))
    return np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little")).tolist()


def walk(tables: jaxgcd.Tables, tokens: list[int], max_depth: int = 2 * LONGEST) -> jaxgcd.State:
    """The state after some tokens, each of which must be allowed."""
    state = jaxgcd.init(tables, max_depth=max_depth)
    for token in tokens:
        assert token in mask(tables, state)
        state = jaxgcd.advance(tables, state, token)
    return state


# For each grammar some texts in tokens, and what may follow; the language is plain from the grammar.
RIGHT = {(): [0, 1, 5, 6], (5, 0): [0, 1, 5, 6], (0, 1): [EOS]}
LEFT = {(): [4, 6], (6,): [0, 5, EOS], (4, 0): [0, 5, EOS]}
MIDDLE = {(): [0, 1, 2, 5], (0,): [0, 1, 2, 3, 5, 6], (0, 3): [EOS], (5, 5, 6): [6]}
IGNORED = {(): [*range(7)], (0,): [*range(7)], (4, 2): [*range(8)]}


@pytest.mark.parametrize(
    ("grammar", "check", "expected"),
    [
        ('start: "a" start | "b"', "device", RIGHT),
        ('start: "a" start | "b"', "host", RIGHT),
        ('start: start "a" | "b"', "device", LEFT),
        ('start: "a" start "b" | "a" "b"', "device", MIDDLE),
        ('start: "a" start "b" | "a" "b"', "host", MIDDLE),
        ('start: "b"+\n%ignore "a"', "device", IGNORED),
    ],
    ids=["right", "right, host", "left", "middle", "middle, host", "ignored"],
)
def test_masks(grammar: str, check: str, expected: dict, vocabulary: jaxgcd.Vocabulary) -> None:
    """Right, left and middle recursion, and ignored text."""
    tables = jaxgcd.compile_grammar(grammar, vocabulary, check=check)
    assert tables.report.exact
    tables = jaxgcd.pad(tables, BUCKET)
    assert {text: mask(tables, walk(tables, list(text))) for text in expected} == expected


def test_a_long_token_overflows_a_small_stack(vocabulary: jaxgcd.Vocabulary) -> None:
    """The text before it stands, and only EOS may follow."""
    tables = jaxgcd.compile_grammar('start: "a" start | "b"', vocabulary)
    before = walk(tables, [5, 5], max_depth=64)
    after = jaxgcd.advance(tables, before, 0)
    assert after.status == jaxgcd.Status.OVERFLOW and mask(tables, after) == [EOS]
    assert (after.stack == before.stack).all() and after.depth == before.depth


def test_a_long_sequence_of_terminals(vocabulary: jaxgcd.Vocabulary) -> None:
    tables = jaxgcd.compile_grammar('start: "a" start | "b"', vocabulary)
    lexer = int(jaxgcd.init(tables).lexer[0])
    assert tables.inverse_spanner(lexer, ["A"] * LONGEST).tolist() == [0]
    assert tables.inverse_spanner(lexer, ["A"] * (LONGEST - 1)).tolist() == []
    assert tables.inverse_spanner(lexer, ["A"] * (LONGEST - 1) + ["B"]).tolist() == [1]


def test_classes_that_differ_at_their_ends_are_united() -> None:
    """However deep they are: `A A ... A B` and `A A ... A C`."""
    classes = SuffixClasses({terminal: {0: frozenset({1, 2, 3})} for terminal in (1, 2, 3)})
    chains = []
    for last in (2, 3):
        (chain,) = classes.after(last, frozenset({0}), [classes.intern({}, frozenset({0}))])
        for _ in range(LONGEST):
            (chain,) = classes.after(1, frozenset({0}), [chain])
        chains.append(chain)
    united = classes.union(*chains)
    for _ in range(LONGEST):
        ((terminal, fan),) = classes.members[united].follow
        united = classes.of_fan(fan, 0)
        assert terminal == 1
    assert [terminal for terminal, _ in classes.members[united].follow] == [2, 3]
