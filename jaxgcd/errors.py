"""Every error and warning that jaxgcd raises on purpose.

An error names the place (terminal, rule, token id, argument, file) and what to do about it.
All derive from `JaxgcdError`; those that report a bad argument are also `ValueError`s.
"""


class JaxgcdError(Exception):
    """Base class of all errors raised by jaxgcd."""


class GrammarError(JaxgcdError, ValueError):
    """The grammar cannot be compiled: Lark rejects it, its language is empty, or it is refused."""


class UnsupportedRegexError(GrammarError):
    """A terminal uses a regex feature that is not regular or not supported; names the terminal."""


class GrammarTooLarge(GrammarError):
    """A limit was exceeded while compiling; says which limit, and which terminal or rule is responsible."""


class LimitsError(JaxgcdError, ValueError):
    """A field of `Limits` is not a positive number; names it."""


class InexactGrammarError(GrammarError):
    """`exact=True` was asked for, and the tables could not be made exact; lists the reasons."""


class VocabularyError(JaxgcdError, ValueError):
    """The token list, its EOS ids or the tokenizer cannot be used; names the token id."""


class ShapeError(JaxgcdError, ValueError):
    """An array argument, or what a `decode_fn` returns, has the wrong shape, dtype or structure; raised while
    tracing."""


class PrefixError(JaxgcdError, ValueError):
    """A prefix is not the beginning of any text of the grammar.

    Attributes:
        position: the byte that cannot stand where it does, counted from 0.
        row: the row of the batch, counted from 0.
    """

    def __init__(self, message: str, position: int, row: int = 0):
        super().__init__(message)
        self.position = position
        self.row = row


class SamplingError(JaxgcdError, ValueError):
    """A setting of `sample`, `generate` or `stream` is out of range; names the setting."""


class StorageError(JaxgcdError):
    """A file of tables or of a vocabulary cannot be read or written, or is damaged; names the file."""


class ModelError(JaxgcdError):
    """A model file is missing, damaged or of a kind that is not supported; names the file."""


class PromptTooLongError(ModelError, ValueError):
    """The prompt and the tokens to be generated do not fit into the key-value cache."""


class MissingExtraError(JaxgcdError, ImportError):
    """An optional dependency is not installed; names the extra that brings it."""


class InexactGrammarWarning(UserWarning):
    """The masks never miss a token but may lead to a dead end; lists the reasons."""


class StorageWarning(UserWarning):
    """Compiled tables could not be kept in a cache; names the file."""
