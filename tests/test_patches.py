"""The patches on the page docs/fused-loops.md, against the packages that they are for.

The folder `JAXGCD_SAMPLERS` holds them, as `pip install --no-deps --target` leaves them (`make test` does);
packages that are installed will do as well, and otherwise the tests are skipped. What the packages depend on
is not needed: `patched_samplers.py` runs the loops alone.
"""

import importlib.metadata
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import patches
import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "fused-loops.md"
PACKAGES = {"tunix": "google-tunix", "gemma": "gemma"}


def unpacked(module: str) -> tuple[Path, str]:
    """The folder that a package lies in, and its version; a skip if there is none."""
    if folder := os.environ.get("JAXGCD_SAMPLERS"):
        (found,) = importlib.metadata.distributions(name=PACKAGES[module], path=[folder])
        return Path(folder), found.version
    spec = importlib.util.find_spec(module)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{PACKAGES[module]} is not installed, and JAXGCD_SAMPLERS names no folder with it")
    return Path(spec.submodule_search_locations[0]).parent, importlib.metadata.version(PACKAGES[module])


@pytest.mark.parametrize("module", PACKAGES)
def test_the_patch_applies_and_the_patched_loop_keeps_to_the_grammar(module: str, tmp_path: Path) -> None:
    folder, version = unpacked(module)
    written_for = re.findall(rf"^### {PACKAGES[module]} (\S+)$", PAGE.read_text(), re.MULTILINE)
    assert [version] == written_for, "the page is about another version: check it, and say so there"
    files = patches.documented(PAGE, module)
    assert files
    shutil.copytree(folder / module, tmp_path / module, ignore=shutil.ignore_patterns("__pycache__"))
    for path, hunks in files.items():
        code = patches.patched((folder / path).read_text(), hunks)
        compile(code, path, "exec")
        (tmp_path / path).write_text(code)
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent / "patched_samplers.py"), module, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT), "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["constrained", "free"]


def test_a_diff_is_applied_as_it_says_or_not_at_all() -> None:
    source, hunks = "one\ntwo\n\nthree\n", "@@ -2,3 +2,3 @@\n two\n\n-three\n+3\n"
    assert patches.patched(source, hunks) == "one\ntwo\n\n3\n"
    for other in ("one\n2\n\nthree\n", "one\n\ntwo\n\nthree\n"):
        with pytest.raises(AssertionError, match="the diff says"):
            patches.patched(other, hunks)
