"""`python -m jaxgcd`, and the console script `jaxgcd`."""

import sys

from jaxgcd.errors import MissingExtraError


def main() -> None:
    """Runs the command line; without what it needs, says what to install and exits with status 1."""
    try:
        from jaxgcd import cli
    except MissingExtraError as error:
        sys.exit(f"jaxgcd: {error}")
    cli.main()


if __name__ == "__main__":
    main()
