"""A Python regular expression as a nondeterministic automaton over UTF-8 characters, with priorities.

The tree comes from `re`'s own parser, so the syntax is Python's by construction. The automaton's nodes
are tried in order, as a backtracking matcher would (Thompson's construction with ordered choices, as in
RE2 and Rust's regex crate), and keep what `re` does with empty iterations of a repeat.

Nodes are built from the end of the pattern to its start: every `_Builder` method takes the node to go
on with and returns the node to enter. Everything `re` can say is reduced to the few kinds of nodes of
`nfa`: anchors and word boundaries are lookarounds, a possessive repeat is an atomic group of atomic
groups.

Limits: back-references, conditional groups and LOCALE are not regular, or not for text, and are refused.
"""

import re
import warnings
from collections.abc import Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any, NoReturn

from jaxgcd._budget import Budget, shortened
from jaxgcd.errors import UnsupportedRegexError
from jaxgcd.lexing import charset
from jaxgcd.lexing.charset import CharSet
from jaxgcd.lexing.nfa import ACCEPT, NOWHERE, Kind, Lookbehind, Nfa


def read(pattern: str, name: str) -> Any:
    """The tree that `re` makes of `pattern`, which is the terminal `name`.

    Raises:
        UnsupportedRegexError: the pattern is invalid.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _parser.parse(pattern)
    except (re.error, OverflowError) as error:
        message = f"terminal {name}: {shortened(pattern)!r} is not a valid regex: {error}"
        raise UnsupportedRegexError(message) from error


def literal(tree: Any) -> bytes | None:
    """The one text that a pattern matches, if it is written without any choice or flag."""
    chars = [char for code, char in tree.data if code is op.LITERAL and not 0xD800 <= char <= 0xDFFF]
    if not chars or len(chars) < len(tree.data) or tree.state.flags & re.IGNORECASE:
        return None
    return "".join(map(chr, chars)).encode()


def build(tree: Any, name: str, advice: str, budget: Budget) -> Nfa:
    """The automaton of a pattern, which is the terminal `name`; `advice` says how to make it smaller.

    Raises:
        UnsupportedRegexError: the pattern uses what no automaton can do.
        GrammarTooLarge: it has too many nodes.
    """
    builder = _Builder(Nfa(), name, advice, budget)
    builder.nfa.start = builder.program(tree, tree.state.flags)
    return builder.nfa


def advice(pattern: str) -> str:
    """How a pattern that is too large can be made smaller."""
    bounds = {found[0]: int(found[1]) for found in re.finditer(r"\{(?:\d*,)?(\d{2,20})\}", pattern)}
    if not bounds:
        return "simplify its repeats and lookarounds, or split the terminal"
    return f"shorten its repeat `{max(bounds, key=lambda repeat: bounds[repeat])}` (repeats are written out)"


_TYPE_FLAGS = re.ASCII | re.LOCALE | re.UNICODE

_ANY_CHAR = (op.ANY_ALL, None)
_LINE_CHAR = (op.NOT_LITERAL, 10)
_WORD_CHAR = (op.IN, [(op.CATEGORY, op.CATEGORY_WORD)])
_LAST_LINE_END = (op.BRANCH, (None, [[_LINE_CHAR], [(op.LITERAL, 10), _ANY_CHAR]]))
_ANCHORS = {
    (op.AT_BEGINNING_STRING, False): (r"\A", -1, _ANY_CHAR),
    (op.AT_BEGINNING_STRING, True): (r"\A", -1, _ANY_CHAR),
    (op.AT_BEGINNING, False): ("^", -1, _ANY_CHAR),
    (op.AT_BEGINNING, True): ("^", -1, _LINE_CHAR),
    (op.AT_END_STRING, False): (r"\Z", 1, _ANY_CHAR),
    (op.AT_END_STRING, True): (r"\Z", 1, _ANY_CHAR),
    (op.AT_END, False): ("$", 1, _LAST_LINE_END),
    (op.AT_END, True): ("$", 1, _LINE_CHAR),
}
"""(anchor, MULTILINE?) -> (source, direction, what must *not* be found in that direction)."""


class _Builder:
    """Appends the nodes of one pattern, back to front."""

    def __init__(self, nfa: Nfa, name: str, advice: str, budget: Budget) -> None:
        self.nfa = nfa
        self.name = name
        self.advice = advice
        self.budget = budget
        self.repeats = 0
        self.used: set[int] = set()
        self.peek = False
        self.watches: dict[tuple, tuple[int, int]] = {}

    def program(self, items: Any, flags: int, peek: bool = False) -> int:
        """A part that is matched on its own; records the lookbehinds in it.

        With `peek` it need not read its last character to the end, only far enough to know it matches.
        """
        outer, self.used, self.peek = (self.used, self.peek), set(), peek
        # A node of its own for each program: two programs may begin with the same node.
        start = self.node(Kind.SPLIT, self.sequence(items, flags, ACCEPT))
        self.nfa.lookbehinds_of[start] = frozenset(self.used)
        self.used, self.peek = self.used | outer[0], outer[1]
        return start

    def node(self, kind: Kind, *args: Any) -> int:
        if len(self.nfa.kinds) >= self.budget.limits.regex_nodes:
            subject = f"terminal {self.name}: its regex needs"
            raise self.budget.exceeded("regex_nodes", subject, "automaton nodes", self.advice)
        return self.nfa.add(kind, *args)

    def sequence(self, items: Sequence, flags: int, following: int) -> int:
        for code, argument in reversed(items):
            following = self.item(code, argument, flags, following)
        return following

    def item(self, code: Any, argument: Any, flags: int, following: int) -> int:
        members = _characters(code, argument, flags)
        if members is not None:
            return self.characters(members, following)
        if code is op.SUBPATTERN:
            _, added, removed, body = argument
            return self.sequence(body, _combine(flags, added, removed), following)
        if code is op.BRANCH:
            return self.node(Kind.SPLIT, *(self.sequence(body, flags, following) for body in argument[1]))
        if code in (op.MAX_REPEAT, op.MIN_REPEAT):
            least, most, body = argument
            return self.repeat(least, most, body, flags, code is op.MIN_REPEAT, following)
        if code is op.POSSESSIVE_REPEAT:
            least, most, body = argument
            return self.possessive(least, most, body, flags, following)
        if code is op.ATOMIC_GROUP:
            return self.node(Kind.ATOMIC, self.program(argument, flags), following)
        if code is op.AT:
            return self.anchor(argument, flags, following)
        if code in (op.ASSERT, op.ASSERT_NOT):
            direction, body = argument
            return self.look(code is op.ASSERT, direction, body, flags, following)
        if code is op.FAILURE:
            return NOWHERE
        self.refuse(code)

    def characters(self, members: CharSet, following: int) -> int:
        if not members:
            return NOWHERE
        automaton = charset.char_automaton(members, self.peek and following == ACCEPT)
        return self.node(Kind.CHAR, automaton, automaton.start, following)

    def repeat(self, least: int, most: Any, body: Any, flags: int, lazy: bool, following: int) -> int:
        """`body{least,most}`; written out, so that a node knows how often the body was matched."""
        if body.getwidth()[0] == 0:
            return self.empty_repeat(least, most, body, flags, lazy, following)
        entry, copies = following, least
        if most == op.MAXREPEAT:
            loop = entry = self.node(Kind.SPLIT)
            again = self.sequence(body, flags, loop)
            self.nfa.args[loop] = (following, again) if lazy else (again, following)
            if least:
                entry, copies = again, least - 1
        else:
            for _ in range(most - least):
                again = self.sequence(body, flags, entry)
                entry = self.node(Kind.SPLIT, *((following, again) if lazy else (again, following)))
        for _ in range(copies):
            entry = self.sequence(body, flags, entry)
        return entry

    def empty_repeat(self, least: int, most: Any, body: Any, flags: int, lazy: bool, following: int) -> int:
        """A repeat whose body can match nothing.

        `re` does not try an optional iteration twice at one position, but leaves the repeat instead.
        """
        repeat = self.repeats
        self.repeats += 1
        if most == op.MAXREPEAT:
            entry = self.node(Kind.LOOP)
            again = self.sequence(body, flags, entry)
            self.nfa.args[entry] = (repeat, lazy, again, following)
        else:
            entry = self.node(Kind.LOOP, repeat, lazy, NOWHERE, following)
            for _ in range(most - least):
                entry = self.node(Kind.LOOP, repeat, lazy, self.sequence(body, flags, entry), following)
        for _ in range(least):
            entry = self.sequence(body, flags, entry)
        return self.node(Kind.ENTER, repeat, entry)

    def possessive(self, least: int, most: Any, body: Any, flags: int, following: int) -> int:
        """`body{least,most}+` is `(?>(?>body){least,most})`."""
        iteration = _parser.SubPattern(body.state, [(op.ATOMIC_GROUP, body)])
        atomic = [(op.MAX_REPEAT, (least, most, iteration))]
        return self.node(Kind.ATOMIC, self.program(atomic, flags), following)

    def anchor(self, code: Any, flags: int, following: int) -> int:
        if code in (op.AT_BOUNDARY, op.AT_NON_BOUNDARY):
            return self.boundary(code is op.AT_BOUNDARY, flags, following)
        source, direction, found = _ANCHORS[code, bool(flags & re.MULTILINE)]
        return self.consult(False, self.watch(direction, [found], flags, source), following)

    def boundary(self, wanted: bool, flags: int, following: int) -> int:
        """`\\b` is `(?<=\\w)(?!\\w)|(?<!\\w)(?=\\w)`; `\\B` is the other two."""
        source = r"\b" if wanted else r"\B"
        left, right = (self.watch(direction, [_WORD_CHAR], flags, source) for direction in (-1, 1))
        choices = []
        for positive in (True, False):
            after = self.consult(positive != wanted, right, following)
            choices.append(self.consult(positive, left, after))
        return self.node(Kind.SPLIT, *choices)

    def watch(self, direction: int, body: Sequence, flags: int, source: str) -> tuple[int, int]:
        """The program and the lookbehind of an anchor. All anchors of a kind share them."""
        key = (direction, source, flags)
        if key not in self.watches:
            self.watches[key] = self.lookaround(direction, body, 1, flags, source)
        return self.watches[key]

    def look(self, positive: bool, direction: int, body: Any, flags: int, following: int) -> int:
        source = {1: "(?", -1: "(?<"}[direction] + ("=" if positive else "!")
        least, most = body.getwidth()
        if direction < 0 and least != most:
            raise UnsupportedRegexError(f"terminal {self.name}: `{source}...)` must have a fixed width")
        return self.consult(
            positive, self.lookaround(direction, body, least, flags, f"{source}...)"), following
        )

    def consult(self, positive: bool, lookaround: tuple[int, int], following: int) -> int:
        """Goes on if a lookaround holds, or if it does not."""
        program, behind = lookaround
        self.used |= self.nfa.lookbehinds_of[program] | ({behind} - {-1})
        return self.node(Kind.LOOK, positive, program, behind, following)

    def lookaround(self, direction: int, body: Any, width: int, flags: int, source: str) -> tuple[int, int]:
        """The program of a lookaround, and the number of the lookbehind or -1."""
        program = self.program(body, flags, peek=direction > 0)
        # A lookbehind of no width looks at nothing on its left; it is a lookahead.
        if direction > 0 or not width:
            return program, -1
        self.nfa.lookbehinds.append(Lookbehind(program, width, source))
        return program, len(self.nfa.lookbehinds) - 1

    def refuse(self, code: Any) -> NoReturn:
        constructs = {
            op.GROUPREF: r"a back-reference (`\1`, `(?P=name)`)",
            op.GROUPREF_EXISTS: "a conditional group (`(?(1)...|...)`)",
        }
        raise UnsupportedRegexError(
            f"terminal {self.name}: {constructs.get(code, code)} is not supported, because what it matches"
            " is not a regular language or not known; rewrite the terminal without it"
        )


def _combine(flags: int, added: int, removed: int) -> int:
    """The flags inside `(?added-removed:...)`."""
    if added & _TYPE_FLAGS:
        flags &= ~_TYPE_FLAGS
    return (flags | added) & ~removed


def _characters(code: Any, argument: Any, flags: int) -> CharSet | None:
    """The set of characters that an opcode matches one of; `None` if it is not of that kind."""
    if code is op.LITERAL:
        return charset.from_items([(code, argument)], flags)
    if code is op.NOT_LITERAL:
        return charset.from_items([(op.NEGATE, None), (op.LITERAL, argument)], flags)
    if code is op.IN:
        return charset.from_items(argument, flags)
    if code is op.ANY_ALL or (code is op.ANY and flags & re.DOTALL):
        return charset.ALL
    if code is op.ANY:
        return charset.complement(charset.NEWLINE)
    return None
