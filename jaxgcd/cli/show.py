"""Tables for people."""

import sys
from collections.abc import Mapping

from rich.console import Console
from rich.table import Table
from rich.text import Text

from jaxgcd.tables.report import Report


def show_report(report: Report, *, title: str) -> None:
    """What `compile_grammar` found out."""
    seconds = report.seconds | {"all": sum(report.seconds.values())}
    show_numbers(
        title,
        {name: f"{count:,}" for name, count in report.counts.items()},
        {f"{name}, s": f"{time:.3f}" for name, time in seconds.items()},
        {
            "masks": "exact" if report.exact else "not exact",
            "from the cache": "yes" if report.cached else "no",
        },
    )
    console = _console()
    for reason in report.reasons:
        console.print(Text(f"not exact: {reason}"), soft_wrap=True)


def show_numbers(title: str, *sections: Mapping[str, str]) -> None:
    """A title, then names and what belongs to them, with a line between sections."""
    table = Table(show_header=False)
    table.add_column()
    table.add_column(justify="right", overflow="fold")
    for section in sections:
        for name, value in section.items():
            table.add_row(Text(name), Text(value))
        table.add_section()
    console = _console()
    console.print(Text(title), soft_wrap=True)
    console.print(table)


class _Console(Console):
    """Rich, but for a reader that has gone, which is for the boundary of the commands to see."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


def _console() -> Console:
    return _Console(file=sys.stdout, highlight=False)
