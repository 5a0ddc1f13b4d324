"""The arguments of `compile_grammar`, checked."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from jaxgcd.errors import GrammarError, VocabularyError
from jaxgcd.grammar import LEXERS
from jaxgcd.vocabulary import Vocabulary

CHECKS = ("device", "host")
MOST_DEPTH = 1 << 24
"""The largest `max_depth`; a row's stack takes four bytes for each state."""


def check_types(vocabulary: Any, start: Any, exact: Any) -> None:
    """Raises a typed error where one of these is something else than it must be; `load_grammar` looks at the
    grammar.
    """
    if not isinstance(vocabulary, Vocabulary):
        raise VocabularyError(
            f"`vocabulary` must be a `jaxgcd.Vocabulary`, not {_kind(vocabulary)}; make one with "
            "`Vocabulary(tokens, eos=...)` or `Vocabulary.from_tokenizer(tokenizer)`."
        )
    if not isinstance(start, str):
        raise GrammarError(f"`start` must be a rule's name, not {_kind(start)}.")
    if not isinstance(exact, (bool, np.bool_)):
        raise GrammarError(f"`exact` must be True or False, not {_kind(exact)}.")


def checked_options(lexer: Any, check: Any, max_depth: Any) -> dict[str, Any]:
    """These options as plain strings and integers."""
    return {
        "lexer": _choice("lexer", lexer, LEXERS),
        "check": _choice("check", check, CHECKS),
        "max_depth": _depth(max_depth),
    }


def _choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise GrammarError(
            f"`{name}={value!r}` is not supported; use one of {', '.join(map(repr, choices))}."
        )
    return str(value)


def _depth(value: Any) -> int:
    try:
        depth = operator.index(value)
    except TypeError:
        depth = None
    if depth is None or isinstance(value, (bool, np.bool_)):
        raise GrammarError(f"`max_depth` must be an integer, not {_kind(value)}.")
    if not 2 <= depth <= MOST_DEPTH:
        raise GrammarError(
            f"`max_depth={depth}` must be from 2, the states of the smallest stack, to {MOST_DEPTH}."
        )
    return depth


def _kind(value: Any) -> str:
    return f"{type(value).__name__} {value!r}" if np.ndim(value) == 0 else type(value).__name__
