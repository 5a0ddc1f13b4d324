"""The state as a JAX value: batch axes, shapes, dtypes, overflow, traces, what is in the compiled loop."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from host_calls import HOST_CALL, callbacks

import jaxgcd

ROOT = Path(__file__).parent.parent
TOKENS = [b"a", b"b", b"(", b")", b"((", b"))", b"a)", b""]
EOS = 7
VOCABULARY = jaxgcd.Vocabulary(TOKENS, eos=[EOS])
NESTED = 'start: "a" | "(" start ")"'
# `a` begins a lexeme that may still turn out to be `aab`: two readings of "a" + "a" are alive at once.
FALLBACK = 'start: (A | LONG | B)+\nLONG: "aa" "(" "b"\nA: "a"\nB: "b"\nP: "("\n%ignore P'


@pytest.fixture(scope="module")
def nested() -> jaxgcd.Tables:
    return jaxgcd.compile_grammar(NESTED, VOCABULARY)


def names(words) -> set[str]:
    """The allowed tokens of one row, as text."""
    bits = np.unpackbits(np.asarray(words).astype("<u4").view(np.uint8), bitorder="little")
    return {TOKENS[i].decode() or "EOS" for i in np.flatnonzero(bits)}


def after(tables: jaxgcd.Tables, *tokens: int) -> jaxgcd.State:
    state = jaxgcd.init(tables)
    for token in tokens:
        state = jaxgcd.advance(tables, state, jnp.int32(token))
    return state


def scores(params, last_token, count):
    """A toy language model: the logits of the next token depend on the last one and on the step."""
    return params[last_token] + jnp.cos(count)[..., None], count + 1


def toy(tables: jaxgcd.Tables, batch: tuple[int, ...], seed: int = 0):
    params = jax.random.normal(jax.random.key(seed), (tables.size, tables.size), jnp.float32)
    decode_fn = jax.tree_util.Partial(scores, params)
    return decode_fn, jnp.zeros(batch, jnp.float32), jaxgcd.init(tables, batch), jnp.zeros(batch, jnp.int32)


def test_masks_and_statuses_along_a_text(nested: jaxgcd.Tables) -> None:
    state = jaxgcd.init(nested)
    assert names(jaxgcd.allowed(nested, state)) == {"a", "(", "(("}
    state = after(nested, 2, 0)  # "(a"
    assert names(jaxgcd.allowed(nested, state)) == {")"}
    state = after(nested, 2, 6)  # "(a)"
    assert names(jaxgcd.allowed(nested, state)) == {"EOS"} and int(state.status) == jaxgcd.Status.RUNNING
    state = jaxgcd.advance(nested, state, jnp.int32(EOS))
    assert int(state.status) == jaxgcd.Status.FINISHED
    again = jaxgcd.advance(nested, state, jnp.int32(0))
    assert jax.tree.all(jax.tree.map(lambda one, other: bool((one == other).all()), state, again))


@pytest.mark.parametrize("token", [3, EOS, -1, 8, 10**6])
def test_a_token_that_cannot_be_read_makes_the_row_stuck(nested: jaxgcd.Tables, token: int) -> None:
    state = after(nested, token)
    assert int(state.status) == jaxgcd.Status.STUCK
    assert names(jaxgcd.allowed(nested, state)) == {"EOS"}
    fresh = jaxgcd.init(nested)
    assert (state.lexer == fresh.lexer).all() and (state.stack == fresh.stack).all()


def test_wide_ids_do_not_become_tokens(nested: jaxgcd.Tables) -> None:
    """2³² + 2 is token 2 if its upper half is cut off, and 2³² - 1 would be -1, "none was drawn"."""
    state = jaxgcd.init(nested)
    logits = jnp.zeros(nested.size)
    drawn, _ = jaxgcd.constrain(nested, state, jnp.uint32(2**32 - 1), logits)
    assert int(drawn.status) == jaxgcd.Status.STUCK
    before = jax.config.read("jax_enable_x64")
    jax.config.update("jax_enable_x64", True)
    try:
        for token in (2**32 + 2, 2 - 2**32):
            wide = jnp.int64(token)
            assert int(jaxgcd.advance(nested, state, wide).status) == jaxgcd.Status.STUCK
            assert int(jaxgcd.advance_many(nested, state, wide[None])[1].count) == 0
    finally:
        jax.config.update("jax_enable_x64", before)


def test_overflow_keeps_the_text_and_disturbs_no_other_row() -> None:
    tables = jaxgcd.compile_grammar(NESTED, VOCABULARY, max_depth=6)
    state = before = jaxgcd.init(tables, (2,))
    # Row 0 opens 2 brackets a time. The last lexeme of a text is not on the stack yet, so n times "((" need
    # the start state and 2n - 1 more: the fourth needs 8. Row 1 writes "(a)" and ends.
    for left, right in [(4, 2), (4, 0), (4, 3), (4, EOS), (4, EOS)]:
        before = state if int(state.status[0]) == jaxgcd.Status.RUNNING else before
        state = jaxgcd.advance(tables, state, jnp.array([left, right], jnp.int32))
    assert state.status.tolist() == [jaxgcd.Status.OVERFLOW, jaxgcd.Status.FINISHED]
    assert names(jaxgcd.allowed(tables, state)[0]) == {"EOS"}
    assert (state.stack[0] == before.stack[0]).all() and int(before.depth[0, 0]) <= 6
    # The masks before were those of an unlimited stack.
    deep = jaxgcd.compile_grammar(NESTED, VOCABULARY, max_depth=64)
    for count in range(3):
        shallow, unlimited = (jaxgcd.allowed(t, after(t, *[4] * count)) for t in (tables, deep))
        assert (shallow == unlimited).all()


@pytest.mark.parametrize("count", [10, 11, 12])
def test_a_token_that_overflows_in_the_middle_ends_the_row(count: int) -> None:
    """After the limit, empty and unit reductions on a stack that is cut off would never end."""
    vocabulary = jaxgcd.Vocabulary([b"(", b")", b",", b"((((())", b""], eos=[4])
    grammar = 'start: "(" args ")"\nargs: | start ("," start)*'
    tables = jaxgcd.compile_grammar(grammar, vocabulary, max_depth=16)
    state = after(tables, *[0] * count)
    assert int(state.status) == jaxgcd.Status.RUNNING
    state = jaxgcd.advance(tables, state, jnp.int32(3))
    assert int(state.status) == jaxgcd.Status.OVERFLOW


def test_a_stack_at_its_limit_still_has_the_right_mask() -> None:
    # "((((" then "a": the start state, 4 brackets and the `a` that is stepped for the mask make 6.
    tables = jaxgcd.compile_grammar(NESTED, VOCABULARY, max_depth=5)
    state = after(tables, 4, 4, 0)
    assert int(state.status) == jaxgcd.Status.RUNNING
    assert names(jaxgcd.allowed(tables, state)) == {")", "))"}


@pytest.mark.parametrize("grammar", [NESTED, FALLBACK])
def test_batched_equals_vmapped_equals_single(grammar: str) -> None:
    tables = jaxgcd.compile_grammar(grammar, VOCABULARY)
    texts = np.random.default_rng(0).integers(0, EOS, (2, 3, 4))
    batched = jaxgcd.init(tables, (2, 3))
    vmapped = jax.vmap(jax.vmap(lambda _: jaxgcd.init(tables)))(jnp.zeros((2, 3)))
    step = jax.vmap(jax.vmap(jaxgcd.advance, (None, 0, 0)), (None, 0, 0))
    for i in range(texts.shape[-1]):
        token = jnp.asarray(texts[..., i], jnp.int32)
        batched, vmapped = jaxgcd.advance(tables, batched, token), step(tables, vmapped, token)
    masks = jaxgcd.allowed(tables, batched)
    assert (masks == jax.vmap(jax.vmap(jaxgcd.allowed, (None, 0)), (None, 0))(tables, vmapped)).all()
    for row in np.ndindex(2, 3):
        single = after(tables, *texts[row])
        assert (jaxgcd.allowed(tables, single) == masks[row]).all()
        assert int(single.status) == int(batched.status[row])


def test_two_readings_are_alive_at_once() -> None:
    tables = jaxgcd.compile_grammar(FALLBACK, VOCABULARY)
    assert tables.runs == 2
    state = after(tables, 0, 0, 2)  # "aa(": A A and an ignored bracket, or three quarters of LONG
    assert int((state.lexer > 0).sum()) == 2


def test_padding_changes_no_mask_and_shares_a_trace() -> None:
    bucket = {
        "lexer_states": 64,
        "symbol_classes": 16,
        "parser_states": 64,
        "terminals": 16,
        "nonterminals": 16,
    }
    bucket |= {"landings": 64}
    bucket |= {"rules": 64, "slack": 12, "slots": 8, "entries": 512, "edges": 512, "nodes": 256, "rows": 256}
    bucket |= {
        "gates": 64,
        "scanners": 16,
        "pages": 256,
        "runs": 4,
        "emits": 2,
        "terminal_words": 1,
        "places": 64,
        "token_symbols": 64,
    }
    traces = []

    @jax.jit
    def mask(tables: jaxgcd.Tables, tokens: jax.Array) -> jax.Array:
        traces.append(None)
        state, _ = jax.lax.scan(
            lambda s, t: (jaxgcd.advance(tables, s, t), None), jaxgcd.init(tables), tokens
        )
        return jaxgcd.allowed(tables, state)

    for grammar in (NESTED, FALLBACK, 'start: "a"*', 'start: "b" | "(" start'):
        tables = jaxgcd.compile_grammar(grammar, VOCABULARY)
        for text in ([2, 0], [0, 0]):
            tokens = jnp.array(text, jnp.int32)
            assert (
                mask(jaxgcd.pad(tables, bucket), tokens) == jaxgcd.allowed(tables, after(tables, *text))
            ).all()
    assert len(traces) == 1


def test_padding_to_too_small_a_bucket_is_an_error(nested: jaxgcd.Tables) -> None:
    with pytest.raises(jaxgcd.ShapeError, match="parser_states"):
        jaxgcd.pad(nested, {"parser_states": 2})


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16, jnp.float16])
def test_mask_logits_keeps_the_dtype_and_stays_finite(nested: jaxgcd.Tables, dtype) -> None:
    state = jaxgcd.init(nested)
    masked = jaxgcd.mask_logits(nested, state, jnp.zeros(8, dtype))
    assert masked.dtype == dtype
    assert masked.tolist() == [
        0.0 if name in "a((" and name else float(jnp.finfo(dtype).min)
        for name in [t.decode() for t in TOKENS]
    ]
    filled = jaxgcd.mask_logits(nested, state, jnp.zeros(8, dtype), fill=-jnp.inf)
    assert filled[1] == -jnp.inf
    gradient = jax.grad(lambda x: jax.nn.log_softmax(jaxgcd.mask_logits(nested, state, x))[0])(
        jnp.zeros(8, dtype)
    )
    assert jnp.isfinite(gradient).all()


@pytest.mark.parametrize("width", [7, 9])
def test_logits_of_another_width_are_an_error_while_tracing(nested: jaxgcd.Tables, width: int) -> None:
    with pytest.raises(jaxgcd.ShapeError, match="size="):
        jax.eval_shape(
            jaxgcd.mask_logits, nested, jaxgcd.init(nested), jax.ShapeDtypeStruct((width,), jnp.float32)
        )
    wide = jaxgcd.compile_grammar(NESTED, jaxgcd.Vocabulary(TOKENS, eos=[EOS], size=9))
    masked = jaxgcd.mask_logits(wide, jaxgcd.init(wide), jnp.zeros(9, jnp.float32))
    assert masked[8] == jnp.finfo(jnp.float32).min  # an id without a token is never allowed


def test_another_grammar_number_is_an_error(nested: jaxgcd.Tables) -> None:
    with pytest.raises(jaxgcd.ShapeError, match="grammar=1"):
        jaxgcd.init(nested, grammar=1)


@pytest.mark.parametrize("grammar", [NESTED, FALLBACK])
def test_the_loop_never_leaves_the_device(grammar: str) -> None:
    tables = jaxgcd.compile_grammar(grammar, VOCABULARY)
    hosted = jaxgcd.compile_grammar(grammar, VOCABULARY, check="host")

    def loop(tables):
        return jaxgcd.generate(
            jax.random.key(0), *toy(tables, (2,))[:2], tables, *toy(tables, (2,))[2:], max_new_tokens=5
        )

    assert not callbacks(jax.make_jaxpr(loop)(tables).jaxpr)
    assert not HOST_CALL.search(jax.jit(loop).lower(tables).compile().as_text())
    # The same searches do find the callback of the mode that has one.
    assert callbacks(jax.make_jaxpr(loop)(hosted).jaxpr) == {"pure_callback"}
    assert HOST_CALL.search(jax.jit(loop).lower(hosted).compile().as_text())


def test_one_dispatch_per_call_and_one_trace_per_shape(nested: jaxgcd.Tables) -> None:
    traces = []

    def counting(params, last_token, count):
        traces.append(last_token.shape)
        return scores(params, last_token, count)

    def run(batch, seed, tables=nested):
        decode_fn, cache, state, last = toy(tables, batch, seed)
        decode_fn = jax.tree_util.Partial(counting, *decode_fn.args)
        return jaxgcd.generate(jax.random.key(seed), decode_fn, cache, tables, state, last, max_new_tokens=6)

    run((2,), 0)
    first = len(traces)
    run((2,), 1)
    assert len(traces) == first
    run((3,), 0)
    assert len(traces) == 2 * first
    jaxpr = jax.make_jaxpr(lambda seed: run((2,), 0))(0).jaxpr
    loops = [e for e in jaxpr.eqns if e.primitive.name in ("jit", "pjit") and e.params["name"] == "_generate"]
    assert len(loops) == 1


def test_generate_reports_how_each_row_ended() -> None:
    tables = jaxgcd.compile_grammar(NESTED, VOCABULARY, max_depth=3)
    # The model always prefers token `row` of: close and finish, open for ever, open one bracket a time.
    wishes = jnp.array(
        [[9, 0, 0, 5, 0, 0, 0, 1], [0, 0, 0, 0, 9, 0, 0, 0], [0, 0, 9, 0, 0, 0, 0, 0]], jnp.float32
    )

    def decode_fn(last_token, cache):
        return wishes, cache

    state = jaxgcd.init(tables, (3,))
    out = jaxgcd.generate(
        jax.random.key(0),
        decode_fn,
        None,
        tables,
        state,
        jnp.zeros(3, jnp.int32),
        max_new_tokens=2,
        temperature=0.0,
        pad_id=5,
    )
    assert out.finish.tolist() == [jaxgcd.Finish.EOS, jaxgcd.Finish.OVERFLOW, jaxgcd.Finish.LENGTH]
    assert out.tokens.tolist() == [[0, 5], [4, 5], [2, 2]]
    assert out.length.tolist() == [1, 1, 2]
    stuck = jaxgcd.advance(tables, state, jnp.array([3, 3, 3], jnp.int32))
    out = jaxgcd.generate(
        jax.random.key(0),
        decode_fn,
        None,
        tables,
        stuck,
        jnp.zeros(3, jnp.int32),
        max_new_tokens=2,
        temperature=0.0,
    )
    assert out.finish.tolist() == [jaxgcd.Finish.STUCK] * 3 and out.length.tolist() == [0] * 3


@pytest.mark.parametrize("temperature", [jnp.inf, 1e30])
def test_a_hot_sample_is_still_allowed(nested: jaxgcd.Tables, temperature: float) -> None:
    state = jaxgcd.init(nested, (64,))
    token, _ = jaxgcd.sample(
        jax.random.key(0), nested, state, jnp.zeros((64, 8), jnp.float32), temperature=temperature
    )
    assert set(token.tolist()) == {0, 2, 4}


def test_states_and_tokens_of_the_wrong_kind_are_errors(nested: jaxgcd.Tables) -> None:
    other = jaxgcd.compile_grammar(FALLBACK, VOCABULARY)  # in which a text can have two readings
    with pytest.raises(jaxgcd.ShapeError, match="other tables"):
        jaxgcd.allowed(nested, jaxgcd.init(other))
    for token in (jnp.array([0.7, 1.0]), jnp.array([True, False]), jnp.array([0])):
        with pytest.raises(jaxgcd.ShapeError, match="integers"):
            jaxgcd.advance(nested, jaxgcd.init(nested, (2,)), token)
    with pytest.raises(jaxgcd.ShapeError, match="nope"):
        jaxgcd.pad(nested, {"nope": 3})


def test_wrong_arguments_of_compile_grammar_are_errors() -> None:
    with pytest.raises(jaxgcd.VocabularyError, match="from_tokenizer"):
        jaxgcd.compile_grammar(NESTED, TOKENS)  # type: ignore[arg-type]
    for options in (
        {"max_depth": 8.5},
        {"max_depth": 1},
        {"start": ["start"]},
        {"check": "x"},
        {"lexer": "x"},
    ):
        with pytest.raises(jaxgcd.GrammarError):
            jaxgcd.compile_grammar(NESTED, VOCABULARY, **options)
    with pytest.raises(jaxgcd.GrammarError, match="nowhere"):
        jaxgcd.compile_grammar("start: A\n%import .nowhere.A", VOCABULARY)


@pytest.mark.parametrize("shape", [-1, 2.5, "3", None, (2, -1)])
def test_a_batch_shape_that_is_none_is_an_error(nested: jaxgcd.Tables, shape) -> None:
    with pytest.raises(jaxgcd.ShapeError, match="batch_shape"):
        jaxgcd.init(nested, shape)


def test_batches_of_any_size(nested: jaxgcd.Tables) -> None:
    assert jaxgcd.init(nested, np.int64(3)).status.shape == (3,)
    empty = jaxgcd.init(nested, (0,))
    assert jaxgcd.mask_logits(nested, empty, jnp.zeros((0, 8), jnp.float32)).shape == (0, 8)
    assert jaxgcd.advance(nested, empty, jnp.zeros(0, jnp.int32)).status.shape == (0,)


def test_logits_that_are_no_floats_are_an_error(nested: jaxgcd.Tables) -> None:
    with pytest.raises(jaxgcd.ShapeError, match="int32"):
        jaxgcd.mask_logits(nested, jaxgcd.init(nested), jnp.zeros(8, jnp.int32))
    masked = jaxgcd.mask_logits(nested, jaxgcd.init(nested), np.zeros(8))
    assert np.isfinite(masked).all()


def test_a_back_reference_is_blamed_on_its_terminal() -> None:
    with pytest.raises(jaxgcd.UnsupportedRegexError, match="terminal TWICE"):
        jaxgcd.compile_grammar('start: TWICE "b"\nTWICE: /(a|b)\\1/', VOCABULARY)


def test_generate_checks_its_arguments(nested: jaxgcd.Tables) -> None:
    decode_fn, cache, state, last = toy(nested, (2,))
    with pytest.raises(jaxgcd.ShapeError, match="max_new_tokens"):
        jaxgcd.generate(jax.random.key(0), decode_fn, cache, nested, state, last, max_new_tokens=0)
    with pytest.raises(jaxgcd.ShapeError, match="last_token"):
        jaxgcd.generate(jax.random.key(0), decode_fn, cache, nested, state, last[:1], max_new_tokens=1)


@pytest.mark.parametrize("grammar", [NESTED, FALLBACK])
@pytest.mark.parametrize("temperature", [0.0, 0.7, 1.5])
def test_generated_texts_are_in_the_language_and_the_checkers_agree(grammar: str, temperature: float) -> None:
    import lark

    parser = lark.Lark(grammar, parser="lalr", lexer="basic")
    outputs = []
    for check in ("device", "host"):
        tables = jaxgcd.compile_grammar(grammar, VOCABULARY, check=check)
        decode_fn, cache, state, last = toy(tables, (64,))
        out = jaxgcd.generate(
            jax.random.key(1),
            decode_fn,
            cache,
            tables,
            state,
            last,
            max_new_tokens=24,
            temperature=temperature,
        )
        outputs.append(out)
        for tokens, length, finish in zip(out.tokens, out.length, out.finish, strict=True):
            if int(finish) == jaxgcd.Finish.EOS:
                parser.parse(b"".join(TOKENS[t] for t in tokens[: int(length)]).decode())
    assert (outputs[0].tokens == outputs[1].tokens).all() and (outputs[0].finish == outputs[1].finish).all()


def test_the_host_is_asked_only_about_rows_that_need_it() -> None:
    from jaxgcd.tables.host import host_machine
    from jaxgcd.tables.walk import Entry

    tables = jaxgcd.compile_grammar(NESTED, VOCABULARY, check="host")
    machine = host_machine(int(tables.host))
    allowed = jax.jit(jaxgcd.allowed)
    jax.block_until_ready(allowed(tables, jaxgcd.init(tables, (4,))))
    assert (machine.calls, machine.shipped) == (0, 0)  # nothing lies below the start state
    # After "(" the class `a)` and after "(a" the classes `)`, `))` and EOS look below the top of the stack.
    state = jaxgcd.init(tables, (4,))
    state = jaxgcd.advance(tables, state, jnp.array([0, 2, 2, 2], jnp.int32))
    state = jaxgcd.advance(tables, state, jnp.array([EOS, 0, 4, 0], jnp.int32))
    jax.block_until_ready(allowed(tables, state))
    calls, shipped = machine.calls, machine.shipped
    compiled = tables.compiled
    expected = 0
    for row in range(1, 4):
        top, lexer = int(state.stack[row, 0, int(state.depth[row, 0]) - 1]), int(state.lexer[row, 0])
        for terminal, group in compiled.slots.of_state[lexer]:
            stepped = compiled.machine.feed((top,), terminal)
            if stepped is not None:
                expected += len(compiled.walk.dependents(Entry(group, stepped[-1], fans=True)))
    assert (calls, shipped) == (1, expected) and expected > 0


HASHES = """
import hashlib, json, jax, numpy as np, jaxgcd
tokens = [b"a", b"b", b"(", b")", b"((", b"))", b"a)", b"if", b" ", b'"', b""]
vocabulary = jaxgcd.Vocabulary(tokens, eos=[10])
found = []
for grammar in json.loads(input()):
    tables = jaxgcd.compile_grammar(grammar, vocabulary)
    digest = hashlib.sha256()
    for leaf in jax.tree.leaves(tables):
        digest.update(np.asarray(leaf).tobytes())
    found.append(digest.hexdigest())
print(json.dumps(found))
"""


def test_tables_are_the_same_bytes_under_any_hash_seed() -> None:
    grammars = [
        NESTED,
        FALLBACK,
        'start: (NAME | "if" "(" start ")" | STRING)+\nNAME: /[ab]+|i[ab]*/\nSTRING: /"[^"]*"/\n%ignore " "',
        'start: x y | "b" x x\nx: "a" | "(" y ")"\ny: "b" | "(" x "a" |',
    ]
    digests = set()
    for seed in ("0", "1", "77"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "JAX_PLATFORMS": "cpu"}
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", HASHES],
            input=json.dumps(grammars),
            env=environment,
            text=True,
            capture_output=True,
            cwd=ROOT,
            check=True,
        )
        digests.add(done.stdout)
    assert len(digests) == 1


@pytest.mark.filterwarnings("ignore::jaxgcd.InexactGrammarWarning")
def test_a_byte_with_which_no_token_begins() -> None:
    """It leads to a state of its own, and occurs inside a token that no text holds."""
    vocabulary = jaxgcd.Vocabulary([b"a(", b"a", b"b", b""], eos=[3])
    tables = jaxgcd.compile_grammar('start: "(" | "a"', vocabulary)
    state = jaxgcd.init(tables)
    assert jaxgcd.allowed(tables, state).tolist() == [0b0010]
    assert jaxgcd.allowed(tables, jaxgcd.advance(tables, state, jnp.int32(1))).tolist() == [0b1000]
