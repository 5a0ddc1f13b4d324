"""Unified diffs: taken out of a page of the documentation, and applied at just the lines that they name."""

import re
from pathlib import Path


def documented(page: Path, package: str) -> dict[str, str]:
    """The diffs of a page for one package's files, by their paths."""
    blocks = re.findall(r"^```diff\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)
    files = re.split(r"^--- a/.*\n\+\+\+ b/", "".join(blocks), flags=re.MULTILINE)[1:]
    found = dict(file.split("\n", 1) for file in files)
    return {path: hunks for path, hunks in found.items() if path.startswith(f"{package}/")}


def patched(source: str, hunks: str) -> str:
    """A text after a diff.

    Raises:
        AssertionError: a line that the diff keeps or takes away is not there.
    """
    lines, out, at = source.splitlines(keepends=True), [], 0
    for line in hunks.splitlines(keepends=True):
        if head := re.fullmatch(r"@@ -(\d+),\d+ \+\d+,\d+ @@\n", line):
            first = int(head[1]) - 1
            assert at <= first <= len(lines), f"{line} comes before what was changed already"
            out, at = out + lines[at:first], first
        elif line[0] == "+":
            out.append(line[1:])
        else:
            # Editors cut off the blank of an empty line that a diff keeps.
            expected = "\n" if line == "\n" else line[1:]
            assert lines[at] == expected, f"line {at + 1} is {lines[at]!r}, the diff says {expected!r}"
            out, at = (out if line[0] == "-" else [*out, lines[at]]), at + 1
    return "".join(out + lines[at:])
