"""Prints the oldest versions that pyproject.toml allows, as pip takes them: `jax==0.7.1 numpy==1.26.0 ...`.

python .ci/floor.py [EXTRA ...]
"""

import re
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())["project"]


def floors(*extras: str) -> list[str]:
    """A pin for each dependency of the project and of some extras."""
    extra = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(line for name in extras for line in extra[name])]
    pins = [re.fullmatch(r"([\w-]+)(?:\[\w+\])?[>=]=([\w.]+)", line) for line in wanted]
    assert all(pins), wanted
    return sorted({f"{pin[1]}=={pin[2]}" for pin in pins if pin})


if __name__ == "__main__":
    print(*floors(*sys.argv[1:]))
