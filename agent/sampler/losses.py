"""Devices that stopped answering: they stay in every sample, without values, under their UUID."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from agent.sampler.sample import DeviceSample

#: A lost device is asked again after 1 s, then 2 s, ... at most a minute.
FIRST_RETRY_S = 1.0
LONGEST_RETRY_S = 60.0


@dataclass(slots=True)
class _Known:
    """A device that answered once; ``here`` until another one answers at its index."""

    index: int
    name: str | None
    here: bool = True
    lost_since: float | None = None
    wait: float = FIRST_RETRY_S
    retry_at: float = 0.0


@dataclass
class Losses:
    """What is remembered of devices between samples."""

    _known: dict[str, _Known] = field(default_factory=dict)
    _count: int | None = None

    def counted(self, count: int) -> None:
        """The driver sees ``count`` devices; another number than before has shifted the indices, so every
        one of them must be asked who it is."""
        if self._count is not None and count != self._count:
            for known in self._known.values():
                known.here = False
        self._count = count

    def well(self, sample: DeviceSample) -> None:
        """A device answered all questions to the end."""
        if sample.uuid is None or sample.index is None:
            raise ValueError("a device without UUID or index cannot be remembered")
        for known in self._known.values():
            known.here = known.here and known.index != sample.index
        self._known[sample.uuid] = _Known(sample.index, sample.name)

    def resting(self, index: int, t: float) -> bool:
        """Whether the device at ``index`` is lost and its next try has not come."""
        known = self._at(index)
        return known is not None and known.lost_since is not None and t < known.retry_at

    def due(self, t: float) -> bool:
        """Whether a lost device is to be tried again."""
        return any(k.lost_since is not None and t >= k.retry_at for k in self._known.values())

    def nameless(self, index: int, t: float) -> list[DeviceSample]:
        """No UUID could be read: nothing to add for a device that we know (:meth:`absent` shows it);
        one never seen is shown by its index."""
        if self._at(index) is not None:
            return []
        sample = DeviceSample(None, t, index, state="lost")
        sample.flag("device_lost", f"GPU index {index} answers with no UUID", 1)
        sample.flag("device_unmatched", f"GPU index {index} has no UUID to join it by")
        return [sample]

    def absent(self, seen: Set[str | None], t: float) -> list[DeviceSample]:
        """Samples without values for every known device that is not among ``seen``."""
        return [self._lost(uuid, known, t) for uuid, known in self._known.items() if uuid not in seen]

    def _at(self, index: int) -> _Known | None:
        return next((known for known in self._known.values() if known.here and known.index == index), None)

    def _lost(self, uuid: str, known: _Known, t: float) -> DeviceSample:
        if known.lost_since is None:
            known.lost_since = t
        if t >= known.retry_at:
            known.retry_at, known.wait = t + known.wait, min(2 * known.wait, LONGEST_RETRY_S)
        sample = DeviceSample(uuid, t, known.index, known.name, state="lost")
        sample.flag("device_lost", f"GPU index {known.index} since {known.lost_since:.0f}", 1)
        return sample
