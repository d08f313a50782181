"""Time and memory of analysing a run of many ranks, whose figures are checked against the truth.

    .venv/bin/python -m bench.ranks [-r RANKS] [-e EVENTS] [-j JOBS] [--seed N] [--keep FOLDER]

The traces are made for it (bench/ranks_plan.py, bench/ranks_trace.py): several hosts whose clocks differ,
tensor and data parallel groups, stragglers, CUDA graphs, a loader.  The analysis runs in a process of its
own; its children are the pool's.  CPU is user and system time of all of them, memory the peak resident set.
Ends with 1 when a figure differs from the truth.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.ranks_plan import LOADER, US, Plan, Shape
from bench.ranks_trace import GRAPH_OP, StepText, write

CHECKOUT = Path(__file__).resolve().parent.parent
MEASURE = """
import json, resource, sys, time
from pathlib import Path
start = time.perf_counter()
from rooflight import analyze_files
from rooflight.protocol import encode
out, jobs, *files = sys.argv[1:]
analysis = analyze_files(files, jobs=int(jobs) or None)
analysed = time.perf_counter()
data = encode(analysis.document)
Path(out).write_bytes(data)
wall = time.perf_counter() - start
own, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
print(json.dumps({
    "wall_s": wall, "encode_s": time.perf_counter() - analysed, "json_mb": len(data) / 1e6,
    "cpu_s": sum(u.ru_utime + u.ru_stime for u in (own, children)),
    "parent_cpu_s": own.ru_utime + own.ru_stime,
    "parent_mib": own.ru_maxrss / 1024, "child_mib": children.ru_maxrss / 1024,
}))
"""


def differences(document: dict[str, Any], plan: Plan) -> Iterator[str]:
    """Every figure across ranks that is not the truth."""
    yield from _differs("ranks", [r["rank"] for r in document["ranks"]], list(range(plan.shape.ranks)))
    yield from _differs("clocks", document["clock_offset_us"], plan.offset_us())
    yield from _differs("flags", {f["code"] for f in document["flags"]} - {"clock_aligned"}, set())
    found = {(c["group"], c["n"]): c for c in document["collectives"]}
    truth = plan.collectives()
    yield from _differs("collectives", len(found), len(truth))
    for t in truth:
        c = found.get((t.group, t.n), {})
        told = c.get("straggler"), c.get("transfer_us"), c.get("wait_us")
        want = t.straggler, t.transfer / US, {str(r): ns / US for r, ns in t.wait.items()}
        yield from _differs(f"{t.group} {t.n}", told, want)
    for r in document["ranks"]:
        yield from _of_rank(r, plan)


def _of_rank(r: dict[str, Any], plan: Plan) -> Iterator[str]:
    rank, shape = r["rank"], plan.shape
    whole, waiting = (figures[:, rank] for figures in plan.exposed())
    told = [(s["wait_us"], s["transfer_us"], s["parts_us"]["communication"]) for s in r["steps"]]
    want = [(w / US, (e - w) / US, e / US) for w, e in zip(waiting.tolist(), whole.tolist(), strict=True)]
    yield from _differs(f"rank {rank}, exposed communication", told, want)
    inputs = [s["parts_us"]["input"] for s in r["steps"]]
    yield from _differs(f"rank {rank}, input", inputs, [LOADER[1] / US] * shape.steps)
    [device] = r["devices"].values()
    communicating = int((plan.completion - plan.arrival)[..., rank].sum())
    yield from _differs(f"rank {rank}, communication", device["comm_us"], communicating / US)
    graphs = shape.steps * shape.layers
    told_graphs = (r["graph_launches"], r["graph_launches_with_kernels"])
    yield from _differs(f"rank {rank}, graph launches", told_graphs, (graphs, graphs))
    kernels = sum(a["count"] for a in r["attribution"] if a["op"] == GRAPH_OP)
    yield from _differs(f"rank {rank}, kernels of graphs", kernels, graphs * shape.graph)


def _differs(what: str, told: object, want: object) -> Iterator[str]:
    if told != want:
        yield f"{what}: {told!s:.300} instead of {want!s:.300}"


def run(plan: Plan, folder: Path, jobs: int) -> int:
    """Write, analyse, check, print."""
    start = time.perf_counter()
    files, events = write(plan, folder)
    size = sum(f.stat().st_size for f in files)
    print(
        f"{len(files)} ranks x {events:,} events, {size / 1e6:.0f} MB, in {time.perf_counter() - start:.0f} s"
    )
    out = folder / "analysis.out"
    command = [sys.executable, "-c", MEASURE, str(out), str(jobs), *map(str, files)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=CHECKOUT, check=True)
    m = json.loads(done.stdout)
    print(f"wall {m['wall_s']:.1f} s, cpu {m['cpu_s']:.1f} s (parent {m['parent_cpu_s']:.1f} s), ", end="")
    print(f"{1e3 * m['cpu_s'] / len(files):.0f} ms a rank")
    print(f"peak of the parent {m['parent_mib']:.0f} MiB, of the largest child {m['child_mib']:.0f} MiB")
    print(f"JSON {m['json_mb']:.1f} MB, encoded and written in {m['encode_s']:.2f} s")
    wrong = list(differences(json.loads(out.read_bytes()), plan))
    print("\n".join([*wrong[:20], f"{len(wrong)} figures differ from the truth"]))
    return 1 if wrong else 0


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.ranks", description=__doc__.splitlines()[0])
    parser.add_argument("-r", "--ranks", type=int, default=256)
    parser.add_argument("-e", "--events", type=int, default=20_000, help="about so many a rank")
    parser.add_argument("-j", "--jobs", type=int, default=0, help="default: one per CPU")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the traces there and leave them")
    options = parser.parse_args(argv)
    a_step = StepText(Plan(Shape(ranks=8, steps=1))).holes.events
    shape = Shape(options.ranks, steps=max(1, round(options.events / a_step)), seed=options.seed)
    with tempfile.TemporaryDirectory() as folder:
        if options.keep:
            options.keep.mkdir(parents=True, exist_ok=True)
        return run(Plan(shape), options.keep or Path(folder), options.jobs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
