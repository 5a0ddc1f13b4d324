"""Optional dependencies: imported where they are used, and named when they are missing."""

import importlib
from types import ModuleType

from jaxgcd.errors import MissingExtraError


def require(module_name: str, extra: str) -> ModuleType:
    """Import an optional module.

    Args:
        module_name: as in an `import` statement, for example "flax.nnx".
        extra: the extra of this package that brings it: "models", "train", "search" or "cli".

    Raises:
        MissingExtraError: the package is not installed; says what to install. An error from inside an
            installed package passes through unchanged.

    >>> require("json", "models").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        package = module_name.split(".")[0]
        if error.name is None or error.name.split(".")[0] != package:
            raise
        message = f'`{package}` is not installed: pip install "jaxgcd[{extra}]" brings it.'
        raise MissingExtraError(message, name=module_name) from error
