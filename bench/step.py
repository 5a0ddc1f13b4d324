"""What do one mask and one `advance` cost inside a jitted scan, at batch 1 and 64?

    JAXGCD_DATA=<folder> python bench/step.py

Follows the tokens of a valid text (the tokenizer's own segmentation), 32,000 tokens, best of 20 runs of the
whole scan divided by its steps. "mask" is `allowed` and `advance` together less `advance` alone.
"""

import time

import common
import jax
import jax.numpy as jnp
import numpy as np

import jaxgcd

TEXTS = {
    "examples/json": '{"name": "Ada", "age": 30, "tags": ["a", {"x": [1, 2.5e3, true, null]}], "n": -12.75}',
    "examples/sql": "SELECT name, COUNT(*) FROM people AS p WHERE age > 21 AND city = 'Rome' ORDER BY name;",
    "c": "int main(int a, int b) { while (a < b) { a = a + f(b, -1) * (2 + 3); } return a; }",
}


@jax.jit
def both(tables: jaxgcd.Tables, state: jaxgcd.State, tokens: jax.Array) -> jax.Array:
    """Masks and advances; returns whether each token was allowed."""

    def step(state, token):
        words = jaxgcd.allowed(tables, state)
        word = jnp.take_along_axis(words, token[:, None] >> 5, axis=1)[:, 0]
        bit = word >> (token & 31).astype(jnp.uint32) & jnp.uint32(1)
        return jaxgcd.advance(tables, state, token), bit

    return jax.lax.scan(step, state, tokens)[1]


@jax.jit
def advancing(tables: jaxgcd.Tables, state: jaxgcd.State, tokens: jax.Array) -> jax.Array:
    """Advances only; returns the statuses on the way."""
    return jax.lax.scan(lambda s, t: (jaxgcd.advance(tables, s, t), s.status), state, tokens)[1]


def seconds_per_step(function, *arguments) -> float:
    """Best of 20 runs after one that compiles."""
    times = []
    for _ in range(21):
        begin = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        times.append(time.perf_counter() - begin)
    return min(times[1:]) / len(arguments[-1])


def main() -> None:
    """Measures and writes `bench/step.json`."""
    vocabulary = common.mistral()
    rows = []
    for name, text in common.grammars(*TEXTS).items():
        tokens = segmented(vocabulary, TEXTS[name].encode())
        for lexer in ("basic", "contextual"):
            tables = jaxgcd.compile_grammar(text, vocabulary, lexer=lexer)
            for batch in (1, 64):
                ids = jnp.broadcast_to(jnp.asarray(tokens, jnp.int32)[:, None], (len(tokens), batch))
                state = jaxgcd.init(tables, (batch,))
                assert np.asarray(both(tables, state, ids)).all(), "the text must be allowed"
                total, alone = (seconds_per_step(f, tables, state, ids) for f in (both, advancing))
                rows.append(
                    {
                        "grammar": name,
                        "lexer": lexer,
                        "batch": batch,
                        "steps": len(tokens),
                        "runs": tables.runs,
                    }
                    | {"mask µs": (total - alone) * 1e6, "advance µs": alone * 1e6}
                )
    common.write("step", rows)


def segmented(vocabulary: jaxgcd.Vocabulary, text: bytes) -> list[int]:
    """The longest token at each place, from left to right."""
    ids = {token: i for i, token in enumerate(vocabulary.tokens) if vocabulary.usable[i]}
    longest, found = max(map(len, ids)), []
    while text:
        size = next(n for n in range(min(longest, len(text)), 0, -1) if text[:n] in ids)
        found.append(ids[text[:size]])
        text = text[size:]
    return found


if __name__ == "__main__":
    main()
