"""What other libraries' tokenizers hold, as bytes by token id: one module for each kind.

`read` picks the reader by the names of an object's classes, so that none of those libraries, all of
them optional, is imported here. Bytes always come from the vocabulary itself, never from `decode([id])`,
which replaces what is not UTF-8 on its own and drops leading blanks.
"""

from collections.abc import Callable
from typing import Any

from jaxgcd.errors import VocabularyError
from jaxgcd.tokenizers.contents import Contents
from jaxgcd.tokenizers.fast import read_tokenizer
from jaxgcd.tokenizers.mistral import read_backend, read_mistral, read_sentencepiece, read_tekken
from jaxgcd.tokenizers.sentencepiece import read_processor
from jaxgcd.tokenizers.tiktoken import read_encoding
from jaxgcd.tokenizers.transformers import read_transformers

__all__ = ["Contents", "read"]

# (package, class, reader). The first row whose class the object is an instance of.
_READERS: tuple[tuple[str, str, Callable[[Any], Contents]], ...] = (
    ("tokenizers", "Tokenizer", read_tokenizer),
    ("tokenizers", "BaseTokenizer", read_tokenizer),
    ("sentencepiece", "SentencePieceProcessor", read_processor),
    ("tiktoken", "Encoding", read_encoding),
    ("mistral_common", "MistralTokenizer", read_mistral),
    ("mistral_common", "Tekkenizer", read_tekken),
    ("mistral_common", "SentencePieceTokenizer", read_sentencepiece),
    ("transformers", "MistralCommonTokenizer", read_backend),
    ("transformers", "MistralCommonBackend", read_backend),
    ("transformers", "PreTrainedTokenizerBase", read_transformers),
)


def read(tokenizer: object) -> Contents:
    """Read a tokenizer's vocabulary.

    Raises:
        VocabularyError: the kind is not supported, or its pieces do not concatenate to the text.
    """
    bases = {(base.__module__.split(".")[0], base.__name__) for base in type(tokenizer).__mro__}
    for package, name, reader in _READERS:
        if (package, name) in bases:
            return reader(tokenizer)
    kind = f"{type(tokenizer).__module__}.{type(tokenizer).__qualname__}"
    raise VocabularyError(
        f"Cannot read the vocabulary of a `{kind}`. Supported: `tokenizers.Tokenizer`, tokenizers of "
        "transformers and mistral-common, `sentencepiece.SentencePieceProcessor`, `tiktoken.Encoding`; else "
        "build `Vocabulary(tokens, eos=...)` from the bytes of every token id."
    )
