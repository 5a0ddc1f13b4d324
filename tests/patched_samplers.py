"""Run by `test_patches.py` in a process of its own: a patched sampling loop, with stand-ins for all else.

    python tests/patched_samplers.py tunix|gemma <folder with the patched package>

The stand-in for the model always wishes for the same tokens, first for one that the grammar never allows.
Prints "constrained" when the loop with tables has written what the grammar makes of the wishes, in each of
two rows, and "free" when it has written the favourite without tables.
"""

import dataclasses
import importlib
import sys
import types
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxgcd

TOKENS = [b"", b"", b"(", b")", b"a", b"x", b"((", b"b"]
PAD, EOS, FAVOURITE, STEPS = 0, 1, 5, 6
WISHES = np.array([0.0, 1.0, 2.0, 3.0, 2.5, 9.0, 1.5, 0.5], np.float32)
GRAMMAR = 'start: "a" | "(" start ")"'
# Of what is allowed "a" is liked best; behind "((" it needs two brackets more.
PREFIXES, EXPECTED = ["", "(("], [[4], [4, 3, 3]]


def grammar() -> tuple[jaxgcd.Tables, jaxgcd.State]:
    vocabulary = jaxgcd.Vocabulary(TOKENS, eos=[EOS], special=[PAD])
    tables = jaxgcd.compile_grammar(GRAMMAR, vocabulary)
    return tables, jaxgcd.init(tables, prefix=PREFIXES)


def report(constrained: Any, free: Any) -> None:
    """Checks both results, a sequence of token ids for each row."""
    rows = [[*np.asarray(row).tolist(), EOS] for row in constrained]
    assert [row[: row.index(EOS)] for row in rows] == EXPECTED, rows
    print("constrained")
    assert [np.asarray(row).tolist() for row in free] == [[FAVOURITE] * STEPS] * len(PREFIXES), free
    print("free")


class Anything(type):
    """What a module that is not here would have defined: a type, with whatever attributes and parameters."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Stub

    def __getitem__(cls, _: Any) -> Any:
        return cls


class Stub(metaclass=Anything):
    pass


def stub(name: str, **contents: Any) -> None:
    """A module with some contents, and a stub for every other name that is asked of it."""
    made = types.ModuleType(name)
    made.__dict__.update({"__getattr__": lambda attribute: getattr(Stub, attribute), **contents})
    sys.modules[name] = made
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, made)


def package(name: str, folder: Path) -> None:
    """A package whose modules are found but whose `__init__`, which imports too much, does not run."""
    sys.modules[name] = types.ModuleType(name)
    sys.modules[name].__path__ = [str(folder.joinpath(*name.split(".")))]


class Tokenizer:
    """Of tunix: every character is the favourite."""

    encode = staticmethod(lambda text: [FAVOURITE] * len(text))
    decode = staticmethod(lambda ids: b"".join(TOKENS[i] for i in ids).decode())
    dedup_bos_ids = staticmethod(lambda ids: ids)
    bos_id, eos_id, pad_id = (staticmethod(lambda id=id: id) for id in (0, EOS, PAD))


def tunix(folder: Path) -> None:
    package("tunix", folder)
    package("tunix.processors", folder)
    stub("tunix.processors.image_processor")
    package("tunix.generate", folder)
    stub("tunix.generate.tokenizer_adapter", TokenizerAdapter=Tokenizer)
    from flax import nnx

    sampler = importlib.import_module("tunix.generate.sampler")

    class Model(nnx.Module):
        num_embed = len(TOKENS)

        def __init__(self):
            self.wishes = nnx.Param(jnp.asarray(WISHES))

        def __call__(self, tokens, positions, cache, attention_mask):
            return jnp.broadcast_to(self.wishes[...], (*tokens.shape, len(WISHES))), cache

        def init_cache(self, batch, size, dtype):
            return {"layer": {"k": jnp.zeros((batch, size), dtype)}}

    writer = sampler.Sampler(Model(), Tokenizer(), sampler.CacheConfig(32, 1, 1, 1))
    tables, state = grammar()
    prompts = ["xxx", "x"]  # tunix fills up the shorter one
    constrained, free = (
        writer(prompts, max_generation_steps=STEPS, **given).tokens
        for given in ({"tables": tables, "grammar": state}, {})
    )
    report(constrained, free)


@dataclasses.dataclass(frozen=True)
class Model:
    """Of gemma: hashable, for it is static."""

    def apply(self, variables, *, tokens, cache, positions, attention_mask):
        logits = jnp.broadcast_to(variables["params"], (*tokens.shape, len(TOKENS)))
        return types.SimpleNamespace(logits=logits, cache=cache)


def gemma(folder: Path) -> None:
    for name in ("gemma", "gemma.gm", "gemma.gm.text"):
        package(name, folder)
    for name in ("nn", "data", "typing", "utils", "text._tokenizer"):
        stub(f"gemma.gm.{name}")
    for name in ("nn._config", "nn._transformer_like", "data._functional", "typing._common", "utils._types"):
        stub(f"gemma.gm.{name}")
    not_full = types.SimpleNamespace(is_full=jnp.bool_(False))
    stub("gemma.gm.utils._cache_helper", Cache=lambda _: not_full)
    stub("gemma.gm.text._prefill", prefill=lambda **given: begun(**given))
    stub("einops", rearrange=lambda logits, _: logits[:, 0])
    stub("etils")
    stub("kauldron")
    stub("kauldron.typing", typechecked=lambda function: function, check_type=lambda *_: None)
    loop = importlib.import_module("gemma.gm.text._sampler_loop")
    text = importlib.import_module("gemma.gm.text._sampler")

    def begun(**_):
        """The state behind a prompt whose last token is the favourite."""
        rows = len(PREFIXES)
        return loop.SamplingState(
            step=jnp.asarray(0),
            done=jnp.zeros(rows, bool),
            last_token=jnp.full(rows, FAVOURITE),
            last_token_pos=jnp.zeros(rows, jnp.int32),
            predicted_tokens=jnp.zeros((rows, STEPS), jnp.int32),
            cache={},
            rng=jax.random.key(0),
            init_cache_length=jnp.asarray(1),
            full_attention_mask=jnp.ones((rows, 32), bool),
        )

    class Sampler(text.Sampler):
        def __post_init__(self):
            pass

        def _get_inputs(self, **_):
            pass

    special = type("SpecialTokens", (), {"EOS": EOS, "END_OF_TURN": EOS})  # a type is hashable
    tokenizer = types.SimpleNamespace(special_tokens=special, FORBIDDEN_TOKENS=(), decode=lambda ids: ids)
    writer = Sampler(model=Model(), params=jnp.asarray(WISHES), tokenizer=tokenizer, max_out_length=STEPS)
    tables, state = grammar()
    report(writer.sample(PREFIXES, tables=tables, grammar=state), writer.sample(PREFIXES))


if __name__ == "__main__":
    {"tunix": tunix, "gemma": gemma}[sys.argv[1]](Path(sys.argv[2]))
