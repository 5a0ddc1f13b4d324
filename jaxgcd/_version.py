"""The version of this package."""

import functools
import importlib.metadata


@functools.cache
def version() -> str:
    """As installed; "unknown" in a checkout that is not."""
    try:
        return importlib.metadata.version("jaxgcd")
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
