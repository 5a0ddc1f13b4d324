"""Finds continuations that python-lark accepts: a witness that a prefix of a real grammar is viable.

A guess is made from Lark's own scanner and parse table, in either lexer mode: cut the text where its last,
unfinished lexeme starts, complete that lexeme, then complete the sentence with as few terminals as
possible. Whatever the guess, **Lark parses the whole text**, or it is no witness. A text for which none is
found is not thereby dead; the search is written to be complete on the grammars of this suite.

Nothing here imports the library.
"""

import heapq
import math
import re
from collections.abc import Iterator
from functools import cache, cached_property
from itertools import chain

from lark import Lark, Token
from lark.exceptions import LarkError
from lark.lexer import BasicLexer, ContextualLexer, UnlessCallback
from lark.parsers.lalr_analysis import Shift
from lark.utils import TextSlice
from oracle import split_utf8
from patterns import SAMPLES, Pattern

FOLD_TO_ASCII = "\u0130\u0131\u017f\u212a"  # the characters that match an ASCII letter if case is ignored
Stack = tuple[int, ...]


class Finder:
    """Looks for witnesses of one grammar, loaded by Lark with `parser="lalr"`.

    With `lexer="contextual"` each parser state has a lexer of its own: `lexers`. What a terminal can look
    like, and what an unfinished lexeme can become, is asked of the lexer in whose place it stands.
    """

    def __init__(self, lark: Lark, start: str = "start", known: tuple[str, ...] = ()) -> None:
        self.lark = lark
        self.known = known  # continuations to try where all guesses fail
        table = lark.parser.parser._parse_table
        self.states = table.states
        self.bottom, self.goal = table.start_states[start], table.end_states[start]
        lexer = lark.parser.lexer
        contextual = isinstance(lexer, ContextualLexer)
        self.lexers = {state: lexer.lexers[state] if contextual else lexer for state in self.states}
        self.ignored = self.lexers[self.bottom].ignore_types  # the same in all of them
        self.patterns = {t.name: Pattern(t.pattern.to_regexp()) for t in lark.terminals}
        self._fed: dict[tuple[Stack, str], Stack | None] = {}
        self._plans: dict[Stack, list[list[str]]] = {}
        self._tails: dict[tuple[BasicLexer, str], list[tuple[str, str]]] = {}
        self._examples: dict[BasicLexer, dict[str, str]] = {}
        self._begun: dict[str, list[Pattern]] = {}

    # ------------------------------------------------------------------ Lark's lexer and parser, step by step

    def lexeme(self, lexer: BasicLexer, text: str, place: int = 0) -> tuple[str, str] | None:
        """The lexeme that a scanner of Lark takes at `place`, and the type of its token ("" if ignored)."""
        match = lexer.scanner.match(TextSlice.cast_from(text), place)
        if match is None:
            return None
        value, kind = match
        if kind in self.ignored:
            return value, ""
        callback = lexer.callback.get(kind)
        if isinstance(callback, UnlessCallback):
            kind = callback(Token(kind, value)).type
        return value, kind

    def feed(self, stack: Stack, terminal: str) -> Stack | None:
        """The stack after a terminal; None if the parser refuses it. After "$END": the accepting stack."""
        key = (stack, terminal)
        if key not in self._fed:
            self._fed[key] = self._feed(list(stack), terminal)
        return self._fed[key]

    def _feed(self, stack: list[int], terminal: str) -> Stack | None:
        while (action := self.states[stack[-1]].get(terminal)) is not None:
            if action[0] is Shift:
                return (*stack, action[1])
            rule = action[1]
            del stack[len(stack) - len(rule.expansion) :]
            stack.append(self.states[stack[-1]][rule.origin.name][1])
            if terminal == "$END" and stack[-1] == self.goal:
                return tuple(stack)
        return None

    def boundaries(self, text: str) -> list[tuple[int, Stack]]:
        """Where Lark's lexer starts a lexeme in `text`, with the parser's stack there."""
        place, stack = 0, (self.bottom,)
        found = [(place, stack)]
        while place < len(text):
            read = self.lexeme(self.lexers[stack[-1]], text, place)
            if read is None:
                break
            value, kind = read
            stack = self.feed(stack, kind) if kind else stack
            if stack is None:
                break
            place += len(value)
            found.append((place, stack))
        return found

    # ------------------------------------------------------------------------------------------- guesses

    def examples_of(self, lexer: BasicLexer) -> dict[str, str]:
        """For every terminal that this lexer can emit, a short lexeme."""
        if lexer not in self._examples:
            found = self._examples[lexer] = {}
            for name, pattern in self.patterns.items():
                for text in pattern.endings(pattern.start, 30):
                    if self.lexeme(lexer, text) == (text, name):
                        found[name] = text
                        break
        return self._examples[lexer]

    @cached_property
    def examples(self) -> dict[str, str]:
        """For every terminal that some lexer can emit, a shortest one of its short lexemes."""
        found: dict[str, str] = {}
        for lexer in dict.fromkeys(self.lexers.values()):
            for name, text in self.examples_of(lexer).items():
                if len(text) < len(found.get(name, text + ".")):
                    found[name] = text
        return found

    @cached_property
    def separators(self) -> list[str]:
        """What to put between lexemes: a text that some lexer ignores, if there is one; and nothing."""
        ignored = [
            text
            for name in self.ignored
            for text in self.patterns[name].endings(self.patterns[name].start, 30)
        ]
        lexers = dict.fromkeys(self.lexers.values())
        blank = [
            text
            for text in (" ", "\n", *ignored[:1])
            if any(self.lexeme(lexer, text) == (text, "") for lexer in lexers)
        ]
        return [*dict.fromkeys(blank), ""]

    @cached_property
    def _yields(self) -> dict[str, tuple[float, list[str]]]:
        """The cheapest text of every symbol: its cost, its terminals."""
        found = {name: (len(text) + 1.0, [name]) for name, text in self.examples.items()}
        changed = True
        while changed:
            changed = False
            for rule in self.lark.rules:
                parts = [found.get(symbol.name) for symbol in rule.expansion]
                cost = sum(part[0] if part else math.inf for part in parts)
                if cost < found.get(rule.origin.name, (math.inf, []))[0]:
                    found[rule.origin.name] = (cost, [name for part in parts if part for name in part[1]])
                    changed = True
        return found

    @cached_property
    def _returns(self) -> dict[int, dict[tuple[int, str], tuple[float, list[str]]]]:
        """Per parser state: the cheapest terminals after which it pops k states and goes to a nonterminal."""
        before: dict[int, list[tuple[int, str]]] = {}
        queue, ticket = [], 0
        for state, actions in self.states.items():
            for symbol, (action, argument) in actions.items():
                if action is Shift:
                    before.setdefault(argument, []).append((state, symbol))
                elif argument.expansion:
                    queue.append(
                        (0.0, ticket := ticket + 1, state, len(argument.expansion), argument.origin.name, [])
                    )
        heapq.heapify(queue)
        found: dict[int, dict] = {state: {} for state in self.states}
        while queue:
            cost, _, state, pops, name, terminals = heapq.heappop(queue)
            if (pops, name) in found[state]:
                continue
            found[state][pops, name] = (cost, terminals)
            for earlier, symbol in before.get(state, []) if pops > 1 else []:
                if symbol in self._yields:
                    more, added = self._yields[symbol]
                    item = (cost + more, ticket := ticket + 1, earlier, pops - 1, name, added + terminals)
                    heapq.heappush(queue, item)
        return found

    def _shortest(self, stack: Stack) -> list[str] | None:
        """The cheapest terminals that complete a sentence, by the rules alone (not by lookaheads)."""
        queue: list[tuple[float, int, int, int, list[str]]] = [(0.0, 0, len(stack) - 1, stack[-1], [])]
        done, ticket = set(), 0
        while queue:
            cost, _, below, top, terminals = heapq.heappop(queue)
            if (below, top) == (1, self.goal):
                return terminals
            if (below, top) in done:
                continue
            done.add((below, top))
            for left, to, more, added in self._pops(stack, below, top):
                heapq.heappush(queue, (cost + more, ticket := ticket + 1, left, to, terminals + added))
        return None

    def _pops(self, stack: Stack, below: int, top: int) -> Iterator[tuple[int, int, float, list[str]]]:
        """From `stack[:below]` with `top` above it: where each way to finish a rule leads."""
        if below == 0:  # nothing read yet: the start rule itself is still to come
            symbols = [(symbol, to) for symbol, (action, to) in self.states[top].items() if action is Shift]
            for symbol, to in symbols:
                if symbol in self._yields:
                    yield (1, to, *self._yields[symbol])
        for (pops, name), (cost, terminals) in self._returns[top].items():
            if pops <= below and name in self.states[stack[below - pops]]:
                yield below - pops + 1, self.states[stack[below - pops]][name][1], cost, terminals

    def plans(self, stack: Stack) -> list[list[str]]:
        """Sequences of terminals that complete the sentence, cheapest first; each checked on the parser."""
        if stack not in self._plans:
            first = self._shortest(stack)
            others = []
            for terminal in self.examples:
                after = self.feed(stack, terminal)
                if after is not None and (rest := self._shortest(after)) is not None:
                    others.append([terminal, *rest])
            found = ([first] if first is not None else []) + sorted(others, key=self._length)
            valid = [plan for plan in found if self._completes(stack, plan)]
            variants = [variant for plan in valid for variant in (self._spaced(stack, plan), plan)]
            self._plans[stack] = list(map(list, dict.fromkeys(map(tuple, variants))))
        return self._plans[stack]

    @cached_property
    def _blanks(self) -> list[str]:
        """Terminals of the grammar's own (not ignored) that can be whitespace."""
        return [name for name, text in self.examples.items() if text.isspace()]

    def _spaced(self, stack: Stack, plan: list[str]) -> list[str]:
        """The same plan with whitespace before each terminal where the grammar's rules allow it."""
        spaced: list[str] = []
        for place, terminal in enumerate(plan):
            for blank in self._blanks:
                between = self.feed(stack, blank)
                if between is not None and self._completes(between, plan[place:]):
                    spaced.append(blank)
                    stack = between
                    break
            spaced.append(terminal)
            after = self.feed(stack, terminal)
            assert after is not None
            stack = after
        return spaced

    def _length(self, plan: list[str]) -> int:
        return sum(len(self.examples[name]) + 1 for name in plan)

    def _completes(self, stack: Stack, plan: list[str]) -> bool:
        for terminal in [*plan, "$END"]:
            after = self.feed(stack, terminal)
            if after is None:
                return False
            stack = after
        return True

    def _beginning(self, char: str) -> list[Pattern]:
        """The patterns of which some text begins with this character."""
        if char not in self._begun:
            self._begun[char] = [p for p in self.patterns.values() if p.step(p.start, char)]
        return self._begun[char]

    def _finish_lexeme(self, lexer: BasicLexer, tail: str) -> list[tuple[str, str]]:
        """Ways to complete an unfinished lexeme: what to add, and the type of its token ("" if ignored)."""
        if (key := (lexer, tail)) not in self._tails:
            added = [end for p in self._beginning(tail[0]) for end in p.endings(p.read(tail), 6)]
            read = {end: self.lexeme(lexer, tail + end) for end in dict.fromkeys(added)}
            self._tails[key] = [(end, got[1]) for end, got in read.items() if got and got[0] == tail + end]
        return self._tails[key]

    def _write(self, stack: Stack, plan: list[str], separator: str) -> str:
        """A text for some terminals: each as the lexer of the state before it knows it."""
        parts = []
        for name in plan:
            example = self.examples_of(self.lexers[stack[-1]]).get(name, self.examples[name])
            parts.append(separator + example)
            after = self.feed(stack, name)
            assert after is not None
            stack = after
        return "".join(parts)

    def guesses(self, text: str) -> Iterator[str]:
        """Continuations to try, likely ones first."""
        for place, stack in reversed(self.boundaries(text)):
            tail, lexer = text[place:], self.lexers[stack[-1]]
            for added, kind in self._finish_lexeme(lexer, tail) if tail else [("", "")]:
                after = self.feed(stack, kind) if kind else stack
                for plan in self.plans(after)[:8] if after is not None else []:
                    for separator in self.separators:
                        yield added + self._write(after, plan, separator)

    @cached_property
    def _named(self) -> list[str]:
        """Characters beyond ASCII that the grammar's patterns name."""
        moves = [move for pattern in self.patterns.values() for state in pattern.moves for move in state]
        chars = {char for letters, _ in moves for char in letters.samples if not char.isascii()}
        return sorted(chars - set(SAMPLES))

    def find(self, prefix: bytes, tries: int = 300) -> str | None:
        """A continuation such that Lark parses the whole; None if `tries` texts did not give one."""
        parts = split_utf8(prefix)
        if parts is None:
            return None
        text, unfinished = parts
        named = [char for char in self._named if char.encode().startswith(unfinished)]
        for first in dict.fromkeys([*named, *_characters(unfinished)]) if unfinished else [""]:
            seen = set()
            for guess in chain(self.guesses(text + first), self.known):
                if guess in seen:
                    continue
                seen.add(guess)
                if self.accepts(text + first + guess):
                    return first + guess
                if (tries := tries - 1) <= 0:
                    return None
        return None

    def accepts(self, text: str) -> bool:
        """Whether Lark parses `text`: the only judge."""
        try:
            self.lark.parse(text)
        except LarkError:
            return False
        return True


def _characters(unfinished: bytes) -> list[str]:
    """A few characters that begin with these bytes."""
    missing = 2 + (unfinished[0] >= 0xE0) + (unfinished[0] >= 0xF0) - len(unfinished)
    fills = [0xA9, 0x80, 0xBF, 0x90, 0x8F, 0x9F, 0xA0, 0xB0] if missing > 1 else range(0x80, 0xC0)
    parts = [split_utf8(unfinished + bytes([fill]) * missing) for fill in fills]
    folding = [char for char in FOLD_TO_ASCII if char.encode().startswith(unfinished)]
    plain = [part[0] for part in parts if part is not None and not part[1]]
    return [*folding, *_one_of_each_kind(unfinished), *plain]


@cache
def _one_of_each_kind(unfinished: bytes) -> list[str]:
    """A digit, another word character and a blank that begin with these bytes, where there are such."""
    length = 2 + (unfinished[0] >= 0xE0) + (unfinished[0] >= 0xF0)
    low = unfinished[0] & (0xFF >> (length + 1))
    for byte in unfinished[1:]:
        low = low << 6 | byte & 0x3F
    missing = 6 * (length - len(unfinished))
    first = max(low << missing, (0x80, 0x800, 0x10000)[length - 2])
    codes = range(first, min((low + 1) << missing, 0x110000))
    chars = [chr(code) for code in codes if not 0xD800 <= code < 0xE000]
    kinds = (r"\d", r"[^\W\d]", r"\s")
    found = [next((char for char in chars if re.match(kind, char)), "") for kind in kinds]
    return [char for char in found if char]
