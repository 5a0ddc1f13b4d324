"""What every reader returns, and the rule for tokens that were added to a vocabulary."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from jaxgcd.errors import VocabularyError

MAX_SIZE = 1 << 22
"""Token ids, and the width of the logits, end below this: sixteen times the largest vocabularies in use."""

Added = Literal["never", "text"]
"""Whether added tokens that are not special can be drawn."""


@dataclass(frozen=True)
class Contents:
    """A tokenizer's vocabulary by token id.

    Ids that `tokens` lacks are holes. `added` are the tokens that the tokenizer finds whole in a text
    before it cuts the rest, as far as they are not special: markers of roles, of thinking, of tools, and
    runs of blanks.
    """

    tokens: Mapping[int, bytes]
    special: frozenset[int]
    added: frozenset[int] = frozenset()
    eos: tuple[int, ...] = ()

    def token_list(self) -> list[bytes]:
        """The tokens in the order of their ids; holes are empty.

        >>> Contents({0: b"a", 2: b"b"}, special=frozenset()).token_list()
        [b'a', b'', b'b']
        """
        if not self.tokens:
            return []
        low, high = min(self.tokens), max(self.tokens)
        if low < 0 or high >= MAX_SIZE:
            wrong = low if low < 0 else high
            raise VocabularyError(f"The tokenizer has the token id {wrong}; ids go from 0 to {MAX_SIZE - 1}.")
        tokens = [b""] * (high + 1)
        for i, token in self.tokens.items():
            tokens[i] = token
        return tokens

    def unspoken(self, added: Added) -> frozenset[int]:
        """Ids that are never text: the special ones, and with "never" the added ones that are not blank."""
        if added == "text":
            return self.special
        if added != "never":
            raise VocabularyError(f'`added` must be "never" or "text", got {added!r}.')
        return self.special.union(i for i in self.added if not self.tokens[i].isspace())
