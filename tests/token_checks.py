"""What the tests of tokenizers share: texts, what is checked of them, and masks."""

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from real_tokenizers import KINDS, Kind

import jaxgcd
from jaxgcd.vocabulary import Vocabulary

FRAGMENTS = [
    *(" ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", "\u2009", "\u3000", "\u0085", "\u200b", "\ufeff"),
    *(" the", "hello", "don't", "The", "123456", '{"a": [1]}', "\x00\x07", "\x7f", "\u00ad", "\U000e0041"),
    *("▁", "▁▁", "<0x41>", "Ġ", "e\u0301", "\u212b", "ﬁ", "½", "Ⅳ", "naïve", "日本語", "한글", "नमस्ते"),
    *("🙂", "👩‍👩‍👧", "ﷺ"),
]
# No later letters: the libraries' tables of what NFC composes are of different ages.
LETTERS = st.characters(max_codepoint=0x2FF) | st.sampled_from("жЖ中ابאあア\u0308\u0303")
TEXTS = st.lists(st.sampled_from(FRAGMENTS) | LETTERS, max_size=12).map("".join)


def check_texts(vocabulary: Vocabulary, encode: Any, normal: Any, never: tuple[int, ...] = ()) -> None:
    """The tokens of a text are usable and spell its normalised form, if none of them is in `never`."""

    @given(TEXTS)
    def check(text: str) -> None:
        ids = encode(text)
        if not set(never) & set(ids):
            assert all(vocabulary.usable[i] for i in ids)
            assert b"".join(vocabulary.tokens[i] for i in ids) == normal(text)

    check()


def masks(grammar: str, vocabulary: Vocabulary, *ids: int) -> np.ndarray:
    """Which ids are allowed at first, and behind each of some tokens."""
    tables = jaxgcd.compile_grammar(grammar, vocabulary, exact=True)
    first = jaxgcd.init(tables)
    states = [first, *(jax.jit(jaxgcd.advance)(tables, first, jnp.int32(i)) for i in ids)]
    words = np.stack([np.asarray(jax.jit(jaxgcd.allowed)(tables, state), "<u4") for state in states])
    bits = np.unpackbits(words.view(np.uint8), axis=1, bitorder="little").astype(bool)
    assert not bits[:, vocabulary.size :].any()
    return bits[:, : vocabulary.size]


BY_NAME = {kind.name: kind for kind in KINDS}
KEPT = ("mistral, sentencepiece", "smollm2, gguf", "deepseek, tokenizers")  # which more than one test needs


def build(kind: Kind, folder: Path) -> tuple[Any, Vocabulary]:
    tokenizer = kind.load(folder)
    eos = kind.eos if kind.asks_eos else None
    return tokenizer, Vocabulary.from_tokenizer(tokenizer, eos=eos)


@functools.cache
def kept(name: str) -> tuple[Any, Vocabulary]:
    return build(BY_NAME[name], Path())
