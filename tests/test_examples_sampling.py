"""`examples/weighted_sampling.py` against enumeration, and `examples/finetune.py`."""

import importlib.util
import math
from itertools import pairwise
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgcd


def load(name: str):
    path = Path(__file__).parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_weights_turn_masked_draws_into_the_models_distribution() -> None:
    """Exactly: a text's probability under the masks times its weight is its probability under the model."""
    example = load("weighted_sampling")
    output = example.draw(jax.random.key(1), 2048)
    texts = output.texts(jaxgcd.Vocabulary(example.TOKENS, eos=[example.EOS]))
    drawn = np.asarray(output.draws.drawn_logprob.sum(axis=-1), np.float64)
    found = dict(zip(texts, np.exp(drawn + np.asarray(example.log_weights(output))), strict=True))
    assert set(found) == {"00000"} | {f"1{i:04b}" for i in range(16)}  # all of the language was drawn
    joint = {}
    for text in found:
        path = [2, *map(int, text), 2]
        joint[text] = math.prod(example.MODEL[a, b] for a, b in pairwise(path))
        np.testing.assert_allclose(found[text], joint[text], rtol=1e-4)
    # Normalised over the distinct texts that were drawn, which are all, the weights give the distribution
    # itself.
    total = sum(joint.values())
    assert example.true_share() == pytest.approx({text: p / total for text, p in joint.items()})


def test_resampling_keeps_each_row_by_its_weight() -> None:
    """Systematic resampling: a row of weight w among n is kept floor(n w) or ceil(n w) times."""
    example = load("weighted_sampling")
    weights = np.array([0.5, 0.0, 0.26, 0.14, 0.1, 0.0, 0.0, 0.0])
    with np.errstate(divide="ignore"):
        logs = jnp.asarray(np.log(weights), jnp.float32)
    for seed in range(20):
        kept = np.bincount(example.resample(jax.random.key(seed), logs), minlength=8)
        assert kept.sum() == 8 and (np.abs(kept - 8 * weights) < 1).all()


def test_the_weighted_example_shows_it(capsys) -> None:
    away = load("weighted_sampling").main(["--rows", "2048"])
    out = capsys.readouterr().out
    assert "00000" in out and "weighted" in out
    # Under the masks 00000 has the odds of its first 0 against a first 1, a half; the truth is far less.
    assert away["masked"] > 0.3 and away["weighted"] < 0.1 and away["resampled"] < 0.1


def test_training_under_the_masks(capsys) -> None:
    """With the grammar's mass in the loss, free generation learns the grammar, too."""
    for module in ("optax", "flax"):
        pytest.importorskip(module)
    with jax.numpy_dtype_promotion("standard"):  # optax's Adam mixes integers and floats
        result = load("finetune").main(["--steps", "60", "--batch", "32", "--mass-weight", "1"])
    assert np.mean(result.losses[-10:]) < 0.8 * result.losses[0]
    for free, inside in (result.before, result.after):
        assert inside.ended > 100 and inside.valid == inside.ended and free.valid <= free.ended
    (before, _), (after, _) = result.before, result.after
    assert after.valid / after.ended > 0.4 > 4 * before.valid / before.ended
    assert capsys.readouterr().out.count("inside the grammar 100%") == 2
