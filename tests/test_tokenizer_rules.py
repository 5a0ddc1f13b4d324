"""The rules by which `Vocabulary.from_tokenizer` reads: small tokenizers for each, and odd ones."""

import functools
import io
import json
import os
import subprocess
import sys
import unicodedata
from typing import Any

import numpy as np
import pytest
from real_tokenizers import (
    by_encoding,
    by_ids,
    by_transformers,
    byte_characters,
    dummy_prefix,
    dummy_prefix_once,
    from_folder,
    mistral_file,
    sentencepiece_own,
)
from token_checks import check_texts, kept, masks

from jaxgcd.errors import VocabularyError
from jaxgcd.tokenizers.contents import MAX_SIZE
from jaxgcd.tokenizers.sentencepiece import Kind as PieceKind
from jaxgcd.tokenizers.sentencepiece import kinds
from jaxgcd.vocabulary import Vocabulary

CORPUS = [
    "def f(x):\n    return x + 1  # naïve, ça va?\n",
    'SELECT name, price FROM goods WHERE price > 10 AND name LIKE "a%";',
    '{"name": "Ångström", "values": [1, 2.5, null, true], "text": "日本語\t🙂"}',
    "The quick brown fox jumps over the lazy dog, then the dog sleeps.",
] * 8


# ------------------------------------------------------------------------------------ small tokenizers


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
    tokenizer.add_tokens(["  ", "<täg>"])  # added, not special
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

    def unmark(settings):  # the trainer marks its byte tokens as special; real ones are not
        settings["added_tokens"] = settings["added_tokens"][:3]

    return changed(tokenizer, unmark)


def changed(tokenizer: Any, change: Any) -> Any:
    """The tokenizer with some of its settings changed."""
    settings = json.loads(tokenizer.to_str())
    change(settings)
    return type(tokenizer).from_str(json.dumps(settings))


def train_sentencepiece(**options: Any) -> Any:
    sentencepiece = pytest.importorskip("sentencepiece")
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS), model_writer=model, minloglevel=2, **options
    )
    return sentencepiece.SentencePieceProcessor(model_proto=model.getvalue())


@pytest.fixture(scope="module")
def sentencepiece_model():
    return train_sentencepiece(
        model_type="bpe",
        vocab_size=400,
        byte_fallback=True,
        character_coverage=0.98,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=["<role>", "▁▁"],
    )


@pytest.fixture(scope="module")
def t5_like():
    """Unigram pieces without byte fallback, NFKC, blanks folded: as T5 has it, smaller."""
    return train_sentencepiece(model_type="unigram", vocab_size=90, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)


@pytest.mark.parametrize("form", [None, "NFC", "NFKC"])
def test_byte_level_tokens_concatenate_to_the_normalised_text(byte_level, form):
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer.from_str(byte_level.to_str())
    if form:
        tokenizer.normalizer = getattr(tokenizers.normalizers, form)()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[0])
    check_texts(
        vocabulary,
        lambda text: by_encoding(tokenizer, text),
        lambda text: (unicodedata.normalize(form, text) if form else text).encode(),
    )


def test_byte_level_knows_added_and_special_tokens(byte_level):
    vocabulary = Vocabulary.from_tokenizer(byte_level, eos=[0], size=512)
    assert vocabulary.single_bytes == frozenset(range(256))
    tag, blanks = byte_level.token_to_id("<täg>"), byte_level.token_to_id("  ")
    assert vocabulary.tokens[tag] == "<täg>".encode() and vocabulary.tokens[blanks] == b"  "
    assert vocabulary.special == {tag} and vocabulary.usable[blanks]
    assert vocabulary.eos == (0,) and not vocabulary.usable[0]
    assert (len(vocabulary), vocabulary.size) == (byte_level.get_vocab_size(), 512)
    assert Vocabulary.from_tokenizer(byte_level, eos=[0], added="text").usable[tag]


def test_metaspace_tokens_concatenate_to_the_text_behind_the_dummy_prefix(metaspace):
    vocabulary = Vocabulary.from_tokenizer(metaspace, eos=[2])
    check_texts(
        vocabulary, lambda text: by_encoding(metaspace, text), lambda text: dummy_prefix_once(metaspace, text)
    )


def test_metaspace_knows_byte_tokens_and_special_tokens(metaspace):
    vocabulary = Vocabulary.from_tokenizer(metaspace, eos=[2])
    byte_ids = [metaspace.token_to_id(f"<0x{byte:02X}>") for byte in range(256)]
    assert [vocabulary.tokens[i] for i in byte_ids] == [bytes([byte]) for byte in range(256)]
    assert vocabulary.special == {0, 1} and vocabulary.eos == (2,)


def test_sentencepiece_tokens_concatenate_to_the_text_behind_the_dummy_prefix(sentencepiece_model):
    vocabulary = Vocabulary.from_tokenizer(sentencepiece_model)
    check_texts(
        vocabulary,
        lambda text: by_ids(sentencepiece_model, text),
        lambda text: dummy_prefix(sentencepiece_model, text),
    )


def test_sentencepiece_knows_byte_control_and_user_tokens(sentencepiece_model):
    vocabulary = Vocabulary.from_tokenizer(sentencepiece_model)
    role, blanks = sentencepiece_model.piece_to_id("<role>"), sentencepiece_model.piece_to_id("▁▁")
    assert vocabulary.eos == (sentencepiece_model.eos_id(),)
    assert vocabulary.special == {sentencepiece_model.unk_id(), sentencepiece_model.bos_id(), role}
    assert vocabulary.tokens[sentencepiece_model.piece_to_id("<0x0A>")] == b"\n"
    assert vocabulary.tokens[role] == b"<role>" and vocabulary.tokens[blanks] == b"  "
    assert Vocabulary.from_tokenizer(sentencepiece_model, added="text").usable[role]


def test_kinds_of_pieces_are_those_that_the_library_tells(sentencepiece_model):
    for processor in (sentencepiece_model, kept("mistral, sentencepiece")[0]):
        read, ids = kinds(processor), list(range(processor.get_piece_size()))
        assert list(read) == processor.id_to_piece(ids)
        for kind, told in [
            (PieceKind.BYTE, processor.is_byte(ids)),
            (PieceKind.CONTROL, processor.is_control(ids)),
            (PieceKind.UNKNOWN, processor.is_unknown(ids)),
            (PieceKind.UNUSED, processor.is_unused(ids)),
        ]:
            assert [found == kind for found in read.values()] == told
    user = [piece for piece, kind in kinds(sentencepiece_model).items() if kind == PieceKind.USER_DEFINED]
    assert user == ["<role>", "▁▁"]


def test_t5_like_tokens_concatenate_to_the_text_as_sentencepiece_normalises_it(t5_like, tmp_path):
    file = tmp_path / "spiece.model"
    file.write_bytes(t5_like.serialized_model_proto())
    folder = tmp_path / "folder"
    folder.mkdir()
    tokenizer = from_folder("T5Tokenizer", lambda: {"spiece.model": file})(folder)
    normal, unknown = functools.partial(sentencepiece_own, t5_like), (t5_like.unk_id(),)
    own, theirs = Vocabulary.from_tokenizer(t5_like), Vocabulary.from_tokenizer(tokenizer)
    assert theirs.tokens[: len(own)] == own.tokens and theirs.eos == own.eos == (1,)
    assert theirs.special >= {*own.special, *range(len(own), len(theirs))}  # `<extra_id_0>` and so on
    assert len(theirs) == len(own) + 100
    check_texts(own, lambda text: by_ids(t5_like, text), normal, unknown)
    for text in ["The  ﬁve\tdogs ", "", " sleeps\n\n", "①x 日本"]:  # of known characters
        ids = by_transformers(tokenizer, text)
        assert t5_like.unk_id() not in ids
        assert b"".join(theirs.tokens[i] for i in ids) == normal(text)


# ---------------------------------------------------------------------------- slow transformers tokenizers


def slow_byte_level(byte_level: Any, blank: str) -> Any:
    """A slow tokenizer with GPT-2's table of bytes; its decoder makes a blank of one more string."""
    transformers = pytest.importorskip("transformers")
    pieces = {piece: i for piece, i in byte_level.get_vocab().items() if i < 400}
    pieces.pop("<|endoftext|>")

    class Slow(transformers.PreTrainedTokenizer):
        byte_decoder = property(lambda self: {c: byte for byte, c in enumerate(byte_characters())})
        vocab_size = property(lambda self: len(pieces) + 1)

        def get_vocab(self):
            return pieces | self.added_tokens_encoder

        def _tokenize(self, text, **_):
            return byte_level.encode(text, add_special_tokens=False).tokens

        def _convert_token_to_id(self, token):
            return pieces[token]

        def convert_tokens_to_string(self, tokens):
            data = bytes(self.byte_decoder[c] for c in "".join(tokens))
            return data.decode(errors="replace").replace(blank, " ")

    end = transformers.AddedToken("<|endoftext|>", special=True)
    return Slow(eos_token="<|endoftext|>", added_tokens_decoder={0: end})


def test_slow_byte_level_tokenizer_is_read_like_the_fast_one(byte_level):
    slow = Vocabulary.from_tokenizer(slow_byte_level(byte_level, " "))
    fast = Vocabulary.from_tokenizer(byte_level, eos=[0])
    assert slow == Vocabulary(fast.tokens[:400], eos=[0])
    more = slow_byte_level(byte_level, " ")
    more.add_tokens(["<role>", "\n\n"])
    more.add_special_tokens({"pad_token": "<pad>"})
    vocabulary = Vocabulary.from_tokenizer(more)
    assert vocabulary.tokens[400:] == (b"<role>", b"\n\n", b"<pad>") and vocabulary.special == {400, 402}


def test_slow_byte_level_tokenizer_that_marks_the_ends_of_words_is_refused(byte_level):
    with pytest.raises(VocabularyError, match="pieces of a `Slow` are not known to concatenate"):
        Vocabulary.from_tokenizer(slow_byte_level(byte_level, "</w>"))


def test_slow_sentencepiece_tokenizer_is_read_like_its_model():
    transformers = pytest.importorskip("transformers")
    pytest.importorskip("sentencepiece")
    tokenizer = transformers.BertGenerationTokenizer(vocab_file=str(mistral_file()))
    tokenizer.add_tokens(["<role>"])
    vocabulary, (_, own) = Vocabulary.from_tokenizer(tokenizer), kept("mistral, sentencepiece")
    assert not tokenizer.is_fast and vocabulary.tokens[:32_000] == own.tokens and vocabulary.eos == own.eos
    assert vocabulary.special == {*own.special, *range(32_000, len(vocabulary))}  # `<pad>`, `<role>`
    check_texts(
        vocabulary, lambda text: by_transformers(tokenizer, text), lambda text: dummy_prefix(tokenizer, text)
    )


def test_a_class_that_rewrites_blanks_is_refused(byte_level):
    tokenizer = slow_byte_level(byte_level, " ")
    tokenizer.__class__ = type("CpmTokenizer", (type(tokenizer),), {})
    with pytest.raises(VocabularyError, match="pieces of a `CpmTokenizer` are not known to concatenate"):
        Vocabulary.from_tokenizer(tokenizer)


@pytest.mark.parametrize(
    "name", ["MistralCommonTokenizer", "MistralCommonBackend"]
)  # in transformers 4, in 5
def test_classes_around_mistral_common_are_read_through(name):
    _, own = kept("mistral, sentencepiece")
    mistral = pytest.importorskip("mistral_common.tokens.tokenizers.mistral")
    wrapper = type(name, (), {"__module__": "transformers.tokenization_mistral_common"})()
    wrapper.tokenizer = mistral.MistralTokenizer.v1()
    assert Vocabulary.from_tokenizer(wrapper) == own


def test_wrappers_of_the_library_tokenizers_are_read_through(byte_level):
    wrapper = pytest.importorskip("tokenizers.implementations").BaseTokenizer(byte_level)
    assert Vocabulary.from_tokenizer(wrapper, eos=[0]) == Vocabulary.from_tokenizer(byte_level, eos=[0])


def test_slow_tokenizers_without_pieces_are_named():
    transformers = pytest.importorskip("transformers")
    with pytest.raises(VocabularyError, match=r"pieces of a `ByT5Tokenizer` .* else build `Vocabulary"):
        Vocabulary.from_tokenizer(transformers.ByT5Tokenizer())


def test_fast_transformers_tokenizer_brings_its_eos(byte_level):
    transformers = pytest.importorskip("transformers")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level, eos_token="<|endoftext|>")
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary == Vocabulary.from_tokenizer(byte_level, eos=[0])
    without = transformers.PreTrainedTokenizerFast(tokenizer_object=byte_level)
    with pytest.raises(VocabularyError, match="names no EOS"):
        Vocabulary.from_tokenizer(without)


# ------------------------------------------------------------------------------------------ odd contents


def bpe(pieces: dict[str, int], **options: Any) -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(pieces, [], **options))
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    return tokenizer


def test_a_plain_tokenizer_needs_its_eos_named(byte_level):
    with pytest.raises(VocabularyError, match="`Tokenizer` names no EOS token: pass `eos`"):
        Vocabulary.from_tokenizer(byte_level)


def test_holes_empty_pieces_and_the_unknown_token_are_never_allowed():
    tokenizer = bpe({"a": 5, "": 2, "<unk>": 3, "</s>": 0}, unk_token="<unk>")
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[0], size=8)
    assert vocabulary.tokens == (b"</s>", b"", b"", b"<unk>", b"", b"a")
    assert vocabulary.usable == (False,) * 5 + (True,)
    assert np.flatnonzero(masks('start: "a"+', vocabulary)[0]).tolist() == [5]


def test_byte_names_are_text_without_byte_fallback():
    tokenizer = bpe({"<0x41>": 0, "▁": 1, "</s>": 2})
    assert Vocabulary.from_tokenizer(tokenizer, eos=[2]).tokens == (b"<0x41>", b" ", b"</s>")


def test_with_byte_fallback_only_two_hexadecimal_digits_are_a_byte():
    names = ["<0xe6>", "<0x+1>", "<0xZZ>", "<0x041>", "</s>"]
    tokenizer = bpe({name: i for i, name in enumerate(names)}, byte_fallback=True)
    tokens = Vocabulary.from_tokenizer(tokenizer, eos=[4]).tokens
    assert tokens == (b"\xe6", *(name.encode() for name in names[1:]))


def test_a_unigram_piece_that_occurs_twice_is_two_tokens():
    tokenizers = pytest.importorskip("tokenizers")
    pieces = [("<unk>", 0.0), ("▁a", -1.0), ("b", -2.0), ("▁a", -3.0)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=0))
    tokenizer.decoder = tokenizers.decoders.Metaspace()
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[0])
    assert vocabulary.tokens == (b"<unk>", b" a", b"b", b" a")


def test_tiktoken_holes_and_names_that_are_ranks_too_are_never_allowed():
    tiktoken = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"<|a|>": 300}
    special = {"<|a|>": 302, "<|endoftext|>": 305}
    encoding = tiktoken.Encoding("odd", pat_str=".", mergeable_ranks=ranks, special_tokens=special)
    vocabulary = Vocabulary.from_tokenizer(encoding)
    assert (len(vocabulary), vocabulary.eos) == (306, (305,))
    assert vocabulary.usable == (True,) * 256 + (False,) * 50
    without = tiktoken.Encoding("odd", pat_str=".", mergeable_ranks=ranks, special_tokens={})
    with pytest.raises(VocabularyError, match="`Encoding` names no EOS"):
        Vocabulary.from_tokenizer(without)


def test_ids_beyond_the_limit_are_refused_before_a_list_is_made():
    with pytest.raises(VocabularyError, match=f"the token id {MAX_SIZE}; ids go from 0 to {MAX_SIZE - 1}"):
        Vocabulary.from_tokenizer(bpe({"a": 0, "</s>": MAX_SIZE}), eos=[0])


@pytest.mark.parametrize(
    ("vocabulary", "message"),
    [({"a": 1, "b": 1}, "two pieces with id 1: 'a' and 'b'"), ({"a": None}, "gives 'a' the id None")],
)
def test_slow_tokenizers_with_unusable_ids_are_refused(byte_level, vocabulary, message, monkeypatch):
    tokenizer = slow_byte_level(byte_level, " ")
    monkeypatch.setattr(tokenizer, "get_vocab", lambda: vocabulary)
    with pytest.raises(VocabularyError, match=message):
        Vocabulary.from_tokenizer(tokenizer)


def test_a_tokenizer_that_is_no_json_is_refused():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = bpe({"a": 0, "</s>": 1})
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.PreTokenizer.custom(object())
    with pytest.raises(VocabularyError, match="cannot be written as JSON"):
        Vocabulary.from_tokenizer(tokenizer, eos=[1])


def test_pieces_that_do_not_concatenate_are_refused():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "a": 1, "##b": 2}))
    tokenizer.decoder = tokenizers.decoders.WordPiece()
    with pytest.raises(
        VocabularyError, match=r"WordPiece tokenizer \(decoder: WordPiece\) do not .* by '##'"
    ):
        Vocabulary.from_tokenizer(tokenizer, eos=[0])
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "b": 1}, unk_token="a"))
    with pytest.raises(VocabularyError, match=r"WordLevel tokenizer \(decoder: none\)"):
        Vocabulary.from_tokenizer(words, eos=[0])


def test_pieces_with_marks_of_a_word_s_end_are_refused(byte_level):
    """CLIP's: byte-level as well, and a piece with `</w>` is followed by a blank."""

    def mark(settings):
        settings["model"]["end_of_word_suffix"] = "</w>"

    with pytest.raises(VocabularyError, match="marked by '</w>'"):
        Vocabulary.from_tokenizer(changed(byte_level, mark), eos=[0])


@pytest.mark.parametrize(
    ("decoders", "tokens"),
    [
        ([{"type": "Fuse"}], ("▁a", "b▁▁")),
        (
            [{"type": "Replace", "pattern": {"String": "▁▁"}, "content": "--"}, {"type": "Fuse"}],
            ("▁a", "b--"),
        ),
        ([{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}], (" a", "b  ")),
        ([{"type": "Fuse"}, {"type": "Replace", "pattern": {"String": "▁▁"}, "content": "-"}], None),
        ([{"type": "Replace", "pattern": {"Regex": "▁"}, "content": " "}, {"type": "Fuse"}], None),
        ([{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0}], ("▁a", "b▁▁")),
        ([{"type": "Strip", "content": " ", "start": 1, "stop": 0}, {"type": "Fuse"}], None),
        ([{"type": "Fuse"}, {"type": "Strip", "content": "b", "start": 1, "stop": 0}], None),
        ([{"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 0, "stop": 1}], None),
        ([{"type": "ByteLevel"}, {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}], None),
        ([{"type": "CTC", "pad_token": "a", "word_delimiter_token": "|", "cleanup": True}], None),
    ],
)
def test_a_piece_spells_what_the_decoder_makes_of_it_or_is_refused(decoders, tokens):
    def decode(settings):
        for part in decoders:
            if part["type"] == "ByteLevel":
                part |= {"add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        settings["decoder"] = {"type": "Sequence", "decoders": decoders}

    tokenizer = changed(bpe({"▁a": 0, "b▁▁": 1, "</s>": 2}), decode)
    if tokens is None:
        with pytest.raises(VocabularyError, match=f"decoder: {decoders[0]['type']}"):
            Vocabulary.from_tokenizer(tokenizer, eos=[2])
    else:
        vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[2])
        assert vocabulary.tokens[:2] == tuple(map(str.encode, tokens))
        assert tokenizer.decode([1, 0, 1]) == "".join(tokens[i] for i in (1, 0, 1))


@pytest.mark.parametrize("tokenizer", [None, object(), [b"a"], "gpt2"])
def test_unknown_kinds_are_named(tokenizer):
    with pytest.raises(
        VocabularyError, match=f"builtins.{type(tokenizer).__name__}`. Supported: .* else build"
    ):
        Vocabulary.from_tokenizer(tokenizer)


def test_every_process_reads_the_same(byte_level, sentencepiece_model, tmp_path):
    byte_level.save(str(tmp_path / "tokenizer.json"))
    (tmp_path / "sp.model").write_bytes(sentencepiece_model.serialized_model_proto())
    code = """
import hashlib, sentencepiece, tokenizers
from jaxgcd.vocabulary import Vocabulary
a = Vocabulary.from_tokenizer(tokenizers.Tokenizer.from_file("tokenizer.json"), eos=[0])
b = Vocabulary.from_tokenizer(sentencepiece.SentencePieceProcessor(model_file="sp.model"))
for v in (a, b):
    s = v.strings
    arrays = s.first, s.rest, s.length, s.token_string, v.spelling.offset, v.spelling.symbols
    print(v.fingerprint, *(hashlib.sha256(array.tobytes()).hexdigest() for array in arrays))
"""
    outputs = set()
    for seed in "01":
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", code]
        run = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        outputs.add(run.stdout)
    assert len(outputs) == 1
