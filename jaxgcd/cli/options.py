"""Options of the commands: about prompts, the grammar, and what is shown."""

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer


class Lexer(enum.StrEnum):
    """Lark's two lexers for LALR(1)."""

    contextual = "contextual"
    basic = "basic"


class Check(enum.StrEnum):
    """Where sequences that depend on the parser's stack are checked."""

    device = "device"
    host = "host"


_PANEL, _PROMPTS = "Grammar", "Prompts"

PromptFiles = Annotated[
    list[str] | None,
    typer.Option(
        "--file",
        "-f",
        metavar="FILE",
        help="A file that is one prompt; - for standard input.",
        rich_help_panel=_PROMPTS,
    ),
]
PromptLines = Annotated[
    list[str] | None,
    typer.Option(
        "--lines",
        metavar="FILE",
        help="A file with a prompt on each line; - for standard input.",
        rich_help_panel=_PROMPTS,
    ),
]
System = Annotated[
    str | None,
    typer.Option("--system", help="A system message for the chat template.", rich_help_panel=_PROMPTS),
]
Raw = Annotated[
    bool,
    typer.Option(
        "--raw", help="The model goes on with the prompt itself: no chat template.", rich_help_panel=_PROMPTS
    ),
]

Start = Annotated[str, typer.Option("--start", help="The start rule.", rich_help_panel=_PANEL)]
LexerOption = Annotated[
    Lexer,
    typer.Option("--lexer", help="Lark's lexer; the language depends on it.", rich_help_panel=_PANEL),
]
CheckOption = Annotated[
    Check,
    typer.Option(
        "--check",
        help="Where sequences of tokens that depend on the parser's stack are checked.",
        rich_help_panel=_PANEL,
    ),
]
MaxDepth = Annotated[
    int,
    typer.Option("--max-depth", min=2, help="The deepest parser stack of a text.", rich_help_panel=_PANEL),
]
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Fail, instead of warning, if masks are not exact.", rich_help_panel=_PANEL),
]
CacheFolder = Annotated[
    Path | None,
    typer.Option(
        "--cache",
        metavar="FOLDER",
        help="Keep compiled grammars in this folder, and take them from there.",
        rich_help_panel=_PANEL,
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        min=0.001,
        help="Give up on a grammar after so long.",
        show_default="300",
        rich_help_panel=_PANEL,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="JSON for programs instead of text for people.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress bars and no remarks.")]


@dataclass(frozen=True)
class GrammarOptions:
    """How a grammar is compiled; the defaults are those of `compile_grammar`."""

    start: str = "start"
    lexer: str = "contextual"
    check: str = "device"
    max_depth: int = 64
    exact: bool = False
    cache: Path | None = None
    seconds: float | None = None
