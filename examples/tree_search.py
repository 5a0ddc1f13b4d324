"""Tree search over tokens that a grammar allows: sums that make a wanted number, found with `mctx`.

    pip install "jaxgcd[search]" && python examples/tree_search.py

The state of the grammar is a pytree with the batch axes in front, so the nodes of `mctx`'s tree store it
as it is, and each expansion advances it. The "language model" knows nothing: all allowed tokens are equally
likely to it. A text is rewarded when it ends, by how near its sum is to the wanted one. Each row of the batch
wants another sum; the texts drawn without a search are shown beside those found with one.
"""

# The dataclasses of `mctx` mean nothing to a type checker.
# pyright: reportCallIssue=false, reportArgumentType=false

import dataclasses
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import mctx
import numpy as np
from jaxtyping import Array, Float32, Int32

import jaxgcd

TOKENS = [b"<eos>", b"+", *(str(digit).encode() for digit in range(10)), b"+1", b"0+", b"25"]
EOS = 0
GRAMMAR = r"""
    start: NUMBER ("+" NUMBER)*
    NUMBER: /[1-9][0-9]?/
"""
WANTED = (17, 42, 99, 120)
LONGEST = 10  # tokens
SIMULATIONS = 64


@partial(jax.tree_util.register_dataclass, data_fields=["state", "done", "number"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Text:
    """What a node of the tree knows about the text so far."""

    state: jaxgcd.State
    done: Int32[Array, " batch"]
    """The sum of the numbers before the one that is being written."""
    number: Int32[Array, " batch"]
    """The number that is being written."""


def write(text: Text, token: Int32[Array, " batch"], tables: jaxgcd.Tables) -> Text:
    """The text with one more token."""
    done, number = text.done, text.number
    spelled = np.zeros((len(TOKENS), max(map(len, TOKENS[1:]))), np.int32)
    for row, spelling in zip(spelled[1:], TOKENS[1:], strict=True):
        row[: len(spelling)] = list(spelling)
    for byte in jnp.asarray(spelled)[token].T:
        plus, digit = byte == ord("+"), byte >= ord("0")
        done = jnp.where(plus, done + number, done)
        number = jnp.where(plus, 0, jnp.where(digit, 10 * number + byte - ord("0"), number))
    return Text(jaxgcd.advance(tables, text.state, token), done, number)


def nearness(text: Text, wanted: Int32[Array, " batch"]) -> Float32[Array, " batch"]:
    """1 for the wanted sum, less the further the sum is from it."""
    distance = jnp.abs(text.done + text.number - wanted) / wanted
    return jnp.where(distance == 0, 1.0, -distance).astype(jnp.float32)


def prior(tables: jaxgcd.Tables, text: Text) -> Float32[Array, "batch size"]:
    """A model's logits would go here; the mask is all that is known."""
    return jaxgcd.mask_logits(tables, text.state, jnp.zeros((len(text.done), tables.size), jnp.float32))


def expand(inputs: Any, key: Any, action: Any, text: Any) -> Any:
    """One more token in a node: `mctx`'s recurrent function."""
    tables, wanted = inputs
    after = write(text, action, tables)
    running = after.state.status == jaxgcd.Status.RUNNING
    ends = (text.state.status == jaxgcd.Status.RUNNING) & (after.state.status == jaxgcd.Status.FINISHED)
    value = nearness(after, wanted)
    output = mctx.RecurrentFnOutput(
        reward=jnp.where(ends, value, 0.0),
        discount=running.astype(jnp.float32),
        prior_logits=prior(tables, after),
        value=jnp.where(running, value, 0.0),
    )
    return output, after


@jax.jit
def search(key: Array, tables: jaxgcd.Tables, text: Text, wanted: Array) -> Int32[Array, " batch"]:
    """The token that a tree search prefers in each row."""
    logits = prior(tables, text)
    root = mctx.RootFnOutput(prior_logits=logits, value=nearness(text, wanted), embedding=text)
    found = mctx.gumbel_muzero_policy(
        (tables, wanted),
        key,
        root,
        expand,
        num_simulations=SIMULATIONS,
        invalid_actions=logits < 0,
        max_num_considered_actions=len(TOKENS),
        gumbel_scale=0.0,
    )
    return jnp.asarray(found.action, jnp.int32)


@jax.jit
def draw(key: Array, tables: jaxgcd.Tables, text: Text, wanted: Array) -> Int32[Array, " batch"]:
    """The same without a search: any allowed token."""
    return jax.random.categorical(key, prior(tables, text)).astype(jnp.int32)


def texts(choose, tables: jaxgcd.Tables) -> list[str]:
    """Writes a text in each row; one that is not complete after `LONGEST` tokens ends with an ellipsis."""
    wanted = jnp.array(WANTED, jnp.int32)
    zeros = jnp.zeros_like(wanted)
    text, drawn = Text(jaxgcd.init(tables, len(WANTED)), zeros, zeros), []
    for step in range(LONGEST):
        token = choose(jax.random.key(step), tables, text, wanted)
        text = jax.jit(write)(text, token, tables)
        drawn.append(np.asarray(token))
    complete = np.asarray(text.state.status) == jaxgcd.Status.FINISHED
    rows = [b"".join(TOKENS[token] for token in row if token != EOS).decode() for row in np.array(drawn).T]
    return [row if ended else row + "..." for row, ended in zip(rows, complete, strict=True)]


def main() -> None:
    """Prints, for each wanted sum, a text drawn and a text searched for."""
    tables = jaxgcd.compile_grammar(GRAMMAR, jaxgcd.Vocabulary(TOKENS, eos=[EOS]))
    for wanted, drawn, found in zip(WANTED, texts(draw, tables), texts(search, tables), strict=True):
        print(f"wanted {wanted}   drawn {drawn}   found {found}")


if __name__ == "__main__":
    main()
