"""A decoder-only transformer of the Llama family, as a Flax NNX module.

Pre-normalised blocks of attention and SwiGLU (Shazeer 2020, "GLU Variants Improve Transformer"). The
layers are unrolled, not scanned: on CPU a scan copies each layer's weights out of the stacked array in every
decoding step.
"""

from functools import partial

import jax
import jax.numpy as jnp
from flax import nnx
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Float32, Int

from .attention import Attention
from .cache import Cache, empty_cache
from .config import LlamaConfig
from .norm import RMSNorm
from .rope import Rotation, rotation


class MLP(nnx.Module):
    """SwiGLU: `down(silu(gate(x)) * up(x))`."""

    def __init__(self, config: LlamaConfig, *, dtype: DTypeLike, rngs: nnx.Rngs):
        linear = partial(nnx.Linear, use_bias=False, dtype=dtype, param_dtype=dtype, rngs=rngs)
        self.gate = linear(config.hidden_size, config.intermediate_size)
        self.up = linear(config.hidden_size, config.intermediate_size)
        self.down = linear(config.intermediate_size, config.hidden_size)

    def __call__(self, x: Float[Array, "*batch hidden"]) -> Float[Array, "*batch hidden"]:
        return self.down(jax.nn.silu(self.gate(x)) * self.up(x))


class Layer(nnx.Module):
    """One block: attention and SwiGLU, each behind a norm and added to the residual stream."""

    def __init__(self, config: LlamaConfig, layer: int, *, dtype: DTypeLike, rngs: nnx.Rngs):
        self.attention_norm = RMSNorm(config.hidden_size, config.rms_eps, dtype=dtype)
        self.attention = Attention(config, layer, dtype=dtype, rngs=rngs)
        self.mlp_norm = RMSNorm(config.hidden_size, config.rms_eps, dtype=dtype)
        self.mlp = MLP(config, dtype=dtype, rngs=rngs)

    def __call__(
        self,
        x: Float[Array, "batch time hidden"],
        cache: Cache,
        positions: Int[Array, "batch time"],
        by: Rotation,
    ) -> tuple[Float[Array, "batch time hidden"], Cache]:
        mixed, cache = self.attention(self.attention_norm(x), cache, positions, by)
        x = x + mixed
        return x + self.mlp(self.mlp_norm(x)), cache


class Llama(nnx.Module):
    """The decoder. `dtype` is that of the weights, the activations and the cache."""

    def __init__(self, config: LlamaConfig, *, dtype: DTypeLike = jnp.float32, rngs: nnx.Rngs):
        self.config = config
        self.dtype = jnp.dtype(dtype)
        embed = partial(nnx.Embed, dtype=dtype, param_dtype=dtype, rngs=rngs)
        self.embedding = embed(config.vocab_size, config.hidden_size)
        self.layers = nnx.List(
            Layer(config, index, dtype=dtype, rngs=rngs) for index in range(config.num_layers)
        )
        self.norm = RMSNorm(config.hidden_size, config.rms_eps, dtype=dtype)
        linear = partial(nnx.Linear, use_bias=False, dtype=dtype, param_dtype=dtype, rngs=rngs)
        tied = config.tied_embeddings
        self.head = None if tied else linear(config.hidden_size, config.vocab_size)

    def init_cache(self, batch: int, max_length: int) -> Cache:
        """An empty cache of `batch` rows with room for `max_length` tokens each."""
        return empty_cache(self.config, batch, max_length, self.dtype)

    def __call__(
        self, tokens: Int[Array, "batch time"], cache: Cache
    ) -> tuple[Float[Array, "batch time hidden"], Cache]:
        """Read `tokens` at the positions behind what each row of the cache holds.

        Returns the normalised hidden states and the cache with keys and values written, but with its
        `length` as it was: the caller knows how many of the tokens were not padding (`Cache.extend`).
        """
        steps = jnp.arange(tokens.shape[1], dtype=jnp.int32)
        positions = cache.length[:, None] + steps  # [B, T]
        by = rotation(positions, self.config.head_dim, self.config.rope_theta, self.config.rope_scaling)
        x = self.embedding(tokens)
        for layer in self.layers:
            x, cache = layer(x, cache, positions, by)
        return self.norm(x), cache

    def logits(self, hidden: Float[Array, "*batch hidden"]) -> Float32[Array, "*batch vocab"]:
        """Logits of the next token after each hidden state, summed up in float32.

        Rounded to bfloat16, logits of 16 and more would differ by steps of 1/8.
        """
        table, axes = self.embedding.embedding, "...h,vh->...v"
        if self.head is not None:
            table, axes = self.head.kernel, "...h,hv->...v"
        return jnp.einsum(axes, hidden, table[...], preferred_element_type=jnp.float32)
