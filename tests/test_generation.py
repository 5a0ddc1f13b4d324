"""Whole texts: stops, withheld EOS, padding, keys, what is known about draws; against loops in Python."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_decoding import HOST_CALL, callbacks

import jaxgcd
from jaxgcd.stops import make_stops, read

TOKENS = [b"a", b"b", b"ab", b"ba", b"\n", b"b\n\na", "é".encode()[:1], "é".encode()[1:], b""]
EOS = 8
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[EOS], size=10)
GRAMMAR = 'start: ("a" | "b" | "\\n" | "é")*'
STEPS = 12
KEYS = jax.random.split(jax.random.key(5), 16)


@pytest.fixture(scope="module")
def tables() -> jaxgcd.Tables:
    return jaxgcd.compile_grammar(GRAMMAR, VOCABULARY)


@pytest.fixture(scope="module")
def only_a() -> jaxgcd.Tables:
    """One text; two tokens end it."""
    return jaxgcd.compile_grammar('start: "a"', jaxgcd.Vocabulary([*TOKENS, b"<end>"], eos=[9, EOS]))


@pytest.fixture(scope="module")
def hot(tables) -> jaxgcd.Generation:
    """Texts at temperature 1.5, each row with a key of its own."""
    return run(tables, KEYS, len(KEYS), temperature=1.5)


def scores(params, last_token, cache):
    """A model whose logits depend on the last token and on the row's own count of steps."""
    return params[last_token] + jnp.cos(cache * params[0])[..., :] * jnp.float32(0.5), cache + 1


def model(seed: int = 0):
    params = jax.random.normal(jax.random.key(seed), (VOCABULARY.size, VOCABULARY.size), jnp.float32)
    return jax.tree_util.Partial(scores, params)


def run(tables, key, rows: int, **options) -> jaxgcd.Generation:
    """Some rows with the same model and prompt."""
    options = {"max_new_tokens": STEPS, **options}
    cache, last = jnp.zeros((rows, 1), jnp.float32), jnp.zeros(rows, jnp.int32)
    return jaxgcd.generate(key, model(), cache, tables, jaxgcd.init(tables, rows), last, **options)


def wished(params, last_token, step):
    return params[step], step + 1


def script(tables, *rows: list[int], **options) -> jaxgcd.Generation:
    """Greedy texts of a model that wishes for one token after the other."""
    rows = (rows * 3)[:3]  # always three, so that most calls share a trace
    wishes = np.zeros((STEPS, len(rows), VOCABULARY.size), np.float32)
    for row, tokens in enumerate(rows):
        padded = (tokens + [EOS] * STEPS)[:STEPS]
        wishes[np.arange(STEPS), row, padded] = 9.0

    decode_fn = jax.tree_util.Partial(wished, jnp.asarray(wishes))
    state, last = jaxgcd.init(tables, len(rows)), jnp.zeros(len(rows), jnp.int32)
    options = {"max_new_tokens": STEPS, "temperature": 0.0, **options}
    return jaxgcd.generate(jax.random.key(0), decode_fn, jnp.int32(0), tables, state, last, **options)


def written(output: jaxgcd.Generation, row: int) -> bytes:
    return b"".join(TOKENS[i] for i in output.tokens[row, : int(output.length[row])].tolist())


def test_a_stop_string_is_found_across_tokens_and_inside_them(tables) -> None:
    across = [0, 1, 4, 4, 0]  # a b \n \n: the last token ends the stop
    inside = [0, 5, 0, 0, 0]  # a, then `b\n\na`: one byte too many
    never = [4, 0, 4, EOS]
    output = script(tables, across, inside, never, stop="\n\n")
    assert [jaxgcd.Finish(f).name for f in output.finish.tolist()] == ["STOP", "STOP", "EOS"]
    assert [written(output, row) for row in range(3)] == [b"ab\n\n", b"ab\n\na", b"\na\n"]
    assert output.excess.tolist() == [0, 1, 0]
    assert output.tokens[0].tolist() == [0, 1, 4, 4] + [EOS] * 8
    assert output.texts(VOCABULARY) == ["ab\n\n", "ab\n\n", "\na\n"]
    assert (output.state.status == jnp.array([0, 0, 1])).all()  # a stopped text could go on
    more = jaxgcd.advance(tables, output.state, jnp.array([0, 0, 0]))
    assert more.status.tolist() == [jaxgcd.Status.RUNNING, jaxgcd.Status.RUNNING, jaxgcd.Status.FINISHED]


def test_stop_ids_and_stops_in_utf8(tables) -> None:
    output = script(tables, [0, 6, 7, 0], [0, 1, 2, 3], stop=["é"], stop_ids=[2])
    assert [written(output, row) for row in range(2)] == ["aé".encode(), b"abab"]
    assert output.finish.tolist() == [jaxgcd.Finish.STOP] * 3 and output.excess.tolist() == [0] * 3


@pytest.mark.parametrize(
    "stop",
    [
        ["aab", "ab"],
        ["bb", "abba", "baab"],
        ["ababaa"],
        ["abab", "ba", "aa\n"],
        ["é"],
        ["\n\n", b"\xc3\xa9a"],
    ],
)
def test_stops_agree_with_find(tables, stop) -> None:
    """Random texts cut at random; the earliest end of any stop string, by `bytes.find`."""
    rng = np.random.default_rng(0)
    texts = rng.integers(0, EOS, (200, 8))
    stops = make_stops(stop, [], VOCABULARY.size)
    assert stops is not None

    @jax.jit
    def scan(stops, tables, texts):
        def step(matched, token):
            matched, stopped, excess = read(stops, tables, matched, token)
            return matched, (stopped, excess)

        return jax.lax.scan(step, jnp.zeros(len(texts), jnp.int32), texts.T)[1]

    stopped, excess = (np.asarray(x) for x in scan(stops, tables, jnp.asarray(texts, jnp.int32)))
    wanted = [s.encode() if isinstance(s, str) else s for s in stop]
    for row, text in enumerate(texts):
        whole = b"".join(TOKENS[i] for i in text)
        ends = [whole.find(s) + len(s) for s in wanted if s in whole]
        borders = np.cumsum([len(TOKENS[i]) for i in text])
        first = int(np.searchsorted(borders, min(ends))) if ends else len(text)
        assert stopped[:, row].tolist() == [i >= first for i in range(len(text))]
        if ends:
            assert excess[first, row] == borders[first] - min(ends)


def test_eos_is_withheld_while_another_token_is_allowed(tables, only_a) -> None:
    output = script(tables, [EOS], [0, EOS], [0, 1, 2, 3], min_new_tokens=np.array([0, 3, 2]))
    assert output.length.tolist() == [0, 3, 4]
    output = script(only_a, [0, EOS], min_new_tokens=5)  # after "a" there is nothing else
    assert output.length.tolist() == [1] * 3 and output.finish.tolist() == [jaxgcd.Finish.EOS] * 3
    # The grammar's mass counts EOS: it is allowed, although it is withheld.
    output = script(tables, [EOS], min_new_tokens=np.array([1, 1, 1]))
    shares = np.exp([9.0 if i == EOS else 0.0 for i in range(10)])
    # Tokens 0 to 6 and EOS: a text cannot go on with half a character's second byte; id 9 is padding.
    mass = (shares[:7].sum() + shares[EOS]) / shares.sum()
    np.testing.assert_allclose(output.draws.log_mass[0, 0], math.log(mass), atol=1e-6)


def test_the_default_padding_is_the_lowest_eos_id(only_a) -> None:
    assert script(only_a, [0], min_new_tokens=1).tokens[0].tolist() == [0] + [EOS] * (STEPS - 1)
    assert script(only_a, [0], min_new_tokens=1, pad_id=7).tokens[0].tolist() == [0] + [7] * (STEPS - 1)


def test_what_is_known_about_each_draw(hot) -> None:
    """The same steps in Python and NumPy, over the tokens that were drawn."""
    output = hot
    assert set(output.finish.tolist()) >= {jaxgcd.Finish.EOS, jaxgcd.Finish.LENGTH}
    params = np.asarray(jax.random.normal(jax.random.key(0), (10, 10), jnp.float32), np.float64)
    for row in range(16):
        length, last, text = int(output.length[row]), 0, b""
        ended = output.finish[row] == jaxgcd.Finish.EOS
        drawn = output.tokens[row, :length].tolist() + [EOS] * int(ended)
        for step in range(STEPS):
            found = [float(x[row, step]) for x in jax.tree.leaves(output.draws)]
            if step >= len(drawn):
                assert found == [0.0, 0.0, 0.0]
                continue
            logits = params[last] + 0.5 * np.cos(step * params[0])
            half = text.endswith(b"\xc3")
            allowed = [7] if half else [0, 1, 2, 3, 4, 5, 6, EOS]
            model, hot = np.exp(logits), np.exp(logits / 1.5)
            last = drawn[step]
            text += TOKENS[last]
            known = [model[last] / model.sum(), hot[last] / hot[allowed].sum()]
            known = np.log([*known, model[allowed].sum() / model.sum()])
            np.testing.assert_allclose(found, known, atol=1e-5)


def test_a_row_with_its_own_key_does_not_see_the_others(tables, hot) -> None:
    alone = run(tables, KEYS[4:5], 1, temperature=1.5, max_new_tokens=STEPS + 4)
    assert written(alone, 0).startswith(written(hot, 4))
    np.testing.assert_array_equal(alone.draws.logprob[0, :STEPS], hot.draws.logprob[4])


def test_other_values_are_not_other_traces_and_nothing_leaves_the_device(tables) -> None:
    traces = []

    def counting(params, last_token, cache):
        traces.append(None)
        return scores(params, last_token, cache)

    decode_fn = jax.tree_util.Partial(counting, *model().args)

    def call(temperature, stop, tables=tables):
        state, last = jaxgcd.init(tables, 2), jnp.zeros(2, jnp.int32)
        options = {"temperature": temperature, "top_k": int(5 * temperature), "top_p": temperature / 2}
        options |= {
            "stop": stop,
            "stop_ids": [5],
            "min_new_tokens": 1 + len(stop),
            "min_p": temperature / 100,
        }
        cache = jnp.zeros((2, 1), jnp.float32)
        return jaxgcd.generate(
            jax.random.key(0), decode_fn, cache, tables, state, last, max_new_tokens=5, **options
        )

    call(0.5, "ab")
    once = len(traces)
    call(1.5, "ba")
    assert len(traces) == once
    jaxpr = jax.make_jaxpr(lambda tables: call(1.0, "ab", tables))(tables).jaxpr
    assert not callbacks(jaxpr)
    lowered = jax.jit(lambda tables: call(1.0, "ab", tables)).lower(tables)
    assert not HOST_CALL.search(lowered.compile().as_text())
    # The tables are read in the loop; what is carried comes back, and they do not.
    assert (2, 5) in carried_shapes(jaxpr) and tables.pages.shape not in carried_shapes(jaxpr)


def carried_shapes(jaxpr) -> set[tuple[int, ...]]:
    """Shapes of what goes round in the `while` loops of a jaxpr and everything nested in it."""
    found = set()
    for equation in jaxpr.eqns:
        if equation.primitive.name == "while":
            found |= {variable.aval.shape for variable in equation.outvars}
        for value in jax.tree.leaves(equation.params, is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                found |= carried_shapes(inner)
    return found


@pytest.mark.parametrize(
    "options",
    [
        *({"stop": [""]}, {"stop": [3]}, {"stop": ["x" * 5000]}, {"stop_ids": [10]}, {"stop_ids": [-1]}),
        {"stop_ids": ["a"]},
    ],
)
def test_stops_that_are_none_are_errors(tables, options) -> None:
    with pytest.raises(jaxgcd.SamplingError, match="stop"):
        script(tables, [0], **options)
