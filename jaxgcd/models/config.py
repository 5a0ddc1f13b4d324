"""The numbers that define a Llama-family decoder."""

from dataclasses import dataclass

from jaxgcd.errors import ModelError


@dataclass(frozen=True, kw_only=True)
class LlamaConfig:
    """Sizes and constants of a decoder-only transformer of the Llama family (Touvron et al. 2023).

    * `vocab_size`: rows of the embedding and columns of the logits;
    * `hidden_size`, `num_layers`, `intermediate_size`: width, depth, and width inside the SwiGLU block;
    * `num_heads`, `num_kv_heads`, `head_dim`: query heads share key-value heads in groups of
      `num_heads // num_kv_heads`;
    * `rope_theta`: base of the rotary wavelengths; `rms_eps`: added to the mean square in RMSNorm;
    * `tied_embeddings`: the output head is the embedding table.
    """

    vocab_size: int
    hidden_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    intermediate_size: int
    rope_theta: float = 10000.0
    rms_eps: float = 1e-5
    tied_embeddings: bool = True

    def __post_init__(self) -> None:
        sizes = ("vocab_size", "hidden_size", "num_layers", "num_heads", "num_kv_heads", "intermediate_size")
        for name in sizes:
            if getattr(self, name) < 1:
                raise ModelError(f"`LlamaConfig.{name}` must be positive, not {getattr(self, name)}")
        if self.num_heads % self.num_kv_heads:
            raise ModelError(
                f"`num_heads` ({self.num_heads}) must be a multiple of `num_kv_heads` ({self.num_kv_heads})"
            )
        if self.head_dim < 2 or self.head_dim % 2:
            raise ModelError(f"`head_dim` must be even for rotary embeddings, not {self.head_dim}")
