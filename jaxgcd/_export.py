"""Makes the pytrees of this package known to `jax.export`, so that exported functions can be serialised.

What is static in them are sizes, which are written as JSON.
"""

from __future__ import annotations

import json
from typing import Any

from jax import export

from jaxgcd.beam import Beams
from jaxgcd.drafts import Trail
from jaxgcd.generation import Generation
from jaxgcd.sampling import Draw
from jaxgcd.state import State
from jaxgcd.tables.arrays import Tables


def _written(static: Any) -> bytes:
    return json.dumps(static).encode()


def _read(data: bytes | bytearray) -> tuple[Any, ...]:
    return tuple(json.loads(bytes(data)))


def register() -> None:
    """Registers every pytree that a public function takes or returns; once in a process."""
    for kind in (Tables, State, Trail, Draw, Generation, Beams):
        name = f"jaxgcd.{kind.__name__}"
        export.register_pytree_node_serialization(
            kind, serialized_name=name, serialize_auxdata=_written, deserialize_auxdata=_read
        )
