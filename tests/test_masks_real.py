"""Masks of real grammars over real vocabularies: witnesses that Lark parses; texts in all segmentations."""

import os
import random
import zlib
from itertools import product
from pathlib import Path
from typing import Any

import harness
import numpy as np
import pytest
from oracle import Segmenter, pick, split_utf8
from real_inputs import REAL, Real, RealVocabulary, finder, mistral, smollm2
from real_languages import LARGE, SMALL
from witness import Finder

import jaxgcd

MASKS, WITNESSES = 20, 200
WALK = 6  # tokens of a random walk behind a prefix: odd tokens, odd states
MAX_DEPTH = 1024  # a token of 96 minus signs pushes 96 states, and a walk may draw it more than once
TRIES_FOR_ZEROS = 12  # texts that Lark may try in vain for a token that is masked


PROVE = os.environ.get("JAXGCD_PROVE", "0") not in ("", "0")
MODES = ("basic", "contextual")
VOCABULARIES = ("mistral", "smollm2")
QUICK = {"json-own", "sql-own", "c-data", "java-data"}  # contextual in every run, first vocabulary

# The library's own verdicts, by grammar and mode.
EXACT = {
    "json-own": {"basic": True, "contextual": True},
    "sql-own": {"basic": True, "contextual": True},
    "arithmetic-own": {"basic": True, "contextual": True},
    "json-data": {"basic": True, "contextual": True},
    "c-data": {"basic": True, "contextual": True},
    "tiny-data": {"basic": True, "contextual": True},
    "calc-data": {"basic": True, "contextual": True},
    "invariants-data": {"basic": True, "contextual": True},
    "prover9-data": {"basic": True, "contextual": True},
    "sql-data": {"basic": True, "contextual": True},
    "java-data": {"basic": True, "contextual": True},
    "python-data": {"basic": True, "contextual": True},
    "go-data": {"basic": True, "contextual": True},
    "paper/java-data": {"basic": True, "contextual": True},
    "paper/go-data": {"basic": True, "contextual": True},
    "paper/python-data": {"basic": True, "contextual": True},
}


def name_of(real: Real) -> str:
    return f"{real.name}-{'own' if real.shipped else 'data'}"


def is_chosen(vocabulary: str, real: Real, lexer: str) -> bool:
    """`make prove` runs every combination; `make test` the quick ones, most with the first vocabulary only.

    Both modes of small grammars, the basic mode of the middling ones with either vocabulary, and `QUICK`.
    """
    if PROVE or (real in REAL and lexer == "basic"):
        return True
    quick = real in SMALL or (name_of(real) in QUICK and lexer == "contextual")
    return quick and vocabulary == VOCABULARIES[0]


RUNS = [run for run in product(VOCABULARIES, [*REAL, *SMALL, *LARGE], MODES) if is_chosen(*run)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each test runs once for every different choice of what it asks for."""
    axes = ("vocabulary", "real", "lexer")
    places = [place for place, axis in enumerate(axes) if axis in metafunc.fixturenames]
    chosen = list(dict.fromkeys(tuple(run[place] for place in places) for run in RUNS))
    names = ["-".join(name_of(part) if isinstance(part, Real) else part for part in run) for run in chosen]
    metafunc.parametrize([axes[place] for place in places], chosen, ids=names, scope="session", indirect=True)


@pytest.fixture(scope="session")
def vocabulary(request: pytest.FixtureRequest) -> RealVocabulary:
    """A real tokenizer's tokens, by our own reading of its files."""
    if request.param == "mistral":
        return mistral(request.getfixturevalue("mistral_processor"))
    return smollm2(request.getfixturevalue("smollm2_file"))


@pytest.fixture(scope="session")
def segmenter(vocabulary: RealVocabulary) -> Segmenter:
    return Segmenter(vocabulary.tokens, skip=(*vocabulary.eos, *vocabulary.special))


@pytest.fixture(scope="session")
def built(vocabulary: RealVocabulary) -> Any:
    """The library's vocabulary, read from the tokenizer."""
    return jaxgcd.Vocabulary.from_tokenizer(vocabulary.tokenizer, eos=list(vocabulary.eos))


@pytest.fixture(scope="session")
def real(request: pytest.FixtureRequest) -> Real:
    """A grammar with its texts."""
    return request.param


@pytest.fixture(scope="session")
def lexer(request: pytest.FixtureRequest) -> str:
    """The mode of the lexer, the library's and Lark's."""
    return request.param


@pytest.fixture(scope="session")
def path(real: Real, request: pytest.FixtureRequest) -> Path:
    return real.path(lambda: request.getfixturevalue("data_dir"))


@pytest.fixture(scope="session")
def search(path: Path, real: Real, lexer: str) -> Finder:
    """Lark's parser, and its search for witnesses."""
    return finder(path, lexer, real.known)


@pytest.fixture(scope="session")
def compiled(path: Path, built: Any, lexer: str) -> harness.Compiled:
    return harness.compile_any(path.read_text(), built, max_depth=MAX_DEPTH, lexer=lexer)


def test_texts_are_what_they_claim(real: Real, search: Finder, lexer: str) -> None:
    assert all(search.accepts(text) for text in real.right_in(lexer))
    assert not any(search.accepts(text) for text in real.wrong_in(lexer))


def test_every_prefix_of_a_text_has_a_witness(real: Real, search: Finder, lexer: str) -> None:
    """The search that judges the masks finds a completion wherever one is known to exist."""
    for text in real.right_in(lexer):
        for end in range(len(text.encode()) + 1):
            assert search.find(text.encode()[:end]) is not None, text.encode()[:end]


def test_both_readings_of_the_tokenizer_agree(vocabulary: RealVocabulary, built: Any) -> None:
    silent = {*vocabulary.eos, *vocabulary.special}
    assert tuple(built.eos) == vocabulary.eos and built.size == vocabulary.size
    pairs = enumerate(zip(built.tokens, vocabulary.tokens, strict=True))
    assert all(theirs == ours for token, (theirs, ours) in pairs if token not in silent)


def test_verdict(real: Real, lexer: str, compiled: harness.Compiled) -> None:
    """Whether the masks are exact, as the library says."""
    assert compiled.exact == EXACT[name_of(real)][lexer], compiled.reasons


def cuts(
    text: str, vocabulary: RealVocabulary, segmenter: Segmenter, rng: random.Random, count: int
) -> list[list[int]]:
    """The tokenizer's own segmentation of a text, one token per byte, and random ones."""
    own, data = vocabulary.encode(text), text.encode()
    assert vocabulary.spell(own) == data
    short = [segmenter.random(data, rng, longest=3) for _ in range(count // 2)]
    return [
        own,
        segmenter.bytewise(data),
        *short,
        *(segmenter.random(data, rng) for _ in range(count - len(short))),
    ]


def test_texts_in_all_segmentations(
    real: Real,
    search: Finder,
    lexer: str,
    compiled: harness.Compiled,
    vocabulary: RealVocabulary,
    segmenter: Segmenter,
    prove_factor: int,
) -> None:
    """Every token of an accepted text is allowed, and EOS exactly where Lark parses the text so far."""
    rng = random.Random(zlib.crc32(real.name.encode()))
    for text in real.right_in(lexer):
        sequences = cuts(text, vocabulary, segmenter, rng, 6 * prove_factor)
        trail = harness.trails(compiled, sequences)
        assert trail.drawn.all(), [
            vocabulary.spell(s[: row.argmin()]) for s, row in zip(sequences, trail.drawn, strict=True)
        ]
        for sequence, ends in zip(sequences, trail.ends, strict=True):
            prefixes = [vocabulary.spell(sequence[:count]) for count in range(len(sequence) + 1)]
            assert [accepts(search, prefix) for prefix in prefixes] == ends[: len(prefixes)].tolist()


def test_wrong_texts_are_stopped(
    real: Real, lexer: str, compiled: harness.Compiled, vocabulary: RealVocabulary, segmenter: Segmenter
) -> None:
    rng = random.Random(0)
    sequences = [cut for text in real.wrong_in(lexer) for cut in cuts(text, vocabulary, segmenter, rng, 4)]
    assert not any(harness.trails(compiled, sequences).accepts())


def test_sampled_bits(
    real: Real,
    search: Finder,
    lexer: str,
    compiled: harness.Compiled,
    vocabulary: RealVocabulary,
    segmenter: Segmenter,
    prove_factor: int,
) -> None:
    """1 bits have a witness; 0 bits have none that is easy to find; EOS is set where Lark parses the text."""
    rng = random.Random(zlib.crc32(f"{real.name}.lark".encode()))
    starts = [
        random_prefix(pick(rng, real.right_in(lexer)), segmenter, rng) for _ in range(MASKS * prove_factor)
    ]
    walks = starts[::2] + wander(compiled, starts[1::2], vocabulary, rng)
    for walk, mask in zip(walks, harness.masks(compiled, walks), strict=True):
        prefix = vocabulary.spell(walk)
        assert all(mask[token] == accepts(search, prefix) for token in vocabulary.eos), prefix
        assert not mask[[token for token in vocabulary.special if token not in vocabulary.eos]].any()
        check_bits(search, prefix, mask, vocabulary, rng)


def check_bits(
    search: Finder, prefix: bytes, mask: np.ndarray, vocabulary: RealVocabulary, rng: random.Random
) -> None:
    """Sample both kinds of bits of one mask."""
    silent = {*vocabulary.eos, *vocabulary.special}
    ones = [int(token) for token in np.flatnonzero(mask) if token not in silent]
    zeros = [int(token) for token in np.flatnonzero(~mask) if token not in silent]
    for token in sample(rng, ones, WITNESSES):
        assert search.find(prefix + vocabulary.tokens[token]) is not None, (
            f"{prefix} + {vocabulary.tokens[token]}: no witness"
        )
    for token in sample(rng, zeros, WITNESSES):
        found = search.find(prefix + vocabulary.tokens[token], tries=TRIES_FOR_ZEROS)
        assert found is None, f"{prefix} + {vocabulary.tokens[token]} is masked, but {found!r} completes it"


def sample(rng: random.Random, tokens: list[int], count: int) -> list[int]:
    """Up to `count` different tokens."""
    pool = list(tokens)
    return [pool.pop(int(rng.random() * len(pool))) for _ in range(min(count, len(pool)))]


def random_prefix(text: str, segmenter: Segmenter, rng: random.Random) -> list[int]:
    """The first tokens of a random segmentation."""
    cut = segmenter.random(text.encode(), rng, longest=pick(rng, [2, 4, 16]))
    return cut[: int(rng.random() * (len(cut) + 1))]


def wander(
    compiled: harness.Compiled, walks: list[list[int]], vocabulary: RealVocabulary, rng: random.Random
) -> list[list[int]]:
    """Each sequence with a few more tokens, drawn from the library's own masks."""
    silent = [*vocabulary.eos, *vocabulary.special]
    for _ in range(WALK):
        masks = harness.masks(compiled, walks)
        masks[:, silent] = False
        walks = [
            [*walk, *sample(rng, np.flatnonzero(mask).tolist(), 1)]
            for walk, mask in zip(walks, masks, strict=True)
        ]
    return walks


def accepts(search: Finder, prefix: bytes) -> bool:
    """Whether these bytes are whole characters that Lark parses."""
    parts = split_utf8(prefix)
    return parts is not None and not parts[1] and search.accepts(parts[0])
