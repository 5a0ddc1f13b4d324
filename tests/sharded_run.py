"""Run by `test_sharding.py` in processes of its own: the same steps on many devices as on one.

    python tests/sharded_run.py one <file>
    python tests/sharded_run.py two <file> <process> <port>

The file (`numpy.savez`) holds tokens, logits and what one device makes of them. Every process compares the
part that its devices hold and prints what it has compared.
"""

import functools
import re
import sys

import jax
import numpy as np
from jax.sharding import AxisType, NamedSharding, PartitionSpec
from small_tables import EOS, GRAMMARS, SPECIAL, TOKENS

import jaxgcd

SIZE = 256  # four words for each of two shards
ROWS, LENGTH = 8, 6
IDS = np.arange(ROWS, dtype=np.int32) % 3
COLLECTIVES = r"\b(all-gather|all-reduce|all-to-all|collective-permute|reduce-scatter)(?:-start)?\("


def make_tables() -> jaxgcd.Tables:
    vocabulary = jaxgcd.Vocabulary(TOKENS, eos=[EOS], special=[SPECIAL], size=SIZE)
    parts = [jaxgcd.compile_grammar(GRAMMARS[name], vocabulary, max_depth=12) for name in ("lists", "nested")]
    return jaxgcd.split_vocabulary(jaxgcd.concatenate(parts), 2)


def steps(tables, ids, tokens, logits):
    """Masks, masked logits and statuses along `tokens[length, rows]`, and the state behind them."""

    def step(state, token):
        found = jaxgcd.allowed(tables, state), jaxgcd.mask_logits(tables, state, logits), state.status
        return jaxgcd.advance(tables, state, token), found

    state, found = jax.lax.scan(step, jaxgcd.init(tables, grammar=ids), tokens)
    return state, *found


def parts(specs, mesh):
    return jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs)


def inputs(mesh, tokens, logits):
    """Tables with the vocabulary over `model`, rows over `data`."""
    tables = make_tables()
    rows, columns = PartitionSpec("data"), PartitionSpec(None, "data")
    specs = (jaxgcd.partition_specs(tables, "model"), rows, columns, PartitionSpec("data", "model"))
    return jax.device_put((tables, IDS, tokens, logits), parts(specs, mesh)), specs


def compare(kind: str, results, expected) -> None:
    """Each device's part of each result with the same part of what was expected."""
    for result, wanted in zip(jax.tree.leaves(results), expected, strict=True):
        for shard in result.addressable_shards:
            np.testing.assert_array_equal(np.asarray(shard.data), wanted[shard.index])
    words = results[1].sharding.spec
    print(kind, "equal", *words)


def run(kind: str, mesh, file) -> None:
    arrays, specs = inputs(mesh, file["tokens"], file["logits"])
    function = steps
    if kind == "shard_map":
        out = (
            PartitionSpec("data"),
            *[PartitionSpec(None, "data", "model")] * 2,
            PartitionSpec(None, "data"),
        )
        function = jax.shard_map(steps, mesh=mesh, in_specs=specs, out_specs=out)
    compiled = jax.jit(function).lower(*arrays).compile()
    compare(kind, compiled(*arrays), [file[f"expected{i}"] for i in range(7)])
    # Only the loops' conditions are agreed on; with shard_map each device has loops of its own.
    print(kind, "collectives", *sorted(set(re.findall(COLLECTIVES, compiled.as_text()))))


def loops(layout, tables, ids, tokens, weights):
    """A draft, and what a toy model goes on to write; the model says how its logits are laid out."""

    def model(weights, last_token, cache):
        return weights.at[last_token].get(out_sharding=layout), cache

    after, trail = jaxgcd.advance_many(tables, jaxgcd.init(tables, grammar=ids), tokens)
    decode_fn, last_token = jax.tree_util.Partial(model, weights), tokens[:, 0]
    state = trail.state(trail.count // 2)
    out = jaxgcd.generate(jax.random.key(0), decode_fn, (), tables, state, last_token, max_new_tokens=3)
    return after, trail, out.tokens, out.finish


def run_loops(mesh, file) -> None:
    (tables, ids, *_), _ = inputs(mesh, file["tokens"], file["logits"])
    weights = np.random.default_rng(1).normal(size=(SIZE, SIZE)).astype(np.float32)
    tokens = file["tokens"].T
    expected = jax.jit(functools.partial(loops, None))(make_tables(), IDS, tokens, weights)
    with jax.set_mesh(mesh):
        specs = PartitionSpec("data"), PartitionSpec()
        tokens, weights = jax.device_put((tokens, weights), parts(specs, mesh))
        function = functools.partial(loops, PartitionSpec("data", None))
        found = jax.jit(function)(tables, ids, tokens, weights)
    equal = jax.tree.leaves(jax.tree.map(np.array_equal, found, expected))
    print("explicit loops", all(equal), *found[2].sharding.spec)


def main(mode: str, path: str, process: str = "0", port: str = "") -> None:
    if mode == "two":
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=2, process_id=int(process))
    assert jax.device_count() == 8
    kinds = {"auto": AxisType.Auto, "explicit": AxisType.Explicit, "shard_map": AxisType.Auto}
    with np.load(path) as file:
        for kind in kinds if mode == "one" else ["auto"]:
            mesh = jax.make_mesh((4, 2), ("data", "model"), axis_types=(kinds[kind],) * 2)
            run(kind, mesh, file)
            if kind == "explicit":
                run_loops(mesh, file)


if __name__ == "__main__":
    main(*sys.argv[1:])
