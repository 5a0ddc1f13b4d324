"""Grammars in which a nonterminal derives itself alone: Lark reduces for ever on some texts, or on none.

Only where a text that the masks let through leads there is a grammar refused; elsewhere the masks are exact,
as if Lark rejected the text on which it hangs.
"""

import random
import re
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import pytest
from enumeration import Enumeration
from lark import Lark
from lark.exceptions import LarkError
from oracle import pick
from random_grammars import random_grammar
from test_random import LONGEST, Sample, compare

import jaxgcd

LEXERS = pytest.mark.parametrize("lexer", ["contextual", "basic"])
GRAMMARS = 30

# Grammars with a cycle that no text of the masks comes to, and all texts of their languages.
HARMLESS = {
    "no rule of x ends": ('start: "a" | "b" x\nx.2: x', {"a"}),
    "the cycle goes before every end": ('start: "a" | "b" x\nx.2: x | "c"', {"a"}),
    "a terminal before it is only declared": ('start: "a" | D x\nx.2: x | "b"\n%declare D', {"a"}),
    "a terminal before it is ignored": ('start: "a" | B x\nx.2: x | "c"\nB: "b"\n%ignore B', {"a"}),
    "a terminal behind it is only declared": (
        'start: "a" | "a" x\nx: e x "b" | f D\ne.2:\nf:\n%declare D',
        {"a"},
    ),
    "only stacks that cannot be completed come to it": (
        # Behind "ac" an "a" leads to the cycle only, behind "bc" it does not, with the same states on top.
        'start: "a" z | "a" v "c" | "b" w "c" | "b" v "c"\nz.2: z | w\nw: "c" "a" "b"\nv: "c" "c"',
        {"accc", "bcabc", "bccc"},
    ),
    "only a reduction that never comes leads to its state": (
        'start: "a" y | "a" x\nx.6: x | x "c"\ny.3: x "b" | "a" | "b" "c"',
        {"aa", "abc"},
    ),
    "the same, with an empty rule": (
        'start: B "c" | y "c" | "a" "b"\nx.1: y B | y\ny.4: y x | x "a" | \nA: /[ab]+?/\nB: "b"',
        {"c", "ab", "bc"},
    ),
    "one of two brackets": ('start: "a" | "b" x "b" | "c" x\nx.2: x "c" | x | "a"', {"a", "bab", "baccb"}),
}
HANGS = {
    "at the end of a text": 'start: x | x "b"\nx.2: x | "a"',
    "before a terminal": 'start: "a" x "c" | "b" x\nx: e x "a" | f "b" | "c"\ne.2:\nf:\n',
    "in a larger cycle": 'start: "a" x | "a" x "c"\nx.2: y | "a"\ny.3: x | "b"',
}


def sample(grammar: str, lexer: str, seed: int = 0, alphabet: str = "abc") -> Sample:
    lark = Lark(grammar, parser="lalr", lexer=lexer)
    return Sample(seed, lexer, grammar, alphabet, Enumeration(lark, alphabet, LONGEST))


@LEXERS
@pytest.mark.parametrize("name", HARMLESS)
def test_whole_masks_where_no_text_comes_to_the_cycle(name: str, lexer: str) -> None:
    grammar, texts = HARMLESS[name]
    found = sample(grammar, lexer)
    differences, compiled = compare(found)
    assert compiled is not None and compiled.exact and not differences
    assert texts <= found.language.accepted


@LEXERS
@pytest.mark.parametrize("name", HANGS)
def test_refused_where_a_text_comes_to_the_cycle(name: str, lexer: str) -> None:
    found = sample(HANGS[name], lexer)
    assert found.language.accepted and found.language.hangs(LONGEST)
    with pytest.raises(jaxgcd.GrammarError, match="never end"):
        jaxgcd.compile_grammar(
            found.language.lark, jaxgcd.Vocabulary([b"a", b"b", b"c", b""], eos=[3]), lexer=lexer
        )


@LEXERS
def test_loaded_tables_leave_out_the_same_actions(lexer: str, tmp_path: Path) -> None:
    """The reference machine of saved tables takes the actions that were kept, and no others."""
    grammar, _ = HARMLESS["one of two brackets"]
    vocabulary = jaxgcd.Vocabulary([b"a", b"b", b"c", b"caa", b"cac", b""], eos=[5])
    tables = jaxgcd.compile_grammar(grammar, vocabulary, lexer=lexer, check="host")
    jaxgcd.save(tmp_path / "tables", tables)
    loaded = jaxgcd.load(tmp_path / "tables")
    state = jaxgcd.init(tables)
    for token in (3, 2, 5):
        assert jaxgcd.allowed(tables, state).tolist() == jaxgcd.allowed(loaded, state).tolist()
        state = jaxgcd.advance(tables, state, token)
    lexer_state = int(jaxgcd.init(tables).lexer[0])
    assert loaded.inverse_spanner(lexer_state, ["A"]).tolist() == [0]


def test_random_cycles(prove_factor: int) -> None:
    """Random grammars to which a cycle was added, each of which makes Lark hang on some text."""
    compared, refused = 0, 0
    for found in islice(cyclic(), GRAMMARS * prove_factor):
        differences, compiled = compare(found)
        assert not differences, f"{found.seed}, {found.lexer}: {differences[:5]}\n{found.grammar}"
        compared, refused = compared + (compiled is not None), refused + (compiled is None)
    assert compared >= GRAMMARS // 2 and refused >= GRAMMARS // 10


def cyclic() -> Iterator[Sample]:
    """Grammars with some texts on which Lark hangs, and some that it parses."""
    for seed in count():
        rng = random.Random(seed)
        grammar = random_grammar(rng)
        text, lexer = with_cycle(grammar.text, rng), pick(rng, ["basic", "contextual"])
        try:
            lark = Lark(text, parser="lalr", lexer=lexer)
        except LarkError:
            continue
        language = Enumeration(lark, grammar.alphabet, 4)
        hanging = any(language.hangs_behind(text) is not None for text in language.texts(4))
        if hanging and language.accepted:
            language.extend(LONGEST)
            yield Sample(seed, lexer, text, grammar.alphabet, language)


def with_cycle(grammar: str, rng: random.Random) -> str:
    """The grammar with one more alternative of a rule, a nonterminal alone, and a priority for that rule."""
    lines = grammar.split("\n")
    names = {i: name[0] for i, line in enumerate(lines) if (name := re.match(r"[a-z]+(?=(\.-?\d+)?:)", line))}
    place = pick(rng, sorted(names))
    other = pick(rng, [names[place], *names.values()])
    lines[place] = f"{names[place]}.2: {other} |{lines[place].partition(':')[2]}"
    return "\n".join(lines)
