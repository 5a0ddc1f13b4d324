"""The command line: `python -m jaxgcd`, or `jaxgcd`; `pip install "jaxgcd[cli]"`.

`docs/command-line.md` describes it. Each command has a module; `boundary` turns errors into messages and exit
codes.
"""

from jaxgcd._extras import require

for _package in ("typer", "rich", "tqdm"):
    require(_package, "cli")

from .app import app as app  # noqa: E402
from .app import main as main  # noqa: E402
from .boundary import ExitCode as ExitCode  # noqa: E402
