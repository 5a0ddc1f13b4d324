"""Vocabularies that lack single bytes: languages that they cannot spell, and texts that they cannot end."""

import jax
import pytest

import jaxgcd

CHECKS = pytest.mark.parametrize("check", ["device", "host"])
LEXERS = pytest.mark.parametrize("lexer", ["contextual", "basic"])


def vocabulary(*tokens: bytes) -> jaxgcd.Vocabulary:
    """With EOS behind the tokens."""
    return jaxgcd.Vocabulary([*tokens, b""], eos=[len(tokens)])


@CHECKS
@LEXERS
@pytest.mark.parametrize(
    ("tokens", "grammar"),
    [
        ((b"ab", b"b"), 'start: "a"'),
        ((b"b",), 'start: "a"'),
        ((b"aab", b"b"), "start: A\nA: /a(?!b)a?/"),  # the lookahead forbids the only token
        ((b"ab", b"ba"), "start: /a+/"),
        ((b"ab", b"b"), 'start: "a" x\nx: "b" x'),  # no text ends
        ((b"ab", b"b"), 'start: A "c" | "b" "c"\nA: "a"\nC: "c"'),  # nor here: there is no "c"
        ((b"ab", b"b"), 'start: "a" | " " "ab"\n%ignore " "'),
    ],
)
def test_a_language_that_cannot_be_spelled_is_empty(
    tokens: tuple[bytes, ...], grammar: str, lexer: str, check: str
) -> None:
    with pytest.raises(jaxgcd.GrammarError, match="No text that the vocabulary can spell"):
        jaxgcd.compile_grammar(grammar, vocabulary(*tokens), lexer=lexer, check=check)


def test_the_bytes_that_are_missing_are_named() -> None:
    with pytest.raises(jaxgcd.GrammarError, match=r"no token begins one(?s:.*)single byte 0x61"):
        jaxgcd.compile_grammar('start: "a"', vocabulary(b"ab", b"b"))


def test_the_empty_text_needs_no_token() -> None:
    tables = compiled('start: "a"?', vocabulary(b"ab", b"b"))
    assert jaxgcd.allowed(tables, jaxgcd.init(tables)).tolist() == [4]


def compiled(grammar: str, words: jaxgcd.Vocabulary, **options) -> jaxgcd.Tables:
    with pytest.warns(jaxgcd.InexactGrammarWarning, match="no token is the single byte"):
        return jaxgcd.compile_grammar(grammar, words, **options)


@pytest.mark.parametrize(("last", "check"), [(b"bc", "device"), (b"dc", "host")])
def test_a_dead_end_allows_eos_only_and_is_then_stuck(last: bytes, check: str) -> None:
    """Of "abc" the token "ab" can be spelled, and then nothing."""
    words = vocabulary(b"ab", last, b"c")
    tables = compiled('start: "a" "b" "c" "a"', words, check=check)
    state = jaxgcd.init(tables, (2,))
    assert jaxgcd.allowed(tables, state).tolist() == [[1], [1]] and not state.status.any()
    for token in (0, 2):
        state = jaxgcd.advance(tables, state, jax.numpy.array([token, token]))
    assert jaxgcd.allowed(tables, state).tolist() == [[8], [8]]
    token, sampled = jaxgcd.sample(jax.random.key(0), tables, state, jax.numpy.zeros((2, 4)))
    assert token.tolist() == [3, 3] and sampled.status.tolist() == [jaxgcd.Status.STUCK] * 2
    assert jaxgcd.advance(tables, state, token).status.tolist() == [jaxgcd.Status.STUCK] * 2


def test_a_text_that_cannot_be_ended_finishes_as_stuck() -> None:
    words = vocabulary(b"ab", b"c", b"d")
    tables = compiled('start: "a" "b" "c" "a" | "d"', words)
    wanted = jax.numpy.array([[9.0, 0, 0, 0], [0, 0, 9, 0]])  # a dead end, and a text

    def decode(token: jax.Array, cache: None) -> tuple[jax.Array, None]:
        return wanted, cache

    state, last = jaxgcd.init(tables, (2,)), jax.numpy.zeros(2, int)
    output = jaxgcd.generate(
        jax.random.key(0), decode, None, tables, state, last, max_new_tokens=6, temperature=0.0
    )
    assert output.finish.tolist() == [jaxgcd.Finish.STUCK, jaxgcd.Finish.EOS]
    assert output.tokens.tolist() == [[0, 1, 3, 3, 3, 3], [2, 3, 3, 3, 3, 3]]
    assert output.length.tolist() == [2, 1]


def test_only_stacks_that_can_be_completed_count() -> None:
    """Behind "ac" no "a" may follow, behind "bc" one may, with the same states on top: that depends on the
    stack. What comes later does not, since the "a" was drawn behind "bc" only.
    """
    grammar = (
        'start: "a" w D | "a" v "c" | "b" w "c" | "b" v "c"\nw: "c" "a" "b" "a" "b"\nv: "c" "c"\n%declare D'
    )
    tables = jaxgcd.compile_grammar(grammar, vocabulary(b"a", b"b", b"c"))
    assert tables.report.exact
    masks, depending = {}, {}
    for text in (b"ac", b"bc", b"bca", b"bcaba"):
        state = jaxgcd.init(tables, prefix=text)
        masks[text] = jaxgcd.allowed(tables, state).tolist()
        # The last terminal is not on the stack yet.
        lexer, top = int(state.lexer[0]), int(state.stack[0, state.depth[0] - 1])
        depending[text] = tables.context_dependent(lexer, top).tolist()
    assert masks == {b"ac": [4], b"bc": [5], b"bca": [2], b"bcaba": [2]}
    assert depending[b"bca"] == [1] and depending[b"bcaba"] == []
