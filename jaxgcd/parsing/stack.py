"""The reference machine: Lark's LALR(1) machine on a whole stack, one terminal at a time."""

from __future__ import annotations

from jaxgcd.parsing.table import ParseTable


def step(table: ParseTable, stack: tuple[int, ...], terminal: int) -> tuple[int, ...] | None:
    """The stack after "reduce, reduce, shift" for `terminal`, the top last; None for an error.

    `table` must have passed `jaxgcd.parsing.machine.step_slack`, which refuses reductions that never end.
    """
    states = list(stack)
    while (action := table.action[states[-1]].get(terminal, 0)) < 0:
        rule = table.rules[-action - 1]
        if rule.size:
            del states[-rule.size :]
        states.append(table.goto[states[-1]][rule.origin])
    return (*states, action) if action else None
