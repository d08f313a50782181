"""CPU time of costing every launch of a trace, over that of reading it; ends with 1 when over the limit.

    .venv/bin/python -m bench.cost [-n ROUNDS] [-l LAUNCHES] [-s SHAPES] [FILE ...]

The trace is made for it (bench/cost_trace.py): a million launches of 300 different calls.  Reading is
``rooflight.read``, costing is ``rooflight.cost.launches.attach`` with links and kernel names at hand; both
alternate within one process, and the medians are compared.  CPU is that of all threads.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import rooflight
from bench.cost_trace import write
from rooflight.cost.launches import attach
from rooflight.results.stages import Options, Stages

LIMIT = 0.05
LAUNCHES, SHAPES = 1_000_000, 300


@dataclass(frozen=True)
class Sample:
    """One round: CPU seconds of reading and of costing; launches, and those whose FLOPs are known."""

    read_s: float
    cost_s: float
    launches: int
    known: int


def measure(path: Path) -> Sample:
    """Read and cost the trace once."""
    start = time.process_time()
    timeline = rooflight.read(path)
    read = time.process_time()
    stages = Stages(timeline, Options())
    links, names = stages.links, stages.names
    ready = time.process_time()
    costs = attach(timeline, links, names)
    done = time.process_time()
    known = sum(costs.costs[i].flops is not None for i in costs.index.tolist())
    return Sample(read - start, done - ready, len(timeline.gpu), known)


def report(path: Path, samples: Sequence[Sample]) -> tuple[str, bool]:
    """A line of the medians, and whether they are within the limit."""
    read, cost = (
        statistics.median(times) for times in zip(*((s.read_s, s.cost_s) for s in samples), strict=True)
    )
    first, ratio = samples[0], cost / read
    line = (
        f"{path.name}: {first.launches:,} launches ({first.known:,} with known FLOPs), "
        f"read {read:.3f} s, cost {cost:.3f} s = {ratio:.4f}x (limit {LIMIT}x)"
    )
    return line, ratio <= LIMIT


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/cost.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="traces (default: one that is made)")
    parser.add_argument("-n", type=int, default=3, dest="rounds", help="measurements (default: 3)")
    parser.add_argument("-l", "--launches", type=int, default=LAUNCHES, help=f"default: {LAUNCHES:,}")
    parser.add_argument("-s", "--shapes", type=int, default=SHAPES, help=f"default: {SHAPES}")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    within = True
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{options.launches}_launches.json.gz"
        if not options.files:
            write(made, options.launches, options.shapes)
        for path in options.files or [made]:
            line, is_within = report(path, [measure(path) for _ in range(options.rounds)])
            print(line, flush=True)
            within = within and is_within
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
