"""The texts of a regex, without preference or assertions: where guesses at lexemes come from."""

import re
from collections.abc import Sequence
from re import _constants as sre  # pyright: ignore[reportAttributeAccessIssue]
from re import _parser as sre_parser  # pyright: ignore[reportAttributeAccessIssue]

SAMPLES = "a0 \n1xX_-.\"'/*\\,;:()[]{}=<>+beEtfn\tZ9é"
CATEGORIES = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
}


class Letters:
    """One character class of a regex: a test, and a few characters that pass it."""

    def __init__(self, op: int, argument: object, flags: int) -> None:
        self.op, self.argument, self.flags = op, argument, flags
        self.samples = [char for char in self._named() + SAMPLES if char in self][:4]

    def __contains__(self, char: str) -> bool:
        if not self.flags & re.I:
            return self._has(char)
        return any(self._has(form) for form in {char, *char.lower(), *char.upper(), *char.upper().lower()})

    def _has(self, char: str) -> bool:
        code = ord(char)
        if self.op is sre.ANY:
            return bool(self.flags & re.S) or char != "\n"
        if self.op is sre.LITERAL:
            return code == self.argument
        if self.op is sre.NOT_LITERAL:
            return code != self.argument
        return self._in_set(char, code)

    def _in_set(self, char: str, code: int) -> bool:
        negated, found = False, False
        for op, argument in self.argument:  # pyright: ignore[reportGeneralTypeIssues]
            negated |= op is sre.NEGATE
            found |= op is sre.LITERAL and code == argument
            found |= op is sre.RANGE and argument[0] <= code <= argument[1]
            found |= op is sre.CATEGORY and bool(re.match(CATEGORIES[argument], char))
        return found != negated

    def _named(self) -> str:
        """The characters that the class names itself."""
        if self.op is sre.LITERAL:
            return chr(self.argument)  # pyright: ignore[reportArgumentType]
        if self.op is not sre.IN:
            return ""
        items = list(self.argument)  # pyright: ignore[reportArgumentType]
        return "".join(
            chr(argument if op is sre.LITERAL else argument[0])
            for op, argument in items
            if op in (sre.LITERAL, sre.RANGE)
        )


class Pattern:
    """The texts of one regex as a set of states: no order of preference, assertions taken as true.

    So it knows every reading that `re` could have, and some that it has not.
    """

    def __init__(self, regexp: str) -> None:
        self.empty_moves: list[list[int]] = [[]]
        self.moves: list[list[tuple[Letters, int]]] = [[]]
        tree = sre_parser.parse(regexp)
        self.end = self._sequence(tree, tree.state.flags, 0)
        self.start = self._closure({0})
        self._steps: dict[tuple[frozenset[int], str], frozenset[int]] = {}

    def _new(self) -> int:
        self.empty_moves.append([])
        self.moves.append([])
        return len(self.moves) - 1

    def _sequence(self, tree: Sequence, flags: int, node: int) -> int:
        for op, argument in tree:
            node = self._item(op, argument, flags, node)
        return node

    def _item(self, op: int, argument, flags: int, node: int) -> int:
        if op in (sre.LITERAL, sre.NOT_LITERAL, sre.IN, sre.ANY):
            self.moves[node].append((Letters(op, argument, flags), after := self._new()))
            return after
        if op is sre.SUBPATTERN:
            _, added, removed, body = argument
            return self._sequence(body, (flags | added) & ~removed, node)
        if op is sre.BRANCH:
            ends = [self._sequence(body, flags, node) for body in argument[1]]
            return self._join(ends)
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            return self._repeat(*argument, flags, node)
        if op is sre.ATOMIC_GROUP:
            return self._sequence(argument, flags, node)
        if op in (sre.ASSERT, sre.ASSERT_NOT, sre.AT):
            return node
        raise NotImplementedError(f"regex operation {op}")

    def _join(self, ends: Sequence[int]) -> int:
        after = self._new()
        for end in ends:
            self.empty_moves[end].append(after)
        return after

    def _repeat(self, low: int, high: int, body: Sequence, flags: int, node: int) -> int:
        for _ in range(low):
            node = self._sequence(body, flags, node)
        if high is sre.MAXREPEAT:
            loop = self._join([node])
            self.empty_moves[self._sequence(body, flags, loop)].append(loop)
            return self._join([loop])
        ends = [node]
        for _ in range(high - low):
            ends.append(self._sequence(body, flags, ends[-1]))
        return self._join(ends)

    def _closure(self, nodes: set[int]) -> frozenset[int]:
        seen, todo = set(nodes), list(nodes)
        while todo:
            for node in self.empty_moves[todo.pop()]:
                if node not in seen:
                    seen.add(node)
                    todo.append(node)
        return frozenset(seen)

    def step(self, state: frozenset[int], char: str) -> frozenset[int]:
        """The state one character later; the empty set is dead."""
        key = (state, char)
        if key not in self._steps:
            targets = {to for node in state for letters, to in self.moves[node] if char in letters}
            self._steps[key] = self._closure(targets)
        return self._steps[key]

    def read(self, text: str) -> frozenset[int]:
        """The state after `text`."""
        state = self.start
        for char in text:
            if not state:
                break
            state = self.step(state, char)
        return state

    def endings(self, state: frozenset[int], count: int, limit: int = 3000) -> list[str]:
        """Up to `count` short texts that lead from `state` to the end of the pattern, shortest first."""
        found, visits = [], {state: 1}
        level = [("", state)] if state else []
        while level and limit > 0 and len(found) < count:
            found += [text for text, at in level if self.end in at]
            following = []
            for text, at in level:
                for char in {
                    char: 0 for node in at for letters, _ in self.moves[node] for char in letters.samples
                }:
                    to, limit = self.step(at, char), limit - 1
                    if visits.get(to, 0) < 3:
                        visits[to] = visits.get(to, 0) + 1
                        following.append((text + char, to))
            level = following
        return found[:count]
