"""Real grammars with texts, and real vocabularies as plain data, read without the library.

Which texts python-lark parses, in which lexer mode, is what the tests check first.
"""

import base64
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lark import Lark
from witness import Finder

EXAMPLES = Path(__file__).parent.parent / "examples"


@dataclass(frozen=True)
class Real:
    """A grammar, where it lies, and texts that it accepts and rejects."""

    name: str
    shipped: bool  # in examples/; else in the data folder
    texts: tuple[str, ...]
    wrong: tuple[str, ...]
    contextual: tuple[str, ...] = ()  # right in contextual mode, wrong in basic mode
    known: tuple[str, ...] = ()  # continuations that the search for witnesses does not think of

    def right_in(self, lexer: str) -> tuple[str, ...]:
        """Texts that Lark parses in a mode."""
        return self.texts + (self.contextual if lexer == "contextual" else ())

    def wrong_in(self, lexer: str) -> tuple[str, ...]:
        """Texts that it does not parse."""
        return self.wrong + (self.contextual if lexer == "basic" else ())

    def path(self, data_dir: Callable[[], Path]) -> Path:
        """The grammar's file; the data folder is asked for only where it is needed."""
        return (
            EXAMPLES / f"{self.name}.lark" if self.shipped else data_dir() / "grammars" / f"{self.name}.lark"
        )


@functools.cache
def finder(path: Path, lexer: str, known: tuple[str, ...]) -> Finder:
    """Lark's parser for a grammar file, with its search for witnesses."""
    return Finder(Lark(path.read_text(), parser="lalr", lexer=lexer), known=known)


REAL = [
    Real(
        "json",
        True,
        (
            '{"name": "Ada", "born": 1815, "tags": ["math", "poet"], "alive": false}',
            "[]",
            ' [1, -2.5e-3, 0, 1E+9, [[{}]], {"": null}]\n',
            '"\\u00e9 \\n \\\\ \\" é 日本 🙂"',
            "-0.10",
            '{\n  "a": {"b": {"c": [true, null]}},\n  "d": "x"\n}',
        ),
        ("{'a': 1}", "[1,]", "01", '"\n"', "", "{" + '"a" 1}', "+1", '"\\x"', "[" + " " * 21 + "]", "NaN"),
    ),
    Real(
        "sql",
        True,
        (
            "SELECT name, price FROM goods WHERE price > 10 AND name LIKE 'a%' ORDER BY price DESC LIMIT 5;",
            "select * from t;",
            "SELECT DISTINCT a.b AS c, count(*), sum(DISTINCT x) FROM t AS u LEFT JOIN v ON u.id = v.id;",
            "select a from t where not (b is not null or c in ('it''s', -2.5 ,3)) group by a having a<>1;",
            "SELECT a FROM t WHERE b BETWEEN 1 AND 2 OR c IN (SELECT d FROM e)LIMIT 1 OFFSET 2;",
            "SeLeCt\n\ta\nfRoM b;",
        ),
        (
            "SELECT FROM t;",
            "SELECT a FROM t",
            "SELECT a FROM t WHERE b = 1AND c = 2;",
            "DROP TABLE t;",
            "SELECTa FROM t;",
            "",
        ),
        (
            "SELECT from FROM t AS u WHERE u.select = 1;",
            "select a.from from select as where order by order;",
        ),
    ),
    Real(
        "arithmetic",
        True,
        ("1", "1 + 2 * 3", "-(2.5 - 1) ^ 2 / 7", "---3", "((((1))))", "2^3^4 * 10.25 -1    "),
        ("", "1 +", "(1", "1 2", ".5", "1 +     2", " 1", "2 ^"),
    ),
    Real(
        "json",
        False,
        (
            '{"name": "Ada", "born": 1815, "tags": ["math", "poet"], "alive": false}',
            "[]",
            '[1, -2.5e3, +7, .5, 1., "", "a b", null]',
            '{ "a" : { "b" : [ [ ], { } ] } }\n',
            '["two\nlines", "é 日本"]',
            '\t{"x": true, "y": -0.1E+2}',
        ),
        ("1", '{"": 1}', "[1,]", '{"a" 1}', "", "[tru]", '"a"'),
    ),
    Real(
        "c",
        False,
        (
            "int main() { return 0; }",
            "",
            "float f(int a, char b) {\n  int x = 1 + f(a, 2) * (3 - y);\n  return -x / 2;\n}\n",
            "void g() { if (x <= 3) { y = 2; } else { print(x, 1); } while (x != 0) { x = x - 1; } }",
            "int h(int n) { for (int i = 0; i < 9; i = i + 1) { /* ** / */ k(); } return ix; }\nint z() {}",
            "void c(){/* unfinished * / still */x=(a)*(b);}",
        ),
        (
            "int main() { return 0 }",
            "main() {}",
            "int f() { // no\n\n }",
            "int f() { while = 2; }",
            "int f() { return x == 1; }",
            "/*",
        ),
        ("int if() {}", "int f(int while){ int for = 1; return for; }", "intx(){ int y=if; }"),
    ),
]


@dataclass(frozen=True)
class RealVocabulary:
    """The bytes of every token of a real tokenizer, how it cuts a text, and the tokenizer itself."""

    tokens: tuple[bytes, ...]
    eos: tuple[int, ...]
    special: tuple[int, ...]
    size: int
    encode: Callable[[str], list[int]]
    tokenizer: Any

    def spell(self, ids: Sequence[int]) -> bytes:
        """The text of some tokens."""
        return b"".join(self.tokens[token] for token in ids)


def mistral(processor: Any) -> RealVocabulary:
    """Mistral's 32,000 SentencePiece tokens: a metaspace is a space, `<0x0A>` is a byte."""
    size = processor.get_piece_size()
    special = [token for token in range(size) if processor.is_control(token) or processor.is_unknown(token)]
    tokens = [_piece_bytes(processor, token) for token in range(size)]

    def encode(text: str) -> list[int]:
        """Without the blank that the tokenizer puts before every text: newlines never merge with others."""
        ids = processor.encode("\n" + text)
        assert [tokens[token] for token in ids[:2]] == [b" ", b"\n"]
        return ids[2:]

    return RealVocabulary(tuple(tokens), (processor.eos_id(),), tuple(special), size, encode, processor)


def _piece_bytes(processor: Any, token: int) -> bytes:
    piece = processor.id_to_piece(token)
    return bytes([int(piece[3:5], 16)]) if processor.is_byte(token) else piece.replace("\u2581", " ").encode()


def smollm2(path: Path) -> RealVocabulary:
    """SmolLM2's 49,152 byte-level tokens, from its GGUF file."""
    from gguf import GGUFReader

    fields = GGUFReader(path).fields
    pieces, kinds, merges = (
        fields[f"tokenizer.ggml.{name}"].contents() for name in ("tokens", "token_type", "merges")
    )
    special = [token for token, kind in enumerate(kinds) if kind == 3]  # control tokens
    table = _byte_of_character()
    tokens = [
        piece.encode() if kind == 3 else bytes(table[char] for char in piece)
        for piece, kind in zip(pieces, kinds, strict=True)
    ]
    tokenizer = _byte_level_bpe(pieces, merges, [pieces[token] for token in special])
    eos = pieces.index("<|im_end|>")
    return RealVocabulary(
        tuple(tokens), (eos,), tuple(special), len(tokens), lambda text: tokenizer.encode(text).ids, tokenizer
    )


def _byte_of_character() -> dict[str, int]:
    """GPT-2's way to write bytes: printable Latin-1 as itself, the others as 256, 257, ... in order."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + n): byte for n, byte in enumerate(others)}


def _byte_level_bpe(pieces: Sequence[str], merges: Sequence[str], special: Sequence[str]) -> Any:
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

    vocabulary = {piece: token for token, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocabulary, [tuple(merge.split(" ")) for merge in merges]))
    digits, byte_level = pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, byte_level])
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    return tokenizer


def llama3(path: Path) -> RealVocabulary:
    """Llama 3's 128,256 tokens, from its tiktoken file: 128,000 of text, then 256 that are none.

    Three of those end something: the text (128,001), a message (128,008), a turn (128,009).
    """
    return _tiktoken(path, digits=3, special=256, eos=(128_001, 128_008, 128_009), size=128_256)


def qwen(path: Path) -> RealVocabulary:
    """Qwen's 151,643 tokens of text and 208 others, from its tiktoken file.

    `<|endoftext|>` (151,643) and `<|im_end|>` (151,645) end a text. Qwen2.5's logits are wider than its
    tokenizer: 151,936, a multiple of 128.
    """
    return _tiktoken(path, digits=1, special=208, eos=(151_643, 151_645), size=151_936)


def _tiktoken(path: Path, *, digits: int, special: int, eos: tuple[int, ...], size: int) -> RealVocabulary:
    """A line for every token, its bytes in base64 and its id; then come special tokens, which have no text.

    Up to `digits` digits make a token; but for that, these tokenizers cut a text by the same rules.
    """
    from tiktoken import Encoding

    pairs = (line.split() for line in path.read_bytes().splitlines())
    ranks = {base64.b64decode(spelled): int(rank) for spelled, rank in pairs}
    assert list(ranks.values()) == list(range(len(ranks)))
    words = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+"
    rest = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
    pattern = f"{words}|\\p{{N}}{{1,{digits}}}{rest}"
    encoding = Encoding(path.stem, pat_str=pattern, mergeable_ranks=ranks, special_tokens={})
    count = len(ranks) + special
    return RealVocabulary(
        (*ranks, *[b""] * special),
        eos,
        tuple(range(len(ranks), count)),
        size,
        encoding.encode_ordinary,
        encoding,
    )
