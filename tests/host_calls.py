"""What in a traced or compiled function talks to the host."""

import re

import jax


def callbacks(jaxpr) -> set[str]:
    """Names of primitives that talk to the host, in a jaxpr and everything nested in it."""
    found = set()
    for equation in jaxpr.eqns:
        if re.search("callback|infeed|outfeed|host|debug|io_effect", equation.primitive.name):
            found.add(equation.primitive.name)
        for value in jax.tree.leaves(equation.params, is_leaf=lambda leaf: hasattr(leaf, "eqns")):
            inner = getattr(value, "jaxpr", value)
            if hasattr(inner, "eqns"):
                found |= callbacks(inner)
    return found


HOST_CALL = re.compile(r"callback|infeed|outfeed|host_compute|\bsend\b|\brecv\b|SendToHost|RecvFromHost")
