"""The paper's tables, read off the compact form: the example of its Figure 1 and the definitions."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxgcd

# The lexer of Figure 1: B is "ab" and C is "ac"; q0 is the state before any text, q2 the one after "ab".
TOKENS = [b"a", b"b", b"c", b"ab", b"ac", b"aba", b""]
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[6])
GRAMMAR = 'start: (B | C)*\nB: "ab"\nC: "ac"'


@pytest.fixture(scope="module")
def tables() -> jaxgcd.Tables:
    return jaxgcd.compile_grammar(GRAMMAR, VOCABULARY)


def lexer_state(tables: jaxgcd.Tables, *tokens: bytes) -> int:
    state = jaxgcd.init(tables)
    for token in tokens:
        state = jaxgcd.advance(tables, state, jnp.int32(TOKENS.index(token)))
    return int(state.lexer[0])


def spelled(ids: np.ndarray) -> set[bytes]:
    return {TOKENS[i] for i in ids}


def test_inverse_spanner_of_figure_1(tables: jaxgcd.Tables) -> None:
    q0, q2 = lexer_state(tables), lexer_state(tables, b"ab")
    assert b"aba" in spelled(tables.inverse_spanner(q0, "BC"))
    assert b"ac" in spelled(tables.inverse_spanner(q2, "BC"))
    sequences = [a + b + c for a in "BC" for b in "BC" for c in "BC"]
    assert {s for s in sequences if b"aba" in spelled(tables.inverse_spanner(q2, s))} == {"BBB", "BBC"}


def test_inverse_spanner_is_what_the_definition_says(tables: jaxgcd.Tables) -> None:
    """All but the last terminal are completed, the last can still be produced; all by hand for "a" read."""
    q1 = lexer_state(tables, b"a")
    assert spelled(tables.inverse_spanner(q1, "B")) == {b"b"}
    assert spelled(tables.inverse_spanner(q1, "C")) == {b"c"}
    q2 = lexer_state(tables, b"ab")
    # `a`, `ab`, `ac`, `aba` begin with another lexeme, which ends the B that was read.
    assert spelled(tables.inverse_spanner(q2, "BB")) == {b"a", b"ab"}
    assert spelled(tables.inverse_spanner(q2, "BC")) == {b"a", b"ac"}
    assert spelled(tables.inverse_spanner(q2, ["B", "$END"])) == {b""}


def test_always_accepted_and_context_dependent_split_the_tokens() -> None:
    """After "((" and `a`, a single `)` is sure; two need as many brackets below, and EOS needs none."""
    tokens = [b"a", b"(", b")", b"))", b""]
    tables = jaxgcd.compile_grammar('start: "a" | "(" start ")"', jaxgcd.Vocabulary(tokens, eos=[4]))
    state = jaxgcd.init(tables)
    for token in (1, 1, 0):
        state = jaxgcd.advance(tables, state, jnp.int32(token))
    lexer, top = int(state.lexer[0]), int(state.stack[0, int(state.depth[0]) - 1])
    always, depends = tables.always_accepted(lexer, top), tables.context_dependent(lexer, top)
    assert always.tolist() == [2]
    assert depends.tolist() == [3]
    # With the start state on top nothing lies below: all is decided, and at the start that is the mask.
    first = jaxgcd.init(tables)
    lexer, top = int(first.lexer[0]), int(first.stack[0, 0])
    assert tables.context_dependent(lexer, top).size == 0
    assert spelled_ids(jaxgcd.allowed(tables, first)) == tables.always_accepted(lexer, top).tolist() == [0, 1]


def spelled_ids(words) -> list[int]:
    return np.flatnonzero(
        np.unpackbits(np.asarray(words).astype("<u4").view(np.uint8), bitorder="little")
    ).tolist()


def test_always_accepted_tokens_are_allowed_and_rejected_ones_are_not(tables: jaxgcd.Tables) -> None:
    for text in ([b"ab"], [b"a", b"c", b"ab"], [b"aba"]):
        state = jaxgcd.init(tables)
        for token in text:
            state = jaxgcd.advance(tables, state, jnp.int32(TOKENS.index(token)))
        lexer, top = int(state.lexer[0]), int(state.stack[0, int(state.depth[0]) - 1])
        allowed = set(spelled_ids(jaxgcd.allowed(tables, state)))
        always = set(tables.always_accepted(lexer, top).tolist())
        assert always <= allowed <= always | set(tables.context_dependent(lexer, top).tolist())


def test_wrong_questions_are_errors(tables: jaxgcd.Tables) -> None:
    with pytest.raises(jaxgcd.GrammarError, match="'X'"):
        tables.inverse_spanner(1, ["B", "X"])
    with pytest.raises(jaxgcd.GrammarError, match="at least one"):
        tables.inverse_spanner(1, [])
    with pytest.raises(jaxgcd.GrammarError, match="99 is not a lexer state"):
        tables.always_accepted(99, 1)
    with pytest.raises(jaxgcd.GrammarError, match="99 is not a parser state"):
        tables.context_dependent(1, 99)


def test_the_description_stays_with_the_object_that_was_compiled(tables: jaxgcd.Tables) -> None:
    import jax

    copied = jax.device_put(tables)
    assert copied.report is None
    with pytest.raises(jaxgcd.GrammarError, match="compile_grammar"):
        copied.inverse_spanner(1, "B")
