"""The numbers that define a Llama-family decoder."""

import reprlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxgcd.errors import ModelError

from .rope import NO_SCALING, RopeScaling, check_rope


@dataclass(frozen=True, kw_only=True)
class LlamaConfig:
    """Sizes and options of a decoder-only transformer of the Llama family (Touvron et al. 2023).

    * `vocab_size`: rows of the embedding and columns of the logits;
    * `hidden_size`, `num_layers`, `intermediate_size`: width, depth, and width inside the SwiGLU block;
    * `num_heads`, `num_kv_heads`, `head_dim`: query heads share key-value heads in groups of
      `num_heads // num_kv_heads`;
    * `rope_theta`, `rope_scaling`: base of the rotary wavelengths, and how they are stretched;
    * `rms_eps`: added to the mean square in RMSNorm;
    * `tied_embeddings`: the output head is the embedding table;
    * `qkv_bias`, `output_bias`: biases of the attention's query, key and value, and of its output (Qwen 2);
    * `qk_norm`: an RMSNorm over each head's query and key, before the rotation (Qwen 3);
    * `sliding_window`: how many positions, itself included, a token looks back to; None for all (Mistral);
    * `sliding_layers`: which layers have the window; empty for all of them;
    * `max_length`: how many tokens a text may have; None where the model does not say.

    >>> LlamaConfig(vocab_size=50, hidden_size=8, num_layers=3, num_heads=2, num_kv_heads=1, head_dim=4,
    ...     intermediate_size=8, sliding_window=16, sliding_layers=range(2, 3)).window(2)
    16
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    rope_theta: float = 10000.0
    rope_scaling: RopeScaling = NO_SCALING
    rms_eps: float = 1e-5
    tied_embeddings: bool = True
    qkv_bias: bool = False
    output_bias: bool = False
    qk_norm: bool = False
    sliding_window: int | None = None
    sliding_layers: Sequence[int] = ()
    max_length: int | None = None

    def __post_init__(self) -> None:
        sizes = ("vocab_size", "hidden_size", "num_layers", "num_heads", "num_kv_heads", "intermediate_size")
        for name in (*sizes, "sliding_window", "max_length"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer)):
                raise ModelError(f"`LlamaConfig.{name}` must be an integer, not {reprlib.repr(value)}")
            if value is not None and not value > 0:
                raise ModelError(f"`LlamaConfig.{name}` must be positive, not {value}")
            if name in ("sliding_window", "max_length") and (value or 0) >= 2**31:
                raise ModelError(f"`LlamaConfig.{name}` must be below 2**31, not {reprlib.repr(value)}")
        if not self.rms_eps > 0:
            raise ModelError(f"`LlamaConfig.rms_eps` must be positive, not {self.rms_eps}")
        if self.num_heads % self.num_kv_heads:
            raise ModelError(
                f"`num_heads` ({self.num_heads}) must be a multiple of `num_kv_heads` ({self.num_kv_heads})"
            )
        check_rope(self.head_dim, self.rope_theta)
        divisors, frequencies = self.rope_scaling.divisors, self.head_dim // 2
        if len(divisors) not in (0, frequencies) or not all(divisor > 0 for divisor in divisors):
            raise ModelError(f"`rope_scaling` must have {frequencies} positive divisors, or none")

    def window(self, layer: int) -> int | None:
        """How many positions, itself included, a token looks back to in a layer; None for all."""
        return self.sliding_window if not self.sliding_layers or layer in self.sliding_layers else None
