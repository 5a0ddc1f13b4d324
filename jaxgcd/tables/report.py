"""`Report`: what `compile_grammar` found out."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Report:
    """What `compile_grammar` found out. Printed, it is a short table.

    Attributes:
        exact: the masks are exactly python-lark's; if not they still never miss a token.
        reasons: why they are not exact, in terms of terminals and bytes.
        seconds: the time of each stage.
        counts: states, classes, nodes, rows and bytes of the tables.

    Example:
        >>> print(Report(True, (), {"lark": 0.25, "walk": 1.5}, {"parser states": 1200, "bytes": 34_000}))
        masks          exact
        lark           0.25 s
        walk           1.50 s
        all            1.75 s
        parser states  1,200
        bytes          34,000
    """

    exact: bool
    reasons: tuple[str, ...]
    seconds: dict[str, float]
    counts: dict[str, int]

    def __str__(self) -> str:
        facts = {"masks": "exact" if self.exact else "not exact"}
        facts |= {stage: f"{seconds:.2f} s" for stage, seconds in self.seconds.items()}
        facts |= {"all": f"{sum(self.seconds.values()):.2f} s"}
        facts |= {name: f"{count:,}" for name, count in self.counts.items()}
        width = max(map(len, facts))
        lines = [f"{name:<{width}}  {fact}" for name, fact in facts.items()]
        return "\n".join([*lines[:1], *(f"  {reason}" for reason in self.reasons), *lines[1:]])
