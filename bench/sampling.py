"""What do `top_k`, `top_p` and `min_p` add to a draw from 128,256 tokens, beside `jax.random.categorical`?

    python bench/sampling.py

Llama 3's vocabulary, a grammar of all texts, random logits. A run is a jitted scan over 4 draws; "ms" is the
best of 4 runs, divided by the draws. The variants take turns, so that a change of the machine's load meets
all of them.
"""

import functools
import time

import common
import jax
import jax.numpy as jnp

import jaxgcd

STEPS, TURNS = 4, 4
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


def main() -> None:
    """Measures and writes `bench/sampling.json`."""
    tables, rows = jaxgcd.compile_grammar(r"start: /(.|\n)+/", common.llama3()), []
    for batch in (1, 32):
        logits = 3 * jax.random.normal(jax.random.key(1), (batch, tables.size), jnp.float32)
        state = jaxgcd.init(tables, batch)
        runs = {
            name: functools.partial(draws, tables, state, logits, options or {}, plain=options is None)
            for name, options in VARIANTS.items()
        }
        best = dict.fromkeys(runs, float("inf"))
        for turn in range(1 + TURNS):  # the first one compiles
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
