"""Fill a decoder with stored weights, without initialising it first."""

from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, Protocol

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.typing import DTypeLike

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

from .config import LlamaConfig
from .llama import Llama
from .names import Path


class Tensors(Protocol):
    """Stored tensors, by their names in a file."""

    @property
    def names(self) -> Collection[str]:
        """The names of all tensors."""
        ...

    def read(self, name: str) -> np.ndarray:
        """One tensor's values; matrices are `[outputs, inputs]`, the embedding is `[vocab, hidden]`."""
        ...


def build(
    config: LlamaConfig,
    dtype: DTypeLike,
    tensors: Tensors,
    name_of: Callable[[Path], str],
    *,
    progress: bool = True,
) -> Llama:
    """Build a `Llama` from stored tensors, of which `name_of` gives each parameter's name.

    One tensor at a time is read and converted, so that beside the model only that one is in memory. Raises
    `ModelError`, with the names, for tensors that are missing, left over, of the wrong shape or not numbers.
    """
    tqdm = require("tqdm", "models").tqdm
    dtype = checked_dtype(dtype)
    if config.num_layers > len(tensors.names):  # found before so many are made
        raise ModelError(f"{len(tensors.names)} tensors cannot be the weights of {config.num_layers} layers")
    graphdef, abstract = nnx.split(nnx.eval_shape(lambda: Llama(config, dtype=dtype, rngs=nnx.Rngs(0))))
    flat: Any = nnx.to_flat_state(abstract)  # flax types the parts of a path as any keys
    slots = [(path, name_of(path), slot) for path, slot in flat]
    _check_present(sorted(name for _, name, _ in slots), tensors)
    if extra := sorted(set(tensors.names) - {name for _, name, _ in slots}):
        raise ModelError(f"tensors that this decoder does not use: {_some(extra)}")
    filled = []
    for path, name, slot in tqdm(slots, desc="loading weights", unit="tensor", disable=not progress):
        values = _checked(name, tensors.read(name), slot.shape[::-1] if path[-1] == "kernel" else slot.shape)
        values = values.T if path[-1] == "kernel" else values
        # A copy, even where the dtype is right: NumPy's array may be a view of the file.
        filled.append((path, slot.replace(jnp.array(values, dtype))))
    return nnx.merge(graphdef, nnx.from_flat_state(filled))


def checked_dtype(dtype: DTypeLike) -> np.dtype:
    """The dtype, if the decoder computes in it; else `ModelError`."""
    with suppress(TypeError):
        if (known := jnp.dtype(dtype)) in (jnp.float32, jnp.bfloat16):
            return known
    raise ModelError(f"`dtype` must be float32 or bfloat16, not {dtype!r}")


def _check_present(names: list[str], tensors: Tensors) -> None:
    if missing := [name for name in names if name not in tensors.names]:
        raise ModelError(f"no tensor {_some(missing)}: the file is incomplete, or its settings do not fit it")


def _checked(name: str, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    if not jnp.issubdtype(values.dtype, jnp.floating):
        raise ModelError(f"tensor {name!r} is {values.dtype}; the decoder takes floating-point weights")
    if values.shape != shape:
        raise ModelError(f"tensor {name!r} has the shape {values.shape}, the settings ask for {shape}")
    return values


def _some(names: list[str]) -> str:
    """A few of the names, and how many there are."""
    few = ", ".join(repr(name) for name in names[:5])
    return few if len(names) <= 5 else f"{few} and {len(names) - 5} more"
