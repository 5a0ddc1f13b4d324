"""The programs on the page docs/fused-loops.md: each section runs behind the first block."""

import re
from pathlib import Path

import jax
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "fused-loops.md"
NEEDS = {"Flax NNX": "flax", "Linen, with prompts inside the loop": "flax", "Equinox": "equinox"}


def programs() -> dict[str, str]:
    """The Python of each section, by its heading."""
    _, *sections = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    found = {section.splitlines()[0]: python(section) for section in sections}
    return {heading: program for heading, program in found.items() if program}


def python(text: str) -> str:
    return "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


def test_all_programs_of_the_page_are_run() -> None:
    assert list(programs()) == list(NEEDS)


@pytest.mark.parametrize("heading", NEEDS)
def test_the_recipe_runs(heading: str) -> None:
    pytest.importorskip(NEEDS[heading])
    setup = python(PAGE.read_text().split("\n## ")[0])
    with jax.numpy_dtype_promotion("standard"):
        exec(compile(f"{setup}\n{programs()[heading]}", f"{PAGE}, {heading}", "exec"), {"__name__": "page"})
