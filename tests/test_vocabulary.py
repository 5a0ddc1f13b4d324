"""The vocabulary: its errors, and the suffix structure against a brute force."""

import itertools
import os
import pickle
import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxgcd.errors import VocabularyError
from jaxgcd.tokenizers.contents import MAX_SIZE
from jaxgcd.vocabulary import END_OF_TEXT, MAX_TOKEN_BYTES, MAX_TOTAL_BYTES, Vocabulary

# ---------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (dict(tokens=[], eos=[0]), "empty"),
        (dict(tokens=[b"a"], eos=[]), "No EOS"),
        (dict(tokens=[b"a", b""], eos=[2]), "`eos` names token id 2"),
        (dict(tokens=[b"a", b""], eos=[-1]), "`eos` names token id -1"),
        (dict(tokens=[b"a", b""], eos=1), "`eos` must be a sequence"),
        (dict(tokens=[b"a", b""], eos=["</s>"]), "`eos` must be a sequence"),
        (dict(tokens=[b"a", b""], eos=[1], special=[7]), "`special` names token id 7"),
        (dict(tokens=[b"a", b""], eos=[1], size=1), "`size`, the width of the logits, is 1"),
        (dict(tokens=[b"a", b""], eos=[1], size=2.5), "`size` must be an integer"),
        (dict(tokens=[b"a", "b", b""], eos=[2]), "Token 1 is a `str`"),
        (dict(tokens="ab", eos=[1]), "Token 0 is a `str`"),
        (dict(tokens=[b"a", b"x" * (MAX_TOKEN_BYTES + 1), b""], eos=[2]), "Token 1 has 4097 bytes"),
        (dict(tokens=[b"a", b"", b"b"], eos=[0], special=[2]), "No usable token"),
        (dict(tokens=[b"a", b""], eos="1"), "`eos` must be a sequence of token ids, got '1'"),
        (dict(tokens=[b"a", b""], eos=b"\x01"), "`eos` must be a sequence of token ids, got b"),
        (
            dict(tokens=[b"a", b""], eos=itertools.repeat(1)),
            "`eos` must be a sequence of token ids, got repeat",
        ),
        (dict(tokens=[b"a", b""], eos=[1.0]), "`eos` must be a sequence of token ids, but holds 1.0"),
        (dict(tokens=[b"a", b""], eos=[[1]]), "`eos` must be a sequence of token ids, but holds"),
        (dict(tokens=[b"a", b""], eos=[1], special=0), "`special` must be a sequence of token ids, got 0"),
        (dict(tokens=[b"a", b""], eos=[1], special=range(10**9)), "`special` names token id 2"),
        (dict(tokens=[b"a", b""], eos=[1], special=[10**30]), "`special` names token id 1000"),
        (dict(tokens=[b"a", b""], eos=[1], size=10**9), f"1000000000 ids wide; the limit is {MAX_SIZE}"),
        (dict(tokens=[b"a", b""], eos=[1], size="9" * 10**6), "`size` must be an integer or None, got '999"),
        (dict(tokens=[b"a", bytearray(b"b"), b""], eos=[2]), "Token 1 is a `bytearray`"),
        (dict(tokens=[b"a", None, b""], eos=[2]), "Token 1 is a `NoneType`, not `bytes`: None"),
        (dict(tokens=[b"a", "x" * 10**6, b""], eos=[2]), "Token 1 is a `str`, not `bytes`: 'xxx"),
        (dict(tokens=range(10**9), eos=[1]), "1000000000 ids wide"),
        (dict(tokens=[b"x" * MAX_TOKEN_BYTES] * 2049 + [b""], eos=[2049]), f"the limit is {MAX_TOTAL_BYTES}"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(VocabularyError, match=message) as e:
        Vocabulary(arguments.pop("tokens"), **arguments)
    assert len(str(e.value)) < 200  # however long the argument is


def test_ids_come_in_any_collection():
    tokens = [b"a", b"<s>", b"</s>", b"<pad>"]
    expected = Vocabulary(tokens, eos=[2], special=[1, 3])
    for kind in (tuple, set, frozenset, np.array):
        assert Vocabulary(tokens, eos=kind([2]), special=kind([1, 3])) == expected
    assert Vocabulary(tokens, eos=range(2, 3), special=expected.special) == expected


def test_it_is_immutable_and_equal_by_contents():
    vocabulary = Vocabulary([b"a", b"<s>", b"</s>"], eos=[2], special=[1, 2])
    with pytest.raises(AttributeError):
        vocabulary.size = 7  # pyright: ignore
    with pytest.raises(ValueError, match="read-only"):
        vocabulary.strings.first[0] = 1
    assert vocabulary.special == {1}  # an id that is EOS too counts as EOS
    again = pickle.loads(pickle.dumps(vocabulary))
    assert again == vocabulary and hash(again) == hash(vocabulary)
    assert repr(vocabulary) == "Vocabulary(3 tokens, eos=(2,), size=3)"


def test_fingerprint_tells_every_part_apart():
    variants = [
        Vocabulary([b"ab", b"c", b""], eos=[2]),
        Vocabulary([b"a", b"bc", b""], eos=[2]),  # the same bytes, cut elsewhere
        Vocabulary([b"ab", b"c", b""], eos=[1]),
        Vocabulary([b"ab", b"c", b""], eos=[2], special=[1]),
        Vocabulary([b"ab", b"c", b""], eos=[2], size=4),
    ]
    assert len({v.fingerprint for v in variants}) == len(variants)
    code = "from jaxgcd.vocabulary import *; print(Vocabulary([b'ab', b'c', b''], eos=[2]).fingerprint)"
    for seed in "01":
        environment = os.environ | {"PYTHONHASHSEED": seed}
        output = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
        assert output.stdout.strip() == variants[0].fingerprint, output.stderr


def test_packed_width_counts_the_padding():
    widths = {size: Vocabulary([b"a", b""], eos=[1], size=size).words for size in (2, 32, 33, 64, 65)}
    assert widths == {2: 1, 32: 1, 33: 2, 64: 2, 65: 3}


# ------------------------------------------------------------------------------------ suffix structure


@st.composite
def vocabularies(draw):
    letters = st.binary(max_size=6) | st.text("ab", max_size=8).map(str.encode)
    tokens = [*draw(st.lists(letters, min_size=1, max_size=12)), b"a", b"</s>"]
    ids = st.integers(0, len(tokens) - 3)
    eos = [len(tokens) - 1, *draw(st.lists(ids, max_size=2))]
    special = draw(st.lists(ids, max_size=3))
    return Vocabulary(tokens, eos=eos, special=special, size=len(tokens) + draw(st.integers(0, 40)))


def brute_force(vocabulary):
    """Per token id its symbols, and all suffixes in the promised order, from the definition alone."""
    spelled = []
    for i in range(vocabulary.size):
        if i in vocabulary.eos:
            spelled.append((END_OF_TEXT,))
        elif i >= len(vocabulary.tokens) or i in vocabulary.special:
            spelled.append(())
        else:
            spelled.append(tuple(vocabulary.tokens[i]))
    suffixes = {symbols[k:] for symbols in spelled for k in range(len(symbols) + 1)}
    return spelled, sorted(suffixes, key=lambda symbols: (len(symbols), symbols))


@given(vocabularies())
def test_suffix_structure_agrees_with_brute_force(vocabulary):
    spelled, expected = brute_force(vocabulary)
    number = {symbols: i for i, symbols in enumerate(expected)}
    strings = vocabulary.strings
    assert len(strings) == len(expected)
    assert strings.first.tolist() == [symbols[0] if symbols else 0 for symbols in expected]
    assert strings.rest.tolist() == [number[symbols[1:]] for symbols in expected]
    assert strings.length.tolist() == [len(symbols) for symbols in expected]
    assert strings.token_string.tolist() == [number[symbols] for symbols in spelled]
    assert strings.end_of_text == number[(END_OF_TEXT,)]
    assert (strings.rest[1:] < np.arange(1, len(strings))).all()


@given(vocabularies())
def test_spelling_and_byte_sets_agree_with_brute_force(vocabulary):
    spelled, _ = brute_force(vocabulary)
    offset, symbols = vocabulary.spelling.offset, vocabulary.spelling.symbols
    assert len(offset) == vocabulary.size + 1
    assert [tuple(symbols[a:b]) for a, b in itertools.pairwise(offset)] == spelled
    assert vocabulary.usable == tuple(s not in [(), (END_OF_TEXT,)] for s in spelled[: len(vocabulary)])
    assert vocabulary.all_bytes == {s for token in spelled for s in token} - {END_OF_TEXT}
    assert vocabulary.single_bytes == {token[0] for token in spelled if len(token) == 1} - {END_OF_TEXT}


def test_array_types_are_those_of_the_device():
    vocabulary = Vocabulary([b"a", b""], eos=[1])
    strings, spelling = vocabulary.strings, vocabulary.spelling
    assert [strings.first.dtype, spelling.symbols.dtype] == [np.int16] * 2
    others = [strings.rest, strings.length, strings.token_string, spelling.offset]
    assert [array.dtype for array in others] == [np.int32] * 4


def test_long_tokens_cost_their_own_length():
    """500 different tokens of 4,096 bytes: two million suffixes, whose bytes alone would be 4 GB."""
    rng = random.Random(0)
    tokens = [rng.randbytes(MAX_TOKEN_BYTES) for _ in range(500)]
    strings = Vocabulary([*tokens, b""], eos=[500]).strings
    assert len(np.unique(strings.token_string[:500])) == 500
    i, spelled = int(strings.token_string[7]), bytearray()
    while i:
        spelled.append(strings.first[i])
        i = int(strings.rest[i])
    assert bytes(spelled) == tokens[7]


@pytest.mark.parametrize("tokens", [None, 3, (token for token in [b"a"])])
def test_tokens_that_are_no_sequence_of_bytes(tokens):
    with pytest.raises(VocabularyError, match="from_tokenizer"):
        Vocabulary(tokens, eos=[0])
