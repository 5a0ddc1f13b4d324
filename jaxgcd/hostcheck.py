"""The device's side of `check="host"`: one callback per step, with only the rows that need one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxtyping import Array, Int32, UInt32

from jaxgcd.tables.arrays import Tables
from jaxgcd.tables.host import host_machine


def add_host_words(
    tables: Tables,
    lexer: Int32[Array, "batch K"],
    stack: Int32[Array, "batch K max_depth"],
    depth: Int32[Array, "batch K"],
    top: Int32[Array, "batch K slots"],
    words: UInt32[Array, "batch words"],
) -> UInt32[Array, "batch words"]:
    """Adds the tokens of context-dependent sequences, as the reference machine on the host judges them.

    Rows with such sequences (`top` not zero somewhere) are moved to the front and shipped in a bucket of the
    next power of two; where no row has any there is no call.
    """
    needs = (top > 0).any(axis=(1, 2))
    order = jnp.argsort(~needs, stable=True)
    buckets = [0]
    while buckets[-1] < len(words):
        buckets.append(min(max(1, 2 * buckets[-1]), len(words)))

    def ship(rows: int):
        def branch(words):
            chosen = order[:rows]
            shape = jax.ShapeDtypeStruct((rows, words.shape[1]), words.dtype)
            parts = [leaf[chosen] for leaf in (lexer, stack, depth, top)]
            found = jax.pure_callback(_check, shape, tables.host, *parts, vmap_method="sequential")
            return words.at[chosen].set(words[chosen] | found)

        return branch

    which = jnp.searchsorted(jnp.array(buckets, jnp.int32), needs.sum(dtype=jnp.int32))
    return lax.switch(which, [lambda words: words, *(ship(rows) for rows in buckets[1:])], words)


def _check(host, lexer, stack, depth, top):
    machine = host_machine(int(host))
    return machine.check(*(np.asarray(leaf) for leaf in (lexer, stack, depth, top)))
