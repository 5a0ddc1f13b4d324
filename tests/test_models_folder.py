"""Hugging Face folders that are damaged, incomplete or not supported: errors name the file and the entry."""

import json
import shutil
from pathlib import Path

import checkpoints
import numpy as np
import pytest
from checkpoints import settings_of, write_json
from safetensors.numpy import load_file, save_file

from jaxgcd import models
from jaxgcd.errors import ModelError

pytest.importorskip("tokenizers")

SHARD = "model-00002-of-00003.safetensors"
LONG = {"factor": 2, "original_max_position_embeddings": 10**400}
LLAMA3 = {"low_freq_factor": 1, "high_freq_factor": 4}
INDEX = "model.safetensors.index.json"


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    settings = settings_of("llama")
    folder = tmp_path_factory.mktemp("whole")
    return checkpoints.write_folder(folder, settings, checkpoints.random_weights(settings))


@pytest.fixture
def folder(whole, tmp_path) -> Path:
    """A copy to damage."""
    return Path(shutil.copytree(whole, tmp_path / "model"))


def fails(folder: Path, message: str) -> None:
    with pytest.raises(ModelError, match=message) as caught:
        models.load(folder, progress=False)
    assert str(folder) in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model_type": "mixtral"},
            "`model_type` 'mixtral' is not supported; these are: llama, mistral, qwen2",
        ),
        ({"model_type": ...}, "no entry `model_type`"),
        ({"hidden_size": ...}, "no entry `hidden_size`, which must be an integer"),
        ({"hidden_size": "32"}, "`hidden_size` must be an integer, not '32'"),
        ({"hidden_size": True}, "`hidden_size` must be an integer, not True"),
        ({"num_attention_heads": 0}, "`LlamaConfig.num_heads` must be positive, not 0"),
        ({"num_key_value_heads": 3}, "must be a multiple of `num_kv_heads`"),
        ({"num_hidden_layers": 10**15}, "20 tensors cannot be the weights of 1000000000000000 layers"),
        (
            {"num_hidden_layers": 3},
            "no tensor 'model.layers.2.input_layernorm.weight', .* and 4 more: the file is inc",
        ),
        ({"num_hidden_layers": 1}, "does not use: 'model.layers.1.input_layernorm.weight', .* and 4 more"),
        ({"head_dim": 10**9}, "`head_dim` must be even, from 2 to"),
        (
            {"head_dim": 16},
            r"'model.layers.0.self_attn.k_proj.weight' has the shape \(16, 32\), the .* \(32, 32\)",
        ),
        ({"vocab_size": 14}, r"'model.embed_tokens.weight' has the shape \(13, 32\)"),
        ({"tie_word_embeddings": False}, "no tensor 'lm_head.weight'"),
        ({"tie_word_embeddings": "yes"}, "`tie_word_embeddings` must be true or false, not 'yes'"),
        ({"attention_bias": True}, "no tensor 'model.layers.0.self_attn.k_proj.bias'"),
        ({"mlp_bias": True}, "a bias in the feed-forward block is not supported"),
        ({"hidden_act": "gelu"}, "`hidden_act` 'gelu' is not supported; 'silu' is"),
        ({"rms_norm_eps": -1.0}, "`LlamaConfig.rms_eps` must be positive"),
        ({"rms_norm_eps": float("inf")}, "`rms_norm_eps` must be a finite number"),
        ({"partial_rotary_factor": 0.5}, "rotary positions that cover only a part of the head"),
        (
            {"quantization_config": {"quant_method": "gptq"}},
            "weights quantised by 'gptq' are not supported; GGUF",
        ),
        (
            {"rope_scaling": {"type": "dynamic", "factor": 2.0}},
            "scaling 'dynamic' is not supported; these are",
        ),
        ({"rope_scaling": {"rope_type": "longrope"}}, "rotary scaling 'longrope' is not supported"),
        ({"rope_scaling": {"type": "linear"}}, "no entry `factor`"),
        ({"rope_scaling": {"type": "linear", "factor": -1}}, "`factor` must be positive"),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2, "mscale": 1}},
            "the option `mscale` is not supported",
        ),
        (
            {"rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": 1}},
            "`beta_slow` .* less than `beta_fast`",
        ),
        ({"rope_scaling": checkpoints.LLAMA3 | {"low_freq_factor": 4}}, "`low_freq_factor`"),
        ({"rope_scaling": [2.0]}, "must be an object, not"),
        ({"rope_theta": 0}, "`rope_theta` must be greater than 1, not 0"),
        ({"rope_theta": 10**400}, "`rope_theta` must be a finite number"),
        ({"rms_norm_eps": 10**400}, "`rms_norm_eps` must be a finite number"),
        ({"rope_scaling": {"type": "linear", "factor": 10**400}}, "`factor` must be a finite number"),
        ({"rope_scaling": {"type": "linear", "factor": 1e-320}}, "`factor` must be positive, 1e-06 to"),
        ({"rope_scaling": LONG | {"type": "llama3", **LLAMA3}}, "positive `original_max_position"),
        ({"rope_scaling": LONG | {"type": "yarn"}}, "positive `original_max_position"),
        ({"rope_scaling": {"type": "yarn", "factor": 2, "beta_fast": 1e308}}, "less than `beta_fast`"),
        ({"model_type": "mistral", "sliding_window": 2**31}, r"sliding_window` must be below 2\*\*31"),
        ({"model_type": "mistral", "sliding_window": 2**40}, r"sliding_window` must be below 2\*\*31"),
        ({"max_position_embeddings": 10**400}, r"max_length` must be below 2\*\*31"),
        ({"eos_token_id": 13}, "the EOS id 13 is not a token id below 13"),
        ({"model_type": "qwen2", "layer_types": ["full_attention"]}, "must list 2 types, one for each layer"),
        (
            {"model_type": "qwen2", "layer_types": ["chunked_attention"] * 2},
            "'chunked_attention' is not supported",
        ),
        ({"model_type": "qwen2", "layer_types": ["sliding_attention"] * 2}, "contradict each other"),
        ({"model_type": "mistral", "layer_types": ["full_attention"] * 2}, "contradict each other"),
    ],
)
def test_settings_that_are_not_supported(folder, changes, message):
    write_json(folder / "config.json", settings_of("llama", **changes))
    fails(folder, message)


@pytest.mark.parametrize("text", ["", "{", "[1, 2]", "\xff", "[" * 100_000, "{} trailing"])
def test_settings_that_are_no_json_object(folder, text):
    (folder / "config.json").write_text(text, encoding="latin-1")
    fails(folder, "config.json: not a")


def test_files_that_are_missing(folder, tmp_path):
    fails(tmp_path / "nothing", "no such file or folder")
    (folder / SHARD).unlink()
    fails(folder, f"{SHARD}: no such file in this folder, though {INDEX} names it")
    (folder / INDEX).unlink()
    fails(folder, f"neither model.safetensors nor {INDEX} is in this folder")
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    fails(folder, "pytorch_model.bin is a pickle, which could run code, and is not read. Convert it")
    (folder / "config.json").unlink()
    fails(folder, "no config.json in this folder")


def test_shards_that_are_damaged(folder):
    data = (folder / SHARD).read_bytes()
    length = int.from_bytes(data[:8], "little")
    # In the length, the header, the tensors; too long; other content; a header that claims to be huge.
    cut = [b"", data[:4], data[: 8 + length // 2], data[:-1], data + b"\0", b"text" * 99]
    for damaged in [*cut, (1 << 40).to_bytes(8, "little") + data[8:]]:
        (folder / SHARD).write_bytes(damaged)
        fails(folder, f"{SHARD}: not a complete safetensors file")


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("{", f"{INDEX}: not a complete JSON file"),
        ("{}", f"{INDEX}: no `weight_map`"),
        ('{"weight_map": [1]}', f"{INDEX}: no `weight_map`"),
        ('{"weight_map": {"model.norm.weight": 5}}', f"{INDEX}: no `weight_map`"),
        (
            '{"weight_map": {"model.norm.weight": "../other.safetensors"}}',
            "is not the name of a file in this",
        ),
        (
            '{"weight_map": {"model.norm.weight": "/etc/hostname"}}',
            "is not the name of a file in this folder",
        ),
        ('{"weight_map": {"model.norm.weight": ".."}}', "is not the name of a file in this folder"),
        (
            f'{{"weight_map": {{"strange": "{SHARD}"}}}}',
            f"says that {SHARD} holds 'strange', but it does not",
        ),
    ],
)
def test_an_index_that_is_wrong(folder, index, message):
    (folder / INDEX).write_text(index)
    fails(folder, message)


def test_a_tensor_in_two_shards(folder):
    other = "model-00001-of-00003.safetensors"
    name = next(iter(load_file(folder / other)))
    save_file(load_file(folder / SHARD) | {name: np.ones(3, np.float32)}, folder / SHARD)
    fails(folder, f"tensor '{name}' is in {other} and in {SHARD}")


def test_tensors_of_other_kinds(folder):
    shard = load_file(folder / SHARD)
    name = next(iter(shard))
    save_file(shard | {name: shard[name].astype(np.int8)}, folder / SHARD)
    fails(folder, f"tensor '{name}' is int8; the decoder takes floating-point weights")
    save_file(shard | {"model.layers.0.mlp.gate_proj.weight_scale": np.ones(3, np.float32)}, folder / SHARD)
    fails(folder, "tensors that this decoder does not use: 'model.layers.0.mlp.gate_proj.weight_scale'")
    save_file({other: values for other, values in shard.items() if other != name}, folder / SHARD)
    fails(folder, f"says that {SHARD} holds '{name}', but it does not")


def test_a_dtype_that_numpy_lacks(folder):
    data = (folder / SHARD).read_bytes()
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    name = next(name for name in header if name != "__metadata__")
    header[name] |= {"dtype": "F8_E8M0", "shape": [4 * int(np.prod(header[name]["shape"]))]}
    text = json.dumps(header).encode()
    (folder / SHARD).write_bytes(len(text).to_bytes(8, "little") + text + data[8 + length :])
    fails(folder, f"tensor '{name}'|{SHARD}: not a complete")  # an older safetensors lacks it, too


def test_a_head_that_is_tied_and_yet_another_matrix(folder):
    save_file(load_file(folder / SHARD) | {"lm_head.weight": np.ones((13, 32), np.float32)}, folder / SHARD)
    fails(folder, "`tie_word_embeddings` is true, but 'lm_head.weight' differs")


@pytest.mark.parametrize("text", ["", "{}", '{"model": 5}', "\xff"])
def test_a_tokenizer_that_is_damaged(folder, text):
    (folder / "tokenizer.json").write_text(text, encoding="latin-1")
    fails(folder, "the tokenizer's files cannot be read .*; pass `tokenizer`")


def test_other_files_that_are_damaged(folder):
    (folder / "chat_template.jinja").write_bytes(b"\xff")
    fails(folder, "chat_template.jinja: not a readable text file")
    (folder / "generation_config.json").write_text("5")
    fails(folder, "not a")


def test_a_folder_with_sentencepiece_only(folder, mistral_processor):
    """As the first Llama and Mistral models were published; transformers converts it."""
    pytest.importorskip("transformers")
    (folder / "tokenizer.json").unlink()
    (folder / "tokenizer.model").write_bytes(mistral_processor.serialized_model_proto())
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "LlamaTokenizer"}')
    tokenizer = models.load(folder, progress=False).tokenizer
    assert tokenizer.get_vocab_size() == mistral_processor.vocab_size()
    text = "Hello, naïve 日本!"
    assert tokenizer.encode(text, add_special_tokens=False).ids == mistral_processor.encode(text)
