"""Answers of a model to prompts, some rows at a time."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import jax
import numpy as np

import jaxgcd
from jaxgcd.errors import ModelError

if TYPE_CHECKING:
    from jaxgcd.models import LoadedModel


@dataclass(frozen=True)
class Answer:
    """One text, and where it belongs."""

    prompt: int
    """Number of the prompt, from 0."""
    sample: int
    """Number among the answers to that prompt, from 0."""
    text: str
    finish: str
    """The name of a `jaxgcd.Finish`; the text is complete if it is "EOS"."""
    tokens: int
    """How many tokens the text has."""
    token_ids: list[int]

    @property
    def complete(self) -> bool:
        return self.finish == jaxgcd.Finish.EOS.name


@dataclass(frozen=True)
class Drawing:
    """How answers are drawn."""

    max_new_tokens: int
    seed: int
    batch_size: int
    options: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of `jaxgcd.generate` besides `max_new_tokens`."""


def encode(loaded: "LoadedModel", prompt: str, *, raw: bool, system: str | None) -> list[int]:
    """The token ids of a prompt: through the chat template, or as it is."""
    if raw:
        return loaded.tokenizer.encode(prompt).ids
    if loaded.chat_template is None:
        raise ModelError("this model has no chat template; give the prompt as it is, with --raw")
    text = loaded.chat_template.ask(prompt, system=system)
    return loaded.tokenizer.encode(text, add_special_tokens=False).ids


def answers(
    loaded: "LoadedModel",
    vocabulary: jaxgcd.Vocabulary,
    tables: jaxgcd.Tables,
    prompts: Sequence[Sequence[int]],
    samples: int,
    drawing: Drawing,
) -> Iterator[Answer]:
    """`samples` answers to each prompt, in order; each batch is yielded when it is done."""
    rows = [(prompt, sample) for prompt in range(len(prompts)) for sample in range(samples)]
    key = jax.random.key(drawing.seed)
    for number, begin in enumerate(range(0, len(rows), drawing.batch_size)):
        batch = rows[begin : begin + drawing.batch_size]
        # A last batch that is shorter would be another shape to compile for.
        filled = batch + batch[-1:] * (min(drawing.batch_size, len(rows)) - len(batch))
        output = _generate(
            loaded, tables, [prompts[i] for i, _ in filled], jax.random.fold_in(key, number), drawing
        )
        tokens, lengths, finish = (np.asarray(part) for part in (output.tokens, output.length, output.finish))
        for row, (prompt, sample) in enumerate(batch):
            ids = tokens[row, : lengths[row]].tolist()
            text = vocabulary.spell(ids).decode(errors="ignore")  # it may end inside a character
            end = jaxgcd.Finish(int(finish[row])).name
            yield Answer(prompt, sample, text, end, len(ids), ids)


def _generate(
    loaded: "LoadedModel",
    tables: jaxgcd.Tables,
    prompts: Sequence[Sequence[int]],
    key: jax.Array,
    drawing: Drawing,
) -> jaxgcd.Generation:
    from jaxgcd import models

    length = drawing.max_new_tokens
    decode_fn, cache, last_token = models.start(loaded.model, prompts, max_new_tokens=length)
    state = jaxgcd.init(tables, len(prompts))
    return jaxgcd.generate(
        key, decode_fn, cache, tables, state, last_token, max_new_tokens=length, **drawing.options
    )
