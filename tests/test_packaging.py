"""What an installed jaxgcd promises: its names, its version, its types, its extras, its README."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import jaxgcd
from jaxgcd.__main__ import main
from jaxgcd._extras import require
from jaxgcd.errors import MissingExtraError

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PUBLIC = {
    *("Vocabulary", "compile_grammar", "Tables", "State", "init", "allowed", "mask_logits", "advance"),
    *("sample", "generate", "JaxgcdError", "GrammarError", "VocabularyError", "MissingExtraError"),
}


def test_public_names_are_listed_and_importable():
    assert set(jaxgcd.__all__) >= PUBLIC
    assert [name for name in jaxgcd.__all__ if not hasattr(jaxgcd, name)] == []


def test_package_is_typed():
    assert (Path(jaxgcd.__file__).parent / "py.typed").is_file()


def test_installed_version_is_that_of_the_project():
    assert importlib.metadata.version("jaxgcd") == PROJECT["version"]


def test_the_command_is_the_module():
    (name, value), *others = PROJECT["scripts"].items()
    assert importlib.metadata.EntryPoint(name, value, "console_scripts").load() is main
    assert name == "jaxgcd" and not others


def test_missing_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "optax", None)  # what makes `import optax` fail
    message = r'`optax` is not installed: pip install "jaxgcd\[train\]"'
    with pytest.raises(MissingExtraError, match=message) as e:
        require("optax", "train")
    assert isinstance(e.value, ImportError) and e.value.name == "optax"


def test_an_error_inside_an_installed_package_is_not_taken_for_a_missing_extra(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("import a_module_that_does_not_exist\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="a_module_that_does_not_exist") as e:
        require("broken_package", "models")
    assert not isinstance(e.value, MissingExtraError)


def test_every_extra_that_the_code_asks_for_exists():
    asked = set()
    for file in (ROOT / "jaxgcd").rglob("*.py"):
        asked |= set(re.findall(r'\brequire\(\s*"[\w.]+",\s*"(\w+)"', file.read_text()))
    assert asked <= set(PROJECT["optional-dependencies"])


def test_core_imports_no_optional_dependency():
    code = "import sys, jaxgcd; print(*{name.split('.')[0] for name in sys.modules})"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    names = {"flax", "gguf", "optax", "rich", "sentencepiece", "tokenizers", "tqdm", "transformers", "typer"}
    assert not names & set(output.split())


def test_first_example_of_the_readme_runs_as_written():
    readme = (ROOT / "README.md").read_text()
    example = readme.split("```python\n")[1].split("```")[0]
    output = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True)
    assert output.returncode == 0, output.stderr
    assert len(output.stdout.splitlines()) == 8  # one line per row of the batch


def test_the_oldest_versions_are_those_of_the_documentation():
    """`make test-floor` installs what `.ci/floor.py` prints; the README names the most important ones."""
    command = [sys.executable, str(ROOT / ".ci" / "floor.py"), "models", "train", "cli"]
    pins = dict(pin.split("==") for pin in subprocess.check_output(command, text=True).split())
    readme = (ROOT / "README.md").read_text()
    sentence = " ".join(re.findall(r"Python from .*?\.\n", readme, re.DOTALL)[0].split())
    for name in ("jax", "flax", "numpy", "lark"):
        assert f"{name} from {pins[name]}" in sentence
    assert "Python from 3.11" in sentence and PROJECT["requires-python"] == ">=3.11"
