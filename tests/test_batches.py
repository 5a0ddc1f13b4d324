"""Many grammars in one batch, size buckets, and texts that are already there."""

import itertools

import jax
import jax.numpy as jnp
import lark
import numpy as np
import pytest
import small_tables
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import (
    EOS,
    GRAMMARS,
    SIZE,
    SPECIAL,
    TOKENS,
    VOCABULARY,
    compiled,
    follow,
    joined,
    padded,
    wander,
)

import jaxgcd

LENGTH = 10
ROWS = 12
IDS = [row % (len(GRAMMARS) + 1) for row in range(ROWS)]
TEXT = sum(1 << i for i, token in enumerate(TOKENS) if token and i != SPECIAL)


@settings(max_examples=8)
@given(st.integers(0, 2**32 - 1))
def test_rows_of_a_mixed_batch_equal_their_single_runs(seed: int) -> None:
    trail = wander(joined(), jaxgcd.init(joined(), grammar=IDS), seed, LENGTH)
    for number, name in enumerate(GRAMMARS, 1):
        rows = np.array(IDS) == number
        single = follow(padded(name), jaxgcd.init(padded(name), ROWS), trail.tokens, np.zeros((ROWS, LENGTH)))
        assert (single.words[rows] == trail.words[rows]).all()
        assert (single.status[rows] == trail.status[rows]).all()
        assert (single.state.depth[rows] == trail.state.depth[rows]).all()


def test_an_unconstrained_row_allows_all_text_and_eos() -> None:
    trail = wander(joined(), jaxgcd.init(joined(), ROWS, grammar=0), 0, LENGTH, wild=0.3)
    running = trail.status == jaxgcd.Status.RUNNING
    assert (trail.words[running] == TEXT | 1 << EOS).all() and running[:, :2].any()
    wild = np.isin(trail.tokens, [SPECIAL, *range(len(TOKENS), SIZE)]) & running[:, :-1]
    ended = (trail.tokens == EOS) & running[:, :-1]
    assert wild.any() and (trail.status[:, 1:][wild] == jaxgcd.Status.STUCK).all()
    assert ended.any() and (trail.status[:, 1:][ended] == jaxgcd.Status.FINISHED).all()
    assert (trail.status[:, 1:][running[:, :-1] & ~wild & ~ended] == jaxgcd.Status.RUNNING).all()


def test_tables_joined_again_count_as_the_grammars_that_they_hold() -> None:
    names = ["many", *GRAMMARS, "nested"]
    inner = jaxgcd.concatenate([compiled(name) for name in GRAMMARS])
    again = jaxgcd.concatenate([compiled("many"), inner, compiled("nested")])
    assert again.grammars == len(names) + 1
    again = jaxgcd.pad(again, small_tables.JOINED_BUCKET)
    order = {name: number for number, name in enumerate(GRAMMARS, 1)}
    ids = [0, *(order[name] for name in names), 0, 1, 2, 3]
    others = [0, *range(1, len(names) + 1), 0, 1 + names.index("nested"), 3, 4]
    trail = wander(joined(), jaxgcd.init(joined(), grammar=ids), 3, LENGTH)
    state = jaxgcd.init(again, grammar=np.array(others))
    other = follow(again, state, trail.tokens, np.zeros(trail.tokens.shape))
    assert (other.words == trail.words).all() and (other.status == trail.status).all()


def test_joined_tables_ask_the_host_about_each_grammar() -> None:
    trail = wander(joined(), jaxgcd.init(joined(), grammar=IDS), 5, LENGTH)
    hosted = joined("host")
    other = follow(hosted, jaxgcd.init(hosted, grammar=IDS), trail.tokens, np.zeros(trail.tokens.shape))
    assert (other.words == trail.words).all() and (other.status == trail.status).all()


def test_equal_rows_and_pages_are_stored_once() -> None:
    one = compiled("lists")
    twice = jaxgcd.concatenate([one, one])
    # One row and one page more: all tokens.
    assert (twice.sizes["rows"], twice.sizes["pages"]) == (one.sizes["rows"] + 1, one.sizes["pages"] + 1)


def test_what_cannot_be_joined_is_an_error() -> None:
    tables = compiled("nested")
    other = jaxgcd.Vocabulary([*TOKENS[:4], b"(,", *TOKENS[5:]], eos=[EOS], special=[SPECIAL], size=SIZE)
    with pytest.raises(jaxgcd.VocabularyError, match=r"Tables 1 .*token 4"):
        jaxgcd.concatenate([tables, jaxgcd.compile_grammar(GRAMMARS["nested"], other)])
    wider = jaxgcd.Vocabulary(TOKENS, eos=[EOS], special=[SPECIAL], size=SIZE + 1)
    with pytest.raises(jaxgcd.VocabularyError, match="15 and 14"):
        jaxgcd.concatenate([tables, jaxgcd.compile_grammar(GRAMMARS["nested"], wider)])
    with pytest.raises(jaxgcd.ShapeError, match="check='host'"):
        jaxgcd.concatenate([tables, compiled("nested", "host")])
    for nothing in ([], [tables, None], tables):
        with pytest.raises(jaxgcd.ShapeError, match="list"):
            jaxgcd.concatenate(nothing)  # type: ignore[arg-type]


def test_which_grammar_a_row_follows_must_be_said() -> None:
    tables = joined()
    for grammar, match in ((None, "say which"), (-1, "-1"), ([0, 9], "9"), (1.0, "float")):
        with pytest.raises(jaxgcd.ShapeError, match=match):
            jaxgcd.init(tables, grammar=grammar)
    with pytest.raises(jaxgcd.ShapeError, match="batch shapes"):
        jaxgcd.init(tables, 3, grammar=[1, 2])
    assert jaxgcd.init(tables, grammar=[[1, 2]]).status.shape == (1, 2)
    # Numbers that only the device knows: one beyond the axis, and one of the bucket's empty places.
    ids = jnp.array([1, 8, 7, -1], jnp.int32)
    state = jax.jit(lambda tables, ids: jaxgcd.init(tables, grammar=ids))(tables, ids)
    assert state.status.tolist() == [0, *[jaxgcd.Status.STUCK] * 3]


def test_twenty_grammars_of_one_bucket_share_one_trace() -> None:
    endings = ["a", "b", "ab", "a,", "b,"]
    subsets = [some for n in range(1, 6) for some in itertools.combinations(endings, n)][:20]
    draws = np.random.default_rng(0).random((ROWS, LENGTH))
    sizes, finished = set(), 0
    for some in subsets:
        text = 'start: "(" start ")" | ' + " | ".join(f'"{ending}"' for ending in some)
        own = jaxgcd.compile_grammar(text, VOCABULARY, max_depth=12)
        sizes.add(own.sizes["lexer_states"])
        tables = jaxgcd.pad(own, padded("nested"))
        trail = follow(tables, jaxgcd.init(tables, ROWS), np.full(draws.shape, -1), draws)
        parser = lark.Lark(text, parser="lalr")
        for tokens, status in zip(trail.tokens, trail.state.status.tolist(), strict=True):
            if status == jaxgcd.Status.FINISHED:
                parser.parse(
                    b"".join(TOKENS[token] for token in tokens[: tokens.tolist().index(EOS)]).decode()
                )
                finished += 1
    assert len(subsets) == 20 and len(sizes) > 1 and finished > 20
    assert small_tables.traces(padded("nested"), (ROWS,), LENGTH) == 1


def test_the_default_bucket_is_the_next_of_a_fixed_row() -> None:
    sizes, own = jaxgcd.pad(compiled("lists")).sizes, compiled("lists").sizes
    fixed = {"symbols", "words", "page_words", "pages_in_shard", "shards", "tokens_plus_one", "two"}
    for name, size in own.items():
        row = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48]
        stays = name in fixed or name in ("max_depth", "grammars")
        assert sizes[name] == (size if stays else next(n for n in row if n >= size)), name


def test_a_bucket_of_another_kind_is_an_error() -> None:
    tables = compiled("nested")
    with pytest.raises(jaxgcd.ShapeError, match="concatenate"):
        jaxgcd.pad(tables, joined())
    with pytest.raises(jaxgcd.ShapeError, match="check"):
        jaxgcd.pad(tables, padded("nested", "host"))
    wider = jaxgcd.Vocabulary(TOKENS, eos=[EOS], special=[SPECIAL], size=SIZE + 1)
    with pytest.raises(jaxgcd.ShapeError, match="size"):
        jaxgcd.pad(jaxgcd.compile_grammar(GRAMMARS["nested"], wider), padded("nested"))
    with pytest.raises(jaxgcd.ShapeError, match="max_depth"):
        jaxgcd.pad(tables, {"max_depth": 4})


def test_the_depth_belongs_to_the_state() -> None:
    tables = padded("nested")
    opened = np.full((ROWS, LENGTH), TOKENS.index(b"(("))
    shallow, usual = jaxgcd.init(tables, ROWS, max_depth=6), jaxgcd.init(tables, ROWS)
    assert (shallow.stack.shape, usual.stack.shape) == ((ROWS, 2, 6), (ROWS, 2, 12))
    # n times "((" need 2n states: the one at the bottom and one for each bracket but the last.
    for state, most in ((shallow, 3), (usual, 6)):
        status = follow(tables, state, opened, np.zeros(opened.shape)).status[0].tolist()
        assert status == [0] * (most + 1) + [jaxgcd.Status.OVERFLOW] * (LENGTH - most)
    for depth in (1, 2.5):
        with pytest.raises(jaxgcd.ShapeError, match="max_depth"):
            jaxgcd.init(tables, max_depth=depth)  # type: ignore[arg-type]


def legal(text: str) -> bool:
    """Whether some text of the grammar "nested" begins so."""
    opened = len(text) - len(text.lstrip("("))
    rest = text[opened:]
    return not rest or (rest[0] == "a" and set(rest[1:]) <= {")"} and len(rest) - 1 <= opened)


@settings(max_examples=40)
@given(st.text("(a)b", max_size=6).map(lambda tail: "((" + tail))
def test_an_illegal_prefix_is_an_error_with_its_position(text: str) -> None:
    tables = padded("nested")
    longest = max(n for n in range(len(text) + 1) if legal(text[:n]))
    if longest == len(text):
        state = jaxgcd.init(tables, prefix=text)
        assert int(state.status) == jaxgcd.Status.RUNNING
        return
    with pytest.raises(jaxgcd.PrefixError, match=f"Byte {longest} ") as error:
        jaxgcd.init(tables, prefix=text)
    assert (error.value.position, error.value.row) == (longest, 0)


def test_after_a_prefix_a_row_is_where_tokens_of_the_same_bytes_lead() -> None:
    trail = wander(joined(), jaxgcd.init(joined(), grammar=IDS), 11, LENGTH, wild=0.0)
    for count in (1, 5):
        texts = [b"".join(TOKENS[t] for t in row if t != EOS) for row in trail.tokens[:, :count]]
        state = jaxgcd.init(joined(), grammar=IDS, prefix=texts)
        running = trail.status[:, count] == jaxgcd.Status.RUNNING
        assert (np.asarray(jaxgcd.allowed(joined(), state))[running] == trail.words[:, count][running]).all()
        assert running.any()


def test_prefixes_of_rows_and_what_is_wrong_with_them() -> None:
    tables = padded("nested")
    state = jaxgcd.init(tables, (2, 3), prefix="(a")
    assert state.depth[..., 0].tolist() == [[2] * 3] * 2
    texts = ["(\xff", b"(a\xff", *["x,"] * (ROWS - 2)]  # no token has the byte, but grammar 0 reads any
    with pytest.raises(jaxgcd.PrefixError, match="of row 1,") as error:
        jaxgcd.init(joined(), grammar=[0, 1, *[0] * (ROWS - 2)], prefix=texts)
    assert (error.value.position, error.value.row) == (2, 1)
    with pytest.raises(jaxgcd.PrefixError, match="max_depth") as error:
        jaxgcd.init(tables, prefix="(" * 15)
    assert error.value.position == 12  # 12 brackets need 12 states
    with pytest.raises(jaxgcd.PrefixError, match="surrogate") as error:
        jaxgcd.init(tables, prefix="(é\ud800")
    assert error.value.position == 3
    for prefix in (3, [3], [None], None):
        with pytest.raises(jaxgcd.ShapeError, match="prefix"):
            jaxgcd.init(tables, prefix=prefix)  # type: ignore[arg-type]
    with pytest.raises(jaxgcd.ShapeError, match="batch shapes"):
        jaxgcd.init(tables, 3, prefix=["(", "("])


def test_inside_a_jitted_function_an_illegal_prefix_is_a_status() -> None:
    traced = jax.jit(lambda tables: jaxgcd.init(tables, prefix=["(", "b", "(" * 15]))(padded("nested"))
    assert traced.status.tolist() == [0, jaxgcd.Status.STUCK, jaxgcd.Status.OVERFLOW]


def test_prefixes_of_many_lengths_have_few_shapes(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is traced for each shape is replaced: texts of up to n bytes have at most log2(n) of them."""
    widths = set()

    def read(tables, state, symbols, length):
        widths.add(symbols.shape[-1])
        assert bytes(symbols[: int(length)].tolist()) == b"(" * int(length)
        return state, length

    monkeypatch.setattr(jaxgcd.prefix, "_read", read)
    for length in range(1, 1025):
        jaxgcd.init(padded("nested"), prefix=b"(" * length)
    assert len(widths) <= 10
