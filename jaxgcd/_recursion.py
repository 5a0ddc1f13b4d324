"""Recursion as deep as memory allows: routines that call each other by `yield`.

Python's own recursion ends at about a thousand calls, and a token may be longer than that.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeVar

Result = TypeVar("Result")

Routine = Generator["Routine[Any]", Any, Result]
"""A generator that yields the routines that it calls, gets what they return, and returns a `Result`."""


def run(routine: Routine[Result]) -> Result:
    """What a routine returns.

    Example:
        >>> def total(n):
        ...     return n + (yield total(n - 1)) if n else 0
        >>> run(total(10_000))
        50005000
    """
    calls: list[Routine[Any]] = [routine]
    result: Any = None
    while calls:
        try:
            calls.append(calls[-1].send(result))
        except StopIteration as returned:
            calls.pop()
            result = returned.value
        else:
            result = None
    return result
