"""The devices of this host, by whichever vendor's library is here."""

from __future__ import annotations

from agent.sampler.amd import NODE, open_amd
from agent.sampler.nvml import NoDriverError, open_nvml
from agent.sampler.source import Source


def open_devices(*, pcie_calls: int = 0) -> Source:
    """NVIDIA's, else AMD's; :class:`NoDriverError` says why there are none."""
    try:
        return open_nvml(pcie_calls=pcie_calls)
    except NoDriverError:
        if not NODE.exists():
            raise
    return open_amd()
