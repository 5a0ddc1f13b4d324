"""GGUF files: a tiny one, written here, against a forward pass in plain NumPy; and damaged ones."""

import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jaxgcd import models
from jaxgcd.errors import MissingExtraError, ModelError

gguf = pytest.importorskip("gguf")
pytest.importorskip("tokenizers")

HIDDEN, LAYERS, HEADS, KV_HEADS, HEAD_DIM, INNER = 32, 2, 4, 2, 8, 64
THETA, EPS = 500.0, 1e-4
TOKENS = ["<|end|>", "<|user|>", "a", "b", "c", "Ġ", "1", "2", "ab", "Ġab", "Ċ", "Ã", "©"]
MERGES = ["a b", "Ġ ab"]
CONTROL, NORMAL = 3, 1
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'robot' %}{{ raise_exception('no robots') }}{% endif %}"
    "<|{{ m.role }}|>{{ m.content }}{% endfor %}{% if add_generation_prompt %}{{ '\\n' }}{% endif %}"
)


def random_weights(tied: bool) -> dict[str, np.ndarray]:
    """Tensors by their GGUF names; matrices are `[outputs, inputs]`."""
    generator = np.random.default_rng(0)
    shapes = {"token_embd": (len(TOKENS), HIDDEN), "output_norm": (HIDDEN,)}
    if not tied:
        shapes["output"] = (len(TOKENS), HIDDEN)
    for layer in range(LAYERS):
        shapes |= {
            f"blk.{layer}.attn_norm": (HIDDEN,),
            f"blk.{layer}.attn_q": (HEADS * HEAD_DIM, HIDDEN),
            f"blk.{layer}.attn_k": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"blk.{layer}.attn_v": (KV_HEADS * HEAD_DIM, HIDDEN),
            f"blk.{layer}.attn_output": (HIDDEN, HEADS * HEAD_DIM),
            f"blk.{layer}.ffn_norm": (HIDDEN,),
            f"blk.{layer}.ffn_gate": (INNER, HIDDEN),
            f"blk.{layer}.ffn_up": (INNER, HIDDEN),
            f"blk.{layer}.ffn_down": (HIDDEN, INNER),
        }
    return {
        f"{name}.weight": (generator.normal(size=shape) * 0.3 + (len(shape) == 1)).astype(np.float32)
        for name, shape in shapes.items()
    }


def write_gguf(path: Path, weights, *, architecture="llama", kind=None, skip=(), **fields) -> Path:
    """Write a GGUF file; `fields` replace or add metadata, `skip` leaves some out."""
    writer = gguf.GGUFWriter(path, architecture)
    numbers = {
        "llama.block_count": LAYERS,
        "llama.embedding_length": HIDDEN,
        "llama.feed_forward_length": INNER,
        "llama.attention.head_count": HEADS,
        "llama.attention.head_count_kv": KV_HEADS,
        "llama.rope.dimension_count": HEAD_DIM,
        "tokenizer.ggml.eos_token_id": 0,
    } | {key: value for key, value in fields.items() if isinstance(value, int)}
    texts = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "smollm",
        "tokenizer.chat_template": TEMPLATE,
    } | {key: value for key, value in fields.items() if isinstance(value, str)}
    for key in numbers.keys() - set(skip):
        writer.add_uint32(key, numbers[key])
    for key in texts.keys() - set(skip):
        writer.add_string(key, texts[key])
    writer.add_float32("llama.rope.freq_base", THETA)
    writer.add_float32("llama.attention.layer_norm_rms_epsilon", EPS)
    writer.add_array("tokenizer.ggml.tokens", fields.get("tokens", TOKENS))
    writer.add_array("tokenizer.ggml.token_type", [CONTROL] * 2 + [NORMAL] * (len(TOKENS) - 2))
    writer.add_array("tokenizer.ggml.merges", fields.get("merges", MERGES))
    for name, values in weights.items():
        if kind is not None and values.ndim == 2:
            writer.add_tensor(name, gguf.quantize(values, kind), raw_dtype=kind)
        else:
            writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def reference_logits(weights: dict[str, np.ndarray], tokens: list[int]) -> np.ndarray:
    """`[time, vocab]`: the model of llama.cpp, with its neighbouring rotary pairs, one position at a time."""
    weights = {name.removesuffix(".weight"): values.astype(np.float64) for name, values in weights.items()}
    frequencies = THETA ** (-np.arange(0, HEAD_DIM, 2) / HEAD_DIM)

    def norm(x, scale):
        return x / np.sqrt((x * x).mean() + EPS) * scale

    def turn(x, position):
        pairs = x.reshape(-1, HEAD_DIM // 2, 2)
        turned = (pairs[..., 0] + 1j * pairs[..., 1]) * np.exp(1j * position * frequencies)
        return np.stack([turned.real, turned.imag], axis=-1).reshape(-1, HEAD_DIM)

    past = [([], []) for _ in range(LAYERS)]
    out = []
    for position, token in enumerate(tokens):
        x = weights["token_embd"][token]
        for layer, (keys, values) in enumerate(past):
            w = {n.split(".")[2]: v for n, v in weights.items() if n.startswith(f"blk.{layer}.")}
            inside = norm(x, w["attn_norm"])
            q = turn(w["attn_q"] @ inside, position)
            keys.append(turn(w["attn_k"] @ inside, position))
            values.append((w["attn_v"] @ inside).reshape(KV_HEADS, HEAD_DIM))
            mixed = []
            for head in range(HEADS):
                shared = head // (HEADS // KV_HEADS)
                scores = np.array([key[shared] @ q[head] for key in keys]) / np.sqrt(HEAD_DIM)
                share = np.exp(scores) / np.exp(scores).sum()
                mixed.append(sum(s * value[shared] for s, value in zip(share, values, strict=True)))
            x = x + w["attn_output"] @ np.concatenate(mixed)
            inside = norm(x, w["ffn_norm"])
            gate = w["ffn_gate"] @ inside
            x = x + w["ffn_down"] @ (gate / (1 + np.exp(-gate)) * (w["ffn_up"] @ inside))
        out.append(weights.get("output", weights["token_embd"]) @ norm(x, weights["output_norm"]))
    return np.array(out)


def loaded_logits(model: models.Llama, tokens: list[int]) -> np.ndarray:
    return np.asarray(forward(*nnx.split(model), jnp.asarray([tokens], jnp.int32)))[0]


@jax.jit
def forward(graphdef, params, tokens):
    model = nnx.merge(graphdef, params)
    hidden, _ = model(tokens, model.init_cache(1, 16))
    return model.logits(hidden)


@pytest.mark.parametrize("tied", [True, False])
def test_logits_equal_a_reference_in_numpy(tmp_path, tied):
    weights = random_weights(tied)
    loaded = models.load_gguf(write_gguf(tmp_path / "tiny.gguf", weights), progress=False)
    tokens = [1, 2, 8, 12, 0, 3, 5, 5, 9]
    np.testing.assert_allclose(
        loaded_logits(loaded.model, tokens), reference_logits(weights, tokens), rtol=1e-4, atol=1e-4
    )
    assert loaded.config == models.LlamaConfig(
        vocab_size=len(TOKENS),
        hidden_size=HIDDEN,
        num_layers=LAYERS,
        num_heads=HEADS,
        num_kv_heads=KV_HEADS,
        head_dim=HEAD_DIM,
        intermediate_size=INNER,
        rope_theta=THETA,
        rms_eps=float(np.float32(EPS)),
        tied_embeddings=tied,
    )
    assert loaded.eos_ids == (0,)


@pytest.mark.parametrize("kind", ["Q8_0", "Q4_0", "Q4_1", "Q5_0", "Q5_1", "F16", "BF16"])
def test_quantised_tensors_are_dequantised(tmp_path, kind):
    kind, weights = gguf.GGMLQuantizationType[kind], random_weights(True)
    loaded = models.load_gguf(write_gguf(tmp_path / "tiny.gguf", weights, kind=kind), progress=False)
    rounded = {
        name: gguf.dequantize(gguf.quantize(values, kind), kind) if values.ndim == 2 else values
        for name, values in weights.items()
    }
    tokens = [3, 1, 4, 1, 5]
    np.testing.assert_allclose(
        loaded_logits(loaded.model, tokens), reference_logits(rounded, tokens), rtol=1e-4, atol=1e-4
    )


def test_the_dtype_of_the_weights_can_be_chosen(tmp_path):
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(True))
    model = models.load_gguf(path, dtype=jnp.bfloat16, progress=False).model
    assert {leaf.dtype for leaf in jax.tree.leaves(nnx.split(model)[1])} == {jnp.dtype(jnp.bfloat16)}
    assert np.isfinite(loaded_logits(model, [3, 1, 4])).all()


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> models.LoadedModel:
    path = tmp_path_factory.mktemp("gguf") / "tiny.gguf"
    return models.load_gguf(write_gguf(path, random_weights(True)), progress=False)


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
    fields = {"tokenizer.ggml.pre": "gpt-2", "merges": ["a b", "Ġ ab", "1 2"], "tokens": [*TOKENS[:-1], "12"]}
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(True), **fields)
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
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(True), skip=["tokenizer.chat_template"])
    assert models.load_gguf(path, progress=False).chat_template is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"architecture": "mamba"}, "architecture 'mamba' is not supported"),
        ({"llama.rope.dimension_count": 4}, "only a part of the head"),
        ({"llama.rope.scaling.type": "yarn"}, "rotary scaling 'yarn' is not supported"),
        ({"llama.attention.key_length": 16}, "only a part of the head"),
        ({"llama.feed_forward_length": 32}, "have shape"),
        ({"llama.block_count": 3}, "no entry 'blk.2.attn"),
        ({"llama.block_count": 1}, "does not use: blk.1.attn_k.weight"),
        ({"skip": ["llama.embedding_length"]}, "no entry 'llama.embedding_length'"),
        ({"tokenizer.ggml.model": "llama"}, "tokenizer kind 'llama' is not supported"),
        ({"tokenizer.ggml.pre": "strange"}, "pre-tokenizer 'strange' is not supported"),
        ({"tokens": TOKENS[:-1]}, "12 tokens with 13 token types"),
        ({"tokens": [*TOKENS[:-1], "a"]}, "only 12 of 13 tokens are distinct"),
        ({"merges": ["b a"]}, "merge 'b a' does not join two tokens to a third"),
    ],
)
def test_files_that_are_not_supported_are_named(tmp_path, change, message):
    path = write_gguf(tmp_path / "odd.gguf", random_weights(True), **change)
    with pytest.raises(ModelError, match=message) as caught:
        models.load_gguf(path, progress=False)
    assert str(path) in str(caught.value)


def test_missing_and_damaged_files_are_named(tmp_path):
    whole = write_gguf(tmp_path / "whole.gguf", random_weights(True)).read_bytes()
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
    path = write_gguf(tmp_path / "tiny.gguf", random_weights(True))
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf'`{package}` .* pip install "jaxgcd\[models\]"'):
        tiny.chat_template.ask("hello") if package == "jinja2" else models.load_gguf(path)
