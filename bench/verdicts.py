"""CPU time of verdicts, findings and a what-if, over that of reading the trace; ends with 1 over the limit.

    .venv/bin/python -m bench.verdicts [-n ROUNDS] [--gpu NAME] [--traces FOLDER] [FILE ...]

The trace is made for it (tools/gen_trace.py beside FOLDER): some 240,000 events.  Reading is
``rooflight.read``.  Verdicts are what follows when every launch is tied to its op and costed: groups,
regimes, parts of the time, steps, kernel table, grade.  Findings rest on these, and the what-if asks the
finished document for another GPU.  All are taken in turns within one process, and the medians are compared.
CPU is that of all threads.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import rooflight
from bench.parse import synthetic
from rooflight.results.stages import Options, Stages
from rooflight.trace.timeline import Timeline

LIMIT = 0.5
#: Seven a launch is what tools/gen_trace.py is asked for; some are fewer.
EVENTS = 270_000
GPU = "NVIDIA H100 80GB HBM3"
TRACES = Path(__file__).resolve().parent.parent.parent / "shared" / "traces"


@dataclass(frozen=True)
class Sample:
    """One round: CPU seconds of each."""

    read: float
    verdicts: float
    findings: float
    whatif: float


def measure(path: Path, gpu: str) -> Sample:
    """Read the trace once and go all the way."""
    found: list[Timeline] = []
    read = _timed(lambda: found.append(rooflight.read(path)))
    document = rooflight.analyze(found[0]).document
    stages = Stages(found[0], Options())
    # What comes before the verdicts, and is none of them.
    _ = stages.costs
    return Sample(
        read=read,
        verdicts=_timed(lambda: _verdicts(stages)),
        findings=_timed(lambda: stages.findings),
        whatif=_timed(lambda: rooflight.whatif(document, gpu)),
    )


def _verdicts(stages: Stages) -> None:
    """All that the findings rest on."""
    _ = stages.grade, stages.flags, stages.table


def _timed(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def report(path: Path, samples: Sequence[Sample]) -> tuple[str, bool]:
    """A line of the medians, and whether they are within the limit."""
    read, *parts = (statistics.median(getattr(s, f.name) for s in samples) for f in fields(Sample))
    names = [f.name for f in fields(Sample)][1:]
    told = ", ".join(f"{name} {t:.3f} s = {t / read:.3f}x" for name, t in zip(names, parts, strict=True))
    ratio = sum(parts) / read
    line = f"{path.name}: read {read:.3f} s, {told}; together {ratio:.3f}x (limit {LIMIT}x)"
    return line, ratio <= LIMIT


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/verdicts.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="traces (default: one that is made)")
    parser.add_argument("-n", type=int, default=5, dest="rounds", help="measurements (default: 5)")
    parser.add_argument("--gpu", default=GPU, help=f"the what-if's GPU (default: {GPU})")
    parser.add_argument("--traces", type=Path, default=TRACES)
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    within = True
    with tempfile.TemporaryDirectory() as folder:
        files = options.files or [synthetic(options.traces, EVENTS, Path(folder))]
        for path in files:
            line, is_within = report(path, [measure(path, options.gpu) for _ in range(options.rounds)])
            print(line, flush=True)
            within = within and is_within
    return 0 if within else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
