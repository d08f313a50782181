"""A training step that waits for its data."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Any

from agent.workloads.registry import Place, Step, workload

#: (samples in a batch, floats in a sample, times that a sample is unpacked, width of the model).
SIZES = {"small": (2, 64, 1, 8), "medium": (32, 12288, 8, 128), "large": (64, 12288, 8, 1024)}


@workload("starved", steps=12)
def starved(place: Place) -> Step:
    """Training behind a DataLoader without workers whose samples are slow to unpack."""
    import torch
    from torch import nn

    torch.manual_seed(place.seed)
    batch, floats, _, width = SIZES[place.size]
    model = nn.Sequential(nn.Linear(floats, width), nn.ReLU(), nn.Linear(width, 10)).to(place.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batches = _endless(torch.utils.data.DataLoader(_dataset(place), batch_size=batch, num_workers=0))

    def step() -> None:
        samples, labels = next(batches)
        optimizer.zero_grad()
        logits = model(samples.to(place.device))
        torch.autograd.backward(nn.functional.cross_entropy(logits, labels.to(place.device)))
        optimizer.step()

    return step


def _endless(loader: Any) -> Iterator[Any]:
    """Epoch after epoch; ``next`` on the loader's own iterator is what the profiler records."""
    while True:
        yield from loader


def _dataset(place: Place) -> Any:
    import torch
    from torch.utils.data import Dataset

    batch, floats, rounds, _ = SIZES[place.size]

    class Packed(Dataset):  # type: ignore[type-arg]
        """Samples kept compressed, as images on a disk are; unpacking them is the work of the loader."""

        def __init__(self) -> None:
            noise = torch.randn(floats, generator=torch.Generator().manual_seed(place.seed))
            self.packed = zlib.compress(noise.numpy().tobytes(), 6)

        def __len__(self) -> int:
            return 64 * batch

        def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
            for _ in range(rounds):
                raw = zlib.decompress(self.packed)
            return torch.frombuffer(bytearray(raw), dtype=torch.float32), index % 10

    return Packed()
