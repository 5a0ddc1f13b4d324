"""`State`: where each row's text stands, as a pytree with the batch axes in front."""

from __future__ import annotations

import dataclasses
import enum
import functools

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int32

from jaxgcd.errors import ShapeError
from jaxgcd.tables.arrays import Tables


class Status(enum.IntEnum):
    """What has become of a row. Every status but `RUNNING` allows EOS only; such a row changes no more."""

    RUNNING = 0
    """More tokens may follow."""
    FINISHED = 1
    """EOS was read, and the text is in the language."""
    STUCK = 2
    """The last token was not allowed, or no token is left."""
    OVERFLOW = 3
    """The last token needed a deeper stack than `max_depth`."""


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["lexer", "stack", "depth", "status"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True)
class State:
    """Where each row's text stands. Every leaf has the batch axes in front.

    A row has up to `K` readings of its text, each with a lexer state and a parser stack; in most grammars `K`
    is 1. Beams and forks are `jax.tree.map(lambda leaf: leaf[parents], state)`. A row that is not running
    stands where it was before its last token. Which grammar a row follows shows in its numbers.
    """

    lexer: Int32[Array, "*batch K"]
    """Lexer states; 0 marks an unused reading."""
    stack: Int32[Array, "*batch K max_depth"]
    """Parser states from the bottom up; what lies above `depth` means nothing."""
    depth: Int32[Array, "*batch K"]
    """How many parser states are on the stack."""
    status: Int32[Array, "*batch"]
    """A `Status`."""

    @property
    def max_depth(self) -> int:
        """The most parser states that a stack of this state may hold."""
        return self.stack.shape[-1]


def select(flag: Bool[Array, "*batch"], new: State, old: State) -> State:
    """The rows of one state where a flag is set, of another elsewhere."""
    return jax.tree.map(
        lambda one, other: jnp.where(flag.reshape(flag.shape + (1,) * (one.ndim - flag.ndim)), one, other),
        new,
        old,
    )


def check_state(tables: Tables, state: State) -> None:
    """Raises `ShapeError` unless a state has the shapes that these tables ask for."""
    shape = (*state.status.shape, tables.runs)
    if state.stack.shape[:-1] != shape or not state.lexer.shape == state.depth.shape == shape:
        raise ShapeError(
            f"The state's stack has the shape {state.stack.shape}, these tables ask for "
            f"{(*shape, state.max_depth)}: it was made by `init` for other tables, or its leaves have lost "
            "their batch axes."
        )
