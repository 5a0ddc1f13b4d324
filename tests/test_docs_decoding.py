"""The program on the page docs/decoding.md runs as it stands there."""

import re
from pathlib import Path

import jax
import pytest

PAGE = Path(__file__).parent.parent / "docs" / "decoding.md"


def test_the_program_of_the_page_runs() -> None:
    pytest.importorskip("flatbuffers")
    if jax.device_count() < 4:
        pytest.skip("the page needs four devices")
    program = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL))
    with jax.numpy_dtype_promotion("standard"):
        exec(compile(program, str(PAGE), "exec"), {"__name__": "page"})
