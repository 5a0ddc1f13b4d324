"""How many readings of one text can be alive at the same time.

A lexer that may have to come back to an earlier match keeps several readings. Their number is bounded by
walking the graph over sets of (lexer state, last terminal), with the parser approximated by which terminals
can directly follow which.
"""

from __future__ import annotations

from collections.abc import Sequence

from jaxgcd.errors import GrammarTooLarge
from jaxgcd.lexing.graph import INITIAL, LexerGraph
from jaxgcd.lexing.scanner import DEAD, IGNORED

NO_TERMINAL = 0


def max_runs(graph: LexerGraph, may_follow: Sequence[frozenset[int]], *, limit: int = 100_000) -> int:
    """The most readings that any text can have at once.

    Args:
        graph: the lexer.
        may_follow: for each terminal those that some parser state takes right after it; index 0, before any.
        limit: the most sets of readings to look at.

    Raises:
        GrammarTooLarge: `limit` was exceeded.
    """
    follow = [_bits(terminals) | 1 for terminals in may_follow]
    emits = [_bits(0 if t == IGNORED else t for t, _ in exits) for exits in graph.exits]
    delta, symbols = graph.delta.tolist(), range(graph.delta.shape[1] - 1)
    first = ((INITIAL, NO_TERMINAL),)
    seen, todo, most = {first}, [first], 1
    while todo:
        runs = todo.pop()
        for symbol in symbols:
            after = set()
            for state, last in runs:
                readings = [(delta[state][symbol], last)]
                for terminal, boundary in graph.accepts[state]:
                    if terminal == IGNORED or terminal in may_follow[last]:
                        readings.append((delta[boundary][symbol], last if terminal == IGNORED else terminal))
                after |= {(q, t) for q, t in readings if q != DEAD and emits[q] & follow[t]}
            key = tuple(sorted(after))
            if key and key not in seen:
                seen.add(key)
                todo.append(key)
                most = max(most, len(key))
                if len(seen) > limit:
                    raise GrammarTooLarge(
                        f"The lexer's readings of one text form more than {limit} sets. Look for terminals "
                        "that begin with another one and go on without bound, and shorten them."
                    )
    return most


def _bits(numbers) -> int:
    return sum(1 << n for n in set(numbers))
