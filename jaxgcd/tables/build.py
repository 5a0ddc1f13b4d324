"""From a grammar that Lark has read to `Compiled`: lexer, viability, spanner and the start of the walk."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence

from jaxgcd._budget import Budget
from jaxgcd.errors import GrammarError
from jaxgcd.grammar import Grammar
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.lexing.boundaries import Boundaries, boundary_classes
from jaxgcd.lexing.graph import LexerGraph, build_graph
from jaxgcd.lexing.runs import Context, max_runs
from jaxgcd.lexing.scanner import IGNORED, build_scanners
from jaxgcd.parsing.live import live_table
from jaxgcd.parsing.machine import EndlessReductions, Machine, predecessors, shift_targets, step_slack
from jaxgcd.parsing.table import START_STATE, ParseTable, written_name
from jaxgcd.parsing.viability import DEAD, TooMany, Viability
from jaxgcd.tables.accept import Acceptance
from jaxgcd.tables.compiled import Compiled
from jaxgcd.tables.slots import Slots
from jaxgcd.tables.spanner import build_spanner
from jaxgcd.tables.tops import Tops
from jaxgcd.tables.walk import Walk
from jaxgcd.vocabulary import Vocabulary


def build(loaded: Grammar, vocabulary: Vocabulary, patterns: Patterns) -> Compiled:
    """Everything between reading the grammar and packing.

    Args:
        loaded: the grammar.
        vocabulary: the tokens.
        patterns: the automata of regexes, as far as reading has made them, and the budget.

    Raises:
        GrammarError: the language is empty, or Lark would hang.
        UnsupportedRegexError: a terminal's regex is not regular or not supported.
        GrammarTooLarge: a limit was exceeded.
    """
    table, budget = loaded.table, patterns.budget
    after = _contexts(table, loaded.scanner_of)
    with budget.stage("lexer"):
        graph = _lexer(loaded, vocabulary, patterns, after)
        boundaries = boundary_classes(graph, budget)
    with budget.stage("viability"):
        budget.work = f"the parser's stacks (rule {_widest_rule(table)} occurs in the most states)"
        machine = Machine(table, budget)
        viability = Viability(machine, boundaries, loaded.scanner_of)
        slack = _slack(machine, boundaries)
        if viability.verdict(START_STATE, boundaries.initial) == DEAD:
            raise GrammarError(_empty_language(table, boundaries, slack))
        live = _live(loaded, viability, slack, budget) if isinstance(slack, EndlessReductions) else loaded
        first = _context(table, loaded.scanner_of, START_STATE)
        runs = max_runs(graph, first, after, loaded.called(), budget)
    if isinstance(slack, EndlessReductions):
        return build(live, vocabulary, patterns)
    with budget.stage("spanner"):
        budget.work = f"terminal {loaded.called()[_widest_terminal(graph)]}"
        ends = _ends(viability, boundaries)
        spanner = build_spanner(graph, ends, vocabulary, _may_follow(loaded, after), budget)
    with budget.stage("slots"):
        budget.work = f"the stack walk (rule {_widest_rule(table)} occurs in the most states)"
        slots = Slots(graph, spanner, vocabulary.size)
        tops = Tops(table, graph, loaded.scanner_of, slots.of_state)
        acceptance = Acceptance(machine, viability, spanner.classes, loaded.scanner_of, runs)
        walk = Walk(acceptance, slots.groups, predecessors(table), budget)
    compiled = Compiled(
        vocabulary,
        loaded,
        graph,
        boundaries,
        machine,
        viability,
        spanner,
        acceptance,
        walk,
        slots,
        tops,
        runs,
        slack,
    )
    if not compiled.begins():
        raise GrammarError(_cannot_begin(compiled))
    return compiled


def _lexer(
    loaded: Grammar, vocabulary: Vocabulary, patterns: Patterns, after: Sequence[frozenset[Context]]
) -> LexerGraph:
    table = loaded.table
    labels = {name: number for number, name in enumerate(table.terminals) if name}
    scanners = build_scanners(patterns, loaded.scanners, labels)
    return build_graph(
        patterns.formulas,
        scanners,
        loaded.scanner_of[START_STATE],
        [frozenset(context.scanner for context in contexts) for contexts in after],
        table.end,
        vocabulary.all_bytes,
        loaded.called(),
        patterns.budget,
    )


def _ends(viability: Viability, boundaries: Boundaries) -> dict[int, int | None]:
    """The boundary class that stands for each lexer state at a boundary, or None where no text can go on."""
    merged = viability.merged()
    return {state: merged[boundary] for state, boundary in boundaries.of.items()}


def _may_follow(loaded: Grammar, after: Sequence[frozenset[Context]]) -> dict[int, dict[int, frozenset[int]]]:
    """For each terminal and scanner the terminals that some parser state takes right after it."""
    table = loaded.table
    may_follow = {terminal: _takes(contexts) for terminal, contexts in enumerate(after)}
    states = range(START_STATE, table.n_states)
    may_follow[IGNORED] = _takes({_context(table, loaded.scanner_of, state) for state in states})
    return may_follow


def _context(table: ParseTable, scanner_of: Sequence[int], state: int) -> Context:
    return Context(scanner_of[state], frozenset(table.action[state]))


def _contexts(table: ParseTable, scanner_of: Sequence[int]) -> list[frozenset[Context]]:
    """For each terminal the contexts that shifting it may lead to."""
    return [
        frozenset(_context(table, scanner_of, state) for state in targets) for targets in shift_targets(table)
    ]


def _takes(contexts: Iterable[Context]) -> dict[int, frozenset[int]]:
    """For each scanner the terminals that a parser state with it takes, among some contexts."""
    takes: dict[int, frozenset[int]] = {}
    for scanner, terminals in contexts:
        takes[scanner] = takes.get(scanner, frozenset()) | terminals
    return takes


def _widest_rule(table: ParseTable) -> str:
    """The rule that the most parser states wait for, as the user wrote it."""
    states = Counter(nonterminal for gotos in table.goto for nonterminal in gotos)
    if not states:
        return "start"
    return f"`{written_name(table.nonterminals[states.most_common(1)[0][0]])}`"


def _widest_terminal(graph: LexerGraph) -> int:
    """The terminal that can end next in the most lexer states."""
    states = Counter(terminal for exits in graph.exits for terminal in {t for t, _ in exits})
    return max((count, terminal) for terminal, count in states.items() if terminal >= 0)[1]


def _cannot_begin(compiled: Compiled) -> str:
    return (
        "No text that the vocabulary can spell is in the language of this grammar: no token begins one, and "
        "the empty text is not in it.\n" + "\n".join(compiled.reasons())
    )


def _slack(machine: Machine, boundaries: Boundaries) -> int | EndlessReductions:
    try:
        return step_slack(machine, sorted(_emitted(boundaries)))
    except EndlessReductions as error:
        return error


def _live(loaded: Grammar, viability: Viability, endless: EndlessReductions, budget: Budget) -> Grammar:
    """The grammar without the actions that no viable text comes to, some of which never end."""
    table = loaded.table
    try:
        table = live_table(table, viability.stacks(), budget) if viability.complete else table
    except TooMany:
        pass
    except EndlessReductions as error:
        endless = error
    if table == loaded.table:
        raise GrammarError(str(endless))
    return dataclasses.replace(loaded, table=table)


def _emitted(boundaries: Boundaries) -> set[int]:
    return {t for exits in boundaries.exits for t, _ in exits}


def _empty_language(table: ParseTable, boundaries: Boundaries, slack: int | EndlessReductions) -> str:
    used = {t for actions in table.action for t in actions}
    never = sorted(table.terminals[t] for t in used - _emitted(boundaries))
    text = "No text that the vocabulary can spell is in the language of this grammar."
    if never:
        text += f" The scanner never emits {', '.join(never)}: another one matches first, or nothing does."
    if isinstance(slack, EndlessReductions):
        text += f" {slack}"
    return text + " Check with `lark.Lark(...).parse` on a text that you expect to be valid."
