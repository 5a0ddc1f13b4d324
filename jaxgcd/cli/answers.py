"""Answers of a model to prompts, some rows at a time; whole, or in pieces while they are written."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import jaxgcd
from jaxgcd.errors import ModelError, PromptTooLongError

from .drawing import Drawing

if TYPE_CHECKING:
    from jaxgcd.models import LoadedModel

_STEPS = 4
"""Tokens that are drawn before pieces are shown: fewer would wait for the device more often."""


@dataclass(frozen=True)
class Answer:
    """One text or a piece of it, and where it belongs."""

    prompt: int
    """Number of the prompt, from 0."""
    sample: int
    """Number among the answers to that prompt, from 0."""
    text: str
    finish: str | None
    """The name of a `jaxgcd.Finish`; None for a piece that another one follows."""
    tokens: int
    """How many tokens these are."""
    token_ids: list[int]


@dataclass(frozen=True)
class Run:
    """What all batches have in common."""

    loaded: "LoadedModel"
    vocabulary: jaxgcd.Vocabulary
    tables: jaxgcd.Tables
    prompts: Sequence[Sequence[int]]
    drawing: Drawing
    keywords: Mapping[str, Any]
    """Those of `jaxgcd.generate`."""


def encode(loaded: "LoadedModel", prompt: str, *, raw: bool, system: str | None) -> list[int]:
    """The token ids of a prompt: through the chat template, or as it is."""
    from jaxgcd.models import library

    if raw:
        return library.encode(loaded.tokenizer, prompt)
    if loaded.chat_template is None:
        raise ModelError("this model has no chat template; give the prompt as it is, with --raw")
    text = loaded.chat_template.ask(prompt, system=system)
    return library.encode(loaded.tokenizer, text, add_special_tokens=False)


def check_lengths(loaded: "LoadedModel", prompts: Sequence[Sequence[int]], max_new_tokens: int) -> None:
    """An error that names the first prompt that is empty, or too long for the model with its answer."""
    most = loaded.config.max_length
    for number, prompt in enumerate(prompts):
        if not prompt:
            raise ModelError(f"prompt {number} is empty, and needs at least one token")
        if most is not None and (room := len(prompt) + max_new_tokens) > most:
            raise PromptTooLongError(
                f"prompt {number} has {len(prompt)} tokens, and with --max-new-tokens {max_new_tokens} needs "
                f"room for {room}, but the model was made for {most}; shorten it, or ask for fewer"
            )


def answers(run: Run) -> Iterator[Answer]:
    """`samples` answers to each prompt, in order; each batch is yielded when it is done."""
    for rows, arguments in _batches(run):
        output = jaxgcd.generate(*arguments, **run.keywords)
        tokens, lengths, finish = (np.asarray(part) for part in (output.tokens, output.length, output.finish))
        texts = output.texts(run.vocabulary)
        for row, (prompt, sample) in enumerate(rows):
            ids = tokens[row, : lengths[row]].tolist()
            yield Answer(prompt, sample, texts[row], jaxgcd.Finish(finish[row]).name, len(ids), ids)


def pieces(run: Run) -> Iterator[Answer]:
    """The same answers in pieces, as they are written; those of a batch take turns."""
    for rows, arguments in _batches(run):
        done = [False] * len(rows)
        for chunk in jaxgcd.stream(*arguments, vocabulary=run.vocabulary, steps=_STEPS, **run.keywords):
            for row, (prompt, sample) in enumerate(rows):
                if not done[row]:
                    ids, end = chunk.tokens[row, : chunk.lengths[row]].tolist(), chunk.finish[row]
                    done[row] = end is not None
                    name = None if end is None else end.name
                    yield Answer(prompt, sample, chunk.texts[row], name, len(ids), ids)


def _batches(run: Run) -> Iterator[tuple[list[tuple[int, int]], tuple[Any, ...]]]:
    """For each batch its rows as (prompt, sample), and the positional arguments of `generate`."""
    from jaxgcd import models

    drawing = run.drawing
    rows = [(prompt, sample) for prompt in range(len(run.prompts)) for sample in range(drawing.samples)]
    size, key = min(drawing.batch_size, len(rows)), jax.random.key(drawing.seed)
    for number, begin in enumerate(range(0, len(rows), size)):
        batch = rows[begin : begin + size]
        # A last batch that is shorter would be another shape to compile for.
        filled = batch + batch[-1:] * (size - len(batch))
        decode_fn, cache, last_token = models.start(
            run.loaded.model,
            [run.prompts[i] for i, _ in filled],
            max_new_tokens=run.keywords["max_new_tokens"],
        )
        state = jaxgcd.init(run.tables, size)
        status = state.status.at[len(batch) :].set(jaxgcd.Status.FINISHED)  # what fills a batch draws nothing
        state = replace(state, status=status)
        arguments = (jax.random.fold_in(key, number), decode_fn, cache, run.tables, state, last_token)
        yield batch, arguments
