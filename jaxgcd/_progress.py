"""Where the stages of a compilation say how far they have got."""

from __future__ import annotations

from typing import Any

from jaxgcd._extras import require


class Progress:
    """Is told what each stage does. This one keeps it to itself."""

    def begin(self, stage: str, total: int | None) -> None:
        """A stage begins, of `total` steps if that is known."""

    def advance(self, steps: int) -> None:
        """Some more steps are done."""

    def expect(self, total: int) -> None:
        """The stage will take so many steps, as far as is known now."""

    def end(self) -> None:
        """The stage is over."""


class Bars(Progress):
    """Shows a bar for each stage, on the standard error.

    Raises:
        MissingExtraError: tqdm is not installed.
    """

    def __init__(self) -> None:
        self._make = require("tqdm", "cli").tqdm
        self._bar: Any = None

    def begin(self, stage: str, total: int | None) -> None:
        self._bar = self._make(desc=f"{stage:<9}", total=total, unit=" steps", unit_scale=True)

    def advance(self, steps: int) -> None:
        self._bar.update(steps)

    def expect(self, total: int) -> None:
        self._bar.total = max(total, self._bar.n)

    def end(self) -> None:
        self._bar.close()
