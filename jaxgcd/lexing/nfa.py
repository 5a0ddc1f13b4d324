"""The nondeterministic automaton of one pattern: ordered choices, characters, lookarounds."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

NOWHERE = 0
ACCEPT = 1


class Kind(IntEnum):
    """What a node does, and its argument."""

    NOWHERE = 0
    """No way on: ()."""
    ACCEPT = 1
    """The program has matched: ()."""
    CHAR = 2
    """Read the rest of one character: (CharAutomaton, its state, next node)."""
    SPLIT = 3
    """Try these nodes in order: the nodes."""
    ENTER = 4
    """Begin a repeat whose body may be empty: (repeat, next node)."""
    LOOP = 5
    """Iterate such a repeat again, or leave it: (repeat, lazy, body or `NOWHERE`, node after the repeat)."""
    LOOK = 6
    """Go on if a lookaround holds: (positive, program, index of the lookbehind or -1, next node)."""
    ATOMIC = 7
    """Match an atomic group, without coming back into it: (program, next node)."""
    INSIDE = 8
    """Be inside an atomic group: (its automaton, state, next node). Made while determinising."""


@dataclass(frozen=True)
class Lookbehind:
    """A lookbehind: `program` must match the `width` characters before this position."""

    program: int
    width: int
    source: str


@dataclass
class Nfa:
    """The nodes of one pattern; `kinds[n]` and `args[n]` describe node `n`, `start` enters the pattern.

    A *program* is a part that is matched on its own (the pattern, a lookaround, an atomic group). It is
    named by the node that enters it and ends in `ACCEPT`; `lookbehinds_of` says which lookbehinds occur
    in it, at any depth.
    """

    kinds: list[Kind] = field(default_factory=lambda: [Kind.NOWHERE, Kind.ACCEPT])
    args: list[tuple] = field(default_factory=lambda: [(), ()])
    lookbehinds: list[Lookbehind] = field(default_factory=list)
    lookbehinds_of: dict[int, frozenset[int]] = field(default_factory=dict)
    start: int = NOWHERE

    def add(self, kind: Kind, *args: Any) -> int:
        """A new node."""
        self.kinds.append(kind)
        self.args.append(args)
        return len(self.kinds) - 1
