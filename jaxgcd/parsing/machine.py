"""The LALR(1) machine on a stack of which only the top is known.

`feed` runs "reduce, reduce, shift" for one terminal on the known states. Where a reduction pops more than is
known, the answer is a `Pop`: how many unknown states to skip and which nonterminal to go to from the one
then revealed. Everything that is precomputed about stacks is built from this one function.
"""

from __future__ import annotations

from typing import NamedTuple

from jaxgcd.errors import GrammarError
from jaxgcd.parsing.table import ParseTable


class Pop(NamedTuple):
    """Skip `skip` unknown states, reveal the next one and go from it to `nonterminal`."""

    skip: int
    nonterminal: int


Known = tuple[int, ...]
"""Known parser states at the top of a stack, the top last."""


class Machine:
    """Lark's LALR(1) machine over partially known stacks; answers are memoised."""

    def __init__(self, table: ParseTable):
        self.table = table
        self._memo: dict[tuple[Known, int], tuple[Known | Pop | None, int]] = {}
        # More known states than this come from empty reductions that repeat a state: they never end.
        self._longest = table.n_states + max((rule.size for rule in table.rules), default=0) + 2

    def feed(self, known: Known, terminal: int) -> Known | Pop | None:
        """The known states after shifting `terminal`; or a `Pop` that needs the stack below; or None, an
        error.

        Raises:
            GrammarError: the reductions never end (Lark itself would hang).
        """
        return self._cached(known, terminal)[0]

    def peak(self, known: Known, terminal: int) -> int:
        """The most known states there are at any time during `feed(known, terminal)`."""
        return self._cached(known, terminal)[1]

    def _cached(self, known: Known, terminal: int) -> tuple[Known | Pop | None, int]:
        key = (known, terminal)
        if key not in self._memo:
            self._memo[key] = self._run(known, terminal)
        return self._memo[key]

    def _run(self, known: Known, terminal: int) -> tuple[Known | Pop | None, int]:
        table, seen, bottom = self.table, set(), len(known)
        peak = bottom
        while True:
            action = table.action[known[-1]].get(terminal, 0)
            if action == 0:
                return None, peak
            if action > 0:
                return (*known, action), max(peak, len(known) + 1)
            rule = table.rules[-action - 1]
            if rule.size >= len(known):
                return Pop(rule.size - len(known), rule.origin), peak
            known = known[: len(known) - rule.size]
            target = table.goto[known[-1]].get(rule.origin)
            if target is None:  # these known states do not occur on a stack
                return None, peak
            known = (*known, target)
            peak = max(peak, len(known))
            if known in seen or len(known) > bottom + self._longest:
                raise GrammarError(
                    f"The reductions by rule `{rule.text}` before terminal {table.terminals[terminal]} never "
                    "end (a cycle of rules, resolved by priority); Lark would hang there. Remove the cycle."
                )
            seen.add(known)


def predecessors(table: ParseTable) -> list[tuple[int, ...]]:
    """For each parser state, the states that may lie directly below it on a stack."""
    below: list[set[int]] = [set() for _ in table.action]
    for state, (actions, gotos) in enumerate(zip(table.action, table.goto, strict=True)):
        for target in (*(a for a in actions.values() if a > 0), *gotos.values()):
            below[target].add(state)
    return [tuple(sorted(states)) for states in below]


def shift_targets(table: ParseTable) -> list[tuple[int, ...]]:
    """For each terminal, the states that shifting it can lead to."""
    targets: list[set[int]] = [set() for _ in table.terminals]
    for actions in table.action:
        for terminal, action in actions.items():
            if action > 0:
                targets[terminal].add(action)
    return [tuple(sorted(states)) for states in targets]


def step_slack(machine: Machine, terminals: list[int]) -> int:
    """How far a stack may grow above its height, at most, while one terminal is stepped on it.

    Runs every step that can occur: from each state for each of `terminals`, and from each state that a
    reduction can reveal. Finds reductions that never end, too.

    Raises:
        GrammarError: some reductions never end.
    """
    table, slack = machine.table, 1
    todo: list[tuple[Known, int]] = []
    done: set[tuple[int, int]] = set()
    for state in range(1, table.n_states):
        todo += [((state,), terminal) for terminal in terminals if terminal in table.action[state]]
    while todo:
        known, terminal = todo.pop()
        result = machine.feed(known, terminal)
        slack = max(slack, machine.peak(known, terminal) - 1)
        if isinstance(result, Pop) and (result.nonterminal, terminal) not in done:
            done.add((result.nonterminal, terminal))
            for state in range(1, table.n_states):
                target = table.goto[state].get(result.nonterminal)
                if target is not None:
                    todo.append(((state, target), terminal))
    return slack
