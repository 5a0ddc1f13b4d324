"""A small Flax NNX decoder for the examples and the command line: `pip install "jaxgcd[models]"`.

Llama-family models from Hugging Face folders and GGUF files, a preallocated key-value cache, and the
`decode_fn` that `jaxgcd.generate` calls inside its loop. `docs/models.md` lists what is supported.
"""

from jaxgcd._extras import require

require("flax", "models")

from .cache import Cache  # noqa: E402
from .chat import ChatTemplate  # noqa: E402
from .config import LlamaConfig  # noqa: E402
from .folder import load_folder  # noqa: E402
from .generation import (  # noqa: E402
    DecodeFn,
    make_decode_fn,
    prefill,
    start,
)
from .gguf import load_gguf  # noqa: E402
from .llama import Llama  # noqa: E402
from .loaded import LoadedModel  # noqa: E402
from .loading import load  # noqa: E402
from .rope import RopeScaling  # noqa: E402
from .smollm2 import smollm2_path  # noqa: E402
from .vocabulary import load_vocabulary  # noqa: E402

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
