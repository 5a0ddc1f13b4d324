"""The leftmost-first deterministic automaton of one pattern.

`compile_pattern` determinises *ordered lists* of threads (the construction of RE2 and of Rust's
regex-automata): when a thread matches, the threads behind it are dropped, those in front of it go on,
and if one of them matches later, that later match is the one that a backtracking matcher reports. So a
text's match is the last one that the automaton reaches.

A thread also carries a formula, its open lookarounds; reading a byte takes the formula's derivative,
and a thread whose formula is false is gone. A thread that matches under a formula leaves the threads
behind it alive, under the formula's negation.
"""

from __future__ import annotations

import functools

import numpy as np

from jaxgcd._budget import Budget, shortened
from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing import regex
from jaxgcd.lexing.charset import ALL, COMPLETE, char_automaton
from jaxgcd.lexing.determinise import Determiniser
from jaxgcd.lexing.formula import FALSE, TRUE, Automaton, Formulas
from jaxgcd.lexing.left import Tracker, constant, track
from jaxgcd.lexing.minimise import joint_classes, minimise

__all__ = ["Automaton", "Patterns", "compile_pattern", "existence"]


class Patterns:
    """The automata of a grammar's regexes, each made once.

    Args:
        budget: what may be used up.

    Attributes:
        budget: the same.
        formulas: where the automata are registered.
        names: what messages call terminals, by their regexes.
    """

    def __init__(self, budget: Budget | None = None):
        self.budget = budget or Budget()
        self.formulas = Formulas(self.budget)
        self.names: dict[str, str] = {}
        self._trackers: dict[str, Tracker] = {}

    def name(self, pattern: str) -> str:
        """What messages call the terminal with a regex."""
        return self.names.get(pattern) or shortened(f"/{pattern}/")

    def tracker(self, pattern: str) -> Tracker:
        """See `compile_pattern`."""
        if pattern not in self._trackers:
            self.budget.step()
            self._trackers[pattern] = compile_pattern(
                self.formulas, pattern, self.name(pattern), budget=self.budget
            )
        return self._trackers[pattern]

    def matches_whole(self, pattern: str, text: str) -> bool:
        """Whether `re.match(pattern, text)` finds a match that is the whole text."""
        automaton, state = self.formulas.automata[self.tracker(pattern).alone[0]], 1
        for byte in text.encode(errors="surrogatepass"):
            state = automaton.step(state, byte)
        return self.formulas.at_end(automaton.accept[state])


def compile_pattern(formulas: Formulas, pattern: str, name: str, *, budget: Budget | None = None) -> Tracker:
    """Registers the minimal leftmost-first automata of a Python regex, one for each left-context class.

    After the bytes `x` from the start of a lexeme, `accept[state]` says whether `x` is what
    `re.compile(pattern).match(text, start)` matches, provided that no longer match is reached later in the
    text: `FALSE`, `TRUE`, or a formula about the text after `x`.

    Args:
        formulas: where the automaton, and those of its lookarounds, are registered.
        pattern: the regex, for text (`str`), without flags other than its inline ones.
        name: the terminal, for error messages.
        budget: what may be used up.

    Returns:
        The tracker of the text on the left; it holds indices of `formulas.automata`, one for each state.
        Patterns with equal automata share them.

    Raises:
        UnsupportedRegexError: the pattern is not regular.
        GrammarTooLarge: a limit was exceeded.
    """
    budget = budget or Budget()
    budget.work = f"terminal {name}"
    try:
        tree, advice = regex.read(pattern, name), regex.advice(pattern)
        text = regex.literal(tree)
        if text and len(text) <= budget.limits.regex_nodes:
            return constant(formulas.register(_chain(text)))
        nfa = regex.build(tree, name, advice, budget)
        determiniser = Determiniser(nfa, formulas, name, advice, budget)
        automaton_id = determiniser.automaton(nfa.start, None, ordered=True)
        if determiniser.contexts.asked_left:
            return track(determiniser, functools.partial(_settle, formulas))
    except RecursionError:
        message = f"terminal {name}: its regex is nested too deeply; split the terminal"
        raise GrammarTooLarge(message) from None
    return constant(_settle(formulas, automaton_id))


def _chain(text: bytes) -> Automaton:
    """The minimal automaton of one text, which `minimise` would make as well."""
    told_apart = np.zeros(256, np.int64)
    told_apart[list(text)] = 1 + np.array(list(text))
    classes, firsts = joint_classes([told_apart])
    trans = np.zeros((len(text) + 2, len(firsts)), np.int32)
    trans[np.arange(1, len(text) + 1), classes[list(text)]] = np.arange(2, len(text) + 2)
    accept = [FALSE] * (len(text) + 1) + [TRUE]
    return Automaton(classes.astype(np.uint8), trans, accept, np.asarray(trans.any(axis=1)))


def _reachable(formulas: Formulas, automaton_id: int) -> list[tuple[int, int]]:
    """The pairs (automaton, state) that decide what an automaton matches, directly or through atoms."""
    todo = [(automaton_id, 1)]
    seen = set(todo)
    for place, state in todo:
        automaton = formulas.automata[place]
        found = [(place, after) for after in dict.fromkeys(automaton.trans[state].tolist())]
        found += formulas.atoms(automaton.accept[state])
        todo += [item for item in found if item not in seen]
        seen.update(found)
    return todo


def _settle(formulas: Formulas, automaton_id: int) -> int:
    """Makes constants of formulas that decide nothing, because a later match counts anyway.

    So `\\w+\\b` gets the automaton of `\\w+`.
    """
    automaton = formulas.automata[automaton_id]
    accept = list(automaton.accept)
    undecided = sum(formula > TRUE for formula in accept)
    if not undecided:
        return automaton_id
    alphabet, limit = _alphabet(formulas, automaton_id), 20000 // (1 + undecided)
    for state, formula in enumerate(accept):
        if formula > TRUE:
            later = formulas.atom(automaton_id, state)
            if _always(formulas, formulas.either(later, formula), alphabet, limit):
                accept[state] = TRUE
            elif _always(formulas, formulas.either(later, formulas.negate(formula)), alphabet, limit):
                accept[state] = FALSE
    if accept == automaton.accept:
        return automaton_id
    return formulas.register(minimise(automaton.classes, automaton.trans, accept))


def _alphabet(formulas: Formulas, automaton_id: int) -> list[list[tuple[int, int]]]:
    """What may come next in well-formed UTF-8: pairs (byte, state) for each state of `char_automaton(ALL)`.

    One byte stands for all that neither it nor the automata that decide a match tell apart.
    """
    edges = char_automaton(ALL).edges
    cuts = {low for row in edges for low, _, _ in row}
    places = dict.fromkeys(place for place, _ in _reachable(formulas, automaton_id))
    classes = np.stack([formulas.automata[place].classes for place in places])
    cuts.update(np.flatnonzero((classes[:, 1:] != classes[:, :-1]).any(axis=0)) + 1)
    return [
        [(int(b), to) for low, high, to in row for b in sorted(cuts) if low <= b <= high] for row in edges
    ]


def _always(
    formulas: Formulas, formula: int, alphabet: list[list[tuple[int, int]]], limit: int = 2000
) -> bool:
    """Whether `formula` holds of every text; `False` as well if more than `limit` derivatives do not tell."""
    start = char_automaton(ALL).start
    todo = [(formula, start)]
    seen = set(todo)
    for now, inside in todo:
        if len(seen) > limit or (inside == start and not formulas.at_end(now)):
            return False
        for byte, after in alphabet[inside]:
            found = (formulas.derivative(now, byte), start if after == COMPLETE else after)
            if found[0] != TRUE and found not in seen:
                seen.add(found)
                todo.append(found)
    return True


def existence(formulas: Formulas, automaton_id: int) -> int:
    """Registers the automaton of "at least one byte was read, and there was a match since".

    An atom over its start means the same as one over the start of `automaton_id`, but far fewer of its
    states differ: all that comes after a certain match is one accepting state.
    """
    automaton = formulas.automata[automaton_id]
    certain = np.array(automaton.accept) == TRUE
    matched = len(certain)
    trans = np.where(certain[automaton.trans], matched, automaton.trans)
    trans = np.vstack([trans, np.full_like(trans[:1], matched)]).astype(np.int32)
    accept = [FALSE if formula == TRUE else formula for formula in automaton.accept]
    return formulas.register(minimise(automaton.classes, trans, [*accept, TRUE]))
