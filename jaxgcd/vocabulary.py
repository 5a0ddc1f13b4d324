"""The token list of a language model: which bytes each token id adds to the text.

A `Vocabulary` is immutable and knows nothing of grammars or JAX. Everything here that is worth
computing once (the suffix structure `strings`, the device spelling) is cached on it and reused by
every grammar that is compiled for it. Two vocabularies with the same contents compare equal.

Token bytes are taken **as they are**. In particular a leading metaspace is a space: the
SentencePiece token `▁a` adds " a", also at the start of a generation, where the tokenizer's own
`decode` would drop that space. How each kind of tokenizer is read: `jaxgcd/tokenizers/`.
"""

import dataclasses
import functools
import hashlib
import json
import operator
import os
import reprlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np
from jaxtyping import Int16, Int32

from jaxgcd import _container, _vocabulary_file
from jaxgcd._numbering import numbered
from jaxgcd.errors import VocabularyError
from jaxgcd.tokenizers import read
from jaxgcd.tokenizers.contents import MAX_SIZE, Added

END_OF_TEXT = 256
"""The symbol that EOS tokens spell; symbols 0 to 255 are bytes."""

MAX_TOKEN_BYTES = 4096
"""A token with more bytes than this is refused: its suffixes alone would be thousands of strings."""

MAX_TOTAL_BYTES = 1 << 23
"""All usable tokens together have at most so many bytes, each of which can begin a suffix of its own."""


@dataclasses.dataclass(frozen=True, eq=False)
class Strings:
    """The suffix structure: every distinct nonempty suffix of a usable token, and "end of text".

    Ids are sorted by (length, bytes), so `rest[i] < i` for every i > 0; id 0 is the empty string
    and a fixed point of `rest`. "End of text" is the one-symbol string of symbol 256.
    """

    first: Int16[np.ndarray, " strings"]
    """First symbol: 0 to 255, or 256 for "end of text"; 0 for the empty string."""
    rest: Int32[np.ndarray, " strings"]
    """Id of the string without its first symbol."""
    length: Int32[np.ndarray, " strings"]
    """Number of symbols."""
    token_string: Int32[np.ndarray, " size"]
    """Id of each token's whole string; "end of text" for EOS, 0 for special, empty and padding ids."""

    def __len__(self) -> int:
        return len(self.first)

    @property
    def end_of_text(self) -> int:
        """Id of the string "end of text"."""
        return int(np.flatnonzero(self.first == END_OF_TEXT)[0])


@dataclasses.dataclass(frozen=True, eq=False)
class Spelling:
    """The symbols of every token id, in compressed rows: `symbols[offset[i]:offset[i + 1]]`.

    The bytes of a usable token; the one symbol 256 for EOS; nothing for special, empty and padding ids.
    """

    offset: Int32[np.ndarray, " size_plus_one"]
    symbols: Int16[np.ndarray, " total"]


@dataclasses.dataclass(frozen=True, init=False, repr=False, eq=False)
class Vocabulary:
    """What each token id adds to the text.

    Args:
        tokens: `tokens[i]` is the `bytes` that token i adds; an empty token is never allowed.
        eos: ids that end the text (at least one). They add no text, whatever their bytes are.
        special: ids that are never text (padding, role markers, ...), never allowed.
        size: width of the logits, at least `len(tokens)` (the default). Ids beyond the tokens
            are padding, never allowed.

    An id in both `eos` and `special` counts as EOS.

    Raises:
        VocabularyError: the list is empty, has no EOS or no usable token; a token is not `bytes` or
            longer than 4,096 bytes; the tokens have more than 2**23 bytes in all; an id is out of range;
            `size` is too small or above 2**22.

    >>> vocabulary = Vocabulary([b"<eos>", b"a", b"ba"], eos=[0], size=64)
    >>> vocabulary
    Vocabulary(3 tokens, eos=(0,), size=64)
    >>> vocabulary.words, vocabulary.strings.token_string[:3].tolist()
    (2, [2, 1, 3])
    """

    tokens: tuple[bytes, ...]
    eos: tuple[int, ...]
    special: frozenset[int]
    size: int

    def __init__(
        self,
        tokens: Sequence[bytes],
        *,
        eos: Collection[int],
        special: Collection[int] = (),
        size: int | None = None,
    ) -> None:
        if not isinstance(tokens, Sequence):
            raise VocabularyError(
                f"`tokens` must be a sequence of `bytes`, not {type(tokens).__name__}; for a tokenizer there "
                "is `Vocabulary.from_tokenizer`."
            )
        count = len(tokens)
        if not count:
            raise VocabularyError("The token list is empty: `tokens` needs one `bytes` per token id.")
        size = _checked_size(size, count)
        ends = frozenset(_checked_ids("eos", eos, count))
        if not ends:
            raise VocabularyError("No EOS token: `eos` needs at least one token id that ends the text.")
        unspoken = frozenset(_checked_ids("special", special, count)) - ends
        unusable = ends | unspoken
        spelled = tuple(_checked_token(i, token, i in unusable) for i, token in enumerate(tokens))
        object.__setattr__(self, "tokens", spelled)
        object.__setattr__(self, "eos", tuple(sorted(ends)))
        object.__setattr__(self, "special", unspoken)
        object.__setattr__(self, "size", size)
        _check_total(sum(len(token) for token, usable in zip(spelled, self.usable, strict=True) if usable))

    @classmethod
    def from_tokenizer(
        cls,
        tokenizer: Any,
        *,
        size: int | None = None,
        eos: Collection[int] | None = None,
        added: Added = "never",
    ) -> "Vocabulary":
        """Read the token bytes from a tokenizer's vocabulary (never from `decode`, which loses bytes).

        Args:
            tokenizer: a `tokenizers.Tokenizer` or a transformers tokenizer, fast or slow (both
                byte-level or metaspace, with or without byte fallback), a
                `sentencepiece.SentencePieceProcessor`, a `tiktoken.Encoding`, or a tokenizer of
                mistral-common.
            size: width of the model's logits where they are wider than the tokenizer's vocabulary.
            eos: ids that end the text; the tokenizer's own EOS by default. A plain
                `tokenizers.Tokenizer` does not know its EOS, so there it must be given. Chat models
                often end a turn with one id and a text with another: name both.
            added: what becomes of tokens that were added to the vocabulary without being special
                (`<think>`, `<tool_call>`; SentencePiece's user-defined symbols): "never" allowed, or
                "text" that they spell. Those of blanks alone are text in any case.

        Special, control, unknown and unused tokens, and ids that the tokenizer lacks, are never allowed.
        A leading metaspace is a space, also at the start of a generation. docs/tokenizers.md has the rules
        of each kind of tokenizer.

        Raises:
            VocabularyError: the kind of tokenizer is not supported, its pieces do not concatenate to
                the text (WordPiece, CLIP), or no EOS is known.

        >>> from tokenizers import Tokenizer, decoders, models
        >>> tokenizer = Tokenizer(models.BPE({"</s>": 0, "▁": 1, "▁a": 2, "a": 3}, [("▁", "a")]))
        >>> tokenizer.decoder = decoders.Metaspace()
        >>> Vocabulary.from_tokenizer(tokenizer, eos=[0]).tokens[2]
        b' a'
        """
        contents = read(tokenizer)
        if eos is None and not contents.eos:
            name = type(tokenizer).__name__
            raise VocabularyError(f"`{name}` names no EOS token: pass `eos` with the ids that end the text.")
        ends = contents.eos if eos is None else eos
        return cls(contents.token_list(), eos=ends, special=contents.unspoken(added), size=size)

    def __len__(self) -> int:
        """Number of tokens, without padding."""
        return len(self.tokens)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens, eos={self.eos}, size={self.size})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def spell(self, ids: Iterable[int]) -> bytes:
        """The text that tokens add, as UTF-8, which may begin or end inside a character.

        EOS, special and padding ids add nothing. Unlike a tokenizer's `decode`, it leaves no blank out.

        >>> Vocabulary([b"<eos>", b" a", b"b"], eos=[0]).spell([1, 2, 0])
        b' ab'
        """
        usable = self.usable
        return b"".join(self.tokens[i] for i in ids if i < len(usable) and usable[i])

    @property
    def words(self) -> int:
        """Number of 32-bit words in a packed mask over the vocabulary."""
        return (self.size + 31) // 32

    @functools.cached_property
    def usable(self) -> tuple[bool, ...]:
        """Per token id (without padding): it is text, that is, not empty, not special and not EOS."""
        unusable = self.special.union(self.eos)
        return tuple(bool(token) and i not in unusable for i, token in enumerate(self.tokens))

    @functools.cached_property
    def fingerprint(self) -> str:
        """SHA-256 of the contents, in hexadecimal; the same in every process and on every machine."""
        lengths = [len(token) for token in self.tokens]
        header = ["jaxgcd vocabulary 1", self.size, self.eos, sorted(self.special), lengths]
        return hashlib.sha256(json.dumps(header).encode() + b"".join(self.tokens)).hexdigest()

    @functools.cached_property
    def spelling(self) -> Spelling:
        """The symbols of every token id, in compressed rows."""
        return _spell(self)

    @functools.cached_property
    def strings(self) -> Strings:
        """The suffix structure: all distinct suffixes of the usable tokens, and "end of text"."""
        return _suffixes(self.spelling)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the vocabulary to a file, with everything that grammars reuse, or replaces the file at once.

        Raises:
            StorageError: the file cannot be written.

        >>> import tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "ab.jaxgcd")
        >>> Vocabulary([b"a", b"b", b""], eos=[2]).save(path)
        >>> Vocabulary.load(path)
        Vocabulary(3 tokens, eos=(2,), size=3)
        """
        derived = {f"{name}.{field}": getattr(getattr(self, name), field) for name, field in _derived()}
        parts = (self.tokens, self.eos, sorted(self.special), self.size, self.fingerprint, derived)
        _vocabulary_file.write(path, _vocabulary_file.Parts(*parts))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Vocabulary":
        """Reads a vocabulary that `save` wrote; no tokenizer is needed, and nothing is derived again.

        Raises:
            StorageError: the file cannot be read, is not of this kind, comes from another version, or is
                damaged. The checksum detects damage, not malice.
        """
        parts = _vocabulary_file.read(path, [f"{name}.{field}" for name, field in _derived()])
        with _container.naming(path, _vocabulary_file.KIND):
            vocabulary = cls(parts.tokens, eos=parts.eos, special=parts.special, size=parts.size)
            for name, kind in _DERIVED.items():
                vocabulary.__dict__[name] = _from_arrays(kind, name, parts.derived)
        vocabulary.__dict__["fingerprint"] = parts.fingerprint
        return vocabulary

    @functools.cached_property
    def single_bytes(self) -> frozenset[int]:
        """Bytes that are usable tokens on their own."""
        pairs = zip(self.tokens, self.usable, strict=True)
        return frozenset(token[0] for token, usable in pairs if usable and len(token) == 1)

    @functools.cached_property
    def all_bytes(self) -> frozenset[int]:
        """Bytes that occur in any usable token."""
        return frozenset(np.unique(self.spelling.symbols).tolist()) - {END_OF_TEXT}


_DERIVED = {"spelling": Spelling, "strings": Strings}
"""The cached properties of a `Vocabulary` that are saved with it: dataclasses of arrays."""


def _derived() -> list[tuple[str, str]]:
    """The fields of all those dataclasses."""
    return [(name, field.name) for name, kind in _DERIVED.items() for field in dataclasses.fields(kind)]


def _from_arrays(kind: type, name: str, arrays: Mapping[str, np.ndarray]) -> Any:
    fields = {field.name: field.type for field in dataclasses.fields(kind)}
    found = {field: arrays[f"{name}.{field}"] for field in fields}
    if not all(isinstance(found[field], cast(type, annotation)) for field, annotation in fields.items()):
        raise ValueError(f"its {name} differ from those of this version")
    return kind(**found)


def _checked_ids(name: str, ids: Collection[int], count: int) -> list[int]:
    if not isinstance(ids, Collection) or isinstance(ids, str | bytes | bytearray):
        raise VocabularyError(f"`{name}` must be a sequence of token ids, got {reprlib.repr(ids)}.")
    checked = []
    for i in ids:
        try:
            checked.append(operator.index(i))
        except TypeError:
            message = f"`{name}` must be a sequence of token ids, but holds {reprlib.repr(i)}."
            raise VocabularyError(message) from None
        if not 0 <= checked[-1] < count:
            raise VocabularyError(f"`{name}` names token id {i}, but the ids go from 0 to {count - 1}.")
    return checked


def _checked_token(i: int, token: object, unusable: bool) -> bytes:
    if not isinstance(token, bytes):
        kind = type(token).__name__
        raise VocabularyError(f"Token {i} is a `{kind}`, not `bytes`: {reprlib.repr(token)}.")
    if len(token) > MAX_TOKEN_BYTES and not unusable:
        raise VocabularyError(f"Token {i} has {len(token)} bytes; at most {MAX_TOKEN_BYTES} are supported.")
    return bytes(token)


def _checked_size(size: int | None, count: int) -> int:
    try:
        size = count if size is None else operator.index(size)
    except TypeError:
        raise VocabularyError(f"`size` must be an integer or None, got {reprlib.repr(size)}.") from None
    if size < count:
        raise VocabularyError(f"`size`, the width of the logits, is {size}, less than the {count} tokens.")
    if size > MAX_SIZE:
        raise VocabularyError(f"The vocabulary is {size} ids wide; the limit is {MAX_SIZE}.")
    return size


def _check_total(total: int) -> None:
    if not total:
        raise VocabularyError("No usable token: every token is empty, special or EOS.")
    if total > MAX_TOTAL_BYTES:
        raise VocabularyError(f"The tokens have {total} bytes together; the limit is {MAX_TOTAL_BYTES}.")


def _frozen(values: Any, dtype: type) -> np.ndarray:
    array = np.ascontiguousarray(values, dtype=dtype)
    array.flags.writeable = False
    return array


def _spell(vocabulary: Vocabulary) -> Spelling:
    usable = np.asarray(vocabulary.usable)
    length = np.zeros(vocabulary.size, np.int64)
    length[: len(usable)] = np.where(usable, [len(token) for token in vocabulary.tokens], 0)
    length[list(vocabulary.eos)] = 1
    offset = np.concatenate([[0], np.cumsum(length)])
    is_byte = np.ones(offset[-1], bool)
    is_byte[offset[list(vocabulary.eos)]] = False
    text = b"".join(token for token, keep in zip(vocabulary.tokens, vocabulary.usable, strict=True) if keep)
    symbols = np.full(offset[-1], END_OF_TEXT, np.int16)
    symbols[is_byte] = np.frombuffer(text, np.uint8)
    return Spelling(_frozen(offset, np.int32), _frozen(symbols, np.int16))


def _suffixes(spelling: Spelling) -> Strings:
    """Number the suffixes by length: those of length n are pairs (symbol, suffix of length n - 1).

    Ids of length n - 1 are already in order, so sorting the distinct pairs sorts the strings. Time
    and memory are those of the spelling, however long the tokens are.
    """
    end = spelling.offset[1:].astype(np.int64)
    length = np.diff(spelling.offset)
    current = np.zeros(len(length), np.int64)  # per token: id of its suffix of the length reached
    first, rest, counts = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)], [1]
    live = np.flatnonzero(length)
    for n in range(1, int(length.max()) + 1):
        live = live[length[live] >= n]
        pairs = spelling.symbols[end[live] - n].astype(np.int64) << 32 | current[live]
        distinct, _, number = numbered(pairs)
        current[live] = sum(counts) + number
        first.append(distinct >> 32)
        rest.append(distinct & 0xFFFFFFFF)
        counts.append(len(distinct))
    lengths = np.repeat(np.arange(len(counts)), counts)
    return Strings(
        first=_frozen(np.concatenate(first), np.int16),
        rest=_frozen(np.concatenate(rest), np.int32),
        length=_frozen(lengths, np.int32),
        token_string=_frozen(current, np.int32),
    )
