"""How many bytes do the arrays of tables take, and how many on a TPU, where arrays are laid out in tiles?

    JAXGCD_DATA=<folder> python bench/layouts.py [--grammars json sql java python go] [--least 100000]

For each grammar, on the 128,256 tokens of Llama 3 and in the contextual lexer mode: bytes of each array of at
least so many, as it is and with the padding of a TPU's tiles; the same for the smaller ones and all together;
and what the padded arrays would take with four bytes in each number ("TPU int32"). Then a step, `advance` and
`allowed` for 1 and 32 rows, is compiled for that TPU.

No TPU is needed, as XLA's compiler for it (package `libtpu`, with `pip install "jax[tpu]"`) compiles for one
that is only described. The layouts are those that it chooses for the arguments of a compiled function.
"""

import argparse
import dataclasses
import math
import os
import sys
import time
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # asks no server what TPU this is

import common
import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import topologies

import jaxgcd

GRAMMARS = ("json", "sql", "java", "python", "go")
TOPOLOGY = "v5e:2x2"


def main() -> None:
    """Lays out, compiles and writes `bench/layouts.json`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--grammars", nargs="+", default=GRAMMARS, choices=GRAMMARS)
    parser.add_argument("--least", type=int, default=100_000, help="bytes of arrays that get a row")
    parser.add_argument("--cache", help="a folder of compiled tables")
    chosen = parser.parse_args()
    tpu, vocabulary = described_tpu(), common.llama3()
    rows: list[dict[str, Any]] = []
    for name in chosen.grammars:
        tables = jaxgcd.compile_grammar(common.grammars(name)[name], vocabulary, cache=chosen.cache)
        rows += [{"grammar": name} | row for row in arrays(tables, tpu, chosen.least)]
        rows += [{"grammar": name} | compiled(tables, tpu, batch) for batch in (1, 32)]
    common.write("layouts", rows)


def described_tpu() -> jax.sharding.Sharding:
    """One chip of a TPU that is not there."""
    try:
        devices = topologies.get_topology_desc(TOPOLOGY, platform="tpu").devices
    except (RuntimeError, ImportError) as error:
        sys.exit(f'There is no compiler for TPUs here; pip install "jax[tpu]". ({error})')
    return jax.sharding.SingleDeviceSharding(devices[0])


def arrays(tables: jaxgcd.Tables, tpu: jax.sharding.Sharding, least: int) -> list[dict[str, Any]]:
    """The rows of large arrays, and of the rest and of all together."""
    found = {
        field.name: leaf
        for field in dataclasses.fields(tables)
        if isinstance(leaf := getattr(tables, field.name), jax.Array)
    }
    wide = {name: jax.ShapeDtypeStruct(leaf.shape, np.int32) for name, leaf in found.items()}
    own, four = padded_bytes(found, tpu), padded_bytes(wide, tpu)
    table = [
        {"array": name, "dtype": str(leaf.dtype), "shape": list(leaf.shape)}
        | {"bytes": leaf.nbytes, "TPU bytes": own[name], "TPU int32": four[name]}
        for name, leaf in found.items()
    ]
    numbers = ("bytes", "TPU bytes", "TPU int32")
    large = sorted((row for row in table if row["bytes"] >= least), key=lambda row: -row["bytes"])
    small = [row for row in table if row["bytes"] < least]
    sums = {
        "all others": {key: sum(row[key] for row in small) for key in numbers},
        "all": {key: sum(row[key] for row in table) for key in numbers},
    }
    return [*large, *({"array": name} | row for name, row in sums.items())]


def padded_bytes(leaves: dict[str, Any], tpu: jax.sharding.Sharding) -> dict[str, int]:
    """Bytes of each array in the layout that it gets as an argument."""
    given = {
        name: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=tpu) for name, leaf in leaves.items()
    }
    compiled = jax.jit(lambda leaves: jnp.zeros(()), keep_unused=True).lower(given).compile()
    (formats,), _ = compiled.input_formats
    found = {name: _padded(leaf, formats[name].layout) for name, leaf in leaves.items()}
    counted = compiled.memory_analysis().argument_size_in_bytes
    assert sum(-(-size // 512) * 512 for size in found.values()) == counted, (found, counted)
    return found


def _padded(leaf: Any, layout: Any) -> int:
    """Bytes of an array whose innermost axes are filled up to a multiple of their tile."""
    tile = layout.tiling[0] if layout.tiling else ()
    lengths = [1] * (len(tile) - leaf.ndim) + [leaf.shape[axis] for axis in layout.major_to_minor]
    for place, size in enumerate(tile, len(lengths) - len(tile)):
        lengths[place] = -(-lengths[place] // size) * size
    return math.prod(lengths) * leaf.dtype.itemsize


def compiled(tables: jaxgcd.Tables, tpu: jax.sharding.Sharding, batch: int) -> dict[str, Any]:
    """How long the TPU's compiler takes for one step."""

    def step(tables: jaxgcd.Tables, state: jaxgcd.State, token: jax.Array):
        state = jaxgcd.advance(tables, state, token)
        return state, jaxgcd.allowed(tables, state)

    given = (tables, jaxgcd.init(tables, batch), jnp.zeros(batch, jnp.int32))
    shapes = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=tpu), given)
    lowered = jax.jit(step).lower(*shapes)
    begin = time.perf_counter()
    program = lowered.compile()
    memory = program.memory_analysis()
    return {
        "compiles for": TOPOLOGY,
        "batch": batch,
        "s": time.perf_counter() - begin,
        "temporary bytes": memory.temp_size_in_bytes,
    }


if __name__ == "__main__":
    main()
