"""Attention on its own, over shapes."""

from __future__ import annotations

from agent.workloads.registry import Place, Step, workload

#: (batch, heads, queries, keys, head dim, causal): a prefill, a square causal one, a decode step.
SHAPES = {
    "small": ((1, 2, 16, 16, 8, True), (1, 2, 1, 32, 8, False)),
    "medium": ((2, 8, 512, 512, 64, False), (2, 8, 512, 512, 64, True), (16, 8, 1, 1024, 64, False)),
    "large": ((4, 16, 2048, 2048, 128, False), (4, 16, 4096, 4096, 128, True), (64, 32, 1, 8192, 128, False)),
}


@workload("attention", steps=12)
def attention(place: Place) -> Step:
    """Scaled dot-product attention: dense, causal, and one query against a long cache."""
    import torch
    from torch.nn import functional

    generator = torch.Generator().manual_seed(place.seed)
    dtype = torch.bfloat16 if place.on_gpu else torch.float32

    def tensor(*dims: int) -> torch.Tensor:
        return torch.randn(*dims, generator=generator).to(place.device, dtype)

    calls = [
        (tensor(b, h, q, d), tensor(b, h, k, d), tensor(b, h, k, d), causal)
        for b, h, q, k, d, causal in SHAPES[place.size]
    ]

    def step() -> None:
        with torch.no_grad():
            for query, key, value, causal in calls:
                functional.scaled_dot_product_attention(query, key, value, is_causal=causal)

    return step
