"""Random grammars against python-lark: whole masks, in both lexer modes, all in one padded bucket.

Lark judges every text of up to `LONGEST` letters. A viable token that is masked is a difference for certain;
a token that is allowed is one if no longer text that Lark parses is found either. Allowed tokens are judged
if they leave `ROOM` letters: most of their completions are among the texts of up to `LONGEST` letters.
"""

import random
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count, islice
from typing import Any

import harness
import numpy as np
import pytest
from enumeration import Enumeration
from grammar_features import FEATURES, features
from lark import Lark
from lark.exceptions import LarkError
from oracle import Segmenter, pick
from random_grammars import ALPHABETS, random_grammar
from small_grammars import SIZE, Words, words

import jaxgcd

LONGEST = 6  # 1,093 texts; one letter more under `make prove`
ROOM = 2  # letters, see above
FEW = 200  # texts that are tried besides, where there seems to be none
CHUNKS, GRAMMARS = 8, 250  # each chunk is a test of its own, so that several workers share the work
SHAPE = (48, 7)  # sequences at once, tokens per sequence
WORDS = {alphabet: words(alphabet) for alphabet in ALPHABETS}
VOCABULARIES = {alphabet: harness.vocabulary_of(found) for alphabet, found in WORDS.items()}
SEGMENTERS = {alphabet: Segmenter(found.tokens, skip=(0, 1)) for alphabet, found in WORDS.items()}


@dataclass(frozen=True)
class Sample:
    """A grammar that Lark loads in this mode, and the short texts of its language."""

    seed: int
    lexer: str
    grammar: str
    alphabet: str
    language: Enumeration

    @property
    def useful(self) -> bool:
        """Whether masks can be wrong: some texts, but not whatever letters one likes."""
        few = [text for text in self.language.accepted if len(text) <= 5]
        dead = [text for text in self.language.texts(3) if text.encode() not in self.language.viable]
        return len(few) >= 5 and bool(dead)


def sample(seed: int, lexer: str) -> Sample | None:
    """The grammar of this seed; None if Lark refuses it."""
    grammar = random_grammar(random.Random(seed))
    try:
        lark = Lark(grammar.text, parser="lalr", lexer=lexer)
    except LarkError:
        return None
    return Sample(seed, lexer, grammar.text, grammar.alphabet, Enumeration(lark, grammar.alphabet, 4))


def samples(seeds: Iterable[int], longest: int = LONGEST) -> Iterator[Sample]:
    """Useful grammars, two in three of them in both modes; and of the others, one in ten."""
    for seed in seeds:
        modes = ["basic", "contextual"][:: 1 if seed // 16 % 2 else -1]
        for lexer in modes[: 2 if seed % 16 < 11 else 1]:
            found = sample(seed, lexer)
            if found is None or (len(found.language.accepted) < 5 and seed % 10):
                break
            found.language.extend(longest)
            if found.useful or seed % 10 == 0:
                yield found


# What is wrong with the masks of one sample.


def compare(found: Sample) -> tuple[list[str], harness.Compiled | None]:
    """All differences from Lark, in words, and the tables; None where it is said that the language is empty,
    or that Lark hangs.
    """
    language, rng = found.language, random.Random(found.seed)
    doubtful = language.check([*language.texts(3), *some_texts(language, rng, 40)])
    assert not doubtful, f"the enumeration is wrong about {doubtful}\n{found.grammar}"
    try:
        compiled = harness.compile_small(
            language.lark, VOCABULARIES[found.alphabet], lexer=found.lexer, shape=SHAPE
        )
    except jaxgcd.GrammarError as error:
        if str(error).startswith("The reductions") and language.hangs(LONGEST + 1):
            return [], None
        empty = type(error) is jaxgcd.GrammarError and "is in the language" in str(error)
        return [] if empty and not language.completes(b"", FEW) else [f"refused: {error}"], None
    except Exception as error:
        error.add_note(f"{found.seed}, {found.lexer}\n{found.grammar}")
        raise
    walks = token_walks(language, SEGMENTERS[found.alphabet], rng)
    trail = harness.trails(compiled, walks)
    judge = Judge(language, WORDS[found.alphabet], compiled.exact)
    rows = list(zip(walks, trail.drawn, trail.ends, trail.masks, strict=True))
    differences = [text for row in rows for text in judge.row(*row)]
    differences += judge.dead()  # which may find out that more is viable
    return differences + [text for row in rows for text in judge.missing(row[0], row[-1])], compiled


def some_texts(language: Enumeration, rng: random.Random, number: int) -> list[str]:
    """Half of them accepted, if any is."""
    accepted = sorted(language.accepted)
    chosen = [pick(rng, accepted) for _ in range(number // 2)] if accepted else []
    letters = language.alphabet
    return chosen + ["".join(pick(rng, letters) for _ in range(language.longest)) for _ in range(number // 2)]


def token_walks(language: Enumeration, segmenter: Segmenter, rng: random.Random) -> list[list[int]]:
    """Random segmentations of all viable prefixes of up to three letters, and of some longer ones."""
    viable = sorted(language.viable, key=lambda text: (len(text), text))
    short = [text for text in viable if letters(text) <= 3] or [b""]
    longer = [pick(rng, viable) for _ in range(SHAPE[0] - len(short))] if viable else []
    walks = [segmenter.random(text, rng) for text in [*short, *longer][: SHAPE[0]]]
    return [walk[: SHAPE[1]] for walk in walks]


def letters(text: bytes) -> int:
    """The characters of `text`, counting one that is cut off (its further bytes begin with the bits 10)."""
    return sum(byte & 0xC0 != 0x80 for byte in text)


class Judge:
    """Compares what the library says after one sequence of tokens with what Lark says."""

    def __init__(self, language: Enumeration, vocabulary: Words, exact: bool) -> None:
        self.language, self.exact = language, exact
        self.tokens, self.silent = vocabulary.tokens, {*vocabulary.eos, *vocabulary.special}
        self.eos, self.ends = list(vocabulary.eos), {text.encode() for text in language.accepted}
        self.known: dict[bytes, np.ndarray] = {}
        self.doubtful: dict[bytes, str] = {}

    def row(self, walk: list[int], drawn: np.ndarray, ends: np.ndarray, mask: np.ndarray) -> Iterator[str]:
        """Differences on the way and in the mask at the end; what takes longer is left to `dead`."""
        for place, token in enumerate(walk):
            prefix = self.text(walk[:place])
            if ends[place] != (prefix in self.ends):
                yield f"end after {prefix!r}: {ends[place]}"
            if not drawn[place]:
                yield self.named("masked", walk[:place], token)
        prefix = self.text(walk)
        for token in np.flatnonzero(mask & ~self.wanted(prefix)).tolist():
            spelled = self.tokens[token] if token < len(self.tokens) else b""
            if token in self.silent or not spelled:
                yield self.named("allowed", walk, token)
            elif self.exact and letters(prefix + spelled) <= self.language.longest - ROOM:
                self.doubtful.setdefault(prefix + spelled, self.named("allowed although dead", walk, token))

    def dead(self) -> list[str]:
        """The first few tokens that were allowed and for which no longer text is found either."""
        texts = sorted(self.doubtful, key=lambda text: (len(text), text))
        dead = islice((text for text in texts if not self.language.completes(text)), 3)
        found = [self.doubtful[text] for text in dead]
        self.known.clear()
        return found

    def missing(self, walk: list[int], mask: np.ndarray) -> Iterator[str]:
        """Tokens that are masked although viable."""
        for token in np.flatnonzero(self.wanted(self.text(walk)) & ~mask).tolist():
            yield self.named("masked", walk, token)

    def wanted(self, prefix: bytes) -> np.ndarray:
        """The mask as far as the texts tell that are known."""
        if prefix not in self.known:
            mask = np.zeros(SIZE, bool)
            viable = self.language.viable
            for token, spelled in enumerate(self.tokens):
                mask[token] = token not in self.silent and bool(spelled) and prefix + spelled in viable
            mask[self.eos] = prefix in self.ends
            self.known[prefix] = mask
        return self.known[prefix]

    def text(self, walk: list[int]) -> bytes:
        return b"".join(self.tokens[token] for token in walk)

    def named(self, verdict: str, walk: list[int], token: int) -> str:
        spelled = self.tokens[token] if token < len(self.tokens) else b"<padding>"
        return f"{verdict}: {spelled!r} (token {token}) after {self.text(walk)!r} (tokens {walk})"


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_whole_masks(chunk: int, prove_factor: int) -> None:
    """Every chunk has its own seeds; no grammar is left out because it is hard."""
    tally = Tally()
    for found in samples(count(chunk * 10**6), LONGEST + (prove_factor > 1)):
        differences, compiled = compare(found)
        assert not differences, f"{found.seed}, {found.lexer}: {differences[:5]}\n{found.grammar}"
        tally.add(found, compiled)
        if tally.grammars >= GRAMMARS * prove_factor:
            break
    tally.check()


KEYS: set[tuple[Any, ...]] = set()
"""Shapes of all tables of this process."""


@dataclass
class Tally:
    """Counts what was compared."""

    useful: dict[int, set[str]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)

    @property
    def grammars(self) -> int:
        """How many that are useful in some mode."""
        return len(self.useful)

    def add(self, found: Sample, compiled: harness.Compiled | None) -> None:
        self.counts["empty" if compiled is None else "exact" if compiled.exact else "announced"] += 1
        if compiled is not None:
            KEYS.add(harness.trace_key(compiled))
        if found.useful:
            self.useful.setdefault(found.seed, set()).add(found.lexer)
            self.counts.update(features(found.language.lark, found.alphabet))

    def check(self) -> None:
        """Enough grammars in both modes and of each kind; the step was traced once."""
        both = sum(len(modes) == 2 for modes in self.useful.values())
        assert 2 * both >= self.grammars, "at least half of the grammars are compared in both modes"
        least = self.grammars // 250
        rare = {name: number for name in FEATURES if (number := self.counts[name]) < least}
        assert not rare, f"the generator has lost something: {rare}"
        assert self.counts["empty"] >= least, "some languages are empty, as Lark confirms"
        assert not self.counts["announced"], "all these tables are exact"
        assert [harness.TRACES[key] for key in KEYS] == [1]
