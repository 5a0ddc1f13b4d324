"""The oracle against a slow and simple one that parses every short text."""

import random
from itertools import product

import numpy as np
import pytest
from lark import Lark
from lark.exceptions import LarkError
from oracle import Language, Segmenter, random_walk, split_utf8
from small_grammars import DEAD_ENDS, EMPTY, SMALL, Small, words

# The greatest length of texts, by the size of the alphabet: 8,191, 3,280, 5,461, 3,906 and 1,555 texts.
LONGEST = {1: 12, 2: 12, 3: 7, 4: 6, 5: 5, 6: 4}


def parse_everything(grammar: str, alphabet: str, longest: int) -> set[str]:
    """Every text of at most `longest` letters that Lark parses."""
    lark, accepted = Lark(grammar, parser="lalr", lexer="basic"), set()
    for length in range(longest + 1):
        for letters in product(alphabet, repeat=length):
            text = "".join(letters)
            try:
                lark.parse(text)
            except LarkError:
                continue
            accepted.add(text)
    return accepted


def completions(accepted: set[str]) -> dict[str, int]:
    """For every prefix of an accepted text, the length of its shortest completion among them."""
    shortest: dict[str, int] = {}
    for text in accepted:
        for end in range(len(text) + 1):
            shortest[text[:end]] = min(shortest.get(text[:end], len(text)), len(text) - end)
    return shortest


@pytest.mark.parametrize("small", SMALL, ids=lambda small: small.name)
def test_bound_and_verdicts(small: Small) -> None:
    """The stated bound holds, and the search agrees with the enumeration wherever that one is certain."""
    longest = LONGEST[len(small.alphabet)]
    accepted = parse_everything(small.grammar, small.alphabet, longest)
    shortest, language = completions(accepted), small.language()
    assert shortest, "the language is empty"
    for length in range(longest + 1):
        known = [prefix for prefix in shortest if len(prefix) == length]
        if length + small.bound(length) <= longest:
            assert all(shortest[prefix] <= small.bound(length) for prefix in known)
            for letters in product(small.alphabet, repeat=length):
                text = "".join(letters)
                assert language.viable(text.encode()) == (text in shortest), text
        assert all(language.viable(prefix.encode()) for prefix in known)
        assert all(language.accepts(text) for text in known if text in accepted)


@pytest.mark.parametrize("grammar", [grammar for _, grammar in EMPTY], ids=[name for name, _ in EMPTY])
def test_empty_languages_have_no_short_text(grammar: str) -> None:
    assert not parse_everything(grammar, "abif\n", 5)


def test_mask_by_hand() -> None:
    """`list` or `listen` followed by `ed`, in one letter each: a or abc, then bd."""
    small = SMALL[0]
    tokens = [b"</s>", b"a", b"ab", b"b", b"c", b"bd", b"abd", b"abcb", b"d", b"", b"dd"]
    expected = {b"": [1, 2, 6, 7], b"a": [3, 5], b"ab": [4, 8], b"abc": [3, 5], b"abd": [0], b"x": []}
    for prefix, allowed in expected.items():
        mask = small.language().mask(prefix, tokens, eos=[0], size=12)
        assert mask.shape == (12,) and np.flatnonzero(mask).tolist() == allowed, prefix


def test_half_characters() -> None:
    """The first byte of two letters is a prefix of both; a byte that continues nothing is ill-formed."""
    language = Language('start: "é" "."', ["é", "è", "."], bound=lambda length: 2)
    first, second, other = "é".encode()[:1], "é".encode()[1:], "è".encode()[1:]
    assert language.viable(first) and language.viable(first + second)
    assert not language.viable(first + other) and not language.viable(second)
    assert not language.viable("é".encode() + first)
    assert not language.mask(first, [b"", second], eos=[0])[0]
    assert split_utf8(b"a" + first) == ("a", first) and split_utf8(second) is None


def test_dead_ends_are_dead() -> None:
    """Each grammar of that list rejects some prefix although its next terminal could be shifted."""
    dead = {
        "run after itself": "b",
        "three equal runs": "a",
        "name before name": "a",
        "swallowed on the right": "a",
        "number before digits": "1",
        "greedy tail": "x",
        "brackets decide": "(",
        "ignored run blocks": "a",
        "stack decides": "<",
        "guard closes the way": "xy",
        "keyword after a name": "f",
        "dead inside a loop": "(.",
        "dead behind the first terminal": "tv",
        "dead in a second reading": "tuv",
    }
    for small in DEAD_ENDS:
        assert not small.language().viable(dead[small.name].encode()), small.name


def test_random_segmentations_spell_the_text() -> None:
    vocabulary = words("ab")
    segmenter = Segmenter(vocabulary.tokens, skip=(0, 1))
    rng = random.Random(0)
    cuts = [segmenter.random(b"abbaab", rng) for _ in range(50)]
    assert all(b"".join(vocabulary.tokens[token] for token in cut) == b"abbaab" for cut in cuts)
    assert len({tuple(cut) for cut in cuts}) > 10
    assert segmenter.random(b"", rng) == [] and len(segmenter.bytewise(b"abba")) == 4
    with pytest.raises(ValueError, match="cannot spell"):
        segmenter.random(b"abc", rng)


def test_random_walks_stay_viable() -> None:
    small = SMALL[3]
    vocabulary, language, rng = words(small.alphabet), small.language(), random.Random(1)
    for _ in range(20):
        walk = random_walk(language, vocabulary.tokens, skip=(0, 1), longest=6, rng=rng)
        text = b"".join(vocabulary.tokens[token] for token in walk)
        assert len(text) <= 6 and language.viable(text)
