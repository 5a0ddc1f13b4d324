"""How the time of one step inside a compiled loop is measured; `step.py` and `gpu.py` share it.

What happens between two steps of a scan cannot be seen from outside. So a step is repeated from the same
state in a loop on the device, once and then n + 1 times, by the same compiled program; the difference,
divided by n, is the time of one step there, without that of the call. That is done at many positions of
real texts, which gives a distribution over steps. Each position's time is the best of some runs: the
distribution is that of the work to be done, and not of what else the machine does. Every turn of the loop
depends on the one before it by a number that is 0, which the compiler does not know, so it can move nothing
out of the loop; and every result is carried, so nothing is left out. A step that is repeated finds its rows
in the processor's cache; `scan` is the mean over a plain scan along a text, which is without that favour.
"""

import dataclasses
import functools
import time
from collections.abc import Callable, Sequence
from typing import Any

import common
import jax
import jax.numpy as jnp
import numpy as np

import jaxgcd
from jaxgcd.stepping import masks

RUNS = 7
"""Of which the best counts."""
GRAIN = 2e-3
"""Seconds that the repeated steps of one run take together, or a single one if it takes longer."""

MOST_TURNS = 1024
"""So often a step is repeated at most, however short it is."""

LONG = 1.0
"""Seconds after which runs are not repeated any more."""
DRAWS = 0.05
"""Seconds that the draws of one run take together."""
PAIRS = 9
"""How often two draws are compared, at most."""


@dataclasses.dataclass(frozen=True)
class Places:
    """All positions of some texts, on the host: the states before a token, one row each, and the tokens."""

    states: jaxgcd.State
    tokens: np.ndarray  # int32[positions]
    ends: tuple[int, ...]
    """Where each text ends."""

    def batch(self, position: int, rows: int) -> tuple[jaxgcd.State, jax.Array]:
        """Rows that are spread over the texts, the first of them at a position."""
        count = len(self.tokens)
        index = (position + np.arange(rows) * max(1, count // rows)) % count
        return jax.device_put((jax.tree.map(lambda leaf: leaf[index], self.states), self.tokens[index]))


def places(grammar: str, vocabulary: jaxgcd.Vocabulary, tables: jaxgcd.Tables) -> Places:
    """The positions of a grammar's traces; exits if a token of theirs is not allowed."""
    texts = [common.segmented(vocabulary, text) for text in common.traces(grammar).values()]
    found = [along(tables, jnp.asarray(text, jnp.int32)) for text in texts]
    for name, (_, fits) in zip(common.traces(grammar), found, strict=True):
        if not fits.all():
            raise SystemExit(
                f"{name}: token {int(jnp.argmin(fits))} is not allowed by the grammar {grammar}."
            )
    states = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(states for states, _ in found))
    return Places(
        states,
        np.concatenate(texts).astype(np.int32),
        tuple(np.cumsum([len(text) for text in texts]).tolist()),
    )


@jax.jit
def along(tables: jaxgcd.Tables, tokens: jax.Array) -> tuple[jaxgcd.State, jax.Array]:
    """The states before each token of a text, and whether it was allowed."""

    def step(state, token):
        words = jaxgcd.allowed(tables, state)
        fits = words[token >> 5] >> (token & 31).astype(jnp.uint32) & jnp.uint32(1)
        return jaxgcd.advance(tables, state, token), (state, fits > 0)

    return jax.lax.scan(step, jaxgcd.init(tables), tokens)[1]


@jax.jit
def reads_stack(hosted: jaxgcd.Tables, states: jaxgcd.State) -> jax.Array:
    """Which rows have context-dependent sequences, as the tables that ask the host know them."""
    return (masks(hosted, states).top > 0).any(axis=(1, 2))


def bumped(state: jaxgcd.State, zero: jax.Array, before: jax.Array) -> jaxgcd.State:
    """The same state, but the compiler thinks that it depends on the last turn's result `[rows, ...]`."""
    before = before.reshape(len(before), -1)[:, :1].astype(jnp.int32)
    return dataclasses.replace(state, lexer=state.lexer + zero * before)


def repeated(body: Callable[..., Any], first: Callable[..., Any]) -> Callable[..., Any]:
    """A jitted loop `(turns, zero, *arguments)` of `out = body(i, zero, out, *arguments)`."""

    @jax.jit
    def run(turns, zero, *arguments):
        def turn(i, out):
            return body(i, zero, out, *arguments)

        return jax.lax.fori_loop(0, turns, turn, first(*arguments))

    return run


def logits_of(rows: int, size: int) -> jax.Array:
    """Logits as a model may give them."""
    return jax.random.normal(jax.random.key(1), (rows, size), jnp.float32)


masking = repeated(
    lambda i, zero, words, tables, state: jaxgcd.allowed(tables, bumped(state, zero, words)),
    lambda tables, state: jnp.zeros((len(state.status), tables.words), jnp.uint32),
)
advancing = repeated(
    lambda i, zero, after, tables, state, token: jaxgcd.advance(
        tables, bumped(state, zero, after.lexer), token
    ),
    lambda tables, state, token: state,
)


def step_key(i: jax.Array) -> jax.Array:
    """The key of one turn."""
    return jax.random.fold_in(jax.random.key(0), i)


drawing = repeated(
    lambda i, zero, token, logits: jax.random.categorical(step_key(i), logits),
    lambda logits: jnp.zeros(len(logits), jnp.int32),
)
drawing_masked = repeated(
    lambda i, zero, token, tables, state, logits: jax.random.categorical(
        step_key(i), jaxgcd.mask_logits(tables, bumped(state, zero, token), logits)
    ),
    lambda tables, state, logits: jnp.zeros(len(logits), jnp.int32),
)
sampling = repeated(
    lambda i, zero, token, tables, state, logits: jaxgcd.sample(
        step_key(i), tables, bumped(state, zero, token), logits
    )[0],
    lambda tables, state, logits: jnp.zeros(len(logits), jnp.int32),
)


def seconds(run: Callable[..., Any], turns: int, *arguments: Any) -> float:
    """One call, until its result is there."""
    begin = time.perf_counter()
    jax.block_until_ready(run(jnp.int32(turns), jnp.int32(0), *arguments))
    return time.perf_counter() - begin


def turns_for(run: Callable[..., Any], *arguments: Any) -> int:
    """How many turns take about as long as `GRAIN`: what a call costs varies by more than one turn takes."""
    seconds(run, 1, *arguments)  # compiles
    turns = 1
    while turns < MOST_TURNS and min(seconds(run, turns, *arguments) for _ in range(3)) < GRAIN:
        turns *= 2
    return turns


def per_step(run: Callable[..., Any], turns: int, *arguments: Any) -> float:
    """Seconds of one step: the best of some runs, fewer if they are long."""
    once, more, begin = [], [], time.perf_counter()
    while len(once) < RUNS and (len(once) < 2 or time.perf_counter() - begin < LONG):
        once.append(seconds(run, 1, *arguments))
        more.append(seconds(run, turns + 1, *arguments))
    return max(min(more) - min(once), 0.0) / turns


def distribution(
    run: Callable[..., Any], at: Callable[[int], tuple[Any, ...]], positions: Sequence[int], budget: float
) -> list[float]:
    """Seconds of a step at each position, in an order by chance, as far as the budget of seconds goes."""
    found: list[float] = []
    order = np.random.default_rng(0).permutation(np.asarray(positions)).tolist()
    turns, begin = turns_for(run, *at(order[0])), time.perf_counter()
    for position in order:
        found.append(per_step(run, turns, *at(position)))
        if time.perf_counter() - begin > budget:
            break
    return found


def summary(name: str, found: Sequence[float]) -> dict[str, float]:
    """Median, 99th percentile and worst, in microseconds."""
    values = np.asarray(found) * 1e6
    return {
        f"{name} median µs": float(np.median(values)),
        f"{name} p99 µs": float(np.percentile(values, 99)),
        f"{name} worst µs": float(values.max()),
    }


@jax.jit
def scan(tables: jaxgcd.Tables, state: jaxgcd.State, tokens: jax.Array) -> tuple[jaxgcd.State, jax.Array]:
    """A mask and an advance for each of `tokens[steps, rows]`."""

    def step(carry, token):
        state, _ = carry
        words = jaxgcd.allowed(tables, state)
        return (jaxgcd.advance(tables, state, token), words), None

    words = jnp.zeros((*state.status.shape, tables.words), jnp.uint32)
    return jax.lax.scan(step, (state, words), tokens)[0]


def scan_seconds(tables: jaxgcd.Tables, places: Places, rows: int, most: int) -> float:
    """Seconds of a step of a plain scan along the first text, with all rows at the same place in it."""
    tokens = np.repeat(places.tokens[: min(places.ends[0], most), None], rows, axis=1)
    arguments = jax.device_put((tables, jaxgcd.init(tables, rows), tokens))
    times, start = [], time.perf_counter()
    while len(times) < 2 or (len(times) <= RUNS and time.perf_counter() - start < 4 * LONG):
        begin = time.perf_counter()
        jax.block_until_ready(scan(*arguments))
        times.append(time.perf_counter() - begin)  # the first one compiles
    return min(times[1:]) / len(tokens)


def draws(tables: jaxgcd.Tables, state: jaxgcd.State, logits: jax.Array) -> dict[str, float]:
    """A plain draw, one with the mask made and applied, and `sample`: in turn; medians."""
    plain, masked = (logits,), (tables, state, logits)
    for run, arguments in ((drawing, plain), (drawing_masked, masked), (sampling, masked)):
        seconds(run, 1, *arguments)  # compiles
    turns = int(np.clip(DRAWS / seconds(drawing, 1, *plain), 1, 32))
    found, begin = [], time.perf_counter()
    while len(found) < 2 or (len(found) < PAIRS and time.perf_counter() - begin < 4 * LONG):
        others = (per_step(run, turns, *masked) for run in (drawing_masked, sampling))
        found.append((per_step(drawing, turns, *plain), *others))
    ones, masks, samples = np.asarray(found).T
    return {
        "draw µs": float(np.median(ones)) * 1e6,
        "masked draw µs": float(np.median(masks)) * 1e6,
        "sample µs": float(np.median(samples)) * 1e6,
        "masked / plain": float(np.median(masks / ones)),
        "sample / plain": float(np.median(samples / ones)),
    }


def measure(
    tables: jaxgcd.Tables, places: Places, rows: int, *, budget: float, most: int
) -> dict[str, float]:
    """Mask, advance, scan and draw at one batch size."""
    positions = np.unique(np.linspace(0, len(places.tokens) - 1, most).astype(int)).tolist()
    at = functools.partial(places.batch, rows=rows)
    masks = distribution(masking, lambda position: (tables, at(position)[0]), positions, budget)
    steps = distribution(advancing, lambda position: (tables, *at(position)), positions, budget)
    middle, _ = at(positions[len(positions) // 2])
    return {
        "positions": min(len(masks), len(steps)),
        **summary("mask", masks),
        **summary("advance", steps),
        "scan µs": scan_seconds(tables, places, rows, most=max(16, most // rows)) * 1e6,
        **draws(tables, middle, logits_of(rows, tables.size)),
    }
