"""Grammar-constrained decoding that lives on the accelerator."""

from jaxgcd.decoding import State, Status, advance, allowed, init, mask_logits
from jaxgcd.errors import (
    GrammarError,
    GrammarTooLarge,
    InexactGrammarError,
    InexactGrammarWarning,
    JaxgcdError,
    LimitsError,
    MissingExtraError,
    ModelError,
    PromptTooLongError,
    ShapeError,
    UnsupportedRegexError,
    VocabularyError,
)
from jaxgcd.limits import Limits
from jaxgcd.sampling import Finish, Generation, generate, sample
from jaxgcd.tables.arrays import Tables, pad
from jaxgcd.tables.compile import compile_grammar
from jaxgcd.tables.report import Report
from jaxgcd.vocabulary import Vocabulary

__all__ = [
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
    "PromptTooLongError",
    "Report",
    "ShapeError",
    "State",
    "Status",
    "Tables",
    "UnsupportedRegexError",
    "Vocabulary",
    "VocabularyError",
    "advance",
    "allowed",
    "compile_grammar",
    "generate",
    "init",
    "mask_logits",
    "pad",
    "sample",
]
