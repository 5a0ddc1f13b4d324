"""Drawing one token for each row: `sample`, and what is known about the draw."""

from __future__ import annotations

import dataclasses
import functools
from typing import Literal, Unpack, overload

import jax
import jax.numpy as jnp
from jax.nn import logsumexp
from jax.sharding import PartitionSpec
from jaxtyping import Array, Bool, Float, Int32

from jaxgcd import keys
from jaxgcd.decoding import advance, mask_logits, unpack
from jaxgcd.distribution import DrawOptions, Settings, biased, log_weights, make_settings
from jaxgcd.meshes import batch_spec, on_any_mesh, state_specs
from jaxgcd.state import State, Status
from jaxgcd.tables.arrays import Tables


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["logprob", "drawn_logprob", "log_mass"], meta_fields=[]
)
@dataclasses.dataclass(frozen=True)
class Draw:
    """What `sample` knows about its draws. Rows that were not running have 0 everywhere.

    At temperature 1 without other options, `drawn_logprob` is `logprob - log_mass`: the draw is from the
    model's distribution, restricted to the allowed tokens. The sum of `log_mass` over a text is then the
    logarithm of its importance weight, the model's probability of the text over the probability with which
    it was drawn.
    """

    logprob: Float[Array, "*batch"]
    """The token's log-probability under the model: its softmax over all tokens, at temperature 1."""
    drawn_logprob: Float[Array, "*batch"]
    """Its log-probability under the distribution it was drawn from; 0 for a greedy choice."""
    log_mass: Float[Array, "*batch"]
    """The logarithm of the probability, under the model, of all tokens that the grammar allows together;
    minus infinity in a row that got stuck."""


@overload
def sample(
    key: Array,
    tables: Tables,
    state: State,
    logits: Float[Array, "*batch size"],
    *,
    return_draw: Literal[False] = False,
    **options: Unpack[DrawOptions],
) -> tuple[Int32[Array, "*batch"], State]: ...
@overload
def sample(
    key: Array,
    tables: Tables,
    state: State,
    logits: Float[Array, "*batch size"],
    *,
    return_draw: Literal[True],
    **options: Unpack[DrawOptions],
) -> tuple[Int32[Array, "*batch"], State, Draw]: ...
def sample(
    key: Array,
    tables: Tables,
    state: State,
    logits: Float[Array, "*batch size"],
    *,
    return_draw: bool = False,
    **options: Unpack[DrawOptions],
) -> tuple[Int32[Array, "*batch"], State] | tuple[Int32[Array, "*batch"], State, Draw]:
    """Draws one allowed token for each row and reads it.

    The grammar's mask comes first, then `logit_bias`, `temperature`, `top_k`, `top_p` and `min_p`, each of
    what is left: see `DrawOptions` and docs/sampling.md. Computed in float32 at least.

    Args:
        key: a PRNG key, typed or raw; or one for each row (`[*batch]`), and then a row's token depends on its
            own key, state and logits only.
        tables: the compiled grammar.
        state: any batch axes.
        logits: batch axes as in `state`, as wide as the vocabulary's `size`.
        return_draw: also return a `Draw`.
        **options: `logit_bias`, `temperature`, `top_k`, `top_p`, `min_p`.

    Returns:
        The tokens `int32[*batch]`, the state after them and, if asked for, the `Draw`. A row in which nothing
        can be drawn (the bias bans all that the grammar allows, or the logits are not numbers) gets STUCK.

    Raises:
        ShapeError: the logits, a key or an option have the wrong shape or dtype.
        SamplingError: an option is out of range.

    Example:
        >>> import jax, jax.numpy as jnp, jaxgcd
        >>> vocabulary = jaxgcd.Vocabulary([b"a", b"b", b"c", b""], eos=[3])
        >>> tables = jaxgcd.compile_grammar('start: "a" "b" | "b"', vocabulary)
        >>> state, logits = jaxgcd.init(tables), jnp.log(jnp.array([0.1, 0.3, 0.2, 0.4]))
        >>> token, state, draw = jaxgcd.sample(
        ...     jax.random.key(0), tables, state, logits, temperature=0.0, return_draw=True
        ... )
        >>> int(token), round(float(jnp.exp(draw.logprob)), 3), round(float(jnp.exp(draw.log_mass)), 3)
        (1, 0.3, 0.4)
    """
    batch = state.status.shape
    settings = make_settings(batch, tables.size, **options)
    token, after, draw = draw_token(keys.typed_key(key, batch), tables, state, logits, settings)
    return (token, after, draw) if return_draw else (token, after)


def _draw_specs(key, tables, state, logits, *_) -> tuple[PartitionSpec, State, Draw]:
    batch = batch_spec(state, logits)
    spec = PartitionSpec(*batch)
    return spec, state_specs(batch), Draw(spec, spec, spec)  # type: ignore[arg-type]


# On explicit axes, logits that are split along the vocabulary could not be reshaped.
@on_any_mesh(_draw_specs)
def draw_token(
    key: Array,
    tables: Tables,
    state: State,
    logits: Float[Array, "*batch size"],
    settings: Settings,
    no_eos: Bool[Array, "*batch"] | None = None,
) -> tuple[Int32[Array, "*batch"], State, Draw]:
    """`sample` with checked settings; where `no_eos`, EOS is withheld while another token can be drawn."""
    masked = mask_logits(tables, state, logits, fill=-jnp.inf)
    masked, logits = _wide(masked), _wide(jnp.asarray(logits))
    is_eos = unpack(tables.eos_words, tables.size)
    scores = biased(settings, masked)
    if no_eos is not None:
        scores = _without_eos(scores, is_eos, no_eos)
    weights = log_weights(settings, scores)
    greedy = settings.temperature <= 0
    token = jnp.where(greedy, keys.argmax(scores), keys.draw(key, weights))
    possible = (scores > -jnp.inf).any(axis=-1)
    # Of nothing but minus infinities, token 0 would be the largest.
    token = jnp.where(possible, token, jnp.argmax(is_eos).astype(jnp.int32))
    after = _advance(tables, state, token, possible)
    drawn = jnp.where(greedy, 0.0, _at(weights, token) - logsumexp(weights, axis=-1))
    whole = logsumexp(logits, axis=-1)
    log_mass = logsumexp(masked, axis=-1) - whole
    return token, after, _known(state, after, _at(logits, token) - whole, drawn, log_mass)


def _wide(logits: Float[Array, "*batch size"]) -> Float[Array, "*batch size"]:
    wide = logits if logits.dtype == jnp.float64 else logits.astype(jnp.float32)
    return jnp.minimum(wide, jnp.finfo(wide.dtype).max)


def _without_eos(
    scores: Float[Array, "*batch size"], is_eos: Bool[Array, " size"], no_eos: Bool[Array, "*batch"]
) -> Float[Array, "*batch size"]:
    others = jnp.where(is_eos, -jnp.inf, scores)
    withheld = no_eos & (others > -jnp.inf).any(axis=-1)
    return jnp.where(withheld[..., None], others, scores)


def _advance(
    tables: Tables, state: State, token: Int32[Array, "*batch"], possible: Bool[Array, "*batch"]
) -> State:
    """The state after the tokens; rows in which none was possible are STUCK where they stood."""
    after = advance(tables, state, token)
    stuck = (state.status == Status.RUNNING) & ~possible
    status = jnp.where(stuck, jnp.int32(Status.STUCK), after.status)
    return dataclasses.replace(after, status=status)


def _at(values: Float[Array, "*batch size"], token: Int32[Array, "*batch"]) -> Float[Array, "*batch"]:
    return jnp.take_along_axis(values, token[..., None], axis=-1)[..., 0]


def _known(
    before: State,
    after: State,
    logprob: Float[Array, "*batch"],
    drawn_logprob: Float[Array, "*batch"],
    log_mass: Float[Array, "*batch"],
) -> Draw:
    stuck = after.status == Status.STUCK
    drawn = (before.status == Status.RUNNING) & ~stuck
    nothing = jnp.zeros_like(log_mass)
    mass = jnp.where((before.status == Status.RUNNING) & stuck, -jnp.inf, nothing)
    return Draw(
        jnp.where(drawn, logprob, nothing),
        jnp.where(drawn, drawn_logprob, nothing),
        jnp.where(drawn, log_mass, mass),
    )
