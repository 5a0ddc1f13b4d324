"""What the masks must be, according to python-lark and to nothing else.

`Language` answers for a small alphabet: it asks a real `lark.Lark` about whole texts and searches for
completions letter by letter. A text that Lark parses is certain; that no completion exists is certain up
to a bound on the length of shortest completions, which every grammar of the suite states and which
`test_oracle.py` checks exhaustively. `Segmenter` cuts texts into tokens.

Nothing here imports the library.
"""

import codecs
import random
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
from lark import Lark
from lark.exceptions import LarkError, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

T = TypeVar("T")
OUTSIDE_LEXEME = ("(?=", "(?!", "(?<", "$", "\\b", "\\B", "\\Z")
SEARCH_LIMIT = 400_000  # parses of one search; a grammar that needs more is badly chosen for the suite


def split_utf8(data: bytes) -> tuple[str, bytes] | None:
    """The characters of `data` and the bytes of one unfinished character; None if ill-formed."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        text = decoder.decode(data)
    except UnicodeDecodeError:
        return None
    return text, decoder.getstate()[0]


def lexeme_width(lark: Lark) -> int:
    """How many characters from its start can decide a lexeme; a huge number if there is no such bound."""
    patterns = [terminal.pattern for terminal in lark.terminals]
    if any(mark in pattern.to_regexp() for pattern in patterns for mark in OUTSIDE_LEXEME):
        return 1 << 30
    return max((pattern.max_width for pattern in patterns), default=0)


class Language:
    """The texts over `alphabet` that Lark parses, and which prefixes can still become one.

    `bound(length)` promises: if a prefix of that length has a completion at all, its shortest one has
    at most that many characters.
    """

    def __init__(
        self,
        grammar: str,
        alphabet: Sequence[str],
        bound: Callable[[int], int],
        *,
        lexer: str = "basic",
        start: str = "start",
    ) -> None:
        self.lark = Lark(grammar, parser="lalr", lexer=lexer, start=start)
        self.alphabet = tuple(alphabet)
        self.bound = bound
        self._width = lexeme_width(self.lark)
        self._parsed: dict[str, bool | None] = {}
        self._viable: dict[str, bool] = {}

    def accepts(self, text: str) -> bool:
        """Whether Lark parses `text`."""
        return self._verdict(text) is True

    def _verdict(self, text: str) -> bool | None:
        """True: Lark parses it. False: it does not. None: nor does it parse any longer text."""
        if text not in self._parsed:
            try:
                self.lark.parse(text)
                self._parsed[text] = True
            except LarkError as error:
                self._parsed[text] = None if self._is_final(error, text) else False
        return self._parsed[text]

    def _is_final(self, error: LarkError, text: str) -> bool:
        """Whether Lark stumbled at a lexeme that lies so far back that later characters cannot change it."""
        if not isinstance(error, (UnexpectedCharacters, UnexpectedToken)):
            return False
        if isinstance(error, UnexpectedToken) and error.token.type == "$END":
            return False
        return _position(error) + self._width <= len(text)

    def viable(self, prefix: bytes) -> bool:
        """Whether some accepted text over the alphabet extends `prefix`, which may end inside a character."""
        parts = split_utf8(prefix)
        if parts is None:
            return False
        text, unfinished = parts
        if not unfinished:
            return self._viable_text(text)
        endings = [letter for letter in self.alphabet if letter.encode().startswith(unfinished)]
        return any(self._viable_text(text + letter) for letter in endings)

    def _viable_text(self, text: str) -> bool:
        if text not in self._viable:
            if text and not self._viable_text(text[:-1]):
                self._viable[text] = False
            elif (found := self.complete(text)) is None:
                self._viable[text] = False
            else:
                self._viable |= {found[:end]: True for end in range(len(text), len(found) + 1)}
        return self._viable[text]

    def complete(self, text: str) -> str | None:
        """A shortest accepted text that extends `text`, None if there is none within the bound."""
        level, parses = [text], 0
        for _ in range(self.bound(len(text)) + 1):
            verdicts = [self._verdict(candidate) for candidate in level]
            if True in verdicts:
                return level[verdicts.index(True)]
            parses += len(level)
            if parses > SEARCH_LIMIT:
                raise AssertionError(f"too many texts to try after {text!r}")
            alive = [text for text, verdict in zip(level, verdicts, strict=True) if verdict is not None]
            level = [candidate + letter for candidate in alive for letter in self.alphabet]
        return None

    def mask(
        self,
        prefix: bytes,
        tokens: Sequence[bytes],
        *,
        eos: Iterable[int],
        special: Iterable[int] = (),
        size: int | None = None,
    ) -> np.ndarray:
        """The mask after `prefix`, bool[size]; specials, empty tokens and padding are never allowed."""
        mask = np.zeros(size or len(tokens), bool)
        silent = {*eos, *special}
        for token, spelled in enumerate(tokens):
            mask[token] = bool(spelled) and token not in silent and self.viable(prefix + spelled)
        parts = split_utf8(prefix)
        mask[list(eos)] = parts is not None and not parts[1] and self.accepts(parts[0])
        return mask


def _position(error: UnexpectedInput) -> int:
    """Where the lexeme starts that Lark could not use."""
    position = error.pos_in_stream
    assert position is not None
    return position


class Segmenter:
    """All ways to spell a byte string with the tokens of a vocabulary."""

    def __init__(self, tokens: Sequence[bytes], skip: Iterable[int] = ()) -> None:
        self.ids: dict[bytes, list[int]] = {}
        skipped = set(skip)
        for token, spelled in enumerate(tokens):
            if spelled and token not in skipped:
                self.ids.setdefault(spelled, []).append(token)
        self.longest = max(map(len, self.ids), default=0)

    def random(self, data: bytes, rng: random.Random, longest: int | None = None) -> list[int]:
        """A random segmentation: at every place any token that fits and leaves a rest that can be spelled."""
        ends = self._ends(data, longest or self.longest)
        if not ends[0] and data:
            raise ValueError(f"the vocabulary cannot spell {data!r}")
        place, segmentation = 0, []
        while place < len(data):
            end = pick(rng, ends[place])
            segmentation.append(pick(rng, self.ids[data[place:end]]))
            place = end
        return segmentation

    def _ends(self, data: bytes, longest: int) -> list[list[int]]:
        """For every place, the ends of the tokens that fit there and from which the end can be reached."""
        ends: list[list[int]] = [[] for _ in range(len(data) + 1)]
        for place in reversed(range(len(data))):
            for end in range(place + 1, min(place + longest, len(data)) + 1):
                if data[place:end] in self.ids and (end == len(data) or ends[end]):
                    ends[place].append(end)
        return ends

    def bytewise(self, data: bytes) -> list[int]:
        """One token per byte."""
        return [self.ids[data[place : place + 1]][0] for place in range(len(data))]


def pick(rng: random.Random, options: Sequence[T]) -> T:
    """A random element, drawn so that one seed means the same choice under every Python version."""
    return options[int(rng.random() * len(options))]


def random_walk(
    language: Language, tokens: Sequence[bytes], *, skip: Iterable[int], longest: int, rng: random.Random
) -> list[int]:
    """Random tokens whose text stays viable, of a random length up to `longest` bytes."""
    usable = [token for token in range(len(tokens)) if tokens[token] and token not in set(skip)]
    goal, text, walk = int(rng.random() * (longest + 1)), b"", []
    while len(text) < goal:
        options = [token for token in usable if language.viable(text + tokens[token])]
        options = [token for token in options if len(text) + len(tokens[token]) <= longest]
        if not options:
            break
        walk.append(pick(rng, options))
        text += tokens[walk[-1]]
    return walk
