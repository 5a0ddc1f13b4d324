"""A small Flax NNX decoder for the examples and the command line: `pip install "jaxgcd[models]"`.

Llama-family models from Hugging Face folders and GGUF files, a preallocated key-value cache, and the
`decode_fn` that `jaxgcd.generate` calls inside its loop. `docs/models.md` lists what is supported.
"""

from jaxgcd._extras import require

require("flax", "models")

from .cache import Cache
from .chat import ChatTemplate
from .config import LlamaConfig
from .folder import load_folder
from .generation import (
    DecodeFn,
    make_decode_fn,
    prefill,
    start,
)
from .gguf import load_gguf
from .llama import Llama
from .loaded import LoadedModel
from .loading import load
from .rope import RopeScaling
from .smollm2 import smollm2_path
from .vocabulary import load_vocabulary

__all__ = [
    "Cache",
    "ChatTemplate",
    "DecodeFn",
    "Llama",
    "LlamaConfig",
    "LoadedModel",
    "RopeScaling",
    "load",
    "load_folder",
    "load_gguf",
    "load_vocabulary",
    "make_decode_fn",
    "prefill",
    "smollm2_path",
    "start",
]
