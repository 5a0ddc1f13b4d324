"""GGUF files: their tokenizer and chat template, and files that are damaged or not supported."""

import sys

import checkpoints
import numpy as np
import pytest
from checkpoints import MERGES, TOKENS

from jaxgcd import models
from jaxgcd.errors import MissingExtraError, ModelError

gguf = pytest.importorskip("gguf")
pytest.importorskip("tokenizers")

TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'robot' %}{{ raise_exception('no robots') }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}{{ '\\n' }}{% endif %}"
)
YARN = (("type", "yarn"), ("factor", 2.0), ("original_context_length", 0))


def write_gguf(path, *, tensors=None, skip=(), **fields):
    """A small Llama; `fields` replace or add metadata, `tensors` tensors, and `skip` leaves some out."""
    settings = checkpoints.settings_of("llama")
    own = checkpoints.gguf_fields(settings) | {"tokenizer.chat_template": TEMPLATE} | fields
    stored = checkpoints.gguf_tensors(settings, checkpoints.random_weights(settings)) | (tensors or {})
    return checkpoints.write_gguf(
        path,
        {name: value for name, value in own.items() if name not in skip},
        {name: values for name, values in stored.items() if name not in skip},
    )


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> models.LoadedModel:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return models.load_gguf(write_gguf(path), progress=False)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("ab ab", ["ab", "Ġab"]),
        ("ba", ["b", "a"]),
        ("a12 1", ["a", "1", "2", "Ġ", "1"]),  # every digit is a piece of its own
        ("é\n", ["Ã", "©", "Ċ"]),
        ("a<|end|>b", ["a", "<|end|>", "b"]),
    ],
)
def test_tokenizer(tiny, text, tokens):
    encoding = tiny.tokenizer.encode(text, add_special_tokens=False)
    assert encoding.tokens == tokens
    assert encoding.ids == [TOKENS.index(token) for token in tokens]
    assert tiny.tokenizer.decode(encoding.ids, skip_special_tokens=False) == text
    assert tiny.tokenizer.decode(encoding.ids) == text.replace("<|end|>", "")


def test_without_single_digits(tmp_path):
    fields = {
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.merges": [*MERGES, "1 2"],
        "tokenizer.ggml.tokens": [*TOKENS[:-1], "12"],
    }
    path = write_gguf(tmp_path / "tiny.gguf", **fields)
    tokenizer = models.load_gguf(path, progress=False).tokenizer
    assert tokenizer.encode("12 1", add_special_tokens=False).tokens == ["12", "Ġ", "1"]


def test_chat_template(tiny):
    assert tiny.chat_template.ask("hello") == "<|user|>hello\n"
    assert tiny.chat_template.ask("hello", system="be brief") == "<|system|>be brief<|user|>hello\n"
    messages = [{"role": "user", "content": "hello"}, {"role": "bot", "content": "hi"}]
    assert tiny.chat_template.render(messages, add_generation_prompt=False) == "<|user|>hello<|bot|>hi"
    with pytest.raises(ModelError, match="rejects the conversation: no robots"):
        tiny.chat_template.render([{"role": "robot", "content": ""}])


@pytest.mark.parametrize(
    "source", ["{{ messages.append(1) }}", "{{ ''.__class__.__mro__ }}", "{% for %}", "{{ 1 // 0 }}"]
)
def test_chat_templates_run_in_a_sandbox(source):
    with pytest.raises(ModelError, match="chat template cannot be rendered"):
        models.ChatTemplate(source).ask("hello")


def test_a_file_without_chat_template(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", skip=["tokenizer.chat_template"])
    assert models.load_gguf(path, progress=False).chat_template is None


MATRIX = np.ones((4, 4), np.float32)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"general.architecture": "mamba"}, "architecture 'mamba' is not supported; these are: llama, qwen2"),
        ({"llama.rope.dimension_count": 4}, "only a part of the head"),
        ({"llama.attention.value_length": 4}, "values of another size than keys"),
        ({"llama.expert_count": 8}, "`llama.expert_count` is 8: a mixture of experts is not supported"),
        ({"llama.attention.sliding_window_pattern": 2}, "a sliding window in some layers only"),
        ({"llama.rope.scaling.type": "longrope"}, "rotary scaling 'longrope' is not supported"),
        ({"llama.rope.scaling.type": "yarn"}, "no entry `llama.rope.scaling.factor`"),
        (
            {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 0.0},
            "`factor` must be positive",
        ),
        ({f"llama.rope.scaling.{name}": value for name, value in YARN}, "positive `original_max_position"),
        ({"llama.rope.scaling.attn_factor": 1.5}, "another attention factor"),
        ({"llama.rope.freq_base": float("nan")}, "`llama.rope.freq_base` must be a finite number"),
        ({"llama.rope.freq_base": 0.5}, "`rope_theta` must be greater than 1"),
        ({"llama.attention.key_length": 7}, "only a part of the head"),
        ({"llama.attention.head_count": 5}, "must be a multiple of `num_kv_heads`"),
        ({"llama.attention.head_count": [4, 4]}, "`llama.attention.head_count` must be an integer, not"),
        ({"llama.attention.head_count": 0}, "`LlamaConfig.num_heads` must be positive"),
        ({"llama.feed_forward_length": 32}, r"'blk.0.ffn_down.weight' has the shape \(32, 64\)"),
        ({"llama.block_count": 3}, "no tensor 'blk.2.attn_k.weight', .* and 4 more"),
        ({"llama.block_count": 4_000_000_000}, "20 tensors cannot be the weights of 4000000000 layers"),
        ({"llama.block_count": 1}, "does not use: 'blk.1.attn_k.weight', .* and 4 more"),
        ({"tensors": {"rope_freqs.weight": MATRIX[0, :3]}}, "must have 4 positive divisors, or none"),
        ({"tensors": {"rope_freqs.weight": -MATRIX[0]}}, "must have 4 positive divisors, or none"),
        ({"tensors": {"blk.0.attn_q.weight": MATRIX[:3]}}, "has 3 rows, which 4 heads cannot share"),
        ({"tensors": {"blk.0.attn_v.bias": MATRIX[0]}}, "does not use: 'blk.0.attn_v.bias'"),
        ({"skip": ["token_embd.weight"]}, "no entry 'token_embd.weight'"),
        ({"skip": ["llama.embedding_length"]}, "no entry `llama.embedding_length`"),
        ({"split.count": 2}, "one of several parts; join them"),
        ({"tokenizer.ggml.eos_token_id": 13}, "eos_token_id` is 13, but there are 13 tokens"),
        ({"tokenizer.ggml.eot_token_id": 13}, "the EOS id 13 is not a token id below 13"),
        ({"tokenizer.ggml.tokens": 5}, "`tokenizer.ggml.tokens` must be a list of str"),
        ({"tokenizer.chat_template": 5}, "`tokenizer.chat_template` must be a text, not 5"),
        (
            {"tokenizer.ggml.model": "bert"},
            "kind 'bert' is not supported; 'gpt2' and 'llama' are; pass `tokenizer`",
        ),
        ({"skip": ["tokenizer.ggml.merges"]}, "no entry `tokenizer.ggml.merges`; pass `tokenizer`"),
        (
            {"tokenizer.ggml.pre": "strange"},
            "pre-tokenizer 'strange' is not supported; these are: default, .*llama-bpe.*qwen2",
        ),
        ({"tokenizer.ggml.tokens": TOKENS[:-1]}, "12 tokens with 13 token types"),
        ({"tokenizer.ggml.tokens": [*TOKENS[:-1], "a"]}, "only 12 of 13 tokens are distinct"),
        ({"tokenizer.ggml.merges": ["b a"]}, "merge 'b a' does not join two tokens to a third"),
    ],
)
def test_files_that_are_not_supported_are_named(tmp_path, change, message):
    path = write_gguf(tmp_path / "odd.gguf", **change)
    with pytest.raises(ModelError, match=message) as caught:
        models.load_gguf(path, progress=False)
    assert str(path) in str(caught.value)


def test_a_quantisation_that_the_package_cannot_read_is_named(tmp_path, monkeypatch):
    path = write_gguf(tmp_path / "odd.gguf")

    def dequantize(data, kind):
        raise NotImplementedError

    monkeypatch.setattr(gguf, "dequantize", dequantize)
    with pytest.raises(ModelError, match=r"tensor 'token_embd\.weight': quantisation F32 is not supported"):
        models.load_gguf(path, progress=False)


def test_missing_and_damaged_files_are_named(tmp_path):
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    path = tmp_path / "bad.gguf"
    with pytest.raises(ModelError, match=r"bad\.gguf: no such model file"):
        models.load_gguf(path)
    # In the magic, the header, the metadata, the tensor list, the last tensor; and other content.
    for damaged in (b"", whole[:3], whole[:20], whole[:300], whole[:1500], whole[:-100], b"text" * 99):
        path.write_bytes(damaged)
        with pytest.raises(ModelError, match=r"bad\.gguf: not a complete GGUF file"):
            models.load_gguf(path)


@pytest.mark.parametrize("package", ["gguf", "tokenizers", "tqdm", "jinja2"])
def test_a_missing_package_names_the_extra(tmp_path, monkeypatch, tiny, package):
    path = write_gguf(tmp_path / "tiny.gguf")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'`{package}` .* pip install "jaxgcd\[models\]"'):
        tiny.chat_template.ask("hello") if package == "jinja2" else models.load_gguf(path)
