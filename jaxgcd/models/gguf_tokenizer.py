"""The tokenizer that a GGUF file holds: byte-level BPE ("gpt2"), or SentencePiece's BPE ("llama").

A file names the rule by which byte-level BPE cuts text into words, and does not hold it. Known are GPT-2's,
SmolLM2's, Llama 3's and Qwen 2's, which Qwen 2.5 and 3 use as well.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

from .settings import Settings
from .tokenizer import SINGLE_DIGITS, byte_level_tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)  # gguf.TokenType

_LONGEST_PIECE = 1000  # all of whose halves are looked up

# The patterns of Meta's and Alibaba's tokenizers, which differ in how many digits make a word.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,%d}|"
    r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_DIGITS = {"llama-bpe": 3, "llama3": 3, "llama-v3": 3, "qwen2": 1}


def gguf_tokenizer(fields: Mapping[str, Any]) -> "Tokenizer":
    """Build the tokenizer; `encode` puts the BOS token in front where the file asks for it.

    Raises `ModelError` for another kind of tokenizer, and for lists that do not fit together.
    """
    settings = Settings(fields)
    kind = settings.text("tokenizer.ggml.model")
    if kind not in ("gpt2", "llama"):
        raise ModelError(f"tokenizer kind {kind!r} is not supported; 'gpt2' and 'llama' are")
    tokens = read_list(fields, "tokenizer.ggml.tokens", str)
    types = read_list(fields, "tokenizer.ggml.token_type", int)
    # Padding up to the embedding's size is no text either.
    types = [_CONTROL if each == _UNUSED else each for each in types]
    tokenizer = (
        _byte_level(fields, tokens, types) if kind == "gpt2" else _sentencepiece(fields, tokens, types)
    )
    if settings.flag("tokenizer.ggml.add_bos_token", kind == "llama"):
        _put_in_front(tokenizer, special_token(fields, "bos"))
    return tokenizer


def special_token(fields: Mapping[str, Any], name: str) -> str:
    """The text of the token that a file has as "bos", "eos" or the like; empty if it has none."""
    index = Settings(fields).integer(f"tokenizer.ggml.{name}_token_id", None)
    if index is None:
        return ""
    tokens = read_list(fields, "tokenizer.ggml.tokens", str)
    if not 0 <= index < len(tokens):
        raise ModelError(f"`tokenizer.ggml.{name}_token_id` is {index}, but there are {len(tokens)} tokens")
    return tokens[index]


def read_list(fields: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    """A list of values of one kind."""
    values = fields.get(name)
    if values is None:
        raise ModelError(f"no entry `{name}`")
    if not isinstance(values, list) or not all(isinstance(value, kind) for value in values):
        raise ModelError(f"`{name}` must be a list of {kind.__name__}")
    return values


def _byte_level(fields: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> "Tokenizer":
    words = Settings(fields).text("tokenizer.ggml.pre", "gpt-2")
    merges = read_list(fields, "tokenizer.ggml.merges", str)
    digits = _DIGITS.get(words)
    if digits is None and words not in SINGLE_DIGITS:
        known = ", ".join(sorted({*_DIGITS, *SINGLE_DIGITS}))
        raise ModelError(f"pre-tokenizer {words!r} is not supported; these are: {known}")
    tokenizer: Any = byte_level_tokenizer(tokens, types, merges, words if digits is None else "gpt-2")
    if digits is not None:
        tokenizer.pre_tokenizer = _pre_tokenizer(_WORDS % digits)
        tokenizer.model.ignore_merges = digits == 3  # Llama 3: a word that is a token needs no merges
    if words == "qwen2":
        tokenizer.normalizer = require("tokenizers.normalizers", "models").NFC()
    return tokenizer


def _pre_tokenizer(pattern: str) -> Any:
    """Cut text into what the pattern matches, and write its bytes as visible characters."""
    kinds = require("tokenizers.pre_tokenizers", "models")
    pattern = require("tokenizers", "models").Regex(pattern)
    byte_level = kinds.ByteLevel(add_prefix_space=False, use_regex=False)
    return kinds.Sequence([kinds.Split(pattern, "isolated"), byte_level])


def _sentencepiece(fields: Mapping[str, Any], tokens: Sequence[str], types: Sequence[int]) -> "Tokenizer":
    """BPE over pieces in which "▁" is a space, and bytes spell what has no piece: Llama 2, Mistral."""
    scores = read_list(fields, "tokenizer.ggml.scores", float)
    vocab = {token: index for index, token in enumerate(tokens)}
    if not len(vocab) == len(tokens) == len(types) == len(scores):
        raise ModelError(
            f"{len(tokens)} tokens, {len(vocab)} distinct, {len(types)} types, {len(scores)} scores"
        )
    root, decoders = require("tokenizers", "models"), require("tokenizers.decoders", "models")
    unknown = next((token for token, kind in zip(tokens, types, strict=True) if kind == _UNKNOWN), None)
    merges = _merges(tokens, types, scores)
    bpe = require("tokenizers.models", "models").BPE(
        vocab=vocab, merges=merges, byte_fallback=_BYTE in types, unk_token=unknown, fuse_unk=True
    )
    tokenizer = root.Tokenizer(bpe)
    prefixed = Settings(fields).flag("tokenizer.ggml.add_space_prefix", True)
    normalizers = require("tokenizers.normalizers", "models")
    spaces = [normalizers.Prepend("▁")] * prefixed + [normalizers.Replace(" ", "▁")]
    tokenizer.normalizer = normalizers.Sequence(spaces)
    parts = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(parts + [decoders.Strip(" ", 1, 0)] * prefixed)
    for kinds, special in (((_UNKNOWN, _CONTROL), True), ((_USER_DEFINED,), False)):
        whole = [token for token, kind in zip(tokens, types, strict=True) if kind in kinds]
        added = [root.AddedToken(token, special=special, normalized=False) for token in whole]
        tokenizer.add_special_tokens(added) if special else tokenizer.add_tokens(added)
    return tokenizer


def _merges(tokens: Sequence[str], types: Sequence[int], scores: Sequence[float]) -> list[tuple[str, str]]:
    """Every pair of pieces that makes a third one, the one with the best score first."""
    pieces = {token: index for index, token in enumerate(tokens) if types[index] in (_NORMAL, _USER_DEFINED)}
    if (longest := max(map(len, pieces), default=0)) > _LONGEST_PIECE:
        raise ModelError(f"a token of {longest} characters; at most {_LONGEST_PIECE} are read")
    found = []
    for token, index in pieces.items():
        for cut in range(1, len(token)):
            if token[:cut] in pieces and token[cut:] in pieces:
                found.append((-scores[index], index, cut, (token[:cut], token[cut:])))
    return [pair for *_, pair in sorted(found)]


def _put_in_front(tokenizer: Any, token: str) -> None:
    if token:
        template = require("tokenizers.processors", "models").TemplateProcessing
        special = [(token, tokenizer.token_to_id(token))]
        tokenizer.post_processor = template(single=[token, "$A"], special_tokens=special)
