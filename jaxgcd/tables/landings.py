"""Gotos that look ahead: the reductions of one symbol that follow a goto, folded into one look-up.

A grammar with many levels of precedence reduces a name to an atom, that to a factor, to a term, and so on.
Such a reduction replaces the state on top and looks at nothing but the one below, so where the whole chain
ends follows from the state below, the first nonterminal and the terminal that comes next.
"""

from __future__ import annotations

import numpy as np

from jaxgcd._budget import Budget
from jaxgcd._hashing import random_integers
from jaxgcd._numbering import numbered
from jaxgcd.parsing.table import ParseTable

_TOGETHER = 1 << 20
"""So many numbers are worked on together."""


def landings(table: ParseTable, action: np.ndarray, budget: Budget) -> tuple[np.ndarray, np.ndarray]:
    """The states that gotos lead to, once all reductions of one symbol that follow are done.

    Args:
        table: the parser's table.
        action: its actions, `int[states, terminals]`.
        budget: what may be used up.

    Returns:
        `goto`, `int32[states, nonterminals]`, the number of a landing or 0; and `landing`,
        `int32[landings, terminals]`, the state on top before each terminal. Landing 0 is empty.
    """
    target = np.zeros((table.n_states, len(table.nonterminals)), np.int32)
    for state, gotos in enumerate(table.goto):
        target[state, list(gotos)] = list(gotos.values())
    below, nonterminal = np.nonzero(target)
    origin = _origins(table, action)
    terminals = action.shape[1]
    random = random_integers(terminals)
    number: dict[int, int] = {0: 0}
    goto, found = np.zeros_like(target), [np.zeros((1, terminals), np.int32)]
    together = max(1, _TOGETHER // terminals)
    for at in range(0, len(below), together):
        some = slice(at, at + together)
        budget.step(0)
        rows = _landed(target, origin, below[some], nonterminal[some])
        keys, first, which = numbered((rows.astype(np.uint64) * random).sum(axis=1))
        new = [i for i, key in enumerate(keys.tolist()) if key not in number]
        budget.add_table(4 * terminals * len(new), "the states behind gotos")
        number.update(zip(keys[new].tolist(), range(len(number), len(number) + len(new)), strict=True))
        found.append(rows[first[new]])
        goto[below[some], nonterminal[some]] = np.array([number[key] for key in keys.tolist()])[which]
    return goto, np.concatenate(found)


def _origins(table: ParseTable, action: np.ndarray) -> np.ndarray:
    """1 + the nonterminal that a single symbol is reduced to, or 0 for any other action."""
    of_rule = np.array([1 + rule.origin if rule.size == 1 else 0 for rule in table.rules] or [0], np.int32)
    return np.where(action < 0, of_rule[np.maximum(-action - 1, 0)], 0)


def _landed(target: np.ndarray, origin: np.ndarray, below: np.ndarray, nonterminal: np.ndarray) -> np.ndarray:
    """The states on top before each terminal, `int32[gotos, terminals]`."""
    found = np.repeat(target[below, nonterminal][:, None], origin.shape[1], axis=1)
    goto, terminal = np.nonzero(origin[found, np.arange(origin.shape[1])])
    for _ in range(target.shape[1]):  # a longer chain would never end; where it stops does not matter
        state = target[below[goto], origin[found[goto, terminal], terminal] - 1]
        goes = state > 0
        goto, terminal, state = goto[goes], terminal[goes], state[goes]
        found[goto, terminal] = state
        more = origin[state, terminal] > 0
        goto, terminal = goto[more], terminal[more]
        if not len(goto):
            break
    return found
