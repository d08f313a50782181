"""Matrix products over shapes: what the compute roof looks like from below."""

from __future__ import annotations

from agent.workloads.registry import Place, Step, workload

#: (M, N, K): square ones near the roof, a skinny one under the memory roof, a small one under neither.
SHAPES = {
    "small": ((32, 32, 32), (64, 16, 64)),
    "medium": ((768, 768, 768), (1024, 1024, 1024), (512, 2048, 512), (16, 2048, 2048), (48, 48, 48)),
    "large": ((4096, 4096, 4096), (8192, 8192, 8192), (2048, 8192, 2048), (16, 16384, 16384), (64, 64, 64)),
}


@workload("gemm", steps=12)
def gemm(place: Place) -> Step:
    """Matrix products of several shapes, in fp32 and in bf16."""
    import torch

    generator = torch.Generator().manual_seed(place.seed)

    def operand(rows: int, columns: int, dtype: torch.dtype) -> torch.Tensor:
        return torch.randn(rows, columns, generator=generator).to(place.device, dtype)

    pairs = [
        (operand(m, k, dtype), operand(k, n, dtype))
        for dtype in (torch.float32, torch.bfloat16)
        for m, n, k in SHAPES[place.size]
    ]

    def step() -> None:
        for a, b in pairs:
            torch.mm(a, b)

    return step
