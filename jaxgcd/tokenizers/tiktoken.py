"""Encodings of the library tiktoken: bytes by rank, and special tokens beside them."""

from typing import Any

from jaxgcd.tokenizers.contents import Contents

_END = "<|endoftext|>"


def read_encoding(encoding: Any) -> Contents:
    """Read a `tiktoken.Encoding`. Its EOS is `<|endoftext|>`, where it has that."""
    ordinary = {encoding.encode_single_token(token): token for token in encoding.token_byte_values()}
    names = encoding.special_tokens_set
    special = {encoding.encode_single_token(name): name.encode() for name in names}
    eos = (encoding.eot_token,) if _END in names else ()
    return Contents(ordinary | special, frozenset(special), eos=eos)
