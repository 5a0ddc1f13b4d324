"""`examples/demo.py`: the shipped prompts end inside their grammars, and a limit that is too low shows."""

import dataclasses
import importlib.util
from pathlib import Path

import pytest
from checkpoints import gguf_fields, gguf_tensors, random_weights, settings_of, write_gguf
from flax import nnx

from jaxgcd import models

pytest.importorskip("rich")
pytest.importorskip("tqdm")
pytest.importorskip("gguf")

DEMO = Path(__file__).parent.parent / "examples" / "demo.py"


@pytest.fixture(scope="module")
def demo():
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.model
@pytest.mark.prove  # `make demo` runs it, too
def test_the_demo_ends_with_what_others_read(demo, smollm2_file, capsys):
    assert demo.main([]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert "truncated" not in out
    assert lines[-3] == "Lark parsed the JSON text with json.lark."
    assert lines[-2].startswith("json.loads read it: {'name': ")
    assert lines[-1] == "Lark parsed the SQL text with sql.lark."
    assert out.count("tokens per second") == 4


@pytest.mark.model
def test_a_truncated_answer_is_a_failure(demo, smollm2_file, capsys, monkeypatch):
    """One token is never enough: no JSON text is empty. A small random model will do."""
    loaded = models.load_gguf(smollm2_file, progress=False)
    config = dataclasses.replace(
        loaded.config,
        hidden_size=8,
        num_layers=1,
        num_heads=2,
        num_kv_heads=1,
        head_dim=4,
        intermediate_size=8,
    )
    small = dataclasses.replace(loaded, model=models.Llama(config, rngs=nnx.Rngs(0)), config=config)
    monkeypatch.setattr(models, "load_gguf", lambda path: small)
    monkeypatch.setattr(demo, "TASKS", demo.TASKS[:1])
    assert demo.main(["--max-new-tokens", "1"]) == 1
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "truncated: the JSON text did not end within 1 tokens"
    assert "Lark parsed" not in out


def test_a_model_without_a_chat_template(demo, tmp_path, monkeypatch):
    settings = settings_of("llama", num_hidden_layers=1)
    path = write_gguf(
        tmp_path / "m.gguf", gguf_fields(settings), gguf_tensors(settings, random_weights(settings))
    )
    monkeypatch.setattr(models, "smollm2_path", lambda: path)
    with pytest.raises(SystemExit, match="no chat template"):
        demo.main([])
