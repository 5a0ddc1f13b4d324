"""Every short text that Lark parses, found fast: Lark's own scanners and parse table, driven without trees.

`lark.Lark.parse` builds tokens, trees and error messages. Here only the verdict is wanted, for thousands of
texts that share their parts, so what Lark's objects answer is remembered: which lexeme its scanner finds in
front of a rest, and whether its parse table takes that rest on that stack. `Enumeration.check` holds the
verdicts against `lark.Lark.parse` itself.

Nothing here imports the library.
"""

from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from itertools import chain, islice, product
from typing import Any

from grammar_features import looks_left
from lark import Lark
from lark.exceptions import LarkError
from lark.lexer import ContextualLexer, Token
from lark.parsers.lalr_analysis import Shift
from oracle import split_utf8

MOST_STEPS = 1_000  # that many reductions before one terminal never end: Lark would hang
SHORT = 3  # letters of the completions that are all tried
KNOWN = 40  # completions of other texts that are tried
LONG = 40  # letters at which a search gives up
MOST_OUTLOOKS = 3_000
SEARCHES = ((2, 1), (0, 1), (2, 2), (0, 2), (0, 4), (0, 8))  # heights and windows, see `Enumeration._search`


class _Stack:
    """A stack of parser states, what shifting each terminal makes of it, and the texts judged on it."""

    __slots__ = ("lexemes", "lexer", "pushed", "states", "verdicts")

    def __init__(self, states: tuple[int, ...], lexer: Any, lexemes: "dict[tuple[str, str], Lexeme]") -> None:
        self.states, self.lexer, self.lexemes = states, lexer, lexemes
        self.pushed: dict[str, _Stack | None] = {}
        self.verdicts: dict[tuple[str, str], bool] = {}


Lexeme = tuple[str | None, int] | None
"""The terminal (None: ignored) and the length of the lexeme in front; None if there is none."""


class Enumeration:
    """The texts of up to `longest` letters that Lark parses, and what they begin with.

    Attributes:
        accepted: the texts.
        viable: their prefixes, as UTF-8 (which may end inside a character), and those of longer accepted
            texts that `completes` came across.
    """

    def __init__(self, lark: Lark, alphabet: Sequence[str], longest: int) -> None:
        self.lark, self.alphabet, self.longest = lark, tuple(alphabet), -1
        table = lark.parser.parser._parse_table
        (start,) = lark.options.start
        self._states, self._end = table.states, table.end_states[start]
        self._left = max((looks_left(t.pattern.to_regexp()) for t in lark.terminals), default=0)
        self._stacks: dict[tuple[int, ...], _Stack] = {}
        self._lexemes: dict[int, dict[tuple[str, str], Lexeme]] = {}
        self._endless: set[tuple[tuple[int, ...], str]] = set()  # stacks and terminals at which Lark hangs
        self._bottom = self._stack((table.start_states[start],))
        self._endings: dict[str, None] = {}  # of long completions, in the order in which they were found
        self._pieces: dict[str, None] = {}  # what stood before these endings
        self.accepted: set[str] = set()
        self.viable: set[bytes] = set()
        self.extend(longest)

    def extend(self, longest: int) -> None:
        """Goes on to texts of up to `longest` letters."""
        new = {text for text in self.texts(longest) if len(text) > self.longest and self.accepts(text)}
        self.accepted |= new
        self.longest = longest
        for text in new:
            self._remember(text.encode())

    def _remember(self, text: bytes) -> None:
        """Adds the prefixes of an accepted text, from the longest down to one that is known."""
        for end in range(len(text), -1, -1):
            if text[:end] in self.viable:
                break
            self.viable.add(text[:end])

    def texts(self, longest: int) -> Iterator[str]:
        """All texts of up to `longest` letters, the short ones first."""
        for length in range(longest + 1):
            yield from map("".join, product(self.alphabet, repeat=length))

    def accepts(self, text: str) -> bool:
        """Whether Lark parses `text`."""
        return self._takes(self._bottom, "", text)

    def parses(self, text: str) -> bool:
        """The same, by `lark.Lark.parse`."""
        try:
            self.lark.parse(text)
        except LarkError:
            return False
        return True

    def check(self, texts: Iterable[str]) -> list[str]:
        """The texts about which Lark itself says something else; must be empty. Where it hangs it says
        nothing.
        """
        judged = (text for text in texts if self.hangs_behind(text) is None)
        return [text for text in judged if self.accepts(text) != self.parses(text)]

    def hangs_behind(self, text: str) -> str | None:
        """The text in front of the lexeme at which Lark's parser comes to no end; None: it does not hang."""
        stack, place, end = self._bottom, 0, False
        while not end and self._endless:
            left, end = text[max(0, place - self._left) : place], place == len(text)
            lexeme = ("$END", 0) if end else self._lexeme_in_front(stack, left, text[place:])
            above = None if lexeme is None else self._above(stack, lexeme)
            if lexeme is None or above is None:
                return text[:place] if lexeme and (stack.states, lexeme[0]) in self._endless else None
            stack, place = above, place + lexeme[1]
        return None

    def hangs(self, longest: int) -> bool:
        """Whether Lark's parser hangs behind a viable text, found by some text of up to `longest` letters."""
        found = {text for text in map(self.hangs_behind, self.texts(longest)) if text is not None}
        return any(self.completes(text.encode()) for text in sorted(found, key=len))

    def completes(self, prefix: bytes, outlooks: int = MOST_OUTLOOKS) -> bool:
        """Whether some accepted text begins with `prefix`; False: none was found.

        Tries all short completions, then what completed other texts, once and twice over (ask about short
        texts first), and then searches. That is no proof, but what is found, Lark parses.
        """
        parts = split_utf8(prefix)
        if prefix in self.viable or parts is None:
            return prefix in self.viable
        text, unfinished = parts
        begins = [letter for letter in self.alphabet if letter.encode().startswith(unfinished)]
        begins = [text + letter for letter in begins] if unfinished else [text]
        found = next(filter(self.accepts, self._candidates(begins, outlooks)), None)
        if found is not None:
            assert self.parses(found), found
            self._remember(found.encode())
            begin = next(filter(found.startswith, begins))
            for place in range(len(begin) + 1, min(len(found), len(begin) + 20)):
                self._pieces[found[len(begin) : place]] = None
                self._endings[found[place - 1 :]] = None
        return found is not None

    def _candidates(self, begins: list[str], outlooks: int) -> Iterator[str]:
        """Longer texts, the most promising ones first."""
        endings, pieces = list(self._endings)[:KNOWN], list(self._pieces)[:KNOWN]
        longer = (piece + ending for piece in pieces for ending in endings)
        rests = chain(self.texts(SHORT), endings, longer)
        yield from (begin + rest for rest in rests for begin in begins)
        for height, window in SEARCHES:
            yield from islice(self._search(begins, height, window), outlooks)

    def _search(self, begins: list[str], height: int, window: int) -> Iterator[str]:
        """Goes on step by step, unless Lark stumbles more than `window` letters back; few steps first.

        One more state on the stack counts as `height` steps. Texts that leave the same stack and end alike
        are tried once.
        """
        steps, seen = self._steps(), set()
        waiting = [(0, 0, begin) for begin in begins]
        while waiting:
            _, taken, text = heappop(waiting)
            yield text
            for longer in (text + step for step in steps):
                outlook = self._outlook(longer, window)
                if outlook is not None and outlook not in seen and len(longer) < LONG:
                    seen.add(outlook)
                    heappush(waiting, (taken + height * len(outlook[0].states), taken + 1, longer))

    def _steps(self) -> list[str]:
        """The letters, and two of the shortest lexemes of each terminal."""
        lexemes: dict[str | None, set[str]] = {}
        for known in self._lexemes.values():
            for (_, rest), lexeme in known.items():
                if lexeme is not None:
                    lexemes.setdefault(lexeme[0], set()).add(rest[: lexeme[1]])
        shortest = [sorted(texts, key=lambda text: (len(text), text))[:2] for texts in lexemes.values()]
        return sorted({*self.alphabet, *chain(*shortest)})

    def _outlook(self, text: str, window: int) -> tuple[_Stack, str, str] | None:
        """The stack before the last few letters, what is seen left of them, and they; None at an error."""
        stack, place = self._bottom, 0
        while place + window < len(text):
            left = text[max(0, place - self._left) : place]
            lexeme = self._lexeme_in_front(stack, left, text[place:])
            if lexeme is None or (above := self._above(stack, lexeme)) is None:
                return None
            if place + lexeme[1] + window > len(text):
                break
            stack, place = above, place + lexeme[1]
        rest = text[place:]
        if len(rest) > window + 2:  # a long lexeme: its middle does not matter
            rest = f"{rest[:2]}…{rest[-window:]}"
        return stack, text[max(0, place - self._left) : place], rest

    def _stack(self, states: tuple[int, ...]) -> _Stack:
        if states not in self._stacks:
            lexer: Any = self.lark.parser.lexer
            lexer = lexer.lexers[states[-1]] if isinstance(lexer, ContextualLexer) else lexer
            lexemes = self._lexemes.setdefault(id(lexer), {})
            self._stacks[states] = _Stack(states, lexer, lexemes)
        return self._stacks[states]

    def _takes(self, stack: _Stack, left: str, rest: str) -> bool:
        """Whether Lark, with this stack and behind `left`, reads `rest` to its end."""
        way, verdict = [], None
        while verdict is None:
            verdict = stack.verdicts.get((left, rest))
            if verdict is None:
                way.append((stack, left, rest))
                if not rest:
                    verdict = self._shifted(stack, "$END") is not None
                elif (lexeme := self._lexeme_in_front(stack, left, rest)) is None:
                    verdict = False
                elif (above := self._above(stack, lexeme)) is None:
                    verdict = False
                else:
                    left = (left + rest[: lexeme[1]])[-self._left :] if self._left else ""
                    stack, rest = above, rest[lexeme[1] :]
        for stack, left, rest in way:
            stack.verdicts[left, rest] = verdict
        return verdict

    def _lexeme_in_front(self, stack: _Stack, left: str, rest: str) -> Lexeme:
        if (left, rest) not in stack.lexemes:
            stack.lexemes[left, rest] = self._lexeme(stack.lexer, left, rest)
        return stack.lexemes[left, rest]

    def _above(self, stack: _Stack, lexeme: tuple[str | None, int]) -> _Stack | None:
        """The stack behind a lexeme; None: it is an error."""
        return stack if lexeme[0] is None else self._shifted(stack, lexeme[0])

    def _lexeme(self, lexer: Any, left: str, rest: str) -> Lexeme:
        """As `lark.lexer.BasicLexer.next_token` finds it."""
        text = left + rest
        found = next(filter(None, (regex.match(text, len(left)) for regex in lexer.scanner._mres)), None)
        if found is None:
            return None
        value, name = found[0], found.lastgroup
        if name in lexer.ignore_types:
            return None, len(value)
        if name in lexer.callback:
            name = lexer.callback[name](Token(name, value)).type
        return name, len(value)

    def _shifted(self, stack: _Stack, name: str) -> _Stack | None:
        if name not in stack.pushed:
            states = self._pushed(stack.states, name)
            stack.pushed[name] = None if states is None else self._stack(states)
        return stack.pushed[name]

    def _pushed(self, stack: tuple[int, ...], name: str) -> tuple[int, ...] | None:
        """As `lark.parsers.lalr_parser_state.ParserState.feed_token` does it; None: it is an error."""
        before = stack
        for _ in range(MOST_STEPS):
            if (step := self._states[stack[-1]].get(name)) is None:
                return None
            action, argument = step
            if action is Shift:
                return (*stack, argument)
            stack = stack[: len(stack) - len(argument.expansion)]
            stack += (self._states[stack[-1]][argument.origin.name][1],)
            if name == "$END" and stack[-1] == self._end:
                return stack
        self._endless.add((before, name))
        return None
