"""CPU time and peak memory of loading and analysing a trace, over the floor of parsing its JSON.

    .venv/bin/python bench/parse.py [-n ROUNDS] [--hta] [--events N ...] [--traces FOLDER] [FILE ...]

The floor is ``orjson.loads(isal.decompress(...))`` with the garbage collector off: the fastest way to
Python objects that we know, after which nothing is analysed yet.  Every measurement is a process of its
own; all sides alternate within one run, and the medians are compared.  CPU is user and system time
after the imports and what their threads do when they start; memory is the peak resident set of the whole
process, imports and interpreter included.

``--hta`` measures Holistic Trace Analysis beside them, from the package index in an environment of its
own; ``--events`` takes synthetic traces of so many events (tools/gen_trace.py, seven a launch), the
largest without the other sides.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
TRACES = ("hta/v100_rank1of2_216k_events", "mi300_xdit_flux")
EVENTS = (1_000_000,)
EVENTS_PER_LAUNCH = 7
#: Parsing more than this into Python objects takes gigabytes.
FLOOR_UP_TO = 2_000_000
#: Releases that work together: this one fails with pandas 3.
HTA_RELEASES = ("HolisticTraceAnalysis==0.5.0", "pandas==2.3.3")

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
HTA = """
import logging, warnings
warnings.simplefilter("ignore")
from hta.trace_analysis import TraceAnalysis
logging.disable(logging.CRITICAL)
def work(path):
    t = TraceAnalysis(trace_files={0: path}, include_last_profiler_step=True)
    plain = {"visualize": False}
    return [
        t.get_temporal_breakdown(**plain), t.get_gpu_kernel_breakdown(**plain),
        t.get_comm_comp_overlap(**plain), t.get_idle_time_breakdown(ranks=[0], **plain),
        t.get_cuda_kernel_launch_stats(**plain), t.get_memory_bw_summary(), t.get_queue_length_summary(),
    ]
"""
MEASURE = """
import json, resource, sys, time
def used():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
time.sleep(0.2)
before, _ = used()
kept = work(sys.argv[1])
after, peak = used()
print(json.dumps([after - before, peak]))
"""


@dataclass(frozen=True)
class Side:
    """What is measured, and the Python that it runs in."""

    name: str
    work: str
    python: Path


@dataclass(frozen=True)
class Sample:
    """One process: CPU seconds after the imports, peak resident MiB."""

    cpu_s: float
    peak_mib: float


def measure(side: Side, path: Path) -> Sample | str:
    """Run the side's ``work(path)`` in a process of its own; the last line of its error if it fails."""
    command = [side.python, "-c", side.work + MEASURE, path]
    done = subprocess.run(command, capture_output=True, text=True, cwd=CHECKOUT, check=False)
    if done.returncode:
        return (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
    return Sample(*json.loads(done.stdout.splitlines()[-1]))


def median(samples: Sequence[Sample]) -> Sample:
    return Sample(statistics.median(s.cpu_s for s in samples), statistics.median(s.peak_mib for s in samples))


def sampled(sides: Sequence[Side], path: Path, rounds: int) -> Mapping[str, Sample | str]:
    """The medians of each side, taken in turns; a side that fails is not asked again."""
    found: dict[str, list[Sample]] = {s.name: [] for s in sides}
    failed: dict[str, str] = {}
    for _ in range(rounds):
        for side in sides:
            if side.name not in failed:
                sample = measure(side, path)
                if isinstance(sample, str):
                    failed[side.name] = sample
                else:
                    found[side.name].append(sample)
    return {name: failed.get(name) or median(samples) for name, samples in found.items()}


def report(path: Path, medians: Mapping[str, Sample | str]) -> list[str]:
    """A line per side, with its ratios to the floor where that was measured."""
    floor = medians.get("floor")
    lines = [f"{path.name} ({path.stat().st_size / 1e6:.1f} MB)"]
    for name, m in medians.items():
        if isinstance(m, str):
            lines.append(f"  {name:<9} failed: {m[:100]}")
            continue
        line = f"  {name:<9} cpu {m.cpu_s:7.2f} s  peak {m.peak_mib:6.0f} MiB"
        if isinstance(floor, Sample) and name != "floor":
            line += f"  = {m.cpu_s / floor.cpu_s:5.2f}x cpu, {m.peak_mib / floor.peak_mib:4.2f}x memory"
        lines.append(line)
    return lines


def find(folder: Path, start: str) -> Path:
    """The trace of ``folder`` whose name starts so."""
    found = sorted(folder.glob(f"{start}*json*"))
    if not found:
        raise SystemExit(f"no trace {start}* in {folder}; --traces names another folder")
    return found[0]


def synthetic(traces: Path, events: int, folder: Path) -> Path:
    """A trace of about so many events, made once."""
    path, tool = folder / f"gen_{events}.json.gz", traces.parent / "tools" / "gen_trace.py"
    if not path.exists():
        if not tool.exists():
            raise SystemExit(f"no {tool}; --traces names a folder that has it beside it")
        command = [sys.executable, tool, path, str(events // EVENTS_PER_LAUNCH)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return path


def hta() -> Side:
    """Holistic Trace Analysis, in an environment that is made when it is missing."""
    folder = CHECKOUT / ".venv-hta"
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    subprocess.run([python, "-m", "pip", "install", "-qq", *HTA_RELEASES], check=True)
    return Side("HTA", HTA, python)


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench/parse.py", description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", type=Path, help="traces (default: two shared ones, a synthetic)")
    parser.add_argument("-n", type=int, default=5, dest="rounds", help="measurements a side (default: 5)")
    parser.add_argument("--hta", action="store_true", help="measure Holistic Trace Analysis as well")
    parser.add_argument("--events", type=int, nargs="+", help="synthetic traces of so many events")
    parser.add_argument("--traces", type=Path, default=CHECKOUT.parent / "shared" / "traces")
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    options = arguments(argv)
    own = Path(sys.executable)
    sides = [Side("rooflight", OURS, own)] + ([hta()] if options.hta else [])
    floor = Side("floor", FLOOR, own)
    defaults = not options.files and options.events is None
    files = options.files or ([find(options.traces, start) for start in TRACES] if defaults else [])
    print(f"CPU after imports and peak memory, medians of {options.rounds}, over the floor of", end=" ")
    print("orjson.loads(isal.decompress(file)), no garbage collector")
    with tempfile.TemporaryDirectory() as folder:
        for path in files:
            print("\n".join(report(path, sampled([floor, *sides], path, options.rounds))), flush=True)
        for events in options.events or (EVENTS if defaults else ()):
            path = synthetic(options.traces, events, Path(folder))
            beside = [floor, *sides] if events <= FLOOR_UP_TO else sides[:1]
            print("\n".join(report(path, sampled(beside, path, options.rounds))), flush=True)
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
