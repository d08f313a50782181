"""A small decoder's training step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agent.workloads.registry import Place, Step, workload

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the model and of its batch."""

    vocabulary: int
    width: int
    heads: int
    layers: int
    sequence: int
    batch: int


SHAPES = {
    "small": Shape(64, 16, 2, 1, 8, 2),
    "medium": Shape(2048, 256, 4, 2, 128, 8),
    "large": Shape(32768, 1024, 16, 8, 1024, 8),
}


@workload("transformer", steps=10)
def transformer(place: Place) -> Step:
    """A training step of a small decoder: embedding, attention, MLP, cross entropy, AdamW."""
    import torch
    from torch.nn import functional

    torch.manual_seed(place.seed)
    shape = SHAPES[place.size]
    model = _decoder(shape).to(place.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    tokens = torch.randint(shape.vocabulary, (shape.batch, shape.sequence + 1)).to(place.device)

    def step() -> None:
        optimizer.zero_grad()
        # A GPU trains in bf16; on a CPU without bf16 units that would be an emulation.
        with torch.autocast(place.device.split(":")[0], torch.bfloat16, enabled=place.on_gpu):
            logits = model(tokens[:, :-1])
            loss = functional.cross_entropy(logits.reshape(-1, shape.vocabulary), tokens[:, 1:].reshape(-1))
        torch.autograd.backward(loss)
        optimizer.step()

    return step


def _decoder(shape: Shape) -> torch.nn.Module:
    from torch import nn, randn
    from torch.nn import functional

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            width = shape.width
            self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = x + self.out(self.attend(self.qkv(self.before(x))))
            y: torch.Tensor = x + self.mlp(self.between(x))
            return y

        def attend(self, qkv: torch.Tensor) -> torch.Tensor:
            batch, sequence, _ = qkv.shape
            heads = qkv.view(batch, sequence, 3, shape.heads, -1).permute(2, 0, 3, 1, 4)
            query, key, value = heads.unbind(0)
            mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
            return mixed.transpose(1, 2).reshape(batch, sequence, shape.width)

    class Decoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.token = nn.Embedding(shape.vocabulary, shape.width)
            self.place = nn.Parameter(0.02 * randn(shape.sequence, shape.width))
            self.blocks = nn.Sequential(*(Block() for _ in range(shape.layers)))
            self.norm, self.head = nn.LayerNorm(shape.width), nn.Linear(shape.width, shape.vocabulary)

        def forward(self, tokens: torch.Tensor) -> torch.Tensor:
            logits: torch.Tensor = self.head(self.norm(self.blocks(self.token(tokens) + self.place)))
            return logits

    return Decoder()
