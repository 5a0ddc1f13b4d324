"""A real model writes JSON and SQL: freely, and inside a grammar. On whatever device JAX finds.

    python examples/demo.py        (or `make demo`, which installs what it needs)

SmolLM2-135M-Instruct, greedy decoding. Shows each prompt, both answers and the tokens per second of
both, after compilation. Exits with status 1, and says "truncated", if an answer inside a grammar does not end
within `--max-new-tokens`.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32
from lark import Lark
from rich.console import Console
from rich.panel import Panel
from rich.text import Text
from tqdm import tqdm

import jaxgcd
from jaxgcd import models

LEXER = "basic"
CONSOLE = Console(highlight=False)


@dataclass(frozen=True)
class Task:
    """A question, and the grammar of its answer."""

    name: str
    grammar: str
    question: str


TASKS = (
    Task(
        name="JSON",
        grammar="json.lark",
        question="Write a JSON object that describes a person with the keys name, age and city.",
    ),
    Task(
        name="SQL",
        grammar="sql.lark",
        question="Write an SQL query that returns the names of all customers from Paris, ordered by name.",
    ),
)


@dataclass(frozen=True)
class Answer:
    """What the model wrote: its text, whether it came to an end, and how fast it was."""

    text: str
    ended: bool
    speed: str


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all tasks; 1 if an answer inside a grammar was truncated."""
    parser = argparse.ArgumentParser(description="A model writes JSON and SQL, freely and inside a grammar.")
    parser.add_argument("--max-new-tokens", type=int, default=160, metavar="N")
    max_new_tokens = parser.parse_args(arguments).max_new_tokens
    loaded = models.load_gguf(models.smollm2_path())
    vocabulary = loaded.vocabulary()
    verdicts = [run(task, loaded, vocabulary, max_new_tokens) for task in TASKS]
    for verdict in verdicts:
        for line in verdict:
            print(line)
    return 0 if all(verdicts) else 1


def run(
    task: Task, loaded: models.LoadedModel, vocabulary: jaxgcd.Vocabulary, max_new_tokens: int
) -> list[str]:
    """Show one task; returns what its answer was checked with, nothing if it was truncated."""
    grammar = (Path(__file__).parent / task.grammar).read_text()
    if loaded.chat_template is None:
        sys.exit("this model has no chat template, so that it cannot be asked")
    prompt = loaded.chat_template.ask(task.question)
    show(f"{task.name}: the prompt", prompt)
    ids = loaded.tokenizer.encode(prompt, add_special_tokens=False).ids
    with tqdm(total=4, desc=f"compiling {task.grammar}", unit="step") as bar:
        tables = step(bar, "tables", lambda: jaxgcd.compile_grammar(grammar, vocabulary, lexer=LEXER))
        begin = step(bar, "prompt", lambda: models.start(loaded.model, [ids], max_new_tokens=max_new_tokens))
        free = partial(write_freely, *begin, jnp.asarray(loaded.eos_ids, jnp.int32), max_new_tokens)
        inside = partial(write_inside, *begin, tables, max_new_tokens)
        step(bar, "free loop", free)
        step(bar, "loop with grammar", inside)
    show(f"{task.name}: written freely", timed(free, loaded))
    answer = timed(inside, loaded)
    show(f"{task.name}: written inside {task.grammar}", answer)
    if not answer.ended:
        print(f"truncated: the {task.name} text did not end within {max_new_tokens} tokens")
        return []
    return checked(task, grammar, answer.text)


def checked(task: Task, grammar: str, text: str) -> list[str]:
    """Let others read the text: Lark, and for JSON the standard library. They raise if they cannot."""
    Lark(grammar, parser="lalr", lexer=LEXER).parse(text)
    lines = [f"Lark parsed the {task.name} text with {task.grammar}."]
    if task.name == "JSON":
        lines.append(f"json.loads read it: {json.loads(text)}")
    return lines


def write_inside(
    decode_fn: models.DecodeFn,
    cache: models.Cache,
    last_token: Int32[Array, " 1"],
    tables: jaxgcd.Tables,
    max_new_tokens: int,
) -> tuple[Int32[Array, " time"], int, bool]:
    """Tokens, how many of them are text, and whether the text ended; inside the grammar."""
    state = jaxgcd.init(tables, batch_shape=(1,))
    output = jaxgcd.generate(
        jax.random.key(0),
        decode_fn,
        cache,
        tables,
        state,
        last_token,
        max_new_tokens=max_new_tokens,
        temperature=0.0,
    )
    return output.tokens[0], int(output.length[0]), int(output.finish[0]) == jaxgcd.Finish.EOS


def write_freely(
    decode_fn: models.DecodeFn,
    cache: models.Cache,
    last_token: Int32[Array, " 1"],
    eos: Int32[Array, " ends"],
    max_new_tokens: int,
) -> tuple[Int32[Array, " time"], int, bool]:
    """The same without a grammar."""
    tokens, steps, ended = greedy(decode_fn, cache, last_token, eos, max_new_tokens)
    return tokens, int(steps) - bool(ended), bool(ended)


@partial(jax.jit, static_argnums=4)
def greedy(
    decode_fn: models.DecodeFn,
    cache: models.Cache,
    last_token: Int32[Array, " 1"],
    eos: Int32[Array, " ends"],
    max_new_tokens: int,
) -> tuple[Int32[Array, " time"], Int32[Array, ""], Bool[Array, ""]]:
    """The likeliest token, again and again, until EOS or the limit: tokens, steps taken, EOS seen."""

    def going(carry: Any) -> Any:
        index, _, _, ended, _ = carry
        return (index < max_new_tokens) & ~ended

    def body(carry: Any) -> Any:
        index, token, cache, _, tokens = carry
        logits, cache = decode_fn(token, cache)
        token = jnp.argmax(logits, axis=-1).astype(jnp.int32)
        return index + 1, token, cache, jnp.isin(token[0], eos), tokens.at[index].set(token[0])

    begin = (jnp.int32(0), last_token, cache, jnp.bool_(False), jnp.zeros(max_new_tokens, jnp.int32))
    steps, _, _, ended, tokens = jax.lax.while_loop(going, body, begin)
    return tokens, steps, ended


def timed(write: Callable[[], tuple[Any, int, bool]], loaded: models.LoadedModel) -> Answer:
    """Run a compiled loop and wait for the device. The step that draws EOS counts as a token."""
    begin = time.perf_counter()
    tokens, length, ended = jax.block_until_ready(write())
    seconds = time.perf_counter() - begin
    text = loaded.tokenizer.decode(tokens[:length].tolist())
    return Answer(text, ended, f"{length} tokens, {(length + ended) / seconds:.1f} tokens per second")


def step(bar: tqdm, name: str, work: Callable[[], Any]) -> Any:
    """Do one step of the work, named beside its progress bar."""
    bar.set_postfix_str(name)
    result = jax.block_until_ready(work())
    bar.update()
    return result


def show(title: str, content: str | Answer) -> None:
    """Print a text in a frame."""
    text, note = (content, None) if isinstance(content, str) else (content.text, content.speed)
    CONSOLE.print(Panel(Text(text), title=title, subtitle=note, title_align="left", subtitle_align="right"))


if __name__ == "__main__":
    sys.exit(main())
