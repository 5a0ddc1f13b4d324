"""`examples/generate_json.py` and `examples/batch_generation.py`, run on a random model that spells JSON."""

import importlib.util
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from checkpoints import random_weights, settings_of, write_folder
from lark import Lark

import jaxgcd

pytest.importorskip("flax")
pytest.importorskip("safetensors")
tokenizers = pytest.importorskip("tokenizers")

EXAMPLES = Path(__file__).parent.parent / "examples"
# What JSON and arithmetic need, and few characters that can go on for ever.
TOKENS = ["<|end|>", "<|user|>", *'{}[]:,"true012+-*/^().Ġ', "true", '"t"']
TEMPLATE = "{% for m in messages %}<|user|>{{ m.content }}{% endfor %}"


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> str:
    """A random Llama; its first two tokens are special, and questions are spelled as far as its tokens go."""
    settings = settings_of("llama", vocab_size=len(TOKENS), max_position_embeddings=256, num_hidden_layers=1)
    folder = write_folder(tmp_path_factory.mktemp("spelling") / "m", settings, random_weights(settings), 1)
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({token: i for i, token in enumerate(TOKENS)}, []))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    tokenizer.add_special_tokens([tokenizers.AddedToken(token, special=True) for token in TOKENS[:2]])
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    return str(folder)


def load(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def answers_in(output: str) -> Iterator[tuple[str, str]]:
    """How each answer ended, and its text, as `batch_generation` prints them."""
    for line in output.splitlines():
        if line.startswith("  "):
            finish, _, text = line.strip().partition(": ")
            yield finish, eval(text, {"__builtins__": {}})


@pytest.mark.parametrize("name", ["generate_json", "batch_generation"])
def test_a_model_without_a_chat_template(model, tmp_path, name):
    bare = Path(shutil.copytree(model, tmp_path / "bare"))
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(SystemExit, match="no chat template"):
        load(name).main([str(bare)])


def test_generate_json(model, capsys):
    """`json.loads` reads the answer; one that is cut is a failure."""
    example = load("generate_json")
    assert example.main([model, "Write (a) + (b).", "--max-new-tokens", "120"]) == 0
    out, err = capsys.readouterr()
    assert f"json.loads reads it as {json.loads(out)!r}" in err
    assert example.main([model, "--max-new-tokens", "1"]) == 1
    assert "not complete: LENGTH after 1 tokens" in capsys.readouterr().err


def test_batch_generation(model, capsys, monkeypatch):
    """One batch: every row is there; Lark reads the complete ones; the example counts them."""
    example, generate, batches = load("batch_generation"), jaxgcd.generate, []
    monkeypatch.setattr(
        jaxgcd, "generate", lambda *args, **options: batches.append(args[4]) or generate(*args, **options)
    )
    assert example.main([model, "--samples", "3", "--temperature", "1.5"]) == 0
    out = capsys.readouterr().out
    found = list(answers_in(out))
    assert len(found) == 3 * sum(len(task.questions) for task in example.TASKS)
    assert [state.status.shape for state in batches] == [(len(found),)]
    for task in example.TASKS:
        parser = Lark((EXAMPLES / task.grammar).read_text(), parser="lalr")
        rows, found = found[: 3 * len(task.questions)], found[3 * len(task.questions) :]
        texts = [text for finish, text in rows if finish == "EOS"]
        for text in texts:
            parser.parse(text)
        assert f"{task.grammar}: {len(texts)} of {len(rows)} answers are complete; Lark rejects 0." in out
        assert texts
