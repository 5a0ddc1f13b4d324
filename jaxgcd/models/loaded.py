"""What a model file or folder holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from jaxgcd.errors import ModelError
from jaxgcd.vocabulary import Vocabulary

from .chat import ChatTemplate
from .config import LlamaConfig
from .llama import Llama

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def checked_eos(ids: Sequence[Any], vocab_size: int) -> tuple[int, ...]:
    """EOS ids, ascending; `ModelError` if one of them is not a token."""
    for index in ids:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < vocab_size:
            raise ModelError(f"the EOS id {index!r} is not a token id below {vocab_size}")
    return tuple(sorted(set(ids)))


@dataclass(frozen=True)
class LoadedModel:
    """A model, and what is needed to talk to it.

    * `chat_template` is None where the file has none;
    * `eos_ids` are the tokens that end a text or a turn, ascending;
    * `tokenizer.encode(text)` puts the model's first token (BOS) in front where the model wants one;
      a chat template's text holds it already: `tokenizer.encode(text, add_special_tokens=False)`.
    """

    model: Llama
    config: LlamaConfig
    tokenizer: "Tokenizer"
    chat_template: ChatTemplate | None
    eos_ids: tuple[int, ...]

    def vocabulary(self) -> Vocabulary:
        """The tokens as a grammar is compiled for them: as wide as the logits, ended by `eos_ids`."""
        return Vocabulary.from_tokenizer(self.tokenizer, size=self.config.vocab_size, eos=self.eos_ids)
