"""The vocabulary: its errors, the suffix structure against a brute force, and real tokenizers."""

import io
import itertools
import json
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
from jaxgcd.vocabulary import END_OF_TEXT, MAX_TOKEN_BYTES, Vocabulary

CORPUS = [
    "def f(x):\n    return x + 1  # naïve, ça va?\n",
    'SELECT name, price FROM goods WHERE price > 10 AND name LIKE "a%";',
    '{"name": "Ångström", "values": [1, 2.5, null, true], "text": "日本語\t🙂"}',
    "The quick brown fox jumps over the lazy dog, then the dog sleeps.",
] * 8
TEXTS = ["return x", 'price > 10 {"näme": 1}', "日本語🙂 new\tline\nzß", " two  spaces "]


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
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(VocabularyError, match=message):
        Vocabulary(arguments.pop("tokens"), **arguments)


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


# ------------------------------------------------------------------------------------- real tokenizers


def joined(vocabulary, ids):
    """The text of some token ids, and that every one of them is usable."""
    assert all(vocabulary.usable[i] for i in ids)
    return b"".join(vocabulary.tokens[i] for i in ids).decode()


@pytest.fixture(scope="module")
def byte_level():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400,
        show_progress=False,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.add_tokens(["  ", "<täg>"])  # added, not special: text, spelled as it is
    return tokenizer


@pytest.fixture(scope="module")
def metaspace():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace(prepend_scheme="first")
    decoders = tokenizers.decoders
    tokenizer.decoder = decoders.Sequence([decoders.Metaspace(), decoders.ByteFallback(), decoders.Fuse()])
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=500,
        show_progress=False,
        limit_alphabet=60,
        special_tokens=["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))],
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    settings = tokenizer.to_str()  # the trainer marks its byte tokens as special; real ones are not
    return tokenizers.Tokenizer.from_str(_keep_added(settings, {"<unk>", "<s>", "</s>"}))


def _keep_added(settings, names):
    parsed = json.loads(settings)
    parsed["added_tokens"] = [token for token in parsed["added_tokens"] if token["content"] in names]
    return json.dumps(parsed)


@pytest.fixture(scope="module")
def sentencepiece_model():
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        model_type="bpe",
        vocab_size=400,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["<role>"],
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.mark.parametrize("text", TEXTS)
def test_byte_level_tokens_concatenate_to_the_text(byte_level, text):
    vocabulary = Vocabulary.from_tokenizer(byte_level, eos=[0])
    assert joined(vocabulary, byte_level.encode(text).ids) == text


def test_byte_level_knows_added_and_special_tokens(byte_level):
    vocabulary = Vocabulary.from_tokenizer(byte_level, eos=[0], size=512)
    assert vocabulary.single_bytes == frozenset(range(256))
    assert vocabulary.tokens[byte_level.token_to_id("<täg>")] == "<täg>".encode()
    assert vocabulary.tokens[byte_level.token_to_id("  ")] == b"  "
    assert vocabulary.eos == (0,) and not vocabulary.usable[0]
    assert (len(vocabulary), vocabulary.size) == (byte_level.get_vocab_size(), 512)


@pytest.mark.parametrize("text", TEXTS)
def test_metaspace_tokens_concatenate_to_the_text_behind_the_dummy_prefix(metaspace, text):
    vocabulary = Vocabulary.from_tokenizer(metaspace, eos=[2])
    prefix = "" if text.startswith(" ") else " "
    assert joined(vocabulary, metaspace.encode(text).ids) == prefix + text


def test_metaspace_knows_byte_tokens_and_special_tokens(metaspace):
    vocabulary = Vocabulary.from_tokenizer(metaspace, eos=[2])
    byte_ids = [metaspace.token_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    assert [vocabulary.tokens[i] for i in byte_ids] == [bytes([byte]) for byte in range(256)]
    assert vocabulary.special == {0, 1} and vocabulary.eos == (2,)


@pytest.mark.parametrize("text", TEXTS)
def test_sentencepiece_tokens_concatenate_to_the_text_behind_the_dummy_prefix(sentencepiece_model, text):
    vocabulary = Vocabulary.from_tokenizer(sentencepiece_model)
    assert joined(vocabulary, sentencepiece_model.encode(text)) == " " + text


def test_sentencepiece_knows_byte_control_and_user_tokens(sentencepiece_model):
    vocabulary = Vocabulary.from_tokenizer(sentencepiece_model)
    assert vocabulary.eos == (sentencepiece_model.eos_id(),)
    assert vocabulary.special == {sentencepiece_model.unk_id(), sentencepiece_model.bos_id()}
    assert vocabulary.tokens[sentencepiece_model.piece_to_id("<0x0A>")] == b"\n"
    assert vocabulary.tokens[sentencepiece_model.piece_to_id("<role>")] == b"<role>"


def test_byte_names_are_text_without_byte_fallback():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE({"<0x41>": 0, "▁": 1, "</s>": 2}, []))
    tokenizer.decoder = tokenizers.decoders.Replace("▁", " ")
    assert Vocabulary.from_tokenizer(tokenizer, eos=[2]).tokens == (b"<0x41>", b" ", b"</s>")


def test_fast_transformers_tokenizer_brings_its_eos(byte_level):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level, eos_token="<|endoftext|>")
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary == Vocabulary.from_tokenizer(byte_level, eos=[0])
    without = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level)
    with pytest.raises(VocabularyError, match="names no EOS"):
        Vocabulary.from_tokenizer(without)


def test_a_plain_tokenizer_needs_its_eos_named(byte_level):
    with pytest.raises(VocabularyError, match="`Tokenizer` names no EOS token: pass `eos`"):
        Vocabulary.from_tokenizer(byte_level)


def test_pieces_that_do_not_concatenate_are_refused():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}))
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    with pytest.raises(VocabularyError, match=r"WordPiece tokenizer \(decoder: WordPiece\) do not"):
        Vocabulary.from_tokenizer(tokenizer, eos=[0])
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    with pytest.raises(VocabularyError, match=r"WordLevel tokenizer \(decoder: none\)"):
        Vocabulary.from_tokenizer(words, eos=[0])


@pytest.mark.parametrize("tokenizer", [None, object(), [b"a"]])
def test_unknown_kinds_are_named(tokenizer):
    with pytest.raises(VocabularyError, match=f"builtins.{type(tokenizer).__name__}`. Supported: "):
        Vocabulary.from_tokenizer(tokenizer)


def test_mistral_has_every_byte_and_the_known_number_of_suffixes(mistral_processor):
    vocabulary = Vocabulary.from_tokenizer(mistral_processor)
    assert (len(vocabulary), vocabulary.eos, vocabulary.special) == (32_000, (2,), {0, 1})
    assert vocabulary.tokens[3:259] == tuple(bytes([byte]) for byte in range(256))
    suffixes = {token[k:] for token in vocabulary.tokens[3:] for k in range(len(token))}
    assert len(vocabulary.strings) == len(suffixes) + 2  # and the empty string, and "end of text"
    for text in TEXTS:
        assert joined(vocabulary, mistral_processor.encode(text)) == " " + text


@pytest.mark.parametrize("tokens", [None, 3, (token for token in [b"a"])])
def test_tokens_that_are_no_sequence_of_bytes(tokens):
    with pytest.raises(VocabularyError, match="from_tokenizer"):
        Vocabulary(tokens, eos=[0])
