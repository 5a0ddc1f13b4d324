"""What `Vocabulary.from_tokenizer` reads from real tokenizers of every kind."""

import codecs
import functools
from pathlib import Path

import numpy as np
import pytest
from real_tokenizers import KINDS
from token_checks import BY_NAME, KEPT, build, check_texts, kept, masks

import jaxgcd
from jaxgcd.errors import VocabularyError
from jaxgcd.vocabulary import Vocabulary


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_real_tokens_concatenate_to_the_normalised_text(kind, tmp_path):
    tokenizer, vocabulary = kept(kind.name) if kind.name in KEPT else build(kind, tmp_path)
    assert (len(vocabulary), vocabulary.size, vocabulary.eos) == (kind.tokens, kind.tokens, kind.eos)
    assert len(vocabulary.special) == kind.never
    encode, normal = functools.partial(kind.encode, tokenizer), functools.partial(kind.normal, tokenizer)
    check_texts(vocabulary, encode, normal)


def test_every_token_that_begins_a_text_is_allowed_and_nothing_else():
    """DeepSeek with two EOS ids and padded logits, under a grammar of all texts but the empty one."""
    tokenizer, plain = kept("deepseek, tokenizers")
    eos, size = [1, 128_804], 129_408
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=eos, size=size)
    added = {i for i, token in tokenizer.get_added_tokens_decoder().items() if not token.special}
    assert len(added) == 53 and vocabulary.special >= added - set(eos)

    expected = np.zeros(size, bool)
    for i, (token, usable) in enumerate(zip(vocabulary.tokens, plain.usable, strict=True)):
        expected[i] = usable and begins_utf8(token)
    first, second = masks(r"start: /(.|\n)+/", vocabulary, vocabulary.tokens.index(b"hello"))
    assert np.array_equal(first, expected)
    expected[eos] = True
    assert np.array_equal(second, expected)
    partial = [i for i in np.flatnonzero(expected) if not is_utf8(vocabulary.tokens[i])]
    assert len(partial) > 100  # tokens that end inside a character: `decode([id])` has only U+FFFD for them


def begins_utf8(token: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(token)
    except UnicodeDecodeError:
        return False
    return True


def is_utf8(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def test_added_tokens_are_text_on_request():
    tokenizer, vocabulary = kept("deepseek, tokenizers")
    generous = Vocabulary.from_tokenizer(tokenizer, eos=[1], added="text")
    newly = [i for i, (a, b) in enumerate(zip(vocabulary.usable, generous.usable, strict=True)) if a != b]
    assert len(newly) == 53 and b"<think>" in [generous.tokens[i] for i in newly]
    with pytest.raises(VocabularyError, match='`added` must be "never" or "text", got True'):
        Vocabulary.from_tokenizer(tokenizer, eos=[1], added=True)  # pyright: ignore


def test_byte_pieces_are_duplicates_that_are_all_allowed():
    """Mistral spells "A" by a piece and by `<0x41>`."""
    processor, vocabulary = kept("mistral, sentencepiece")
    pieces = [processor.piece_to_id(piece) for piece in ("A", "<0x41>")]
    (first,) = masks('start: "A"', vocabulary)
    assert np.flatnonzero(first).tolist() == sorted(pieces)


def test_a_leading_metaspace_is_a_blank_at_the_start_of_a_generation():
    """And so it is behind a prompt: what the tokenizer decodes grows by the token's bytes."""
    processor, vocabulary = kept("mistral, sentencepiece")
    bare, spaced = processor.piece_to_id("good"), processor.piece_to_id("▁good")
    assert vocabulary.tokens[spaced] == b" good"
    assert masks('start: "good"', vocabulary)[0, [bare, spaced]].tolist() == [True, False]
    assert masks('start: " "? "good"', vocabulary)[0, [bare, spaced]].tolist() == [True, True]

    prompt = processor.encode("The food is")
    for token in (bare, spaced):
        text = processor.decode(prompt) + vocabulary.tokens[token].decode()
        assert processor.decode([*prompt, token]) == text
    assert processor.decode([spaced]) == "good"  # alone, it loses its blank: hence bytes, and no `decode`


def test_bytes_that_no_token_spells_are_dropped_and_the_rest_is_exact():
    """SmolLM2 lacks 21 bytes alone; 0x04 is one, and so is 0xF1, which begins U+40000 to U+7FFFF."""
    _, vocabulary = kept("smollm2, gguf")
    missing = {*(4, 6, 0x13, 0x14, 0x16, 0x1D), *(0xC0, 0xC1, 0xF1, 0xF2), *range(0xF5, 0x100)}
    assert len(missing) == 21 and vocabulary.single_bytes == set(range(256)) - missing

    grammar = r'start: "\x04" | "b" | "\x05" | "c" NEVER' + '\nNEVER: "\U00040000"'
    usable = [token for token, usable in zip(vocabulary.tokens, vocabulary.usable, strict=True) if usable]
    expected = sorted(token for token in usable if token in (b"b", b"\x05"))
    (first,) = masks(grammar, vocabulary)
    assert sorted(vocabulary.tokens[i] for i in np.flatnonzero(first)) == expected
    with pytest.raises(jaxgcd.GrammarError):
        jaxgcd.compile_grammar(r'start: "\x04"', vocabulary)


def test_the_table_in_the_docs_names_these_tokenizers():
    page = (Path(__file__).parent.parent / "docs" / "tokenizers.md").read_text()
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in page.splitlines() if "|" in line
    ]
    listed = {row[0]: row[2] for row in rows if row[0] in BY_NAME}
    assert listed == {kind.name: f"{kind.tokens:,}" for kind in KINDS}
