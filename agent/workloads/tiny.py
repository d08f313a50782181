"""Very many very small kernels: neither roof is near, the cost of each launch is all there is."""

from __future__ import annotations

from agent.workloads.registry import Place, Step, workload

#: (elements, rounds of four operators).
SIZES = {"small": (64, 10), "medium": (256, 400), "large": (1024, 1000)}


@workload("tiny", steps=8)
def tiny(place: Place) -> Step:
    """Hundreds of elementwise operators on vectors that fit a cache line or two."""
    import torch

    elements, rounds = SIZES[place.size]
    generator = torch.Generator().manual_seed(place.seed)
    start = torch.randn(elements, generator=generator).to(place.device)

    def step() -> None:
        x = start
        with torch.no_grad():
            for _ in range(rounds):
                x = torch.tanh(x * 0.5 + 0.25).sub(0.125)

    return step
