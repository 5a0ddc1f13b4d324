"""Constrained draws are not the model's own draws of valid texts; the grammar's mass corrects that.

    python examples/weighted_sampling.py [--rows 4096]

Masking picks among what is allowed *now*, however unlikely it was that the text could go on from there. In
this language (the example of Park et al. 2024, *Grammar-Aligned Decoding*, arXiv 2405.21047) a text is
`00000`, or `1` and any four bits. The model likes 0 and 1 about equally, so `00000` is one text of
seventeen; masked draws write it almost every second time. A text's importance weight, the product of the
grammar's mass at each step, is exactly what the model's probability of the text is divided by when it is
drawn under the masks. So

* weighted draws estimate the model's distribution, given that a text is valid, and
* resampling them by weight gives texts from it.

Prints, for the likeliest texts, the true share (by enumeration), and the shares of masked, weighted and
resampled draws.
"""

import argparse
import itertools
import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int32

import jaxgcd

GRAMMAR = 'start: "00000" | "1" BIT BIT BIT BIT\nBIT: "0" | "1"'
LANGUAGE = ["00000", *("1" + "".join(bits) for bits in itertools.product("01", repeat=4))]
TOKENS = [b"0", b"1", b""]
EOS = 2
MODEL = np.array([[0.5, 0.4, 0.1], [0.3, 0.6, 0.1], [0.45, 0.45, 0.1]])
"""The probability of the next token, by the last one; a text begins behind EOS."""


def decode_fn(table: Float[Array, "last next"], last_token: Int32[Array, " rows"], cache: None):
    """One step of the model."""
    return table[last_token], cache


def draw(key: Array, rows: int) -> jaxgcd.Generation:
    """Texts drawn under the masks, at temperature 1."""
    tables = jaxgcd.compile_grammar(GRAMMAR, jaxgcd.Vocabulary(TOKENS, eos=[EOS]))
    model = jax.tree_util.Partial(decode_fn, jnp.log(jnp.asarray(MODEL, jnp.float32)))
    start = jnp.full(rows, EOS, jnp.int32)
    return jaxgcd.generate(key, model, None, tables, jaxgcd.init(tables, rows), start, max_new_tokens=6)


def log_weights(output: jaxgcd.Generation) -> Float[Array, " rows"]:
    """The logarithm of each text's importance weight; minus infinity for one that did not come to its end."""
    ended = output.finish == jaxgcd.Finish.EOS
    return jnp.where(ended, output.draws.log_mass.sum(axis=-1), -jnp.inf)


def resample(key: Array, log_weights: Float[Array, " rows"]) -> Int32[Array, " rows"]:
    """Which rows to keep, and how often: systematic resampling (Kitagawa 1996)."""
    rows = len(log_weights)
    edges = jnp.cumsum(jax.nn.softmax(log_weights))
    places = (jnp.arange(rows, dtype=jnp.float32) + jax.random.uniform(key)) / rows
    # Rounding may leave the last edge a little below 1.
    return jnp.minimum(jnp.searchsorted(edges, places), rows - 1).astype(jnp.int32)


def true_share() -> dict[str, float]:
    """The model's distribution over the language, text by text."""
    share = {}
    for text in LANGUAGE:
        path = [EOS, *map(int, text), EOS]
        share[text] = math.prod(MODEL[last, token] for last, token in itertools.pairwise(path))
    return {text: value / sum(share.values()) for text, value in share.items()}


def shares(texts: Sequence[str], weights: Sequence[float]) -> dict[str, float]:
    """The share of each text of the language, with weights."""
    found = dict.fromkeys(LANGUAGE, 0.0)
    for text, weight in zip(texts, weights, strict=True):
        found[text] += weight / sum(weights)
    return found


def distance(one: dict[str, float], other: dict[str, float]) -> float:
    """Total variation."""
    return sum(abs(one[text] - other[text]) for text in LANGUAGE) / 2


def main(arguments: Sequence[str] | None = None) -> dict[str, float]:
    """Prints the shares; returns the distance of each kind of draw from the truth."""
    parser = argparse.ArgumentParser(description="Weighted and resampled draws under a grammar.")
    parser.add_argument("--rows", type=int, default=4096, metavar="N")
    rows = parser.parse_args(arguments).rows
    first, second = jax.random.split(jax.random.key(0))
    output = draw(first, rows)
    texts = output.texts(jaxgcd.Vocabulary(TOKENS, eos=[EOS]))
    weights = log_weights(output)
    again = [texts[row] for row in resample(second, weights).tolist()]
    truth, level = true_share(), [1.0] * rows
    kinds = {
        "masked": shares(texts, level),
        "weighted": shares(texts, jax.nn.softmax(weights).tolist()),
        "resampled": shares(again, level),
    }
    print(f"{'text':8}{'true':>10}" + "".join(f"{kind:>11}" for kind in kinds))
    for text in dict.fromkeys(["00000", *sorted(truth, key=truth.__getitem__, reverse=True)[:6]]):
        print(f"{text:8}{truth[text]:10.3f}" + "".join(f"{found[text]:11.3f}" for found in kinds.values()))
    away = {kind: distance(truth, found) for kind, found in kinds.items()}
    print(f"{'distance':18}" + "".join(f"{value:11.3f}" for value in away.values()))
    return away


if __name__ == "__main__":
    main()
