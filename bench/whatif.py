"""How far off what-if is: recordings of one workload on two GPUs, each predicted from the other.

    .venv/bin/python -m bench.whatif [--pairs FOLDER]

FOLDER has a folder for each GPU, named as below, with files of the same name.  Prints each pair, in both
directions and by kernel family, so that one sees where the model is weak: families whose kernels two vendors
write differently are off by as much as these differ.  Last comes the median error of the sums, and what it
would be if kernels that no roof holds kept their time.
"""

from __future__ import annotations

import argparse
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import permutations
from pathlib import Path

from rooflight import analyze, read, whatif
from rooflight.protocol import Document
from rooflight.scenarios import KernelForecast, Range
from rooflight.scenarios.model import exactly

GPUS = {"h100": "NVIDIA H100 80GB HBM3", "mi300": "AMD Instinct MI300X"}
PAIRS = Path(__file__).resolve().parent.parent.parent / "shared" / "traces" / "pairs"


@dataclass(slots=True)
class Family:
    """Sums in µs; ``kept`` is the middle if kernels that no roof holds kept their time."""

    recorded: float = 0.0
    predicted: Range = field(default_factory=lambda: exactly(0.0))
    kept: float = 0.0
    measured: float = 0.0

    def add(self, k: KernelForecast) -> None:
        self.recorded += k.time_us
        self.predicted += k.predicted_us
        self.kept += k.time_us if k.basis == "latency" else k.predicted_us.mid


@dataclass(frozen=True, slots=True)
class Pair:
    """One workload, from one GPU to another."""

    title: str
    families: dict[str, Family]

    @property
    def total(self) -> Family:
        whole = Family()
        for f in self.families.values():
            whole.recorded += f.recorded
            whole.predicted += f.predicted
            whole.kept += f.kept
            whole.measured += f.measured
        return whole


def pair(recorded: Document, measured: Document, gpu: str, title: str) -> Pair:
    """The kernels of ``recorded`` predicted on ``gpu``, beside what was measured there."""
    families: dict[str, Family] = defaultdict(Family)
    for k in whatif(recorded, gpu).per_kernel:
        if k.kind == "kernel":
            families[k.family or "other"].add(k)
    for there in measured.ranks[0].kernels:
        if there.kind == "kernel":
            families[there.family or "other"].measured += there.time_us
    return Pair(title, dict(families))


def pairs(folder: Path) -> Iterator[Pair]:
    for here, there in permutations(GPUS, 2):
        for file in sorted((folder / here).iterdir()):
            recorded, measured = (analyze(read(f)).document for f in (file, folder / there / file.name))
            yield pair(recorded, measured, GPUS[there], f"{here} → {there}  {file.name.partition('.')[0]}")


def lines(p: Pair) -> Iterator[str]:
    yield p.title
    yield f"  {'family':<16}{'recorded':>10}{'low':>10}{'middle':>10}{'high':>10}{'measured':>10}   error"
    families = sorted(p.families.items(), key=lambda item: -max(item[1].recorded, item[1].measured))
    for name, f in [*families, ("all", p.total)]:
        r = f.predicted
        figures = "".join(f"{v:>10.1f}" for v in (f.recorded, r.low, r.mid, r.high, f.measured))
        outside = "" if r.low <= f.measured <= r.high else "  outside"
        yield f"  {name:<16}{figures}  {error(r.mid, f.measured)}{outside}"


def error(predicted: float, measured: float) -> str:
    """Signed, in percent; a dash for what ran on one of the two only."""
    return f"{100 * (predicted / measured - 1):+5.0f} %" if predicted and measured else "      –"


def summary(found: Sequence[Pair]) -> str:
    sums = [p.total for p in found]
    inside = sum(
        s.predicted.low <= s.measured <= s.predicted.high and s.predicted.high <= 2.5 * s.predicted.low
        for s in sums
    )
    here, kept = (
        100 * statistics.median(abs(mid / s.measured - 1) for mid, s in zip(mids, sums, strict=True))
        for mids in ([s.predicted.mid for s in sums], [s.kept for s in sums])
    )
    return (
        f"{inside} of {len(sums)} inside a range no wider than 2.5; median error {here:.0f} %"
        f" ({kept:.0f} % with the time of kernels that no roof holds kept)"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description="errors of what-if by pair and family")
    parser.add_argument("--pairs", type=Path, default=PAIRS, metavar="FOLDER")
    found = list(pairs(parser.parse_args().pairs))
    for p in found:
        print("\n".join(lines(p)), end="\n\n")
    print(summary(found))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
