"""One small random model of each family, as a folder and as a GGUF file: the same logits, the right ones."""

import sys

import checkpoints
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from checkpoints import settings_of
from flax import nnx
from reference_model import reference_logits

from jaxgcd import models
from jaxgcd.errors import MissingExtraError, ModelError
from jaxgcd.models.folder_config import default_eos_id, read_config

gguf = pytest.importorskip("gguf")
pytest.importorskip("tokenizers")

TEXT = [1, 2, 8, 12, 0, 3, 5, 5, 9, 11]
KINDS = list(checkpoints.SETTINGS)


def logits_of(model: models.Llama, tokens: list[int]) -> np.ndarray:
    """`[time, vocab]`: one forward pass over a whole text."""
    return np.asarray(forward(*nnx.split(model), jnp.asarray([tokens], jnp.int32)))[0]


@jax.jit
def forward(graphdef, params, tokens):
    model = nnx.merge(graphdef, params)
    hidden, _ = model(tokens, model.init_cache(1, 16))
    return model.logits(hidden)


def folder_of(path, settings, **options):
    return checkpoints.write_folder(path, settings, checkpoints.random_weights(settings), **options)


def gguf_of(path, settings, **fields):
    weights = checkpoints.random_weights(settings)
    tensors = checkpoints.gguf_tensors(settings, weights)
    return checkpoints.write_gguf(path, checkpoints.gguf_fields(settings) | fields, tensors)


@pytest.mark.parametrize("kind", KINDS)
def test_folder_and_gguf_file_give_the_logits_of_the_reference(tmp_path, kind):
    settings = settings_of(kind)
    expected = reference_logits(settings, checkpoints.random_weights(settings), TEXT)
    folder = models.load(folder_of(tmp_path / "folder", settings), progress=False)
    file = models.load(gguf_of(tmp_path / "file.gguf", settings), progress=False)
    from_folder, from_file = logits_of(folder.model, TEXT), logits_of(file.model, TEXT)
    np.testing.assert_allclose(from_folder, expected, atol=1e-4)
    np.testing.assert_allclose(from_file, from_folder, atol=1e-5, rtol=1e-5)
    assert folder.eos_ids == file.eos_ids == (0,)
    if kind != "llama3":  # whose rotary divisors a GGUF file rounds
        assert folder.config == file.config
    assert folder.config.max_length == file.config.max_length == 64


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {"rope_scaling": {"type": "linear", "factor": 4.0}}),
        ("llama", {"rope_scaling": {**checkpoints.LLAMA3, "original_max_position_embeddings": 40}}),
        (
            "qwen2",
            {"rope_scaling": {**checkpoints.YARN, "factor": 2.5, "original_max_position_embeddings": 900}},
        ),
        ("qwen2", {"use_sliding_window": True, "max_window_layers": 1, "sliding_window": 3}),
        ("qwen3", {"use_sliding_window": True, "max_window_layers": 0, "sliding_window": 1}),
        ("qwen3", {"attention_bias": True, "num_key_value_heads": 4}),
        ("mistral", {"sliding_window": None, "num_key_value_heads": 1}),
        ("mistral", {"sliding_window": 1}),
    ],
)
def test_options(tmp_path, kind, changes):
    settings = settings_of(kind, **changes)
    folder = folder_of(tmp_path, settings, shards=1)
    expected = reference_logits(settings, checkpoints.random_weights(settings), TEXT)
    np.testing.assert_allclose(
        logits_of(models.load(folder, progress=False).model, TEXT), expected, atol=1e-4
    )
    plain = settings_of(kind, rope_scaling=None, use_sliding_window=False)
    if plain != settings and "attention_bias" not in changes and changes.get("sliding_window", 0) is not None:
        other = reference_logits(plain, checkpoints.random_weights(plain), TEXT)
        assert np.abs(other - expected).max() > 1e-2  # the option makes a difference


def test_recent_files_name_the_layers_that_slide_and_the_rotary_parameters(tmp_path):
    old = settings_of("qwen2", use_sliding_window=True, max_window_layers=1, sliding_window=3)
    rope = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 1000.0}
    new = old | {"layer_types": ["full_attention", "sliding_attention"], "rope_parameters": rope}
    new = {name: new[name] for name in new if name not in ("rope_scaling", "rope_theta", "max_window_layers")}
    config = models.load(folder_of(tmp_path / "old", old), progress=False).config
    other = models.load(folder_of(tmp_path / "new", new), progress=False).config
    assert (
        [config.window(layer) for layer in range(2)]
        == [other.window(layer) for layer in range(2)]
        == [None, 3]
    )
    assert (config.rope_theta, config.rope_scaling) == (other.rope_theta, other.rope_scaling)


def test_settings_that_are_missing_have_the_defaults_of_transformers(tmp_path):
    names = ("rms_norm_eps", "rope_theta", "sliding_window", "max_position_embeddings", "eos_token_id")
    folder = folder_of(tmp_path, settings_of("mistral"))
    checkpoints.write_json(folder / "config.json", settings_of("mistral", **dict.fromkeys(names, ...)))
    (folder / "generation_config.json").unlink(missing_ok=True)
    loaded = models.load(folder, progress=False)
    config = loaded.config
    assert (config.rms_eps, config.rope_theta, config.sliding_window) == (1e-6, 10000.0, 4096)
    assert (config.max_length, loaded.eos_ids) == (131072, (2,))


@pytest.mark.parametrize("kind", ["llama", "mistral", "qwen2", "qwen3"])
def test_defaults_are_those_of_transformers_own_classes(kind):
    transformers = pytest.importorskip("transformers")
    own = transformers.AutoConfig.for_model(kind)
    names = ("num_key_value_heads", "max_position_embeddings", "rms_norm_eps", "eos_token_id")
    settings = settings_of(kind, num_attention_heads=32, head_dim=8, **dict.fromkeys(names, ...))
    found = read_config(settings)
    assert (found.num_kv_heads, found.max_length) == (own.num_key_value_heads, own.max_position_embeddings)
    assert (found.rms_eps, default_eos_id(settings)) == (own.rms_norm_eps, own.eos_token_id)
    null = read_config({**settings, "num_key_value_heads": None})
    assert null.num_kv_heads == 32 and default_eos_id({**settings, "eos_token_id": None}) is None


def quantized(kind: gguf.GGMLQuantizationType, shape: tuple[int, int], generator) -> np.ndarray:
    """Rows of random blocks. For types that the package cannot write: random bytes, with a scale that is a
    small number. Q4_K begins with two scales, Q6_K ends with one; all are float16."""
    values = 0.3 * generator.normal(size=shape).astype(np.float32)
    if kind.name not in ("Q4_K", "Q6_K"):
        return gguf.quantize(values, kind)
    elements, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = generator.integers(0, 256, (shape[0], shape[1] // elements, size), np.uint8)
    scales = np.float16(2e-3) * generator.random((*blocks.shape[:2], 2)).astype(np.float16)
    if kind.name == "Q4_K":
        blocks[..., :4] = scales.view(np.uint8)
    else:
        blocks[..., -2:] = scales[..., :1].view(np.uint8)
    return blocks.reshape(shape[0], -1)


@pytest.mark.parametrize(
    "kind", ["F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "Q4_K", "Q6_K"]
)
def test_quantised_tensors_are_what_the_gguf_package_makes_of_them(tmp_path, kind):
    kind, generator = gguf.GGMLQuantizationType[kind], np.random.default_rng(0)
    sizes = {"hidden_size": 256, "intermediate_size": 256, "num_hidden_layers": 1}
    settings = settings_of("qwen3", **sizes)
    tensors = checkpoints.gguf_tensors(settings, checkpoints.random_weights(settings))
    # Rows of 64 are no whole block of 256, so the attention's output stays as it is.
    raw = {
        name: (quantized(kind, values.shape, generator), kind)
        for name, values in tensors.items()
        if values.ndim == 2 and values.shape[1] == 256
    }
    plain = {name: values for name, values in tensors.items() if name not in raw}
    path = checkpoints.write_gguf(tmp_path / "q.gguf", checkpoints.gguf_fields(settings), plain, raw)
    model = models.load(path, progress=False).model
    stored = {
        "token_embd.weight": model.embedding.embedding[...],
        "output.weight": model.head.kernel[...].T,
        "blk.0.attn_q.weight": model.layers[0].attention.query.kernel[...].T,
        "blk.0.attn_v.weight": model.layers[0].attention.value.kernel[...].T,
        "blk.0.ffn_down.weight": model.layers[0].mlp.down.kernel[...].T,
    }
    for name, values in stored.items():
        np.testing.assert_array_equal(values, gguf.dequantize(*raw[name]), err_msg=name)


@pytest.mark.parametrize("kind", ["llama3", "qwen3"])
def test_bfloat16_is_close(tmp_path, kind):
    settings = settings_of(kind)
    folder = folder_of(tmp_path, settings)
    model = models.load(folder, dtype=jnp.bfloat16, progress=False).model
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.split(model)[1])} == {jnp.dtype(jnp.bfloat16)}
    assert model.init_cache(1, 4).k.dtype == jnp.bfloat16
    expected = reference_logits(settings, checkpoints.random_weights(settings), TEXT)
    logits = logits_of(model, TEXT)
    assert logits.dtype == np.float32
    # bfloat16 keeps 8 bits, a step of 1/128 at each of about 20 roundings on the way to the logits.
    assert np.abs(logits - expected).max() < 0.1 * np.abs(expected).max()
    assert np.abs(logits - expected).mean() < 0.03 * np.abs(expected).max()


def test_stored_in_half_precision(tmp_path):
    settings = settings_of("llama")
    weights = checkpoints.random_weights(settings)
    for dtype in (np.float16, jnp.bfloat16):
        rounded = {name: values.astype(dtype) for name, values in weights.items()}
        folder = checkpoints.write_folder(tmp_path / np.dtype(dtype).name, settings, rounded)
        model = models.load(folder, progress=False).model
        np.testing.assert_array_equal(
            model.layers[1].mlp.up.kernel[...],
            rounded["model.layers.1.mlp.up_proj.weight"].T.astype(np.float32),
        )


def test_what_older_folders_store_twice_is_left_out(tmp_path):
    settings = settings_of("llama")
    weights = checkpoints.random_weights(settings)
    copies = {
        "lm_head.weight": weights["model.embed_tokens.weight"],
        "model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(4, np.float32),
    }
    model = models.load(checkpoints.write_folder(tmp_path, settings, weights | copies), progress=False).model
    np.testing.assert_allclose(
        logits_of(model, TEXT), reference_logits(settings, weights, TEXT), atol=1e-4, rtol=1e-4
    )


def test_eos_ids(tmp_path):
    folder = folder_of(tmp_path, settings_of("llama", eos_token_id=[3, 1]))
    assert models.load(folder, progress=False).eos_ids == (1, 3)
    checkpoints.write_json(folder / "generation_config.json", {"eos_token_id": [4, 0]})
    assert models.load(folder, progress=False).eos_ids == (0, 4)
    checkpoints.write_json(folder / "generation_config.json", {"eos_token_id": 2})
    assert models.load(folder, progress=False).eos_ids == (2,)
    checkpoints.write_json(folder / "generation_config.json", {"eos_token_id": None})
    assert models.load(folder, progress=False).eos_ids == (1, 3)
    path = gguf_of(tmp_path / "f.gguf", settings_of("llama"), **{"tokenizer.ggml.eot_token_id": 4})
    assert models.load(path, progress=False).eos_ids == (0, 4)


def test_chat_templates_of_a_folder(tmp_path):
    folder = folder_of(tmp_path, settings_of("llama"))
    assert models.load(folder, progress=False).chat_template is None
    tokens = {"bos_token": {"content": "<s>", "lstrip": False}, "eos_token": "</s>"}
    source = "{{ bos_token }}{% for m in messages %}{{ m.content }}{{ eos_token }}{% endfor %}"
    for template in (
        source,
        [{"name": "tool_use", "template": "?"}, {"name": "default", "template": source}],
    ):
        checkpoints.write_json(folder / "tokenizer_config.json", {**tokens, "chat_template": template})
        loaded = models.load(folder, progress=False)
        assert loaded.chat_template is not None
        assert loaded.chat_template.ask("hi") == "<s>hi</s>"
    (folder / "chat_template.jinja").write_text("{{ messages[0].content | tojson }}{{ tools }}")
    loaded = models.load(folder, progress=False)
    assert loaded.chat_template is not None
    assert loaded.chat_template.ask("<é>") == '"<é>"None'


def test_tokenizers(tmp_path):
    folder = folder_of(tmp_path, settings_of("llama"))
    expected = ["ab", "Ġab", "Ġ", "1"]
    loaded = models.load(folder, progress=False)
    assert loaded.tokenizer.encode("ab ab 1").tokens == expected
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ModelError, match=r"no tokenizer\.json"):
        models.load(folder, progress=False)
    assert models.load(folder, tokenizer=loaded.tokenizer, progress=False).tokenizer is loaded.tokenizer


def test_a_gguf_file_can_ask_for_its_first_token(tmp_path):
    fields = {"tokenizer.ggml.bos_token_id": 1, "tokenizer.ggml.add_bos_token": True}
    loaded = models.load(gguf_of(tmp_path / "f.gguf", settings_of("llama"), **fields), progress=False)
    assert loaded.tokenizer.encode("ab").tokens == ["<|user|>", "ab"]
    assert loaded.tokenizer.encode("ab", add_special_tokens=False).tokens == ["ab"]
    fields["tokenizer.ggml.add_bos_token"] = False
    loaded = models.load(gguf_of(tmp_path / "f.gguf", settings_of("llama"), **fields), progress=False)
    assert loaded.tokenizer.encode("ab").tokens == ["ab"]


def test_the_longest_text_can_be_chosen(tmp_path):
    settings = settings_of("llama")
    for path in (folder_of(tmp_path / "folder", settings), gguf_of(tmp_path / "f.gguf", settings)):
        assert models.load(path, max_length=20, progress=False).config.max_length == 20
        with pytest.raises(ModelError, match=r"`LlamaConfig\.max_length` must be positive"):
            models.load(path, max_length=0, progress=False)


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.int8])
def test_other_dtypes_are_refused(tmp_path, dtype):
    with pytest.raises(ModelError, match="must be float32 or bfloat16"):
        models.load(folder_of(tmp_path, settings_of("llama")), dtype=dtype, progress=False)


@pytest.mark.parametrize("package", ["safetensors", "tokenizers", "tqdm"])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, package):
    folder = folder_of(tmp_path, settings_of("llama"))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'`{package}` .* pip install "jaxgcd\[models\]"'):
        models.load(folder)
