"""Logits beside those of transformers' torch implementation, on small random models that it made and saved.

Runs where torch is installed, which the extras do not bring. `bench/RESULTS.md` records a run.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checkpoints import LLAMA3, write_tokenizer
from flax import nnx

from jaxgcd import models

torch = pytest.importorskip(
    "torch", reason="torch is not installed: the comparison with transformers is not run"
)
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

SIZES = {
    "vocab_size": 131,
    "hidden_size": 64,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 128,
    "initializer_range": 0.2,  # ten times the usual: attention is not uniform
    "bos_token_id": None,
    "eos_token_id": 0,
    "pad_token_id": None,
}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32, "rope_theta": 10000.0}
LINEAR = {"rope_type": "linear", "factor": 2.0, "rope_theta": 10000.0}
CASES = {
    "llama": ("Llama", {"tie_word_embeddings": True}),
    "llama with biases": ("Llama", {"attention_bias": True, "head_dim": 24}),
    "llama 3's scaling": ("Llama", {"rope_parameters": LLAMA3 | {"rope_theta": 500.0}}),
    "linear scaling": ("Llama", {"rope_parameters": LINEAR}),
    "mistral, window 8": ("Mistral", {"sliding_window": 8, "head_dim": 20}),
    "mistral without a window": ("Mistral", {"sliding_window": None}),
    "qwen 2": ("Qwen2", {"tie_word_embeddings": True}),
    "qwen 2, window 8 in the last layer": (
        "Qwen2",
        {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 2},
    ),
    "qwen 2, yarn": ("Qwen2", {"rope_parameters": YARN}),
    "qwen 3": ("Qwen3", {"head_dim": 32}),
    "qwen 3 with biases": ("Qwen3", {"head_dim": 32, "attention_bias": True, "tie_word_embeddings": True}),
}


@jax.jit
def forward(graphdef, params, tokens):
    model = nnx.merge(graphdef, params)
    hidden, _ = model(tokens, model.init_cache(*tokens.shape))
    return model.logits(hidden)


@pytest.mark.parametrize("case", CASES)
def test_logits_agree_with_transformers(tmp_path, case, record_property):
    family, options = CASES[case]
    torch.manual_seed(0)
    config = getattr(transformers, f"{family}Config")(**SIZES | options)
    theirs = getattr(transformers, f"{family}ForCausalLM")(config).float().eval()
    with torch.no_grad():
        for name, parameter in theirs.named_parameters():
            if name.endswith(("norm.weight", "bias")):  # which start as ones and zeros
                parameter.add_(0.3 * torch.randn_like(parameter))
    theirs.save_pretrained(tmp_path, max_shard_size="60KB")
    write_tokenizer(tmp_path)
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    tokens = np.random.default_rng(1).integers(0, SIZES["vocab_size"], (2, 48))
    with torch.no_grad():
        expected = theirs(torch.tensor(tokens)).logits.numpy()
    model = models.load(tmp_path, progress=False).model
    logits = np.asarray(forward(*nnx.split(model), jnp.asarray(tokens, jnp.int32)))
    difference = np.abs(logits - expected).max()
    record_property("largest difference", float(difference))
    print(f"{case}: largest difference {difference:.1e}, largest logit {np.abs(expected).max():.1f}")
    assert np.abs(expected).max() > 1
    np.testing.assert_allclose(logits, expected, atol=1e-4)
