"""What can be sampled."""

from __future__ import annotations

from typing import Protocol

from agent.sampler.sample import DeviceSample


class Source(Protocol):
    """:class:`agent.sampler.nvml.Nvml` is one."""

    def sample(self, t: float) -> list[DeviceSample]: ...

    def close(self) -> None: ...
