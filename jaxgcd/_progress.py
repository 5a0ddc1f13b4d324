"""Where the stages of a compilation show how far they have got."""

from __future__ import annotations

from typing import Any

from jaxgcd._extras import require


class Bars:
    """Shows a bar for each stage, on the standard error.

    Raises:
        MissingExtraError: tqdm is not installed.
    """

    def __init__(self) -> None:
        self._make = require("tqdm", "cli").tqdm
        self._bar: Any = None

    def begin(self, stage: str) -> None:
        """A stage begins."""
        self._bar = self._make(desc=f"{stage:<9}", unit=" steps", unit_scale=True)

    def advance(self, steps: int) -> None:
        """Some more steps are done."""
        self._bar.update(steps)

    def end(self) -> None:
        """The stage is over."""
        self._bar.close()
