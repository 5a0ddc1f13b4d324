"""Grammar-constrained decoding that lives on the accelerator."""

from jaxgcd.decoding import State, Status, advance, allowed, init, mask_logits
from jaxgcd.errors import (
    GrammarError,
    GrammarTooLarge,
    InexactGrammarError,
    InexactGrammarWarning,
    JaxgcdError,
    MissingExtraError,
    ModelError,
    PromptTooLongError,
    SamplingError,
    ShapeError,
    StorageError,
    StorageWarning,
    UnsupportedRegexError,
    VocabularyError,
)
from jaxgcd.generation import Finish, Generation, generate
from jaxgcd.sampling import Draw, sample
from jaxgcd.streaming import Chunk, stream
from jaxgcd.tables.arrays import Tables, pad
from jaxgcd.tables.cache import CompileCache
from jaxgcd.tables.compile import compile_grammar
from jaxgcd.tables.report import Report
from jaxgcd.tables.storage import load, save
from jaxgcd.vocabulary import Vocabulary

__all__ = [
    "Chunk",
    "CompileCache",
    "Draw",
    "Finish",
    "Generation",
    "GrammarError",
    "GrammarTooLarge",
    "InexactGrammarError",
    "InexactGrammarWarning",
    "JaxgcdError",
    "MissingExtraError",
    "ModelError",
    "PromptTooLongError",
    "Report",
    "SamplingError",
    "ShapeError",
    "State",
    "Status",
    "StorageError",
    "StorageWarning",
    "Tables",
    "UnsupportedRegexError",
    "Vocabulary",
    "VocabularyError",
    "advance",
    "allowed",
    "compile_grammar",
    "generate",
    "init",
    "load",
    "mask_logits",
    "pad",
    "sample",
    "save",
    "stream",
]
