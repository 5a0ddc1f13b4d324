"""Left-context classes: what a lexeme's regex can see of the text before the lexeme.

Lark matches at a position of the whole text, so `(?<!a)b`, `\\bb` and `^b` see what earlier lexemes read,
ignored ones too. What they see is regular: the states of their lookbehinds (see `context`). A `Tracker`
runs along the text from its first byte; in each of its states a regex has one automaton, which no longer
asks about the left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd.lexing.determinise import Determiniser
from jaxgcd.lexing.minimise import joint_classes, minimise

TEXT_START = 1
"""The state of every tracker before any text."""


@dataclass(frozen=True, eq=False)
class Tracker:
    """An automaton over the bytes left of a lexeme; its states are the left-context classes of some regexes.

    Attributes:
        classes: `uint8[256]`, byte to byte class.
        trans: `int32[states, classes]`; state 0 is not used, `TEXT_START` is the state before any text.
        automata: for each state the automaton of each regex for a lexeme that begins there; `None` inside
            a character, where no lexeme begins.
        reach: after so many characters, whatever was on their left makes no difference any more.
    """

    classes: np.ndarray
    trans: np.ndarray
    automata: list[tuple[int, ...] | None]
    reach: int

    @property
    def asks(self) -> bool:
        """Whether the text on the left makes a difference."""
        return len(self.automata) > TEXT_START + 1

    @property
    def alone(self) -> tuple[int, ...]:
        """The automata for a lexeme with nothing on its left."""
        return self.automata[TEXT_START] or ()

    def read(self, text: bytes, state: int = TEXT_START) -> int:
        """The state after some more bytes."""
        for byte in text:
            state = int(self.trans[state, self.classes[byte]])
        return state


def constant(*automata: int) -> Tracker:
    """The tracker of regexes that do not look left."""
    return Tracker(np.zeros(256, np.uint8), np.array([[0], [TEXT_START]], np.int32), [None, automata], 0)


def track(determiniser: Determiniser, finish: Callable[[int], int]) -> Tracker:
    """The tracker of a regex: what its lookbehinds have seen since the start of the text.

    Args:
        determiniser: makes the automaton of the regex for each left context.
        finish: what is done to an automaton to make it final.
    """
    contexts, program = determiniser.contexts, determiniser.nfa.start
    found = [contexts.before_text(program)]
    number = {found[0]: TEXT_START}
    trans = [[0] * len(determiniser.firsts)]
    automata: list[tuple[int, ...] | None] = [None]
    for context in found:
        trans.append([])
        for symbol in range(len(determiniser.firsts)):
            after = contexts.after(context, symbol)
            if after not in number:
                found.append(after)
                number[after] = len(found)
            trans[-1].append(number[after])
        inside = contexts.inside_character(context)
        automata.append(None if inside else (finish(determiniser.automaton(program, context, ordered=True)),))
        determiniser.check(len(found), len(determiniser.firsts) * contexts.width(context))
    # A lookbehind inside another one looks left of where that one begins.
    reach = sum(lookbehind.width for lookbehind in determiniser.nfa.lookbehinds)
    return smallest(np.array(determiniser.classes, np.uint8), trans, automata, reach)


def joint(trackers: Sequence[Tracker], names: Sequence[str], budget: Budget) -> Tracker:
    """One tracker for the regexes of several.

    Args:
        trackers: those of some terminals.
        names: what messages call these.
        budget: what may be used up.

    Raises:
        GrammarTooLarge: it has too many states.
    """
    classes, firsts = joint_classes([tracker.classes for tracker in trackers])
    steps = [tracker.trans[:, tracker.classes[firsts]].tolist() for tracker in trackers]
    found = [(TEXT_START,) * len(trackers)]
    number = {found[0]: TEXT_START}
    trans = [[0] * len(firsts)]
    for states in found:
        rows = [step[state] for step, state in zip(steps, states, strict=True)]
        trans.append([])
        for symbol in range(len(firsts)):
            after = tuple(row[symbol] for row in rows)
            if after not in number:
                found.append(after)
                number[after] = len(found)
            trans[-1].append(number[after])
        budget.step(0)
        if len(found) > budget.limits.lexer_states:
            largest = max(range(len(trackers)), key=lambda i: len(trackers[i].automata))
            subject = f"terminal {names[largest]}: with others that look left, it tells apart"
            raise budget.exceeded("lexer_states", subject, "left contexts", "shorten their lookbehinds")
    reach = max((tracker.reach for tracker in trackers), default=0)
    return smallest(classes.astype(np.uint8), trans, [None, *(_automata(trackers, s) for s in found)], reach)


def _automata(trackers: Sequence[Tracker], states: tuple[int, ...]) -> tuple[int, ...] | None:
    parts = [tracker.automata[state] for tracker, state in zip(trackers, states, strict=True)]
    known = [part for part in parts if part is not None]
    return tuple(number for part in known for number in part) if len(known) == len(parts) else None


def smallest(
    classes: np.ndarray, trans: list[list[int]], automata: list[tuple[int, ...] | None], reach: int
) -> Tracker:
    """The minimal tracker that gives the same automata wherever a lexeme can begin."""
    distinct = list(dict.fromkeys([None, *automata]))
    if len(distinct) == 2:
        return constant(*(distinct[1] or ()))
    label = [distinct.index(found) for found in automata]
    minimal = minimise(classes, np.array(trans, np.int32), label)
    return Tracker(minimal.classes, minimal.trans, [distinct[found] for found in minimal.accept], reach)
