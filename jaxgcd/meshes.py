"""Tables and states on many devices: `partition_specs`, and meshes whose axes are part of the types.

On a mesh with explicit axes (what `jax.make_mesh` makes by default in current JAX) every operation must know
how its result is laid out, and reading a table that is split at places that are split does not. Therefore
the functions of this package run on automatic axes inside, and say how their results are laid out: batch axes
as in the state, the words of masks as in the tables.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import jax
from jax.sharding import NamedSharding, PartitionSpec
from jaxtyping import Array

from jaxgcd.errors import ShapeError
from jaxgcd.state import State
from jaxgcd.tables.arrays import Tables

Function = TypeVar("Function", bound=Callable[..., Any])
Specs = Callable[..., Any]
"""From a function's arguments to the specs of its results."""

_VOCABULARY = {"row_pages": 1, "pages": 0, "eos_words": 0, "bytewise": 0}
"""The axes along which a vocabulary is split."""


def partition_specs(tables: Tables, vocabulary_axis: str | None = None) -> Any:
    """How tables are laid out on a mesh: a pytree like `tables` with a `PartitionSpec` at every leaf.

    Args:
        tables: the compiled grammar.
        vocabulary_axis: the mesh axis along which the vocabulary is split; it has as many devices as
            `split_vocabulary` made parts, or divides their number. By default every device has all tables.

    Raises:
        ShapeError: the vocabulary is not laid out in parts.

    Example:
        >>> import jax, jaxgcd
        >>> from jax.sharding import NamedSharding
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b""], eos=[2], size=128)
        >>> tables = jaxgcd.split_vocabulary(jaxgcd.compile_grammar('start: "b"', vocabulary), 2)
        >>> specs = jaxgcd.partition_specs(tables, "model")
        >>> tuple(specs.eos_words)
        ('model',)
        >>> mesh = jax.make_mesh((2,), ("model",), devices=jax.devices()[:2])
        >>> tables = jax.device_put(tables, jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs))
    """
    if vocabulary_axis is not None and tables.shards == 1:
        raise ShapeError(
            "The vocabulary of these tables is in one part: lay them out with `split_vocabulary`."
        )
    specs = {}
    for field in dataclasses.fields(tables):
        if "dims" in field.metadata:
            axis = _VOCABULARY.get(field.name) if vocabulary_axis is not None else None
            parts = [] if axis is None else [*[None] * axis, vocabulary_axis]
            specs[field.name] = PartitionSpec(*parts)
    return dataclasses.replace(tables, **specs, report=None, compiled=None)


def on_any_mesh(specs: Specs) -> Callable[[Function], Function]:
    """Decorates a function so that it also runs on a mesh with explicit axes.

    Args:
        specs: from the function's arguments to a pytree of the specs of its results.
    """

    def decorate(function: Function) -> Function:
        @functools.wraps(function)
        def wrapped(*args, **options):
            flat, structure = jax.tree.flatten((args, options))
            leaves = dict(enumerate(flat))
            arrays = {i: leaf for i, leaf in leaves.items() if isinstance(leaf, jax.Array)}
            mesh = _explicit_mesh(arrays.values())
            if mesh is None:
                return function(*args, **options)

            def call(arrays):  # what is not an array stays what it is
                args, options = jax.tree.unflatten(structure, (leaves | arrays).values())
                return function(*args, **options)

            out = jax.tree.map(lambda spec: NamedSharding(mesh, spec), specs(*args, **options))
            return jax.sharding.auto_axes(call, axes=_explicit_axes(mesh), out_sharding=out)(arrays)

        return wrapped  # type: ignore[return-value]

    return decorate


def _explicit_mesh(arrays: Iterable[Array]) -> Any:
    """The mesh of some arrays, if it has explicit axes."""
    meshes = (jax.typeof(array).sharding.mesh for array in arrays)
    return next((mesh for mesh in meshes if _explicit_axes(mesh)), None)


def _explicit_axes(mesh: Any) -> tuple[str, ...]:
    kinds = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return tuple(name for name, kind in kinds if kind == jax.sharding.AxisType.Explicit)


def batch_spec(state: State, *others: Array) -> tuple[Any, ...]:
    """How the batch axes of a state, or of arrays with the same batch axes, are laid out."""
    found = [None] * state.status.ndim
    for leaf in (state.status, *others):
        own = _spec(leaf)[: state.status.ndim]
        found = [
            one if one is not None else other
            for one, other in zip(found, [*own, *found[len(own) :]], strict=True)
        ]
    return tuple(found)


def state_specs(batch: tuple[Any, ...]) -> State:
    """The specs of a state with such batch axes."""
    return State(*(PartitionSpec(*batch) for _ in dataclasses.fields(State)))  # type: ignore[arg-type]


def words_spec(tables: Tables) -> Any:
    """How the words of a mask are laid out."""
    return next(iter(_spec(tables.eos_words)), None)


def _spec(leaf: Array) -> tuple[Any, ...]:
    return tuple(jax.typeof(leaf).sharding.spec)
