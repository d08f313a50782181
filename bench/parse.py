"""CPU time and peak memory of loading and analysing a trace, over the floor of parsing its JSON.

    .venv/bin/python bench/parse.py [-n ROUNDS] [--traces FOLDER] [FILE ...]

The floor is ``orjson.loads(isal.decompress(...))`` with the garbage collector off: the fastest way to
Python objects that we know, after which nothing is analysed yet.  Every measurement is a process of its
own; both sides alternate within one run, and the medians are compared.  CPU is user and system time
after the imports; memory is the peak resident set of the whole process.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
TRACES = ("hta/v100_rank1of2_216k_events", "mi300_xdit_flux", "v100_resnet50_workers0")

FLOOR = """
import gc, orjson
from isal import igzip
def work(path):
    gc.disable()
    data = open(path, "rb").read()
    return orjson.loads(igzip.decompress(data) if data[:2] == b"\\x1f\\x8b" else data)
"""
OURS = """
import rooflight, rooflight.analysis, rooflight.readers, numpy, msgspec
read, analyze = rooflight.read, rooflight.analyze
def work(path):
    return analyze(read(path))
"""
MEASURE = """
import json, resource, sys
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
before, _ = used()
kept = work(sys.argv[1])
after, peak = used()
print(json.dumps([after - before, peak]))
"""


@dataclass(frozen=True)
class Sample:
    """One process: CPU seconds after the imports, peak resident MiB."""

    cpu_s: float
    peak_mib: float


def measure(work: str, path: Path) -> Sample:
    """Run ``work(path)`` in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", work + MEASURE, path],
        capture_output=True,
        text=True,
        cwd=CHECKOUT,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{path.name}: {done.stderr.strip().splitlines()[-1]}")
    return Sample(*json.loads(done.stdout))


def median(samples: Sequence[Sample]) -> Sample:
    return Sample(statistics.median(s.cpu_s for s in samples), statistics.median(s.peak_mib for s in samples))


def compare(path: Path, rounds: int) -> str:
    """One line: both sides and their ratios."""
    ours, floor = [], []
    for _ in range(rounds):
        ours.append(measure(OURS, path))
        floor.append(measure(FLOOR, path))
    a, b = median(ours), median(floor)
    return (
        f"{path.name[:44]:<44}  cpu {a.cpu_s:6.2f} s / {b.cpu_s:5.2f} s = {a.cpu_s / b.cpu_s:5.2f}x"
        f"   peak {a.peak_mib:5.0f} / {b.peak_mib:5.0f} MiB = {a.peak_mib / b.peak_mib:4.2f}x"
    )


def find(folder: Path, start: str) -> Path:
    """The trace of ``folder`` whose name starts so."""
    found = sorted(folder.glob(f"{start}*json*"))
    if not found:
        raise SystemExit(f"no trace {start}* in {folder}; --traces names another folder")
    return found[0]


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="bench/parse.py", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="traces (default: three of the shared ones)")
    parser.add_argument("-n", type=int, default=5, dest="rounds", help="measurements a side (default: 5)")
    parser.add_argument("--traces", type=Path, default=CHECKOUT.parent / "shared" / "traces")
    options = parser.parse_args(argv)
    files = options.files or [find(options.traces, start) for start in TRACES]
    print(f"load and analyse / orjson.loads(isal.decompress), medians of {options.rounds}, imports taken off")
    for path in files:
        print(compare(path, options.rounds), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
