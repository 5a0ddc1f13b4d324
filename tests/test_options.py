"""Arguments of `compile_grammar` of a wrong type or out of range are typed errors that name them."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import jaxgcd

VOCABULARY = jaxgcd.Vocabulary([b"a", b""], eos=[1])
ARRAY = np.zeros(3)

WRONG = [
    ("lexer", [None, 1, ARRAY, ["basic"], "dynamic", b"basic", True]),
    ("check", [None, 0, ARRAY, ("host",), "device ", jnp.zeros(2)]),
    ("start", [None, 1, ARRAY, ["start"], b"start", True]),
    ("exact", [None, 1, 0, "yes", ARRAY, np.ones(1, bool), 1.0]),
    ("max_depth", [None, True, np.True_, 8.0, np.float32(8), "8", ARRAY, [8], 1, 0, -5, 10**30, 1 << 25]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG for value in values])
def test_a_wrong_option_is_named(name: str, value: Any) -> None:
    with pytest.raises(jaxgcd.GrammarError, match=f"`{name}"):
        jaxgcd.compile_grammar('start: "a"', VOCABULARY, **{name: value})


@pytest.mark.parametrize("grammar", [None, 1, ARRAY, b'start: "a"', ['start: "a"']])
def test_a_grammar_of_a_wrong_type(grammar: Any) -> None:
    with pytest.raises(jaxgcd.GrammarError, match="`grammar`"):
        jaxgcd.compile_grammar(grammar, VOCABULARY)


@pytest.mark.parametrize("vocabulary", [None, [b"a"], ARRAY, "a"])
def test_a_vocabulary_of_a_wrong_type(vocabulary: Any) -> None:
    with pytest.raises(jaxgcd.VocabularyError, match="`vocabulary`"):
        jaxgcd.compile_grammar('start: "a"', vocabulary)


def test_numpy_scalars_are_what_they_hold() -> None:
    options = {
        "max_depth": np.int64(8),
        "exact": np.True_,
        "lexer": np.str_("basic"),
        "check": np.str_("device"),
        "start": np.str_("start"),
    }
    tables = jaxgcd.compile_grammar('start: "a"', VOCABULARY, **options)
    assert tables.max_depth == 8 and type(tables.max_depth) is int and type(tables.check) is str


@pytest.mark.parametrize("depth", [10**30, True, 1, "8"])
def test_the_depth_of_a_state(depth: Any) -> None:
    tables = jaxgcd.compile_grammar('start: "a"', VOCABULARY)
    with pytest.raises(jaxgcd.ShapeError, match="`max_depth"):
        jaxgcd.init(tables, max_depth=depth)
