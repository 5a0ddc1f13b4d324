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


@functools.cache
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


def model(layout, weights, last_token, cache):
    """A toy model, which says how its logits are laid out."""
    return weights.at[last_token].get(out_sharding=layout), cache


def loops(layout, tables, ids, tokens, weights):
    """A draft, what a toy model goes on to write, freely and as beams, what is forced, and `constrain`."""
    after, trail = jaxgcd.advance_many(tables, jaxgcd.init(tables, grammar=ids), tokens)
    decode_fn = jax.tree_util.Partial(functools.partial(model, layout), weights)
    state, last_token = trail.state(trail.count // 2), tokens[:, 0]
    arguments = decode_fn, (), tables, state, last_token
    out = jaxgcd.generate(jax.random.key(0), *arguments, max_new_tokens=3)
    found = jaxgcd.beam_search(*arguments, beams=3, max_new_tokens=3)
    forced = jaxgcd.jump_forward(tables, state, max_length=4)
    own = jaxgcd.constrain(tables, state, last_token, decode_fn(last_token, ())[0])
    return out.tokens, out.finish, after, trail, found.tokens, found.finish, found.score, forced, own


def draws(layout, tables, ids, tokens, weights):
    """Some draws from the likeliest tokens, after each of which the row goes on as `tokens` say."""

    def step(state, inputs):
        key, last_token, token = inputs
        logits, _ = model(layout, weights, last_token, ())
        options = {"temperature": 0.7, "top_k": 6, "top_p": 0.9}
        drawn, _, draw = jaxgcd.sample(key, tables, state, logits, return_draw=True, **options)
        return jaxgcd.advance(tables, state, token), (drawn, draw)

    keys = jax.random.split(jax.random.key(1), LENGTH - 1)
    inputs = keys, tokens[:, :-1].T, tokens[:, 1:].T
    return jax.lax.scan(step, jaxgcd.init(tables, grammar=ids), inputs)[1]


def like(one, other) -> bool:
    """Equal; scores, which are summed up in another order on many devices, nearly."""
    close = functools.partial(np.allclose, rtol=1e-5, atol=1e-6)
    return (close if np.issubdtype(one.dtype, np.floating) else np.array_equal)(one, other)


@functools.cache
def on_one_device(function, path: str):
    """What a function of a toy model makes of the tokens, and its weights."""
    weights = np.random.default_rng(1).normal(size=(SIZE, SIZE)).astype(np.float32)
    with np.load(path) as file:
        tokens = file["tokens"].T
    return tokens, weights, jax.jit(functools.partial(function, None))(make_tables(), IDS, tokens, weights)


def run_like_one(name: str, function, layout: PartitionSpec, mesh, path: str) -> None:
    """A function of a toy model whose logits have a layout, on the mesh and on one device."""
    tokens, weights, expected = on_one_device(function, path)
    (tables, ids, *_), _ = inputs(mesh, tokens.T, weights[:ROWS])
    with jax.set_mesh(mesh):
        specs = PartitionSpec("data"), PartitionSpec(None, *layout[1:])
        tokens, weights = jax.device_put((tokens, weights), parts(specs, mesh))
        out = layout if mesh.axis_types[0] == AxisType.Explicit else None
        found = jax.jit(functools.partial(function, out))(tables, ids, tokens, weights)
    equal = all(jax.tree.leaves(jax.tree.map(like, found, expected)))
    print(name, equal, *jax.tree.leaves(found)[0].sharding.spec)


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
                run_like_one("explicit loops", loops, PartitionSpec("data", None), mesh, path)
            if kind != "shard_map" and mode == "one":
                run_like_one(f"{kind} draws", draws, PartitionSpec("data", "model"), mesh, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
