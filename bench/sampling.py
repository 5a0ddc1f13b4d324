"""What do `top_k`, `top_p` and `min_p` add to a draw from 128,256 tokens, beside plain `jax.random.categorical`?

    python bench/sampling.py

Each row of logits is another one; the grammar allows all tokens of text, so that nothing is saved on any. A run is a
jitted scan over 8 draws; "ms" is the best of five, divided by the draws. The
variants take turns, so that a change of the machine's load meets all of them.
"""

import functools
import time

import common
import jax
import jax.numpy as jnp

import jaxgcd

SIZE = 128_256
STEPS = 8
VARIANTS = {
    "categorical": None,
    "sample": {},
    "top_k": {"top_k": 50},
    "top_p": {"top_p": 0.9},
    "min_p": {"min_p": 0.05},
    "top_k, top_p": {"top_k": 50, "top_p": 0.9},
}


@functools.partial(jax.jit, static_argnames="plain")
def draws(tables: jaxgcd.Tables, state: jaxgcd.State, logits: jax.Array, options: dict, *, plain: bool):
    """`STEPS` draws in a row, none of which the compiler can leave out."""

    def step(state, key):
        if plain:
            return state, jax.random.categorical(key, logits)
        token, state = jaxgcd.sample(key, tables, state, logits, **options)
        return state, token

    return jax.lax.scan(step, state, jax.random.split(jax.random.key(0), STEPS))[1]


def any_text() -> jaxgcd.Tables:
    """A language of all texts over as many tokens as Llama 3 has, spelled in ASCII."""
    tokens = [i.to_bytes(3, "big").translate(_READABLE) for i in range(SIZE - 1)]
    vocabulary = jaxgcd.Vocabulary([*tokens, b""], eos=[SIZE - 1])
    return jaxgcd.compile_grammar(r"start: /[\x20-\x7e]/*", vocabulary)


_READABLE = bytes(32 + i % 95 for i in range(256))


def main() -> None:
    """Measures and writes `bench/sampling.json`."""
    tables, rows = any_text(), []
    for batch in (1, 32):
        logits = 3 * jax.random.normal(jax.random.key(1), (batch, SIZE), jnp.float32)
        state = jaxgcd.init(tables, batch)
        runs = {
            name: functools.partial(draws, tables, state, logits, options or {}, plain=options is None)
            for name, options in VARIANTS.items()
        }
        best = dict.fromkeys(runs, float("inf"))
        for turn in range(6):  # the first one compiles
            for name, run in runs.items():
                begin = time.perf_counter()
                jax.block_until_ready(run())
                if turn:
                    best[name] = min(best[name], time.perf_counter() - begin)
        for name, seconds in best.items():
            ms = seconds / STEPS * 1e3
            rows.append({"batch": batch, "draw": name, "ms": ms, "ratio": seconds / best["categorical"]})
    common.write("sampling", rows)


if __name__ == "__main__":
    main()
