"""``rooflight-agent run``: a built-in workload under the profiler, analysed here, sent and summed up."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.calibrate import calibrate
from agent.commands.options import add_device, add_server, read_config, server
from agent.config import Config
from agent.console import note, say
from agent.device import Device, pick
from agent.profiling import Plan, record
from agent.push import Client, PushError, Server, key_of
from agent.sampler.thread import Sampling
from agent.store import Store, write
from agent.summary import render, summarize
from agent.workloads import WORKLOADS, Workload, find
from rooflight.protocol import Calibration, Document, encode

SIZES = ("small", "medium", "large")
MOST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Kept:
    """The files of a run."""

    trace: Path
    document: Path


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = "; ".join(f"{name}: {workload.about}" for name, workload in sorted(WORKLOADS.items()))
    parser.add_argument("--workload", required=True, metavar="NAME", help=names)
    parser.add_argument("--steps", type=_count, help="recorded steps; each workload has its default")
    parser.add_argument("--warmup", type=_count, default=2, help="steps before them (default 2)")
    parser.add_argument("--size", choices=SIZES, help="default: large on a GPU, medium on a CPU")
    add_device(parser)
    add_server(parser)
    parser.add_argument("--project", help="the project of the run [ROOFLIGHT_PROJECT]")
    parser.add_argument("--run", metavar="NAME", help="the run's name; default: the workload's")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep trace and analysis there")
    parser.add_argument("--with-trace", action="store_true", help="send the raw trace as well")
    parser.add_argument("--no-calibrate", action="store_true", help="do not measure an unknown CPU first")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")


def run(args: argparse.Namespace) -> int:
    """0 done; 1 measured and kept, but not sent."""
    workload, settings = find(args.workload), read_config(args)
    target = server(args, settings)
    device, store = pick(args.device), Store(settings.state)
    calibration = _calibration(device, store, measure=not args.no_calibrate)
    folder = args.out if args.out is not None else store.new_run(workload.name)
    document, kept = _measure(workload, device, _plan(args, workload, device), calibration, folder)
    run_id, problem = _send(args, settings, target, kept)
    _report(args, document, device, kept, target, run_id, problem)
    return 0 if problem is None else 1


def _plan(args: argparse.Namespace, workload: Workload, device: Device) -> Plan:
    size = args.size or ("large" if device.is_gpu else "medium")
    return Plan(args.steps or workload.steps, args.warmup, size)


def _calibration(device: Device, store: Store, *, measure: bool) -> Calibration | None:
    """This device's own; a CPU without one is measured quickly, since no catalogue knows its roof."""
    found = store.find(device, note)
    if found is not None or device.is_gpu or not measure:
        return found
    found = calibrate(device, quick=True, note=note)
    store.save(found)
    return found


def _measure(
    workload: Workload, device: Device, plan: Plan, calibration: Calibration | None, folder: Path
) -> tuple[Document, Kept]:
    kept = Kept(folder / f"{workload.name}.pt.trace.json.gz", folder / "analysis.json")
    note(f"recording {plan.steps} steps of {workload.name} on {device.name}")
    with Sampling() as sampling:
        record(workload, device, plan, kept.trace)
    document = analyse(kept.trace, calibration)
    document.telemetry = sampling.telemetry(device.uuid)
    write(kept.document, encode(document))
    return document, kept


def analyse(trace: Path, calibration: Calibration | None) -> Document:
    """The Analysis of a trace, as a document."""
    from rooflight.analysis import Options, analyze
    from rooflight.readers import read

    options = Options(calibrations=[] if calibration is None else [calibration])
    document: Document = analyze([read(trace)], options=options).document
    return document


def _send(
    args: argparse.Namespace, settings: Config, target: Server | None, kept: Kept
) -> tuple[str | None, str | None]:
    """The run's id on the server, and what went wrong."""
    if target is None:
        return None, None
    try:
        return send(
            target, settings.project, args.run or args.workload, kept, with_trace=args.with_trace
        ), None
    except PushError as e:
        return None, str(e)


def send(target: Server, project: str, name: str, kept: Kept, *, with_trace: bool) -> str:
    """Make the run, push its analysis and, if asked, its trace; the run's id."""
    body = kept.document.read_bytes()
    with Client(target) as client:
        run_id = client.create_run(project, name, key_of(body))
        client.push_analysis(run_id, body)
        if with_trace:
            client.push_trace(run_id, kept.trace)
    return run_id


def _report(
    args: argparse.Namespace,
    document: Document,
    device: Device,
    kept: Kept,
    target: Server | None,
    run_id: str | None,
    problem: str | None,
) -> None:
    summary = summarize(document, device.name)
    page = target.page(run_id) if target is not None and run_id is not None else None
    if args.json:
        say(json.dumps(summary.as_json() | _files(document, kept, run_id, page, problem), indent=2))
        return
    say(render(summary, args.workload))
    say(f"  telemetry  {_telemetry(document)}")
    say(f"  page       {page or _unsent(target, problem)}")
    say(f"  kept       {kept.document.parent}")
    if problem is not None:
        note(f"not sent: {problem}")
        note(f"send it later: rooflight-agent push {kept.document}")


def _files(
    document: Document, kept: Kept, run_id: str | None, page: str | None, problem: str | None
) -> dict[str, Any]:
    return {
        "run_id": run_id,
        "url": page,
        "problem": problem,
        "document": str(kept.document),
        "trace": str(kept.trace),
        "telemetry": _telemetry(document),
    }


def _telemetry(document: Document) -> str:
    telemetry = document.telemetry or {}
    windows = telemetry.get("windows") or []
    return telemetry.get("statement") or f"{len(windows)} devices sampled"


def _unsent(target: Server | None, problem: str | None) -> str:
    return "none: no server was given" if target is None else f"none: {problem}"


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MOST_STEPS:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {MOST_STEPS}")
    return value
