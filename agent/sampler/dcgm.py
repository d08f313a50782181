"""Figures that NVML lacks, from the text of dcgm-exporter: how busy SMs, pipes and memory are, links.

https://github.com/NVIDIA/dcgm-exporter.  The text is another program's, perhaps another machine's: its size,
its lines and its values are all bounded.
"""

from __future__ import annotations

import http.client
import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus

from agent.sampler.exposition import Exposition, Sample
from agent.sampler.names import NAMES, RATIOS, Name
from agent.sampler.sample import DeviceSample
from agent.sampler.values import is_blank
from rooflight.protocol import Flag

#: The exporter itself reads DCGM every 30 s, unless it was told otherwise.
FETCH_S = 5.0
#: What an exporter told longer ago is not true now.
FRESH_S = 15.0
TIMEOUT_S = 2.0
#: The page of eight GPUs has about 100 kB.
MOST_BYTES = 4 << 20
MOST_DEVICES = 512
_BY_DCGM = {name.dcgm: name for name in NAMES}
#: DCGM 4 renamed it.
_BY_DCGM["DCGM_FI_DEV_CLOCKS_EVENT_REASONS"] = _BY_DCGM["DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"]
_HIGHEST = {"percent": 100.0, "ratio": 1.0}
#: No count of 63 bits comes so far; blanks that went through a float are no longer exact.
_BLANK_FROM = 2.0**62
_WHOLE_NAME = 200

#: A device's UUID, and the number of the MIG instance within it.
Key = tuple[str, int | None]


@dataclass
class Reading:
    """What one page says of one device; fields as those of a sample."""

    uuid: str
    index: int | None
    model: str | None
    values: dict[str, float] = field(default_factory=dict)
    flags: list[Flag] = field(default_factory=list)
    _told: dict[str, float] = field(default_factory=dict)

    def add(self, name: Name, value: float) -> None:
        """A second, different value of a field is no value."""
        before = self._told.setdefault(name.field, value)
        if before != value:
            if self.values.pop(name.field, None) is not None:
                told = f"{name.dcgm} (device {self.index}): {before:.12g} and {value:.12g}"
                self.flags.append(Flag("field_unavailable", 1, told))
        elif (known := self._known(name, value)) is not None:
            self.values[name.field] = known

    def _known(self, name: Name, value: float) -> float | None:
        whole = int(value) if math.isfinite(value) and value == int(value) else value
        narrow = name.kind not in ("amount", "total")
        if not math.isfinite(value) or value >= _BLANK_FROM:
            return None
        if is_blank(value, narrow=narrow) or is_blank(whole, narrow=narrow):
            return None
        least = -math.inf if name.kind == "degrees" else 0.0
        if not least <= value <= _HIGHEST.get(name.kind, math.inf):
            told = f"{name.dcgm} (device {self.index}): {value:.12g}"
            self.flags.append(Flag("out_of_range", 1, told))
            return None
        ours = value / name.per_unit
        return round(ours) if name.whole else ours


def read(text: str) -> dict[Key, Reading]:
    """The devices of a page; a line without the UUID of a device speaks of none."""
    readings: dict[Key, Reading] = {}
    for sample in Exposition(_BY_DCGM.keys()).samples(text):
        key = _key(sample.labels)
        if key is None or (key not in readings and len(readings) >= MOST_DEVICES):
            continue
        reading = readings.get(key)
        if reading is None:
            reading = readings[key] = _reading(key, sample)
        reading.add(_BY_DCGM[sample.name], sample.value)
    return readings


def fill(sample: DeviceSample, readings: dict[Key, Reading], *, flags: bool) -> None:
    """Fields that ``sample`` lacks, from the reading of its device.

    Of a MIG instance the ratios alone: the exporter repeats the whole device's figures for each.  While MIG
    is on, a utilisation of the device stays unknown, whoever tells one.
    """
    reading = _of(sample, readings)
    if reading is None or sample.state != "ok":
        return
    withheld = {"util_pct", "mem_activity_pct"} if _sliced(sample) else set()
    for name, value in reading.values.items():
        wanted = name in RATIOS if sample.parent_uuid else name not in withheld
        if wanted and getattr(sample, name) is None:
            setattr(sample, name, value)
    if flags:
        sample.flags += reading.flags


@dataclass(frozen=True, slots=True)
class Address:
    """Where the exporter is asked, in plain HTTP."""

    host: str
    port: int
    path: str

    def __str__(self) -> str:
        return f"http://{self.host}:{self.port}{self.path}"

    def fetch(self) -> str:
        """The page; :class:`OSError` or :class:`http.client.HTTPException` says why there is none."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=TIMEOUT_S)
        try:
            connection.request("GET", self.path, headers={"Accept": "text/plain"})
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                raise OSError(f"it answers {answer.status}")
            return _body(answer).decode("utf-8", "backslashreplace")
        finally:
            connection.close()


@dataclass
class Dcgm:
    """Asks the exporter every few seconds, in a loop of its own: one that hangs holds up no sample."""

    address: Address
    note: Callable[[str], None]
    failures: int = 0
    statement: str | None = None
    _readings: dict[Key, Reading] = field(default_factory=dict)
    _at: float = -math.inf
    _flagged: float = -math.inf
    _fits: bool = True

    def __call__(self, stop: threading.Event) -> None:
        while not stop.is_set():
            self.look()
            stop.wait(FETCH_S)

    def look(self) -> None:
        """Ask once.  What goes wrong is said when it begins, and when it is over."""
        try:
            readings = read(self.address.fetch())
        except (OSError, http.client.HTTPException) as e:
            self.failures += 1
            self._say(f"no figures of DCGM from {self.address}: {e or type(e).__name__}")
            return
        self._readings, self._at = readings, time.monotonic()
        self._say(None if readings else f"{self.address} names no GPU: it is no dcgm-exporter, or has none")

    def fill(self, samples: list[DeviceSample]) -> None:
        """Add what is known now; a page's flags go to the first samples after it."""
        if time.monotonic() - self._at < FRESH_S:
            flags, self._flagged = self._flagged < self._at, self._at
            for sample in samples:
                fill(sample, self._readings, flags=flags)
            self._foreign_page(samples)

    def _foreign_page(self, samples: list[DeviceSample]) -> None:
        """Another host's exporter answers as well as ours: that nothing of it fits is said once."""
        fits = not samples or not self._readings or any(_of(s, self._readings) for s in samples)
        if not fits and self._fits:
            self.note(f"{self.address} names none of this host's devices: is it another host's exporter?")
        self._fits = fits

    def sample(self, t: float) -> list[DeviceSample]:
        """The devices by DCGM's word alone, where NVML cannot be had; to be filled as any other."""
        if time.monotonic() - self._at >= FRESH_S:
            return []
        return [
            DeviceSample(r.uuid, t, r.index, r.model)
            for (_, instance), r in self._readings.items()
            if instance is None
        ]

    def close(self) -> None:
        """As of any other source."""

    def _say(self, statement: str | None) -> None:
        if statement != self.statement:
            self.note(statement or f"DCGM's figures come from {self.address}")
        self.statement = statement


def _key(labels: dict[str, str]) -> Key | None:
    uuid = labels.get("UUID") or labels.get("uuid")
    if not uuid or len(uuid) > _WHOLE_NAME:
        return None
    return uuid, _whole(labels.get("GPU_I_ID"))


def _reading(key: Key, sample: Sample) -> Reading:
    model = sample.labels.get("modelName")
    return Reading(key[0], _whole(sample.labels.get("gpu")), model[:_WHOLE_NAME] if model else None)


def _whole(text: str | None) -> int | None:
    known = text is not None and text.isascii() and text.isdecimal() and len(text) < len(str(2**31))
    return int(text) if known and text is not None else None


def _of(sample: DeviceSample, readings: dict[Key, Reading]) -> Reading | None:
    """By UUID; a MIG instance by its own, or by its number within the device of its parent's."""
    if sample.uuid is not None and (sample.uuid, None) in readings:
        return readings[sample.uuid, None]
    if sample.parent_uuid is not None and sample.gpu_instance_id is not None:
        return readings.get((sample.parent_uuid, sample.gpu_instance_id))
    return None


def _sliced(sample: DeviceSample) -> bool:
    return any(flag.code == "mig_utilisation_unavailable" for flag in sample.flags)


def _body(answer: http.client.HTTPResponse) -> bytes:
    """All of it, in bounded size and time."""
    end = time.monotonic() + 2 * TIMEOUT_S
    body = bytearray()
    while part := answer.read1(1 << 16):
        body += part
        if len(body) > MOST_BYTES:
            raise OSError(f"its page has more than {MOST_BYTES >> 20} MiB")
        if time.monotonic() > end:
            raise OSError(f"its page takes more than {2 * TIMEOUT_S:g} s")
    return bytes(body)
