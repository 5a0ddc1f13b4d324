"""`Budget`: what one compilation may still use up, and how far it has got.

Every stage is handed the one budget of the compilation. In its loops it calls `step`, which ends the
compilation when its time is up and moves the progress bar; where it counts something that has a limit, it
raises `exceeded`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from jaxgcd._progress import Bars
from jaxgcd.errors import GrammarTooLarge
from jaxgcd.limits import Limits


class Budget:
    """The limits of one compilation, counted from now on.

    Attributes:
        limits: as given.
        seconds: how long each stage took so far.
        work: what is being worked on, for messages, for example "terminal NAME".
        regex_steps: how many steps the automata of terminals took so far.
        table_bytes: how large the tables are so far.
    """

    def __init__(self, limits: Limits | None = None, bars: Bars | None = None):
        self.limits = limits or Limits()
        self.seconds: dict[str, float] = {}
        self.work = "the grammar"
        self.regex_steps = self.table_bytes = 0
        self._parts: dict[str, tuple[int, str, str]] = {}
        self._deadline = time.monotonic() + self.limits.seconds
        self._bars = bars
        self._stage = ""

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Times what is done within, and gives it a progress bar."""
        self._stage = name
        begin = time.perf_counter()
        if self._bars:
            self._bars.begin(name)
        try:
            self.step(0)
            yield
        finally:
            if self._bars:
                self._bars.end()
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begin

    def step(self, steps: int = 1) -> None:
        """Some more steps of the stage are done.

        Raises:
            GrammarTooLarge: the time is up.
        """
        if time.monotonic() > self._deadline:
            raise self.exceeded(
                "seconds",
                f"{self.work}: compiling (now in its stage `{self._stage}`) has taken",
                "seconds",
                "simplify it",
            )
        if self._bars:
            self._bars.advance(steps)

    def add_table(self, size: int, part: str, remedy: str = "make the grammar smaller") -> None:
        """A part of the tables takes so many more bytes; to be called before it is made.

        Args:
            size: bytes.
            part: what takes them.
            remedy: what the user can change about the grammar.

        Raises:
            GrammarTooLarge: the tables are too large; names their largest part.
        """
        self.table_bytes += size
        before, *_ = self._parts.get(part, (0,))
        self._parts[part] = before + size, f"{self.work}: with {part}", remedy
        if self.table_bytes > self.limits.table_bytes:
            size, subject, remedy = max(self._parts.values())
            subject = f"{subject} of {size:,} bytes, the tables take"
            raise self.exceeded("table_bytes", subject, "bytes", remedy)

    def exceeded(self, limit: str, subject: str, unit: str, remedy: str) -> GrammarTooLarge:
        """The error "`subject` more than so many `unit`s; `remedy`".

        Args:
            limit: the name of the field of `Limits`.
            subject: what exceeds it, with a verb; names the terminal or rule.
            unit: what is counted.
            remedy: what the user can change about the grammar.
        """
        value = getattr(self.limits, limit)
        number = f"{value:,}" if isinstance(value, int) else f"{value:g}"
        return GrammarTooLarge(
            f"{subject} more than {number} {unit}; {remedy}, or raise the limit "
            f"(`limits=jaxgcd.Limits({limit}=...)`)."
        )


def shortened(text: str, length: int = 60) -> str:
    """A text as messages show it."""
    return text if len(text) <= length else f"{text[: length - 3]}..."
