"""The safetensors files of a Hugging Face folder: https://huggingface.co/docs/safetensors."""

from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

from .files import read_json

_SINGLE, _INDEX = "model.safetensors", "model.safetensors.index.json"


class FolderTensors:
    """The tensors of all shards, which stay memory-mapped: only what is read takes memory."""

    def __init__(self, folder: Path):
        self._shard_of: dict[str, tuple[Path, Any]] = {}
        index = _index(folder)
        for path in [folder / _SINGLE] if index is None else [folder / name for name in sorted(index)]:
            self._add(path)
        for name, tensors in (index or {}).items():
            if strays := sorted(t for t in tensors if self._shard_of.get(t, (None,))[0] != folder / name):
                raise ModelError(f"{_INDEX} says that {name} holds {strays[0]!r}, but it does not")

    @property
    def names(self) -> Collection[str]:
        """The names of all tensors."""
        return self._shard_of.keys()

    def read(self, name: str) -> np.ndarray:
        """One tensor's values, in the dtype in which they are stored."""
        path, shard = self._shard_of[name]
        try:
            return shard.get_tensor(name)
        except Exception as error:  # a dtype that NumPy lacks raises one of several kinds
            raise ModelError(f"{path.name}: tensor {name!r} cannot be read ({error})") from error

    def discard(self, name: str) -> None:
        """Take a tensor out of the names."""
        del self._shard_of[name]

    def _add(self, path: Path) -> None:
        safetensors = require("safetensors", "models")
        if not path.is_file():
            raise ModelError(f"{path.name}: no such file in this folder, though {_INDEX} names it")
        try:
            shard = safetensors.safe_open(path, framework="numpy")
        except (safetensors.SafetensorError, OSError) as error:
            raise ModelError(f"{path.name}: not a complete safetensors file ({error})") from error
        for name in shard.keys():
            if name in self._shard_of:
                raise ModelError(f"tensor {name!r} is in {self._shard_of[name][0].name} and in {path.name}")
            self._shard_of[name] = path, shard


def _index(folder: Path) -> dict[str, list[str]] | None:
    """Tensor names by shard, or None for a folder with a single file."""
    if not (folder / _INDEX).exists():
        if not (folder / _SINGLE).exists():
            raise ModelError(_nothing_found(folder))
        return None
    weight_map = read_json(folder / _INDEX).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise ModelError(f"{_INDEX}: no `weight_map` from tensors to files")
    shards: dict[str, list[str]] = {}
    for tensor, name in weight_map.items():
        if name in ("", ".", "..") or "\\" in name or Path(name).name != name:
            raise ModelError(f"{_INDEX}: {name!r} is not the name of a file in this folder")
        shards.setdefault(name, []).append(tensor)
    return shards


def _nothing_found(folder: Path) -> str:
    pickled = sorted(path.name for end in ("*.bin", "*.pt", "*.pth") for path in folder.glob(end))
    if not pickled:
        return f"neither {_SINGLE} nor {_INDEX} is in this folder"
    return (
        f"no safetensors; {pickled[0]} is a pickle, which could run code, and is not read. Convert it with "
        "`model.save_pretrained(folder, safe_serialization=True)` of transformers"
    )
