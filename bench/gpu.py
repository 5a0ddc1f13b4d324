"""Does it work on this accelerator, and which share of a decode step does masking take there?

    JAXGCD_DATA=<folder> python bench/gpu.py [--quick] [--batches 1 32 256]

In under four minutes on a GPU, on JAX's default device:

1. masks and steps of small grammars, against the texts that Lark parses (as in the suite, with its oracle);
   then every mask and state along a program, against what the CPU computes;
2. the measurements of `step.py` on JSON and Java;
3. the bytes that a step moves, computed from the tables' sizes;
4. the time of a decode step of a model with 8 billion parameters, as the matrix products of its shape in
   bfloat16, and the mask's and the advance's share of the whole.

On a CPU the model is a smaller one in float32, and the output says so. `--quick` does a part of each.
"""

import argparse
import sys
import time
from typing import Any

import common
import jax
import jax.numpy as jnp
import numpy as np
import steps

import jaxgcd

EIGHT_BILLION = {"hidden": 4096, "wide": 14336, "keys": 1024, "layers": 32, "size": 128_256}
"""Llama 3 8B, whose embedding is not multiplied with anything: 7.5 billion parameters are left."""
STAND_IN = {"hidden": 512, "wide": 1792, "keys": 128, "layers": 8, "size": 128_256}


def core(count: int, masks: int) -> dict[str, Any]:
    """Small grammars of the suite on this device, against the oracle."""
    sys.path[:0] = [str(common.ROOT / "tests"), str(common.ROOT / "tests" / "grammars")]
    import harness
    from small_grammars import SMALL
    from test_masks_small import expected

    checked = wrong = 0
    for small in SMALL[:count]:
        vocabulary, walks, wanted = expected(small, masks)
        compiled = harness.compile_small(small.grammar, vocabulary)
        trail = harness.trails(compiled, walks)
        differs = (wanted != trail.masks) if compiled.exact else (wanted & ~trail.masks)
        wrong += int(differs.sum()) + int((~trail.drawn).sum())
        checked += wanted.size
    return {"small grammars": len(SMALL[:count]), "bits against the oracle": checked, "wrong": wrong}


@jax.jit
def trail(tables: jaxgcd.Tables, tokens: jax.Array) -> tuple[jax.Array, jaxgcd.State]:
    """All masks and states along a text."""

    def step(state, token):
        return jaxgcd.advance(tables, state, token), (jaxgcd.allowed(tables, state), state)

    return jax.lax.scan(step, jaxgcd.init(tables), tokens)[1]


def against_cpu(name: str, tables: jaxgcd.Tables, places: steps.Places, most: int) -> dict[str, Any]:
    """The same program on the default device and on the CPU: the results are integers and must be equal."""
    tokens = places.tokens[: min(most, places.ends[0])]
    ours, theirs = (
        jax.device_get(trail(*jax.device_put((tables, tokens), device)))
        for device in (jax.devices()[0], jax.local_devices(backend="cpu")[0])
    )
    wrong = sum(int((a != b).sum()) for a, b in zip(*map(jax.tree.leaves, (ours, theirs)), strict=True))
    return {"grammar": name, "masks against the CPU": len(tokens), "wrong": wrong}


def bytes_moved(
    tables: jaxgcd.Tables, hosted: jaxgcd.Tables, places: steps.Places, rows: int
) -> dict[str, Any]:
    """Bytes that a mask reads and writes at least, and those that drawing with it reads.

    For each row of the batch a table row is read, its page numbers and its pages; once more for all in the
    steps in which some row's mask looks at the stack. Where slots have different table rows, or the walk is
    longer, it is more.
    """
    some = [
        steps.reads_stack(hosted, places.batch(i, rows)[0]).any() for i in range(0, len(places.tokens), 16)
    ]
    turns = 1 + float(np.mean(some))
    pages = tables.sizes["pages_in_shard"] * tables.shards
    row = pages * (4 + 4 * tables.sizes["page_words"])
    return {
        "mask MB": rows * (turns * row + tables.words * 4) / 1e6,
        "logits MB": rows * tables.size * 4 / 1e6,
    }


def model_step(shape: dict[str, int], dtype: Any, rows: int) -> dict[str, Any]:
    """The time of the matrix products of one decode step, without attention to earlier tokens."""
    hidden, wide, keys = shape["hidden"], shape["wide"], shape["keys"]
    sizes = [(hidden, hidden + 2 * keys), (hidden, hidden), (hidden, 2 * wide), (wide, hidden)]
    sizes.append((hidden, shape["size"]))
    weights = [
        jax.random.normal(jax.random.key(i), size, dtype) / size[0] ** 0.5 for i, size in enumerate(sizes)
    ]

    def step(i, zero, out, x, mixing, back, up, down, head):
        # One layer's weights serve all layers: they are larger than any cache.
        def layer(_, x):
            x = x + (x @ mixing)[:, :hidden] @ back
            gate, value = jnp.split(x @ up, 2, axis=1)
            x = x + (jax.nn.silu(gate) * value) @ down
            return x / jnp.maximum(jnp.abs(x).max(), 1)

        return jax.lax.fori_loop(0, shape["layers"], layer, x + zero.astype(dtype) * out[:, :1]) @ head

    run = steps.repeated(step, lambda *_: jnp.zeros((rows, shape["size"]), dtype))
    arguments = (jnp.ones((rows, hidden), dtype), *weights)
    seconds = steps.per_step(run, steps.turns_for(run, *arguments), *arguments)
    *layer, head = (size[0] * size[1] for size in sizes)
    parameters = f"{(shape['layers'] * sum(layer) + head) / 1e9:.2g}e9 {jnp.dtype(dtype).name}"
    return {"model": parameters, "model step µs": seconds * 1e6}


def measured(name: str, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """All that is asked about one grammar."""
    vocabulary, text = common.VOCABULARIES[chosen.vocabulary](), common.grammars(name)[name]
    tables, hosted = (
        jaxgcd.compile_grammar(text, vocabulary, check=check, cache=chosen.cache)
        for check in ("device", "host")
    )
    places = steps.places(name, vocabulary, tables)
    rows = [against_cpu(name, tables, places, 64 if chosen.quick else 512)]
    accelerated = jax.default_backend() != "cpu"
    shape, dtype = (EIGHT_BILLION, jnp.bfloat16) if accelerated else (STAND_IN, jnp.float32)
    for batch in chosen.batches:
        seconds = 1.0 if chosen.quick else 4.0
        row = {"grammar": name, "batch": batch}
        row |= steps.measure(tables, places, batch, budget=seconds, most=32 if chosen.quick else 512)
        row |= bytes_moved(tables, hosted, places, batch)
        row |= model_step(shape, dtype, batch)
        ours = row["mask median µs"] + row["advance median µs"]
        rows.append(row | {"share of the step": ours / (ours + row["model step µs"])})
    return rows


def main() -> None:
    """Checks, measures and writes `bench/gpu.json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--grammars", nargs="+", default=["json", "java"], choices=list(common.TRACES))
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32, 256])
    parser.add_argument("--vocabulary", default="llama3", choices=common.VOCABULARIES)
    parser.add_argument("--cache", help="a folder of compiled tables")
    chosen = parser.parse_args()
    begin = time.perf_counter()
    rows = [core(5, 10) if chosen.quick else core(25, 30)]
    for name in chosen.grammars:
        rows += measured(name, chosen)
    wrong = sum(row.get("wrong", 0) for row in rows)
    common.write("gpu", [*rows, {"wrong in all": wrong, "seconds": time.perf_counter() - begin}])
    sys.exit(f"{wrong} results are wrong" if wrong else 0)


if __name__ == "__main__":
    main()
