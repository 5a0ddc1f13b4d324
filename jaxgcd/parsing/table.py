"""Lark's LALR(1) table as plain dictionaries, renumbered so that it does not depend on the hash seed.

Lark resolves shift/reduce conflicts by shifting and reduce/reduce conflicts by priority; what it decided is
taken as it stands. Numbers: parser state 0 is unused, 1 is the start state, the last one is `accept`, an
artificial state that `$END` is shifted into where Lark would return the finished tree.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from dataclasses import dataclass

import lark
from lark.parsers.lalr_analysis import Shift

from jaxgcd._budget import Budget

END = "$END"
START_STATE = 1


@dataclass(frozen=True)
class Rule:
    """A production: `size` symbols are popped, then `goto` is taken on nonterminal `origin`."""

    origin: int
    size: int
    text: str


@dataclass(frozen=True)
class ParseTable:
    """LALR(1) actions.

    `action[s][t]`: `> 0` shift to that state, `< 0` reduce by `rules[-action - 1]`; a missing key is an
    error. `goto[s][n]`: the state after nonterminal `n`. Terminals are numbered from 1 in the order of
    `terminals` (index 0 is unused), nonterminals from 0.
    """

    terminals: tuple[str, ...]
    nonterminals: tuple[str, ...]
    rules: tuple[Rule, ...]
    action: tuple[dict[int, int], ...]
    goto: tuple[dict[int, int], ...]
    accept: int

    @property
    def n_states(self) -> int:
        """Number of parser states, with the unused state 0 and the artificial accepting one."""
        return len(self.action)

    @property
    def end(self) -> int:
        """The terminal `$END`."""
        return self.terminals.index(END)


def parse_table_from_lark(parser: lark.Lark, start: str, budget: Budget) -> tuple[ParseTable, list]:
    """Extracts the table of a `lark.Lark(parser="lalr")` object, and Lark's numbers of states 1, 2, ..."""
    table = parser.parser.parser._parse_table
    states, end_state = table.states, table.end_states[start]
    _check(states, budget)
    states = {state: sorted(actions.items()) for state, actions in states.items()}
    order = _breadth_first(states, table.start_states[start])
    number = {state: i + START_STATE for i, state in enumerate(order)}
    rules = sorted(
        {arg for state in order for _, (kind, arg) in states[state] if kind is not Shift}, key=_rule_key
    )
    rule_number = {rule: i for i, rule in enumerate(rules)}
    names = sorted({name for state in order for name, _ in states[state]} | {END})
    # A rule that no action reduces by may have a goto all the same.
    origins = {rule.origin.name for rule in [*rules, *parser.rules]}
    nonterminals = tuple(name for name in names if name in origins)
    nonterminal_number = {name: i for i, name in enumerate(nonterminals)}
    terminals = ("", *(name for name in names if name not in nonterminal_number))
    terminal_number = {name: i for i, name in enumerate(terminals)}

    action: list[dict[int, int]] = [{}]
    goto: list[dict[int, int]] = [{}]
    for state in order:
        budget.step(0)
        actions, gotos = {}, {}
        for name, (kind, arg) in states[state]:
            if name in nonterminal_number:
                gotos[nonterminal_number[name]] = number[arg]
            else:
                actions[terminal_number[name]] = number[arg] if kind is Shift else -1 - rule_number[arg]
        action.append(actions)
        goto.append(gotos)
    accept = len(action)
    action[number[end_state]][terminal_number[END]] = accept
    action.append({})
    goto.append({})
    read = ParseTable(
        terminals,
        nonterminals,
        tuple(Rule(nonterminal_number[r.origin.name], len(r.expansion), _rule_text(r)) for r in rules),
        tuple(action),
        tuple(goto),
        accept,
    )
    return read, order


def written_name(nonterminal: str) -> str:
    """The rule that the user wrote: Lark makes rules of its own for parts of it."""
    made = re.fullmatch(r"__(.+)_(?:star|plus|repeat_\w+)_\d+", nonterminal)
    return made[1] if made else nonterminal


def _check(states, budget: Budget) -> None:
    """Bounds memory."""
    if sum(map(len, states.values())) > budget.limits.parser_actions:
        used = Counter(name for actions in states.values() for name in actions)
        name = written_name(used.most_common(1)[0][0])
        subject = f"`{name}` occurs in the most parser states, which together have"
        remedy = "make one terminal of many words that are used alike"
        raise budget.exceeded("parser_actions", subject, "actions", remedy)


def _breadth_first(states, start) -> list:
    order, seen, queue = [], {start}, deque([start])
    while queue:
        state = queue.popleft()
        order.append(state)
        for _, (kind, target) in states[state]:
            if kind is Shift and target not in seen:
                seen.add(target)
                queue.append(target)
    return order


def _rule_key(rule):
    return (rule.origin.name, [symbol.name for symbol in rule.expansion], rule.order)


def _rule_text(rule) -> str:
    return f"{rule.origin.name}: {' '.join(symbol.name for symbol in rule.expansion)}".rstrip(": ")
