"""Under which key a `CompileCache` keeps compiled tables: everything that they follow from.

That is the grammar, the vocabulary, the options, this package's version and code, Lark's version, and
Python's, whose `re` and Unicode tables decide what a regex matches.

A grammar's text names the files that it imports. Those of Lark's own library come with Lark's version. The
others, `%import .rules.expr`, are found by Lark itself, and are part of the key by path and content. What a
built `lark.Lark` object was made from may be gone, so there the key has what is compiled: its table and
scanners.
"""

from __future__ import annotations

import functools
import hashlib
import json
import os
import platform
import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lark

from jaxgcd._budget import Budget
from jaxgcd._container import FORMAT
from jaxgcd._version import version
from jaxgcd.grammar import imported_files, load_grammar, read_text
from jaxgcd.lexing.automaton import Patterns
from jaxgcd.tables.stored import grammar_to_json
from jaxgcd.vocabulary import Vocabulary

_OTHER_IMPORT = re.compile(r"%import(?![ \t]*[A-Za-z_])")
"""An import that may not be from Lark's own library."""


def compile_key(
    grammar: str | os.PathLike[str] | lark.Lark,
    vocabulary: Vocabulary,
    options: Mapping[str, Any],
    budget: Budget,
) -> str | None:
    """The key, as a file's name can be; None where the grammar cannot be read.

    Args:
        grammar: as for `compile_grammar`.
        vocabulary: the tokens.
        options: all further arguments that the tables follow from.
        budget: what reading the grammar may use up.

    Raises:
        GrammarError: a `lark.Lark` object is refused.
        GrammarTooLarge: it is too large.
    """
    if isinstance(grammar, lark.Lark):
        patterns = Patterns(budget)
        loaded = load_grammar(grammar, start=options["start"], lexer=options["lexer"], patterns=patterns)
        sources: Any = grammar_to_json(loaded).decode()
    else:
        sources = _sources(grammar, budget)
    if sources is None:
        return None
    parts = [_environment(), sources, vocabulary.fingerprint, sorted(options.items())]
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=20).hexdigest()


def _sources(grammar: str | os.PathLike[str], budget: Budget) -> list[Any] | None:
    """The text of a grammar, and path and content of what it imports."""
    try:
        text, source = read_text(grammar, budget)
        found = imported_files(text, source, budget) if _OTHER_IMPORT.search(text) else {}
    except Exception:
        return None  # compiling it says what is wrong
    return [text, sorted(found.items())]


@functools.cache
def _environment() -> list[Any]:
    """What tables follow from beside the arguments."""
    code = hashlib.blake2b(digest_size=20)
    for path in sorted(Path(__file__).parent.parent.rglob("*.py")):
        code.update(path.read_bytes())
    python = [platform.python_implementation(), platform.python_version(), unicodedata.unidata_version]
    return [FORMAT, version(), code.hexdigest(), lark.__version__, python]
