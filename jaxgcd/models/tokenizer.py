"""A byte-level BPE tokenizer from the lists that a GGUF file holds."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from jaxgcd._extras import require
from jaxgcd.errors import ModelError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_UNKNOWN, _CONTROL, _USER_DEFINED = 2, 3, 4  # gguf.TokenType

# Names of `tokenizer.ggml.pre`: does the pre-tokenizer cut before and after every single digit?
SINGLE_DIGITS = {"default": False, "gpt-2": False, "smollm": True}


def byte_level_tokenizer(
    tokens: Sequence[str], token_types: Sequence[int], merges: Sequence[str], pre: str
) -> "Tokenizer":
    """Build the tokenizer: BPE over bytes, each written as a visible character (GPT-2's table).

    `merges` are pairs joined by a space, best first. Control tokens are special: encoding finds them
    whole, decoding leaves them out unless asked for. Other tokens that a user defined are found
    whole as well, and are text. Bytes for which the list has no token are dropped when encoding.
    """
    if len(token_types) != len(tokens):
        raise ModelError(f"{len(tokens)} tokens with {len(token_types)} token types")
    tokenizer = require("tokenizers", "models").Tokenizer(_bpe(tokens, merges))
    tokenizer.pre_tokenizer = _pre_tokenizer(SINGLE_DIGITS[pre])
    tokenizer.decoder = require("tokenizers.decoders", "models").ByteLevel()
    _add_whole_tokens(tokenizer, tokens, token_types)
    return tokenizer


def _bpe(tokens: Sequence[str], merges: Sequence[str]):
    vocab = {token: index for index, token in enumerate(tokens)}
    if len(vocab) != len(tokens):
        raise ModelError(f"only {len(vocab)} of {len(tokens)} tokens are distinct")
    pairs = []
    for merge in merges:
        left, space, right = merge.partition(" ")
        if not space or left not in vocab or right not in vocab or left + right not in vocab:
            raise ModelError(f"merge {merge!r} does not join two tokens to a third")
        pairs.append((left, right))
    return require("tokenizers.models", "models").BPE(vocab=vocab, merges=pairs)


def _pre_tokenizer(single_digits: bool):
    pre_tokenizers = require("tokenizers.pre_tokenizers", "models")
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    if not single_digits:
        return byte_level
    return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), byte_level])


def _add_whole_tokens(tokenizer: "Tokenizer", tokens: Sequence[str], token_types: Sequence[int]) -> None:
    added_token = require("tokenizers", "models").AddedToken
    pairs = list(zip(tokens, token_types, strict=True))
    special = [token for token, kind in pairs if kind in (_UNKNOWN, _CONTROL)]
    defined = [token for token, kind in pairs if kind == _USER_DEFINED]
    tokenizer.add_special_tokens([added_token(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([added_token(token, normalized=False) for token in defined])
