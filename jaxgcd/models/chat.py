"""Render a model's chat template: Jinja code from a file, so it runs in an immutable sandbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from jaxgcd._extras import require
from jaxgcd.errors import ModelError


@dataclass(frozen=True)
class ChatTemplate:
    """A Jinja template over `messages`, as transformers renders it, with its `bos` and `eos` tokens."""

    source: str
    bos: str = ""
    eos: str = ""

    def render(self, messages: Sequence[Mapping[str, str]], *, add_generation_prompt: bool = True) -> str:
        """The text of a conversation; each message is `{"role": ..., "content": ...}`.

        With `add_generation_prompt` the text ends where the assistant's answer begins.
        """
        require("jinja2", "models")
        sandbox = require("jinja2.sandbox", "models")
        environment = sandbox.ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        environment.globals["raise_exception"] = _raise
        try:
            return environment.from_string(self.source).render(
                messages=[dict(message) for message in messages],
                add_generation_prompt=add_generation_prompt,
                bos_token=self.bos,
                eos_token=self.eos,
            )
        except ModelError:
            raise
        except Exception as error:  # the template is code from a file: it can raise anything
            raise ModelError(f"the chat template cannot be rendered: {error}") from error

    def ask(self, question: str, *, system: str | None = None) -> str:
        """The text of a conversation that is one question, up to where the answer begins."""
        messages = [{"role": "user", "content": question}]
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        return self.render(messages)


def _raise(message: str) -> NoReturn:
    """What templates call to reject a conversation."""
    raise ModelError(f"the chat template rejects the conversation: {message}")
