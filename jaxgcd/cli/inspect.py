"""`jaxgcd inspect`: what a file of tables or of a vocabulary holds."""

from typing import Annotated

import typer

import jaxgcd
from jaxgcd import _container, _vocabulary_file

from .boundary import ExitCode, reported
from .show import show_numbers, show_report


@reported
def inspect_command(
    file: Annotated[str, typer.Argument(metavar="FILE", help="What compile has saved.")],
) -> ExitCode:
    """Check a saved file against its checksum, and show what it holds.

    \b
      jaxgcd inspect json.jaxgcd
    """
    if _container.kind_of(file) == _vocabulary_file.KIND:
        _show_vocabulary(file)
    else:
        _show_tables(file)
    return ExitCode.OK


def _show_vocabulary(file: str) -> None:
    vocabulary = jaxgcd.Vocabulary.load(file)
    counts = {
        "width of the logits": vocabulary.size,
        "tokens": len(vocabulary),
        "that can be drawn": sum(vocabulary.usable),
        "single bytes among them": len(vocabulary.single_bytes),
    }
    show_numbers(
        f"{file}: a vocabulary",
        {name: f"{count:,}" for name, count in counts.items()},
        {"end of text": " ".join(map(str, vocabulary.eos)), "fingerprint": vocabulary.fingerprint},
    )


def _show_tables(file: str) -> None:
    tables = jaxgcd.load(file)
    facts = {"check": tables.check, "max depth": str(tables.max_depth), "vocabulary": f"{tables.size:,}"}
    show_numbers(f"{file}: tables", facts)
    if tables.report is not None:
        show_report(tables.report, title="as compiled")
