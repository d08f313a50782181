"""``rooflight-agent run``: a built-in workload under the profiler, analysed here, sent and summed up; or a
program of the user's (:mod:`agent.commands.launched`)."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from agent.calibrate import calibrate
from agent.commands import launched
from agent.commands.options import add_device, add_server, client, read_config
from agent.config import Config
from agent.console import note, say
from agent.device import Device, pick
from agent.measure import load
from agent.measure.timing import QUIET
from agent.profiling import Plan, record
from agent.push import Kept, push_document
from agent.sampler.thread import Sampling
from agent.store import Store, make_folder, write
from agent.summary import Summary, render, summarize
from agent.workloads import WORKLOADS, Workload, find
from rooflight.calibration import Calibration
from rooflight.cli.units import units
from rooflight.client import Client, ClientError
from rooflight.errors import Refused
from rooflight.protocol import Document, encode
from rooflight.results.energy import join

SIZES = ("small", "medium", "large")
MOST_STEPS = 1000


@dataclass(frozen=True, slots=True)
class Delivery:
    """The run on the server, its page and that of the raw trace, or what went wrong; all ``None`` when
    nothing was to be sent."""

    run_id: str | None = None
    url: str | None = None
    trace_url: str | None = None
    problem: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    names = "; ".join(f"{name}: {workload.about}" for name, workload in sorted(WORKLOADS.items()))
    parser.add_argument("--workload", metavar="NAME", help=names)
    parser.add_argument("--steps", type=_count, help="recorded steps; each workload has its default")
    parser.add_argument("--warmup", type=_count, default=2, help="steps before them (default 2)")
    parser.add_argument("--size", choices=SIZES, help="default: large on a GPU, medium on a CPU")
    add_device(parser)
    add_server(parser)
    parser.add_argument("--project", help="the project of the run [ROOFLIGHT_PROJECT]")
    parser.add_argument("--run", metavar="NAME", help="the run's name; default: the workload's")
    parser.add_argument("--out", type=Path, metavar="DIR", help="keep trace and analysis there")
    parser.add_argument(
        "--with-trace", action="store_true", help="send the raw trace as well, as a run of its own"
    )
    parser.add_argument("--no-calibrate", action="store_true", help="do not measure an unknown CPU first")
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    launched.add_arguments(parser)


def run(args: argparse.Namespace) -> int:
    """0 done; 1 measured and kept, but not sent; with a command, its own exit status."""
    if bool(args.command) == bool(args.workload):
        raise Refused("nothing to run, or two things", hint="give --workload NAME, or -- and a command")
    if args.command:
        return launched.run(args)
    workload, settings, held = find(args.workload), read_config(args), units(args)
    target = client(args, settings)
    device, store = pick(args.device), Store(settings.state)
    calibration = _calibration(device, store, measure=not args.no_calibrate)
    kept = Kept(_folder(args, store), workload.name)
    document = _measure(workload, device, _plan(args, workload, device), calibration, kept, held)
    delivery = _send(args, settings, target, device, kept, calibration)
    _report(args, summarize(document, device.name), _telemetry(document), kept, delivery)
    return 0 if delivery.problem is None else 1


def _folder(args: argparse.Namespace, store: Store) -> Path:
    if args.out is None:
        return store.new_run(args.workload)
    make_folder(args.out)
    return Path(args.out)


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
    workload: Workload,
    device: Device,
    plan: Plan,
    calibration: Calibration | None,
    kept: Kept,
    held: dict[str, float],
) -> Document:
    note(f"recording {plan.steps} steps of {workload.name} on {device.name}")
    # A run lasts seconds: at once a second its window would rest on a handful of samples.
    before = load.now()
    with Sampling(interval_s=0.25) as sampling:
        record(workload, device, plan, kept.trace)
    others = load.others(before, load.now())
    if others is not None and others > QUIET:
        note(
            f"other programs used {100 * others:.0f} % of the CPUs: an idle machine has shorter steps and ops"
        )
    document = analyse(kept.trace, calibration)
    add_telemetry(document, device, sampling)
    document.units_per_step = held
    write(kept.document, encode(document))
    return document


def add_telemetry(document: Document, device: Device, sampling: Sampling) -> None:
    """What was sampled, and of the device that the workload ran on the energy of the steps."""
    document.telemetry = sampling.telemetry(device.uuid)
    # An equal number is no proof of an equal device: without the UUID there is nothing to join.
    if device.uuid is not None and document.telemetry["device_uuid"] is not None:
        join(document.ranks[0], str(device.index), device.uuid, sampling.looks(device.uuid))


def analyse(trace: Path, calibration: Calibration | None) -> Document:
    """The Analysis of a trace, as a document."""
    from rooflight.analysis import Options, analyze
    from rooflight.readers import read

    options = Options(calibrations=() if calibration is None else (calibration,))
    document: Document = analyze([read(trace)], options=options).document
    return document


def _send(
    args: argparse.Namespace,
    settings: Config,
    target: Client | None,
    device: Device,
    kept: Kept,
    calibration: Calibration | None,
) -> Delivery:
    if target is None:
        return Delivery()
    run_id = page = None
    try:
        name = args.run or args.workload
        run_id = push_document(target, kept.document, settings.project, name, host=device.host)
        page = target.page(run_id)
        if not args.with_trace:
            return Delivery(run_id, page)
        if calibration is not None:
            # The server judges the raw trace itself, and shall do so under the same roof.
            target.push_calibration(calibration)
        # A run has one profile of a rank: what the server makes of the raw trace is another run.
        raw = target.create_run(settings.project, f"{name} (raw trace)", host=device.host).id
        target.upload_trace(raw, kept.trace)
        return Delivery(run_id, page, target.page(raw))
    except ClientError as e:
        return Delivery(run_id, page, problem=str(e))


def _report(
    args: argparse.Namespace, summary: Summary, telemetry: str, kept: Kept, delivery: Delivery
) -> None:
    if args.json:
        files = {"document": str(kept.document), "trace": str(kept.trace), "telemetry": telemetry}
        say(json.dumps(summary.as_json() | files | asdict(delivery), indent=2))
        return
    say(render(summary, args.workload))
    say(f"  telemetry  {telemetry}")
    say(f"  kept       {kept.folder}")
    if delivery.url is not None:
        say(f"  page       {delivery.url}")
    if delivery.trace_url is not None:
        say(f"  raw trace  {delivery.trace_url}")
    if delivery == Delivery():
        say("  page       none: no server was given")
    if delivery.problem is not None:
        note(f"not sent: {delivery.problem}")
        note(
            f"send it later: rooflight-agent push {kept.document}"
            if delivery.url is None
            else f"the analysis was sent, the raw trace was not: rooflight upload {kept.trace}"
        )


def _telemetry(document: Document) -> str:
    telemetry = document.telemetry or {}
    windows = telemetry.get("windows") or []
    return telemetry.get("statement") or f"{len(windows)} devices sampled"


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value <= MOST_STEPS:
        raise argparse.ArgumentTypeError(f"{text} is not between 1 and {MOST_STEPS}")
    return value
