"""Render a model's chat template: Jinja code from a file, so it runs in an immutable sandbox."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from jaxgcd._extras import require
from jaxgcd.errors import MissingExtraError, ModelError


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template over `messages`, as transformers renders it, with its `bos` and `eos` tokens."""

    source: str
    bos: str = ""
    eos: str = ""

    def render(
        self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = True, **variables: Any
    ) -> str:
        """The text of a conversation; each message is `{"role": ..., "content": ...}`.

        With `add_generation_prompt` the text ends where the assistant's answer begins. What else a template
        reads are `variables`, e.g. Qwen 3's `enable_thinking=False`. Raises `ModelError` if the template is
        wrong, or rejects the conversation.
        """
        given = {"tools": None, "documents": None, **variables}
        try:
            return self._compiled().render(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                bos_token=self.bos,
                eos_token=self.eos,
                **given,
            )
        except (ModelError, MissingExtraError):
            raise
        except Exception as error:  # the template is code from a file: it can raise anything
            raise ModelError(f"the chat template cannot be rendered: {error}") from error

    def _compiled(self) -> Any:
        """The template, with what transformers offers to it."""
        require("jinja2", "models")
        sandbox = require("jinja2.sandbox", "models")
        environment = sandbox.ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
        )
        environment.filters["tojson"] = _to_json
        environment.globals.update(raise_exception=_raise, strftime_now=_now)
        return environment.from_string(self.source)

    def ask(self, question: str, *, system: str | None = None) -> str:
        """The text of a conversation that is one question, up to where the answer begins."""
        messages = [{"role": "user", "content": question}]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        return self.render(messages)


def _raise(message: str) -> NoReturn:
    """What templates call to reject a conversation."""
    raise ModelError(f"the chat template rejects the conversation: {message}")


def _to_json(value: Any, indent: int | None = None) -> str:
    """JSON as it is; Jinja's own filter writes `<` as `\\u003c`, for HTML."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _now(form: str) -> str:
    """Today's date, which some templates put into the system's message."""
    return datetime.now().strftime(form)
