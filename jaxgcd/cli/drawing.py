"""How answers are drawn: the options of `generate` for it, and what the library is asked for."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import typer

import jaxgcd
from jaxgcd.stops import MAX_STOP_BYTES

from .inputs import argument_text, as_id

_DRAWING, _ENDS = "Drawing", "Ends"

Samples = Annotated[
    int, typer.Option("--samples", "-n", min=1, help="Answers to each prompt.", rich_help_panel=_DRAWING)
]
Temperature = Annotated[
    float,
    typer.Option(
        "--temperature",
        min=0.0,
        help="Divides the logits; 0 takes the likeliest token.",
        rich_help_panel=_DRAWING,
    ),
]
TopK = Annotated[
    int | None,
    typer.Option(
        "--top-k",
        metavar="K",
        min=1,
        help="Draw from the K likeliest tokens that the grammar allows.",
        rich_help_panel=_DRAWING,
        show_default=False,
    ),
]
TopP = Annotated[
    float | None,
    typer.Option(
        "--top-p",
        metavar="P",
        min=0.0,
        max=1.0,
        help="Draw from the fewest likeliest tokens that together have the share P; after --top-k.",
        rich_help_panel=_DRAWING,
        show_default=False,
    ),
]
MinP = Annotated[
    float | None,
    typer.Option(
        "--min-p",
        metavar="P",
        min=0.0,
        max=1.0,
        help="Leave out tokens that are less likely than P times the likeliest one.",
        rich_help_panel=_DRAWING,
        show_default=False,
    ),
]
LogitBias = Annotated[
    list[str] | None,
    typer.Option(
        "--logit-bias",
        metavar="TOKEN=BIAS",
        help="Add to a token's logit; -inf bans it. TOKEN is an id or a text that is one token; repeatable.",
        rich_help_panel=_DRAWING,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        max=2**31 - 1,
        help="The same seed, prompts and batch size give the same answers.",
        rich_help_panel=_DRAWING,
    ),
]
BatchSize = Annotated[
    int,
    typer.Option("--batch-size", min=1, help="Answers that are drawn at once.", rich_help_panel=_DRAWING),
]
MaxNewTokens = Annotated[
    int,
    typer.Option("--max-new-tokens", min=1, help="The most tokens of an answer.", rich_help_panel=_ENDS),
]
MinNewTokens = Annotated[
    int,
    typer.Option(
        "--min-new-tokens",
        min=0,
        help="An answer does not end before so many tokens, while the grammar allows another one.",
        rich_help_panel=_ENDS,
    ),
]
Stop = Annotated[
    list[str] | None,
    typer.Option(
        "--stop",
        metavar="TEXT",
        help="An answer ends with this text, wherever it occurs; repeatable.",
        rich_help_panel=_ENDS,
    ),
]
StopId = Annotated[
    list[int] | None,
    typer.Option(
        "--stop-id",
        metavar="ID",
        min=0,
        help="An answer ends with this token, where the grammar allows it; repeatable.",
        rich_help_panel=_ENDS,
    ),
]


@dataclass(frozen=True)
class Drawing:
    """What the options say, for all answers."""

    options: Mapping[str, Any]
    """Keyword arguments of `jaxgcd.generate` besides `logit_bias`."""
    logit_bias: Sequence[tuple[str, float]]
    """Tokens, by their ids or texts, and what is added to their logits."""
    samples: int
    seed: int
    batch_size: int

    def keywords(self, vocabulary: jaxgcd.Vocabulary) -> dict[str, Any]:
        """All keyword arguments of `jaxgcd.generate` that shape a draw or a text."""
        for number in self.options.get("stop_ids", ()):
            if number >= vocabulary.size:
                raise typer.BadParameter(
                    f"{number}, which is no token id below {vocabulary.size}", param_hint="--stop-id"
                )
        bias = _bias(self.logit_bias, vocabulary) if self.logit_bias else None
        return {**self.options, "logit_bias": bias}

    def check(self) -> None:
        """A usage error for what has no effect."""
        greedy = self.options["temperature"] == 0
        if greedy and self.samples > 1:
            raise typer.BadParameter("at 0 all samples are the same", param_hint="--temperature")
        for name in ("top_k", "top_p", "min_p"):
            if greedy and self.options[name] is not None:
                raise typer.BadParameter(
                    "no effect at --temperature 0, which takes the likeliest token; give a temperature",
                    param_hint=f"--{name.replace('_', '-')}",
                )
        if "" in self.options["stop"]:
            raise typer.BadParameter("an empty text would end every answer at once", param_hint="--stop")
        if sum(len(text.encode()) for text in self.options["stop"]) > MAX_STOP_BYTES:
            raise typer.BadParameter(f"more than {MAX_STOP_BYTES} bytes in all", param_hint="--stop")


def parse_bias(given: Sequence[str]) -> list[tuple[str, float]]:
    """Tokens and numbers from `TOKEN=BIAS`; a token's text may hold `=` itself."""
    return [(text.rpartition("=")[0], _number(text)) for text in given]


def _number(text: str) -> float:
    token, _, number = text.rpartition("=")
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if not token or math.isnan(value) or value == math.inf:
        raise _bad_bias(f"{text!r} is not TOKEN=BIAS with a number, or -inf, behind the last =")
    return value


def _bias(pairs: Sequence[tuple[str, float]], vocabulary: jaxgcd.Vocabulary) -> np.ndarray:
    """`float32[size]`, what is added to the logits."""
    bias = np.zeros(vocabulary.size, np.float32)
    for token, number in pairs:
        bias[_ids(token, vocabulary)] += number
    return bias


def _ids(token: str, vocabulary: jaxgcd.Vocabulary) -> list[int]:
    """The token of an id, or all tokens that spell a text."""
    if (number := as_id(token)) is not None:
        if number >= vocabulary.size:
            raise _bad_bias(f"there is no token id {token} below {vocabulary.size}")
        return [number]
    spelled = argument_text(token).encode()
    found = [i for i, known in enumerate(vocabulary.tokens) if known == spelled and vocabulary.usable[i]]
    if not found:
        raise _bad_bias(f"no token is the text {token!r} alone; give its id, or another text")
    return found


def _bad_bias(message: str) -> typer.BadParameter:
    return typer.BadParameter(message, param_hint="--logit-bias")
