"""Limits: whatever the grammar, compiling ends, in bounded memory, with tables or a typed error."""

import dataclasses
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_grammars import HOSTILE, Hostile

import jaxgcd

MEMORY = 1 << 30
"""Bytes beyond what a grammar of one letter takes."""

SLOW = [hostile for hostile in HOSTILE if hostile.slow]
QUICK = [hostile for hostile in HOSTILE if not hostile.slow]


@functools.cache
def outcomes(slow: bool) -> dict[str, tuple[str, str, int]]:
    """The error, its message, and the bytes that were used, for each of the hostile grammars."""
    names = [hostile.name for hostile in HOSTILE if hostile.slow == slow]
    runner = Path(__file__).parent / "hostile_runner.py"
    done = subprocess.run(
        [sys.executable, str(runner), *names],
        capture_output=True,
        text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "PYTHONPATH": os.pathsep.join(sys.path)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {name: tuple(rest) for name, *rest in map(json.loads, done.stdout.splitlines())}


def assert_ends_well(hostile: Hostile) -> None:
    error, message, memory = outcomes(hostile.slow)[hostile.name]
    assert error == hostile.error, message
    for said in hostile.says:
        assert re.search(said, message), message
    assert memory < MEMORY, f"{memory:,} bytes"


@pytest.mark.parametrize("hostile", QUICK, ids=lambda hostile: hostile.name)
def test_what_is_hostile_compiles_or_is_refused(hostile: Hostile) -> None:
    assert_ends_well(hostile)


@pytest.mark.prove
@pytest.mark.parametrize("hostile", SLOW, ids=lambda hostile: hostile.name)
def test_what_is_hostile_and_slow_compiles_or_is_refused(hostile: Hostile) -> None:
    assert_ends_well(hostile)


def test_every_error_says_which_limit_to_raise() -> None:
    refused = [message for error, message, _ in outcomes(False).values() if error == "GrammarTooLarge"]
    names = {field.name for field in dataclasses.fields(jaxgcd.Limits)}
    named = [set(re.findall(r"jaxgcd\.Limits\((\w+)=\.\.\.\)", message)) for message in refused]
    assert all(found <= names for found in named)
    assert sum(map(bool, named)) > len(named) // 2  # the others are about nesting, and about empty lines
