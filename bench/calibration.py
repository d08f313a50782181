"""How well a calibration of this CPU repeats, and how much it finds, beside plain torch.

    .venv/bin/python -m bench.calibration [-n ROUNDS] [--full]

In turns, each in a process of its own: ``rooflight-agent calibrate --quick``, and what one would write in
its place, a loop of ``torch.mm`` of three sizes and loops of ``copy_`` and ``torch.add(out=)`` over arrays of
four times the last-level cache.  Plain figures are the median of a second of calls, of products the best
size's.  For each figure: the spread of both over the rounds (highest over lowest, less 1), and the best
calibration over the best of plain torch.

Ends with 1 when a calibration spreads more than twice as far as plain torch, or reaches less than 0.9 of
it.  Spreads of under 1 % count as 1 %: a machine that still is no worse at measuring.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.device import last_level_cache_bytes

CHECKOUT = Path(__file__).resolve().parent.parent
MIB = 1024**2
#: Figure -> unit on paper.
FIGURES = {"fp32 product": "TFLOP/s", "copy": "GB/s", "triad": "GB/s"}
MOST_SPREAD, LEAST_REACHED = 2.0, 0.9
#: Below this a spread is taken for this.
FLOOR_SPREAD = 0.01

PLAIN = """
import json, statistics, sys, time
import torch
array_bytes, seconds = int(sys.argv[1]), float(sys.argv[2])
def rate(amount, work):
    for _ in range(3):
        work()
    times, end = [], time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return amount / statistics.median(times)
def product(n):
    a, b, out = (torch.randn(n, n) for _ in range(3))
    return rate(2 * n**3, lambda: torch.mm(a, b, out=out)) / 1e12
a, b, c = (torch.full((array_bytes // 4,), float(i)) for i in range(3))
print(json.dumps({
    "fp32 product": max(product(n) for n in (512, 1024, 2048)),
    "copy": rate(2 * a.nbytes, lambda: a.copy_(b)) / 1e9,
    "triad": rate(3 * a.nbytes, lambda: torch.add(b, c, alpha=3.0, out=a)) / 1e9,
}))
"""


@dataclass(frozen=True, slots=True)
class Round:
    """The figures of both sides, and what other programs used of the CPUs, in words."""

    ours: dict[str, float]
    plain: dict[str, float]
    others: str

    def __str__(self) -> str:
        pairs = [f"{figure} {self.ours[figure]:.4g} beside {self.plain[figure]:.4g}" for figure in FIGURES]
        return f"{', '.join(pairs)} (others used {self.others})"


@dataclass(frozen=True, slots=True)
class Verdict:
    """One figure over the rounds: spreads (fractions) of both sides and the best over the best."""

    figure: str
    spread: float
    plain_spread: float
    reached: float

    @property
    def held(self) -> bool:
        allowed = MOST_SPREAD * max(self.plain_spread, FLOOR_SPREAD)
        return self.spread <= allowed and self.reached >= LEAST_REACHED


def spread(values: Sequence[float]) -> float:
    """Highest over lowest, less 1."""
    return max(values) / min(values) - 1


def verdict(figure: str, calibrated: Sequence[float], plain: Sequence[float]) -> Verdict:
    """What a figure's values of all rounds say."""
    return Verdict(figure, spread(calibrated), spread(plain), max(calibrated) / max(plain))


def line(v: Verdict, calibrated: Sequence[float], plain: Sequence[float]) -> str:
    """A figure on one line; spreads in percent."""
    unit = FIGURES[v.figure]
    medians = f"{statistics.median(calibrated):.4g} {unit} beside {statistics.median(plain):.4g}"
    spreads = f"spread {100 * v.spread:.1f} % beside {100 * v.plain_spread:.1f} %"
    reached = f"best over best {v.reached:.3f}; {'held' if v.held else 'MISSED'}"
    return f"{v.figure:<13} {medians}; {spreads}; {reached}"


def measured(*, full: bool, seconds: float, state: Path) -> Round:
    """A calibration, then plain torch."""
    command = [sys.executable, "-m", "agent.cli", "calibrate", "--device", "cpu", "--no-push", "--json"]
    found = _run(command + ([] if full else ["--quick"]), {"ROOFLIGHT_STATE": str(state)})
    size = max(64 * MIB, 4 * (last_level_cache_bytes() or 0))
    plain = _run([sys.executable, "-c", PLAIN, str(size), str(seconds)], {})
    ours = (found["gemm_tflops"]["fp32"], found["copy_gbs"], found["stream_gbs"])
    return Round(dict(zip(FIGURES, ours, strict=True)), plain, found["conditions"]["others_used"])


def _run(command: Sequence[str], env: dict[str, str]) -> dict[str, Any]:
    """The JSON that a command prints."""
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=CHECKOUT, env=os.environ | env, check=False
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(command)[:60]} failed: {done.stderr.strip()[-300:]}")
    return dict(json.loads(done.stdout))


def rounds(options: argparse.Namespace, state: Path) -> Iterator[Round]:
    """One round after the other, each told when it is over."""
    for n in range(options.rounds):
        found = measured(full=options.full, seconds=options.seconds, state=state)
        print(f"{n + 1}: {found}", flush=True)
        yield found


def report(found: Sequence[Round]) -> int:
    """Print a line for each figure; 1 when one missed the bar."""
    held = []
    for figure in FIGURES:
        ours, plain = [r.ours[figure] for r in found], [r.plain[figure] for r in found]
        told = verdict(figure, ours, plain)
        print(line(told, ours, plain))
        held.append(told.held)
    return 0 if all(held) else 1


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.calibration", description=__doc__.splitlines()[0])
    parser.add_argument("-n", "--rounds", type=int, default=7, help="measurements of each side (default: 7)")
    parser.add_argument("--full", action="store_true", help="the full calibration instead of the quick one")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each plain figure (default: 1)")
    options = parser.parse_args(argv)
    if options.rounds < 2:
        parser.error("a spread needs two rounds")
    with tempfile.TemporaryDirectory() as folder:
        return report(list(rounds(options, Path(folder))))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
