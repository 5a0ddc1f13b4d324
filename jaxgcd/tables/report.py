"""`Report`: what `compile_grammar` found out."""

from __future__ import annotations

import dataclasses
from typing import Any


@dataclasses.dataclass(frozen=True)
class Report:
    """What `compile_grammar` found out.

    Attributes:
        exact: the masks are exactly python-lark's; if not they still never miss a token.
        reasons: why they are not exact, in terms of terminals and bytes.
        seconds: the time of each stage; of tables from a `CompileCache` only "load".
        counts: states, classes, nodes, rows and bytes of the tables.
        cached: the tables were found in a `CompileCache`.
    """

    exact: bool
    reasons: tuple[str, ...]
    seconds: dict[str, float]
    counts: dict[str, int]
    cached: bool = False

    @classmethod
    def from_facts(cls, facts: Any) -> Report:
        """The report that `dataclasses.asdict` made `facts` of; a `ValueError` where it did not."""
        kinds = {"exact": bool, "reasons": list, "seconds": dict, "counts": dict, "cached": bool}
        if not isinstance(facts, dict) or {name: type(value) for name, value in facts.items()} != kinds:
            raise ValueError("its report is damaged")
        numbers = [*facts["seconds"].values(), *facts["counts"].values()]
        if {*map(type, facts["reasons"])} - {str} or {*map(type, numbers)} - {int, float}:
            raise ValueError("its report is damaged")
        return cls(**{**facts, "reasons": tuple(facts["reasons"])})

    def __str__(self) -> str:
        verdict = (
            "exact" if self.exact else "not exact:\n" + "\n".join(f"  {reason}" for reason in self.reasons)
        )
        counts = ", ".join(f"{name} {count:,}" for name, count in self.counts.items())
        return f"{verdict}\n{counts}\n{sum(self.seconds.values()):.2f} s{' (cached)' if self.cached else ''}"
