"""Drafts in a row and as trees, and what the grammar forces."""

import functools
import itertools
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_tables import BUCKET, GRAMMARS, SIZE, TOKENS, compiled, joined, wander

import jaxgcd
from jaxgcd.drafts import _advance_many

ROWS, DRAFT = 12, 6
IDS = [row % (len(GRAMMARS) + 1) for row in range(ROWS)]
RUNNING, FINISHED = jaxgcd.Status.RUNNING, jaxgcd.Status.FINISHED


def drafts(seed: int) -> tuple[jaxgcd.State, np.ndarray, np.ndarray, np.ndarray]:
    """A state inside some texts, a draft for each row, how many tokens of it count, and parents of a tree."""
    state = wander(joined(), jaxgcd.init(joined(), grammar=IDS), seed, DRAFT, wild=0.0).state
    state = jax.tree.map(np.array, state)
    begun = np.arange(ROWS) % 3 == 0  # texts of six tokens have often ended: some begin anew
    fresh = jaxgcd.init(joined(), grammar=IDS)
    state = jax.tree.map(
        lambda new, old: np.where(begun.reshape(-1, *[1] * (old.ndim - 1)), new, old), fresh, state
    )
    tokens = wander(joined(), state, seed + 1, DRAFT, wild=0.1).tokens
    rng = np.random.default_rng(seed)
    parents = np.array([[rng.integers(-1, i) if i else -1 for i in range(DRAFT)] for _ in range(ROWS)])
    return state, tokens, rng.integers(0, DRAFT + 1, ROWS), parents


def is_allowed(state: jaxgcd.State, token: np.ndarray) -> np.ndarray:
    """Whether each row that is running may draw its token, and something at all."""
    words = np.asarray(jaxgcd.allowed(joined(), state))
    after = np.asarray(jaxgcd.advance(joined(), state, token).status)
    bits = words[np.arange(ROWS), token >> 5] >> (token & 31) & 1 > 0
    return bits & (np.asarray(state.status) == RUNNING) & np.isin(after, [RUNNING, FINISHED])


def equal(one: jaxgcd.State, other: jaxgcd.State) -> bool:
    return jax.tree.all(jax.tree.map(lambda a, b: bool((np.asarray(a) == np.asarray(b)).all()), one, other))


@settings(max_examples=6)
@given(st.integers(0, 2**32 - 2))
def test_advance_many_equals_repeated_advance(seed: int) -> None:
    start, tokens, length, _ = drafts(seed)
    end, trail = jaxgcd.advance_many(joined(), start, tokens, length)
    state, fits, count = start, np.ones(ROWS, bool), np.zeros(ROWS, int)
    for i in range(DRAFT + 1):
        inside = i <= length
        own = jax.tree.map(lambda leaf, i=i: leaf[:, i], trail.states)
        assert equal(*(jax.tree.map(lambda leaf, keep=inside: leaf[keep], s) for s in (own, state)))
        assert (trail.words[:, i] == jaxgcd.allowed(joined(), own)).all()
        if i == DRAFT:
            break
        fits &= is_allowed(state, tokens[:, i]) & (i < length)
        count += fits
        assert (trail.accepted[:, i] == fits).all()
        after = jaxgcd.advance(joined(), state, tokens[:, i])
        keep = jax.tree.map(lambda leaf, i=i: (i < length).reshape(-1, *[1] * (leaf.ndim - 1)), state)
        state = jax.tree.map(np.where, keep, after, state)
    assert equal(end, state) and (trail.count == count).all()
    assert equal(
        trail.state(trail.count), jax.tree.map(lambda leaf: leaf[np.arange(ROWS), count], trail.states)
    )


@settings(max_examples=6)
@given(st.integers(0, 2**32 - 2))
def test_every_branch_of_a_tree_equals_its_replay(seed: int) -> None:
    start, tokens, length, parents = drafts(seed)
    end, trail = jaxgcd.advance_many(joined(), start, tokens, length, parents=parents)
    states, fits = [start], [np.ones(ROWS, bool)]
    for i in range(DRAFT):
        pick = parents[:, i] + 1
        before = jax.tree.map(lambda *leaves, pick=pick: np.stack(leaves)[pick, np.arange(ROWS)], *states)
        fits.append(np.stack(fits)[pick, np.arange(ROWS)] & is_allowed(before, tokens[:, i]) & (i < length))
        states.append(jaxgcd.advance(joined(), before, tokens[:, i]))
        own = jax.tree.map(lambda leaf, i=i: leaf[:, i + 1], trail.states)
        inside = i < length
        assert equal(*(jax.tree.map(lambda leaf, keep=inside: leaf[keep], s) for s in (own, states[-1])))
    assert (np.asarray(trail.accepted) == np.stack(fits[1:], axis=1)).all()
    assert equal(end, trail.state(length))
    assert (trail.words == jaxgcd.allowed(joined(), trail.states)).all()


def test_parents_that_only_the_device_knows_are_never_read_beyond() -> None:
    start, tokens, _, _ = drafts(0)
    wrong = np.array([-1, 1, 9, -2, 2, 4])  # the second, third and fourth come before what they follow
    places = jnp.broadcast_to(jnp.asarray(wrong, jnp.int32) + 1, tokens.shape)
    _, trail = _advance_many(joined(), start, jnp.asarray(tokens), jnp.full(ROWS, DRAFT, jnp.int32), places)
    assert not np.asarray(trail.accepted)[:, 1:5].any()
    assert set(np.unique(trail.states.status).tolist()) <= set(jaxgcd.Status)


def test_drafts_of_the_wrong_shape_are_errors() -> None:
    tables = compiled("nested")
    state, tokens = jaxgcd.init(tables, 2), np.zeros((2, 3), np.int32)
    for wrong in (tokens[:1], tokens[0], tokens.astype(np.float32)):
        with pytest.raises(jaxgcd.ShapeError, match="tokens"):
            jaxgcd.advance_many(tables, state, wrong)
    with pytest.raises(jaxgcd.ShapeError, match="length"):
        jaxgcd.advance_many(tables, state, tokens, np.array([1, 2, 3]))
    for parents in ([-1, 1, 0], [-2, 0, 1], [-1.0, 0.0, 0.0], [-1, 0], [[-1, 0, 0]]):
        with pytest.raises(jaxgcd.ShapeError, match="parents"):
            jaxgcd.advance_many(tables, state, tokens, parents=np.array(parents))


def shared_beginning(texts: set[bytes]) -> bytes:
    columns = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*texts, strict=False))
    return bytes(column[0] for column in columns)


def spelled(texts: set[bytes], begin: bytes, tokens: list[bytes]) -> set[bytes]:
    """What may follow `begin` in some text, if the vocabulary can spell it from there."""

    @functools.cache
    def spells(rest: bytes) -> bool:
        return not rest or any(rest.startswith(token) and spells(rest[len(token) :]) for token in tokens)

    return {text[len(begin) :] for text in texts if text.startswith(begin) and spells(text[len(begin) :])}


@settings(max_examples=12)
@given(
    st.sets(st.text("ab(", min_size=1, max_size=5), min_size=1, max_size=4),
    st.sets(st.sampled_from(["ab", "aa", "a(", "b(", "bb", "ab(", "(a"]), max_size=4),
    st.sampled_from(["ab(", "ab", "b("]),
)
def test_forced_runs_are_what_all_texts_have_in_common(
    texts: set[str], longer: set[str], singles: str
) -> None:
    """Over finite languages, by listing them; where a byte is no token, a run may be shorter, never wrong."""
    tokens = [*(token.encode() for token in sorted(longer)), *(byte.encode() for byte in singles)]
    tokens += [b"x"] * (len(TOKENS) - len(tokens) - 1)
    known = spelled({text.encode() for text in texts}, b"", tokens)
    if not known:
        return
    vocabulary = jaxgcd.Vocabulary([*tokens, b""], eos=[len(tokens)], size=SIZE)
    grammar = "start: " + " | ".join(f'"{text}"' for text in sorted(texts))
    tables = quietly(grammar, vocabulary)
    state, run, length = jaxgcd.jump_forward(tables, jaxgcd.init(tables), unit="byte", max_length=8)
    common = shared_beginning(known)
    found = bytes(run[: int(length)].tolist())
    assert found == common if singles == "ab(" else common.startswith(found)
    assert (run[int(length) :] == 0).all()
    if singles == "ab(":
        assert (
            jaxgcd.allowed(tables, state) == jaxgcd.allowed(tables, jaxgcd.init(tables, prefix=found))
        ).all()
    state, run, length = jaxgcd.jump_forward(tables, jaxgcd.init(tables), max_length=8)
    chosen, rests = [], known
    while len(following := {t for t in set(tokens) if any(spelled({r}, t, tokens) for r in rests)}) == 1:
        if b"" in rests:
            break
        chosen.append(next(iter(following)))
        rests = spelled(rests, chosen[-1], tokens)
    found = [tokens[token] for token in run[: int(length)].tolist()]
    assert found == (chosen if singles == "ab(" else chosen[: len(found)])


def quietly(grammar: str, vocabulary: jaxgcd.Vocabulary) -> jaxgcd.Tables:
    """Tables in the bucket of all, without a warning where a byte is no token."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jaxgcd.InexactGrammarWarning)
        return jaxgcd.pad(jaxgcd.compile_grammar(grammar, vocabulary, max_depth=12), BUCKET)
