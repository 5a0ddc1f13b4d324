"""A small Flax NNX decoder for the examples and the command line: `pip install "jaxgcd[models]"`.

Llama-family models from Hugging Face folders and GGUF files, a preallocated key-value cache, and the
`decode_fn` that `jaxgcd.generate` calls inside its loop. `docs/models.md` lists what is supported.
"""

from jaxgcd._extras import require

require("flax", "models")

from .cache import Cache as Cache  # noqa: E402
from .chat import ChatTemplate as ChatTemplate  # noqa: E402
from .config import LlamaConfig as LlamaConfig  # noqa: E402
from .folder import load_folder as load_folder  # noqa: E402
from .generation import DecodeFn as DecodeFn  # noqa: E402
from .generation import make_decode_fn as make_decode_fn  # noqa: E402
from .generation import prefill as prefill  # noqa: E402
from .generation import start as start  # noqa: E402
from .gguf import load_gguf as load_gguf  # noqa: E402
from .llama import Llama as Llama  # noqa: E402
from .loaded import LoadedModel as LoadedModel  # noqa: E402
from .loading import load as load  # noqa: E402
from .rope import RopeScaling as RopeScaling  # noqa: E402
from .smollm2 import smollm2_path as smollm2_path  # noqa: E402
from .vocabulary import load_vocabulary as load_vocabulary  # noqa: E402
