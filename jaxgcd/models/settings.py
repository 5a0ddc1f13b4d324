"""Read single settings from a model's metadata, which comes from a file and can hold anything."""

import reprlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxgcd.errors import ModelError

_REQUIRED: Any = object()


@dataclass(frozen=True)
class Settings:
    """Settings by name, each checked for its type when it is read.

    A setting that is null counts as missing; one that is missing and has no default is a `ModelError`
    that names it. `prefix` stands before every name.
    """

    values: Mapping[str, Any]
    prefix: str = ""

    def get(self, name: str) -> Any:
        """The setting as it is, None where it is missing."""
        return self.values.get(self.prefix + name)

    def integer(self, name: str, default: Any = _REQUIRED) -> Any:
        """An integer, or the default."""
        value = self._checked(name, (int, np.integer), "an integer", default)
        return int(value) if isinstance(value, np.integer) else value

    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """A finite number, or the default."""
        value = self._checked(name, (int, float, np.integer, np.floating), "a number", default)
        if value is not default and not abs(value) <= sys.float_info.max:
            raise ModelError(f"`{self.prefix}{name}` must be a finite number, not {reprlib.repr(value)}")
        return value if value is default else float(value)

    def flag(self, name: str, default: Any = _REQUIRED) -> Any:
        """True or False, or the default."""
        return self._checked(name, (bool,), "true or false", default)

    def text(self, name: str, default: Any = _REQUIRED) -> Any:
        """A text, or the default."""
        return self._checked(name, (str,), "a text", default)

    def refuse(self, name: str, unless: Any, what: str) -> None:
        """Raise `ModelError` if the setting asks for something that the decoder does not do."""
        value = self.get(name)
        if value is not None and value != unless:
            raise ModelError(f"`{self.prefix}{name}` is {value!r}: {what} is not supported")

    def _checked(self, name: str, types: tuple[type, ...], meant: str, default: Any) -> Any:
        value = self.get(name)
        if value is None:
            if default is _REQUIRED:
                raise ModelError(f"no entry `{self.prefix}{name}`, which must be {meant}")
            return default
        if not isinstance(value, types) or (isinstance(value, bool) and bool not in types):
            raise ModelError(f"`{self.prefix}{name}` must be {meant}, not {value!r}")
        return value
