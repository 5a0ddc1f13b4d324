"""Small text files of a model folder."""

import json
from pathlib import Path
from typing import Any

from jaxgcd.errors import ModelError

_MOST_BYTES = 1 << 27


def read_text(path: Path) -> str:
    """The text of a UTF-8 file; `ModelError`, with its name, if it is not one, or larger than 128 MiB."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelError(f"{path.name}: larger than {_MOST_BYTES >> 20} MiB")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"{path.name}: not a readable text file ({error})") from error


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file, an empty one if there is no such file; else `ModelError` with its name."""
    if not path.exists():
        return {}
    try:
        value = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path.name}: not a complete JSON file ({error})") from error
    if not isinstance(value, dict):
        raise ModelError(f"{path.name}: not a JSON object")
    return value
