"""Fill a decoder with stored weights, without initialising it first."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax.typing import DTypeLike

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

from .config import LlamaConfig
from .llama import Llama

Path = tuple[str | int, ...]


def build(
    config: LlamaConfig, dtype: DTypeLike, read: Callable[[Path], np.ndarray], *, progress: bool = True
) -> Llama:
    """Build a `Llama` whose parameter at `path` is `read(path)`.

    A path is the attribute path inside the module, e.g. `("layers", 0, "attention", "query", "kernel")`;
    kernels are `[inputs, outputs]`, the embedding is `[vocab, hidden]`.
    """
    tqdm = require("tqdm", "models").tqdm
    graphdef, abstract = nnx.split(nnx.eval_shape(lambda: Llama(config, dtype=dtype, rngs=nnx.Rngs(0))))
    slots = nnx.to_flat_state(abstract)
    filled = []
    for path, slot in tqdm(list(slots), desc="loading weights", unit="tensor", disable=not progress):
        values = read(path)
        if values.shape != slot.shape:
            raise ModelError(
                f"the weights at {path} have shape {values.shape}; the config needs {slot.shape}"
            )
        filled.append((path, slot.replace(jnp.asarray(values, dtype))))
    return nnx.merge(graphdef, nnx.from_flat_state(filled))
