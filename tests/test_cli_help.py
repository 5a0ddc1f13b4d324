"""The command line without a model: its help, and what it says where it cannot start."""

import subprocess
import sys

import pytest

pytest.importorskip("typer")

from cli_runs import run


class TestHelp:
    @pytest.mark.parametrize("command", [(), ("generate",), ("compile",), ("inspect",)])
    def test_it_shows_examples(self, command):
        code, out, _ = run(*command, "--help")
        assert code == 0
        assert f"jaxgcd {command[0] if command else 'generate'} " in out.split("Options")[0].split("Usage")[1]

    def test_no_arguments(self):
        assert "generate" in "".join(run()[1:])

    def test_version(self):
        code, out, _ = run("--version")
        assert code == 0 and out.startswith("jaxgcd ")

    def test_a_missing_extra(self):
        code = "import sys; sys.modules['typer'] = None; from jaxgcd.__main__ import main; main()"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert done.returncode == 1
        assert done.stderr == 'jaxgcd: `typer` is not installed: pip install "jaxgcd[cli]" brings it.\n'
