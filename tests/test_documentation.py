"""The tutorial prints what it says, pages exist that others point at, and the reference can be made."""

import contextlib
import io
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import jaxgcd

ROOT = Path(__file__).parent.parent
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]


def test_the_tutorial():
    """Its blocks run one after the other, in one namespace, and print what stands below them."""
    page = (ROOT / "docs" / "tutorial.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```\n(?:```\n(.*?)^```\n)?", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == page.count("```python")
    names: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", jaxgcd.InexactGrammarWarning)
        for code, expected in blocks:
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                exec(compile(code, "docs/tutorial.md", "exec"), names)
            assert printed.getvalue() == expected, code


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages(page):
    """Files are there, and a page's own headings that it points at."""
    text = page.read_text()
    headings = {re.sub(r"[^\w -]", "", line).strip().lower().replace(" ", "-") for line in text.splitlines()}
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in headings, target
        elif not re.match(r"[a-z]+:", target):
            assert (page.parent / target.split("#")[0]).exists(), target


def test_the_reference(tmp_path):
    """It is made from the docstrings, and has a page of every public name."""
    pytest.importorskip("pdoc")
    models = pytest.importorskip("jaxgcd.models")
    makefile = (ROOT / "Makefile").read_text()
    modules = re.findall(r"-m pdoc .*--output-directory site (.*)", makefile)[0].split()
    command = [sys.executable, "-m", "pdoc", "--docformat", "google", "--output-directory", str(tmp_path)]
    done = subprocess.run([*command, *modules], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "jaxgcd.html").read_text()
    assert [name for name in jaxgcd.__all__ if f'id="{name}"' not in page] == []
    page = (tmp_path / "jaxgcd" / "models.html").read_text()
    assert [name for name in models.__all__ if f'id="{name}"' not in page] == []


def test_the_page_of_the_command_line():
    """It names every option of every command."""
    typer = pytest.importorskip("typer")
    from jaxgcd import cli

    page = (ROOT / "docs" / "command-line.md").read_text()
    for command in typer.main.get_command(cli.app).commands.values():
        names = [name for option in command.params for name in option.opts if name.startswith("--")]
        assert [name for name in names if name not in page] == []
