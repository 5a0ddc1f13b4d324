"""Grammar-constrained decoding that lives on the accelerator."""

from jaxgcd import _export
from jaxgcd.beam import Beams, beam_search
from jaxgcd.decoding import advance, allowed, constrain, mask_logits
from jaxgcd.distribution import DrawOptions
from jaxgcd.drafts import Trail, advance_many
from jaxgcd.errors import (
    GrammarError,
    GrammarTooLarge,
    InexactGrammarError,
    InexactGrammarWarning,
    JaxgcdError,
    LimitsError,
    MissingExtraError,
    ModelError,
    PrefixError,
    PromptTooLongError,
    SamplingError,
    ShapeError,
    StorageError,
    StorageWarning,
    UnsupportedRegexError,
    VocabularyError,
)
from jaxgcd.forced import jump_forward
from jaxgcd.generation import Generation, generate
from jaxgcd.limits import Limits
from jaxgcd.loop import Finish
from jaxgcd.meshes import partition_specs
from jaxgcd.plan import TextOptions
from jaxgcd.sampling import Draw, sample
from jaxgcd.start import init
from jaxgcd.state import State, Status
from jaxgcd.streaming import Chunk, stream
from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.bucket import pad
from jaxgcd.tables.cache import CompileCache
from jaxgcd.tables.compile import compile_grammar
from jaxgcd.tables.concatenate import concatenate
from jaxgcd.tables.report import Report
from jaxgcd.tables.split import split_vocabulary
from jaxgcd.tables.storage import load, save
from jaxgcd.vocabulary import Vocabulary

_export.register()

__all__ = [
    "Beams",
    "Chunk",
    "CompileCache",
    "Draw",
    "DrawOptions",
    "Finish",
    "Generation",
    "GrammarError",
    "GrammarTooLarge",
    "InexactGrammarError",
    "InexactGrammarWarning",
    "JaxgcdError",
    "Limits",
    "LimitsError",
    "MissingExtraError",
    "ModelError",
    "PrefixError",
    "PromptTooLongError",
    "Report",
    "SamplingError",
    "ShapeError",
    "State",
    "Status",
    "StorageError",
    "StorageWarning",
    "Tables",
    "TextOptions",
    "Trail",
    "UnsupportedRegexError",
    "Vocabulary",
    "VocabularyError",
    "advance",
    "advance_many",
    "allowed",
    "beam_search",
    "compile_grammar",
    "concatenate",
    "constrain",
    "generate",
    "init",
    "jump_forward",
    "load",
    "mask_logits",
    "pad",
    "partition_specs",
    "sample",
    "save",
    "split_vocabulary",
    "stream",
]
