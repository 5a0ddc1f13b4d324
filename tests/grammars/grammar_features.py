"""Which of the things that random grammars are drawn for a loaded grammar has, read off Lark's objects.

So the counts in the tests do not rest on what the generator meant to write.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

from lark import Lark
from lark.lexer import ContextualLexer, UnlessCallback
from lark.parsers.lalr_analysis import LALR_Analyzer

_parser: Any = re._parser  # type: ignore[attr-defined]
op: Any = re._constants  # type: ignore[attr-defined]

KINDS = {
    op.MIN_REPEAT: "lazy quantifier",
    op.POSSESSIVE_REPEAT: "possessive quantifier",
    op.ATOMIC_GROUP: "atomic group",
}
ANCHORS = {
    op.AT_BOUNDARY: r"\b",
    op.AT_NON_BOUNDARY: r"\B",
    op.AT_BEGINNING: "^",
    op.AT_END: "$",
    op.AT_BEGINNING_STRING: r"\A",
    op.AT_END_STRING: r"\Z",
}
LOOKS = [f"{sign}look{way}" for sign in ("", "negative ") for way in ("ahead", "behind")]
PLACES = [f"{place} look{way}" for place in ("leading", "inner", "trailing") for way in ("ahead", "behind")]
OVERLAPS = ["terminal begins another", "terminals share a text", "terminal priority"]
KEYWORDS = [
    "keyword",
    "keyword that stays",
    "ignored string in a live regex",
    "live string in an ignored regex",
]
REGEXES = [
    *LOOKS,
    *PLACES,
    *ANCHORS.values(),
    "multiline anchor",
    "leading anchor",
    "looks left of its lexeme",
]
RECURSIONS = ["left recursion", "right recursion", "middle recursion"]
CONFLICTS = ["rule priority", "shift/reduce conflict", "reduce/reduce conflict"]
FEATURES = (
    *(*OVERLAPS, *KEYWORDS, "ignored", "ignored and in a rule", *REGEXES, *KINDS.values(), "flags"),
    *("empty rule", "optional", "repeated", *RECURSIONS, *CONFLICTS),
)


def features(lark: Lark, alphabet: Sequence[str]) -> set[str]:
    """The features that this grammar has, of `FEATURES`."""
    found = {feature for terminal in lark.terminals for feature in _of_regex(terminal.pattern.to_regexp())}
    found |= {"flags" for terminal in lark.terminals if terminal.pattern.flags}
    return found | set(_of_terminals(lark, alphabet)) | set(_of_lexer(lark)) | set(_of_rules(lark))


def looks_left(pattern: str) -> int:
    """How many characters left of its lexeme a regex can see at most.

    Lookbehinds may follow each other inwards, so their widths add up; an anchor sees one character.
    """
    total = 0
    for code, argument, _ in _operations(_parser.parse(pattern)):
        behind = code in (op.ASSERT, op.ASSERT_NOT) and argument[0] < 0
        total += argument[1].getwidth()[1] if behind else code is op.AT
    return total


# Regexes.


def _operations(parsed: Any, flags: int = 0) -> Iterator[tuple[Any, Any, int]]:
    """All operations of a parsed regex with the flags in force there."""
    for code, argument in parsed:
        inner = flags | (argument[1] if code is op.SUBPATTERN else 0)
        yield code, argument, flags
        for part in _parts(argument):
            yield from _operations(part, inner)


def _parts(argument: Any) -> Iterator[Any]:
    """The patterns inside the argument of an operation."""
    if isinstance(argument, _parser.SubPattern):
        yield argument
    elif isinstance(argument, (tuple, list)):
        for part in argument:
            yield from _parts(part)


def _sequences(parsed: Any) -> Iterator[list[Any]]:
    """The alternatives of a regex, each as its operations one after the other."""
    if len(parsed) == 1 and parsed[0][0] in (op.BRANCH, op.SUBPATTERN):
        for part in _parts(parsed[0][1]):
            yield from _sequences(part)
    else:
        yield list(parsed)


def _of_regex(pattern: str) -> Iterator[str]:
    parsed = _parser.parse(pattern)
    for code, argument, flags in _operations(parsed):
        if code in (op.ASSERT, op.ASSERT_NOT):
            yield ("" if code is op.ASSERT else "negative ") + _way(argument)
        elif code is op.AT:
            yield ANCHORS[argument]
            yield from ["multiline anchor"] * bool(flags & re.M and argument in (op.AT_BEGINNING, op.AT_END))
        elif code in KINDS:
            yield KINDS[code]
    for sequence in _sequences(parsed):
        yield from _of_sequence(sequence)


def _of_sequence(sequence: list[Any]) -> Iterator[str]:
    """Where in a sequence the assertions stand, and whether one sees what lies left of the lexeme."""
    for place, (code, argument) in enumerate(sequence):
        name = "leading" if place == 0 else "trailing" if place == len(sequence) - 1 else "inner"
        if code in (op.ASSERT, op.ASSERT_NOT):
            yield f"{name} {_way(argument)}"
        elif code is op.AT and place == 0:
            yield "leading anchor"
        read = _parser.SubPattern(None, sequence[:place]).getwidth()[0]
        behind = code in (op.ASSERT, op.ASSERT_NOT) and argument[0] < 0
        seen = argument[1].getwidth()[1] if behind else int(code is op.AT)
        yield from ["looks left of its lexeme"] * (seen > read)


def _way(argument: Any) -> str:
    return "lookahead" if argument[0] > 0 else "lookbehind"


# Terminals.


def _of_terminals(lark: Lark, alphabet: Sequence[str]) -> Iterator[str]:
    """Overlaps, over all texts of up to three letters."""
    if len({terminal.priority for terminal in lark.terminals}) > 1:
        yield "terminal priority"
    texts = ["".join(letters) for length in (1, 2, 3) for letters in product(alphabet, repeat=length)]
    regexes = [re.compile(terminal.pattern.to_regexp()) for terminal in lark.terminals]
    matched = [{text for text in texts if regex.fullmatch(text)} for regex in regexes]
    for one, own in enumerate(matched):
        longer = {text for text in texts if any(text[:end] in own for end in range(1, len(text)))}
        for other in (*matched[:one], *matched[one + 1 :]):
            yield from ["terminal begins another"] * bool(longer & other)
            yield from ["terminals share a text"] * bool(own & other)


def _of_lexer(lark: Lark) -> Iterator[str]:
    """What is ignored, and what Lark's lexers relabel."""
    ignored = set(lark.ignore_tokens)
    if ignored:
        yield "ignored"
    if any(symbol.name in ignored for rule in lark.rules for symbol in rule.expansion):
        yield "ignored and in a rule"
    lexer: Any = lark.parser.lexer
    for each in lexer.lexers.values() if isinstance(lexer, ContextualLexer) else [lexer]:
        staying = {terminal.name for terminal in each.scanner.terminals}
        for name, callback in each.callback.items():
            assert isinstance(callback, UnlessCallback)
            keywords = {terminal.name for terminal in callback.scanner.terminals}
            yield from _of_keywords(name in ignored, keywords, ignored, staying)


def _of_keywords(inside: bool, keywords: set[str], ignored: set[str], staying: set[str]) -> Iterator[str]:
    if not inside:
        yield from ["keyword"] * bool(keywords - ignored)
        yield from ["ignored string in a live regex"] * bool(keywords & ignored)
    else:
        yield from ["live string in an ignored regex"] * bool(keywords - ignored)
    yield from ["keyword that stays"] * bool(keywords & staying)


# Rules.


def _of_rules(lark: Lark) -> Iterator[str]:
    for rule in lark.rules:
        names = [symbol.name for symbol in rule.expansion]
        places = [place for place, name in enumerate(names) if name == rule.origin.name]
        if "_star_" in rule.origin.name or "_plus_" in rule.origin.name:
            yield "repeated"
            continue
        yield from ["empty rule"] * (not names)
        yield from ["rule priority"] * bool(rule.options.priority)
        yield from ["left recursion"] * (0 in places and len(names) > 1)
        yield from ["right recursion"] * (len(names) - 1 in places and len(names) > 1)
        yield from ["middle recursion"] * any(0 < place < len(names) - 1 for place in places)
    rules = "".join(line for line in lark.source_grammar.splitlines() if line[:1].islower())
    yield from ["optional"] * bool(re.search(r"[?\[]", rules))
    yield from _of_conflicts(lark)


def _of_conflicts(lark: Lark) -> Iterator[str]:
    """Lark shifts where it could reduce as well, and reduces by the rule of the greater priority."""
    analyzer: Any = LALR_Analyzer(lark.parser.parser.parser_conf)
    analyzer.compute_lalr()
    for itemset in analyzer.lr0_itemsets:
        for lookahead, rules in itemset.lookaheads.items():
            yield from ["shift/reduce conflict"] * (lookahead in itemset.transitions)
            yield from ["reduce/reduce conflict"] * (len(rules) > 1)
