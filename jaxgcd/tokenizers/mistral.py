"""Tokenizers of the library mistral-common: SentencePiece models, and Tekken's tiktoken encodings."""

from typing import Any

from jaxgcd.tokenizers.contents import Contents
from jaxgcd.tokenizers.sentencepiece import read_processor
from jaxgcd.tokenizers.tiktoken import read_encoding


def read_backend(tokenizer: Any) -> Contents:
    """Read the class of transformers that wraps a `MistralTokenizer`."""
    return read_mistral(tokenizer.tokenizer)


def read_mistral(tokenizer: Any) -> Contents:
    """Read a `MistralTokenizer`, which holds one of the two others."""
    inner = tokenizer.instruct_tokenizer.tokenizer
    return read_tekken(inner) if hasattr(inner._model, "token_byte_values") else read_sentencepiece(inner)


def read_sentencepiece(tokenizer: Any) -> Contents:
    """Read a `SentencePieceTokenizer`."""
    return read_processor(tokenizer._model)


def read_tekken(tokenizer: Any) -> Contents:
    """Read a `Tekkenizer`: the special tokens come first, and then those of an encoding."""
    special = range(tokenizer.num_special_tokens)
    ranks = read_encoding(tokenizer._model).tokens
    tokens = {len(special) + rank: token for rank, token in ranks.items()}
    return Contents(tokens, frozenset(special), eos=(tokenizer.eos_id,))
