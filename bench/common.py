"""What the benchmarks share: real vocabularies, grammars, and where results go."""

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


def grammars() -> dict[str, str]:
    """Our own example grammars, and the real ones in `$JAXGCD_DATA/grammars` if it is set."""
    found = {f"examples/{name}": ROOT / "examples" / f"{name}.lark" for name in ("json", "sql", "arithmetic")}
    if data := os.environ.get("JAXGCD_DATA"):
        found |= {name: Path(data) / "grammars" / f"{name}.lark" for name in ("json", "c")}
    return {name: path.read_text() for name, path in found.items()}


def machine() -> dict[str, Any]:
    """Where a result was measured."""
    return {
        "python": platform.python_version(),
        "jax": jax.__version__,
        "lark": lark.__version__,
        "device": str(jax.devices()[0]),
        "cores": os.cpu_count(),
    }


def write(name: str, rows: list[dict[str, Any]]) -> None:
    """Prints rows and writes them to `bench/<name>.json`."""
    for row in rows:
        print(
            "  ".join(
                f"{key} {value:.3g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in row.items()
            )
        )
    path = Path(__file__).parent / f"{name}.json"
    path.write_text(json.dumps({"machine": machine(), "command": sys.argv, "rows": rows}, indent=1) + "\n")
