"""A device model of the catalogue, as its datasheet gives it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Gpu:
    """One SKU, or a slice of one.  Peaks are dense, in TFLOP/s (int8: TOP/s); ``matrix`` by dtype on the
    matrix units where the part has them (``fp16_fp16acc``: with fp16 sums), ``vector`` on the ordinary
    ones.  A missing key is unknown.

    ``boost_mhz`` is the clock of the vector peaks, ``tensor_mhz`` that of the matrix peaks where it is
    another.  ``capped``: the firmware holds the peaks under what the units could do.  Links in GB/s per
    direction and, as vendors print it, in total.  ``slice_of`` is the id of the device that this is part of.
    """

    id: str
    vendor: str
    name: str
    variant: str
    arch: str
    compute: str  # compute capability or gfx name
    device_unit: str
    matrix: dict[str, float]
    vector: dict[str, float]
    sm_count: int | None = None
    boost_mhz: float | None = None
    tensor_mhz: float | None = None
    mem_bw_gbs: float | None = None
    mem_gb: float | None = None
    l2_mib: float | None = None
    llc_mib: float | None = None
    smem_per_sm_kib: float | None = None
    tdp_w: float | None = None
    link: str | None = None
    link_gbs_per_dir: float | None = None
    link_gbs_total: float | None = None
    pcie_gen: int | None = None
    names: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    confidence: str = "low"
    notes: str = ""
    efficiency: dict[str, float] = field(default_factory=dict)
    mem_mib: float | None = None  # what a driver reported, where it was seen
    mem_type: str | None = None
    date: str | None = None
    condition: str | None = None
    capped: bool = False
    slice_of: str | None = None

    @property
    def sku(self) -> str:
        """The id of the whole device."""
        return self.slice_of or self.id
