"""Grammar-constrained decoding that lives on the accelerator."""

from jaxgcd.decoding import State as State
from jaxgcd.decoding import Status as Status
from jaxgcd.decoding import advance as advance
from jaxgcd.decoding import allowed as allowed
from jaxgcd.decoding import init as init
from jaxgcd.decoding import mask_logits as mask_logits
from jaxgcd.errors import GrammarError as GrammarError
from jaxgcd.errors import GrammarTooLarge as GrammarTooLarge
from jaxgcd.errors import InexactGrammarError as InexactGrammarError
from jaxgcd.errors import InexactGrammarWarning as InexactGrammarWarning
from jaxgcd.errors import JaxgcdError as JaxgcdError
from jaxgcd.errors import MissingExtraError as MissingExtraError
from jaxgcd.errors import ModelError as ModelError
from jaxgcd.errors import PromptTooLongError as PromptTooLongError
from jaxgcd.errors import ShapeError as ShapeError
from jaxgcd.errors import UnsupportedRegexError as UnsupportedRegexError
from jaxgcd.errors import VocabularyError as VocabularyError
from jaxgcd.sampling import Finish as Finish
from jaxgcd.sampling import Generation as Generation
from jaxgcd.sampling import generate as generate
from jaxgcd.sampling import sample as sample
from jaxgcd.tables.arrays import Tables as Tables
from jaxgcd.tables.arrays import pad as pad
from jaxgcd.tables.compile import Report as Report
from jaxgcd.tables.compile import compile_grammar as compile_grammar
from jaxgcd.vocabulary import Vocabulary as Vocabulary

__version__ = "0.1.0"
