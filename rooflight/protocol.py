"""The one JSON of Rooflight: what the command line prints, the API answers and the pages show.

Times are microseconds with three decimals (``*_us``), shares are percent, an unknown is null.  The
meaning of every figure is in docs/definitions.md.  FLOPs and bytes are exact integers: numbers on the
command line, decimal strings over HTTP (:mod:`rooflight.http_form`), since they pass 2**53.
"""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from rooflight.bounded import NonNegative, Text, Time, UnitsPerStep
from rooflight.collectives import Collective, Communication, Contention
from rooflight.errors import Malformed, ProtocolMismatch

SCHEMA_VERSION = 1

#: Exclusive parts of a step's wall time (DEFINITIONS §16), in the order in which they are shown.
PARTS = (
    "compute",
    "memory",
    "latency",
    "unknown",
    "communication",
    "copy",
    "input",
    "sync",
    "dispatch",
    "host",
    "launch",
    "dependency",
    "unknown_idle",
)
KERNEL_PARTS = PARTS[:4]
IDLE_PARTS = PARTS[6:]
REGIMES = (
    "compute",
    "memory",
    "latency",
    "communication",
    "input",
    "host",
    "copy",
    "dependency",
    "unknown",
)
ORIGINS = ("measured", "modelled", "inferred", "unknown")

# Rows of which there are many say gc=False: they hold no cycle, and the collector need not walk them.


class Flag(Struct, forbid_unknown_fields=False):
    """A statement on data quality: a code of the closed list, how many rows it speaks of, in words."""

    code: str
    count: int | None = None
    detail: str = ""


class DeviceFigures(Struct):
    """One device over the whole recording (DEFINITIONS §4)."""

    name: Text | None
    n_gpu_events: NonNegative
    kernels: NonNegative
    span_us: Time
    busy_us: Time
    idle_us: Time
    busy_pct: float | None
    kernel_sum_us: Time
    compute_us: Time
    comm_us: Time
    mem_us: Time
    exposed_comm_us: Time
    overlap_pct: float | None
    exposed_mem_us: Time
    unlinked_kernels: NonNegative
    unlinked_us: Time


class Parts(Struct, gc=False):
    """Exclusive parts of a wall time, in µs; their sum is the wall time exactly (DEFINITIONS §16)."""

    compute: float = 0.0
    memory: float = 0.0
    latency: float = 0.0
    unknown: float = 0.0
    communication: float = 0.0
    copy: float = 0.0
    input: float = 0.0
    sync: float = 0.0
    dispatch: float = 0.0
    host: float = 0.0
    launch: float = 0.0
    dependency: float = 0.0
    unknown_idle: float = 0.0


class StepWork(Struct, gc=False):
    """Sums over the kernels of a step whose FLOPs and bytes are known, of one number type and origin."""

    dtype: Text | None
    matrix: bool
    origin: str
    count: NonNegative
    time_us: Time
    flops: NonNegative
    bytes: NonNegative
    bound_us: float | None = None


class Step(Struct):
    """One step of the training or serving loop; ``parts_us`` are those of ``device``."""

    n: int
    step_time_us: Time
    gpu_busy_in_window_us: Time | None = None
    gpu_launched_us: Time | None = None
    device: str | None = None
    parts_us: Parts | None = None
    devices: dict[str, Parts] = field(default_factory=dict)
    wait_us: float | None = None
    transfer_us: float | None = None
    regime: str | None = None
    regime_confidence: str | None = None
    regime_reason: str | None = None
    attainable_us: float | None = None
    bound_us: float | None = None
    mfu: float | None = None
    hfu: float | None = None
    start_us: float | None = None
    inferred_from: str | None = None
    work: list[StepWork] = field(default_factory=list)
    work_of_us: float | None = None


class Attribution(Struct):
    """Kernel time under an op; ``op`` is null when no op encloses the launch."""

    kernel: Text
    op: Text | None
    count: NonNegative
    time_us: Time


class Kernel(Struct, gc=False):
    """A kernel group: same name, op, module, input dims and types, device.

    ``time_us``, ``flops``, ``bytes`` and ``bound_us`` are totals over its launches; ``min_us`` to
    ``max_us`` are per launch.  ``dtype`` is the type that its compute roof is taken for; ``histogram``
    counts its launches in twelve equal bins from ``min_us`` to ``max_us``.  ``exclusive_us`` is the time
    that is its alone (DEFINITIONS §16), over the recording, ``steps_exclusive_us`` within the steps, in
    which ``steps_count`` launches start; the groups of a part add up to it.
    """

    name: Text
    short_name: Text = ""
    family: str | None = None
    dtype: str | None = None
    op: Text | None = None
    module: Text | None = None
    input_dims: Text | None = None
    device: str = "0"
    count: NonNegative = 1
    time_us: Time = 0.0
    share_pct: float | None = None
    min_us: float | None = None
    p50_us: float | None = None
    p95_us: float | None = None
    p99_us: float | None = None
    max_us: float | None = None
    flops: NonNegative | None = None
    bytes: NonNegative | None = None
    origin: str = "unknown"
    ai: float | None = None
    achieved_tflops: float | None = None
    achieved_gbs: float | None = None
    bound_us: float | None = None
    roof_fraction: float | None = None
    roof_side: str | None = None
    regime: str = "unknown"
    reason: str = ""
    cost_reason: str = ""
    kind: str = "kernel"
    above_peak: bool = False
    input_types: Text | None = None
    histogram: list[int] = field(default_factory=list)
    module_path: Text | None = None
    exclusive_us: float | None = None
    steps_exclusive_us: float | None = None
    steps_count: int | None = None
    matrix: bool = False
    blocks: NonNegative | None = None
    link_bytes: NonNegative | None = None
    chained_in_bytes: NonNegative = 0
    chained_out_bytes: NonNegative = 0
    limiter: Text | None = None


class Ceiling(Struct):
    """One roof, in FLOP/s or B/s.  ``origin`` tells where the practical figure comes from: measured
    (calibration of this device), factor (measured on this model), family, assumed.  ``observed`` is the
    datasheet's figure at the clock that telemetry saw: informative, no verdict rests on it."""

    datasheet: float | None = None
    practical: float | None = None
    origin: str = "assumed"
    source: str = ""
    observed: float | None = None


class Roofs(Struct):
    """The roofs of one device; ``compute`` by matrix dtype, ``vector`` by vector dtype, in FLOP/s;
    ``memory``, ``link`` and ``pcie`` in B/s.  ``ground`` says by what an ``inferred`` device was found, and
    of what it is a slice; ``observed_mhz`` is the SM clock of the ``observed`` figures."""

    gpu_id: str | None = None
    name: str | None = None
    kind: str = "gpu"
    inferred: bool = False
    compute: dict[str, Ceiling] = field(default_factory=dict)
    vector: dict[str, Ceiling] = field(default_factory=dict)
    memory: Ceiling | None = None
    link: Ceiling | None = None
    pcie: Ceiling | None = None
    sm_count: int | None = None
    sources: list[str] = field(default_factory=list)
    ground: str = ""
    observed_mhz: float | None = None


class MemoryPeaks(Struct):
    """Peaks of the caching allocator, from ``[memory]`` rows, in bytes."""

    peak_allocated: NonNegative | None = None
    peak_reserved: NonNegative | None = None


class CpuStep(Struct):
    """A step of a recording without GPU work (DEFINITIONS §20)."""

    n: int
    step_time_us: Time
    parts_us: Parts
    regime: str | None = None
    regime_confidence: str | None = None
    regime_reason: str | None = None
    attainable_us: float | None = None
    bound_us: float | None = None
    start_us: float | None = None


class Cpu(Struct):
    """The host CPU as a device: its roof, the steps of its main thread, its leaf ops as rows."""

    roof: Roofs
    steps: list[CpuStep] = field(default_factory=list)
    ops: list[Kernel] = field(default_factory=list)
    parts_us: Parts | None = None
    wall_us: float | None = None
    threads_busy_us: dict[str, float] = field(default_factory=dict)
    name: str | None = None
    regime: str | None = None
    regime_confidence: str | None = None
    regime_reason: str | None = None


class LaunchDelay(Struct):
    """Launch to kernel start over the launches of a kernel name; impossible ones are left out."""

    n: int
    mean_us: float | None = None
    p50_us: float | None = None
    max_us: float | None = None


class Evidence(Struct):
    """What a finding points at: kernel rows, steps or gaps, in words and by index."""

    text: str
    kernels: list[int] = field(default_factory=list)
    steps: list[int] = field(default_factory=list)


class Saving(Struct):
    """A saving as money: of each hour that the workload runs, and in a thousand steps."""

    per_hour: float | None = None
    per_1000_steps: float | None = None


class Finding(Struct):
    """Advice with what was seen and what it would save at most, mean per counted step."""

    code: str
    title: str
    saving_us: float | None
    assumption: str
    evidence: list[Evidence]
    fix: str
    regime: str | None = None
    money: Saving | None = None


class Coverage(Struct):
    """Share of kernel time by origin of its cost, in percent; the four sum to 100."""

    measured: float = 0.0
    modelled: float = 0.0
    inferred: float = 0.0
    unknown: float = 0.0


class Bucket(Struct):
    """A share of all GPU events; over the buckets of a rank the four figures add up to what was recorded."""

    events: NonNegative
    time_us: Time
    kernels: NonNegative
    kernel_time_us: Time


class Percentiles(Struct):
    """Over the steps, by linear interpolation; fewer than five have no tails."""

    p50: float
    p95: float | None = None
    p99: float | None = None


class Idle(Struct):
    """Idle time of one cause that one thing on the host explains, over the steps (without steps, over the
    recording).  ``rest`` is what is left of a cause: with it, its rows add up to its part."""

    device: str
    cause: str
    frame: Text | None = None
    python: Text | None = None
    count: NonNegative = 0
    time_us: Time = 0.0
    longest_us: float | None = None
    longest_start_us: float | None = None
    step: int | None = None
    rest: bool = False


class CacheTraffic(Struct):
    """Bytes that the launches of a kernel group moved through a cache, counted by the hardware."""

    kernel: NonNegative
    level: str
    bytes: NonNegative
    peak_bytes_per_s: float | None = None


class StepEnergy(Struct):
    """What a device drew over the marked steps, from an agent's looks at it; joined by ``uuid``.

    ``looks`` fell between the start of the first step and the end of the last; ``wall_us`` is the time
    within steps, ``energy_j`` what was drawn in it, ``power_w`` the one over the other.  ``reason`` says why
    they are unknown.  ``sm_clock_mhz`` is the mean of the looks that saw the device at work, ``boost_mhz``
    the datasheet's.
    """

    device: str
    uuid: Text
    steps: NonNegative
    wall_us: Time
    looks: NonNegative = 0
    energy_j: float | None = None
    per_step_j: float | None = None
    power_w: float | None = None
    sm_clock_mhz: float | None = None
    boost_mhz: float | None = None
    reason: str = ""
    flags: list[Flag] = field(default_factory=list)


class Rank(Struct):
    """One process of the run."""

    rank: int
    grade: str
    verdict_withheld: str | None = None
    grade_reasons: list[str] = field(default_factory=list)
    flags: list[Flag] = field(default_factory=list)
    invalid_events: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, Bucket] = field(default_factory=dict)
    busy_pct: float | None = None
    devices: dict[str, DeviceFigures] = field(default_factory=dict)
    roofs: dict[str, Roofs] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    inferred_steps: list[Step] = field(default_factory=list)
    n_steps: int = 0
    steps_without_gpu: list[int] = field(default_factory=list)
    steps_total_us: float | None = None
    parts_us: dict[str, Parts] = field(default_factory=dict)
    regime: str | None = None
    regime_confidence: str | None = None
    regime_reason: str | None = None
    memory: MemoryPeaks | None = None
    attribution: list[Attribution] = field(default_factory=list)
    attribution_op_time_us: dict[str, float] = field(default_factory=dict)
    phases_us: dict[str, float] = field(default_factory=dict)
    phase_parts_us: dict[str, Parts] = field(default_factory=dict)
    attributed_kernels: int = 0
    unattributed_us: float = 0.0
    launch_delay_us: dict[str, float | None] = field(default_factory=dict)
    launch_delay: LaunchDelay | None = None
    host_api_us: float = 0.0
    graph_launches: int = 0
    graph_launches_with_kernels: int = 0
    flops_total: NonNegative | None = None
    coverage: Coverage = field(default_factory=Coverage)
    kernels: list[Kernel] = field(default_factory=list)
    cpu: Cpu | None = None
    findings: list[Finding] = field(default_factory=list)
    findings_total_us: float | None = None
    communication: list[Communication] = field(default_factory=list)
    communication_rows: NonNegative = 0
    contention: list[Contention] = field(default_factory=list)
    first_kernel_wall_ns: str | None = None
    software: dict[str, str] = field(default_factory=dict)
    host: str | None = None
    caches: list[CacheTraffic] = field(default_factory=list)
    idle: list[Idle] = field(default_factory=list)
    percentiles_us: dict[str, Percentiles] = field(default_factory=dict)
    clock_base_ns: str | None = None
    energy: StepEnergy | None = None

    @property
    def headline(self) -> str | None:
        """The device whose parts are the headline (DEFINITIONS §16): the one that the steps name, else that
        with most kernel time, the lowest of several; ``None`` without GPU work."""
        named = next(
            (s.device for s in (*self.steps, *self.inferred_steps) if s.device in self.devices), None
        )
        time = {key: d.kernel_sum_us for key, d in self.devices.items() if d.n_gpu_events}
        return named or min(time, key=lambda key: (-time[key], len(key), key), default=None)


class Price(Struct):
    """What money rests on: the price of one GPU for one hour, where it is from, and how many GPUs run."""

    per_gpu_hour: float
    currency: str
    source: str
    devices: NonNegative


class Document(Struct):
    """An analysed run: one entry of ``ranks`` per process."""

    schema_version: int
    source: str
    ranks: list[Rank]
    collectives: list[Collective] = field(default_factory=list)
    clock_offset_us: dict[str, float] = field(default_factory=dict)
    missing_ranks: list[int] = field(default_factory=list)
    world_size: int | None = None
    flags: list[Flag] = field(default_factory=list)
    telemetry: dict[str, Any] | None = None
    price: Price | None = None
    units_per_step: UnitsPerStep = field(default_factory=dict)


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(Document)


def encode(value: Any) -> bytes:
    """Strict JSON with numbers, the form of the command line and of a push."""
    return _encoder.encode(value)


def decode(data: bytes) -> Document:
    """Read a document; :class:`Malformed` names the field, :class:`ProtocolMismatch` the version."""
    try:
        doc = _decoder.decode(data)
    except msgspec.DecodeError as e:
        raise Malformed(f"not an analysis: {e}", hint="send the JSON of `rooflight analyze`") from e
    if doc.schema_version > SCHEMA_VERSION:
        raise ProtocolMismatch(
            f"schema_version {doc.schema_version} is newer than {SCHEMA_VERSION}: upgrade this program"
        )
    return doc
