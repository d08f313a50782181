"""``rooflight-agent calibrate``: measure this device's ceilings, keep and send them."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from agent.calibrate import calibrate
from agent.commands.options import add_device, add_server, client, read_config
from agent.console import note, say
from agent.device import Device, every_gpu, pick
from agent.store import Store, write
from agent.summary import printable
from rooflight.calibration import Calibration
from rooflight.client import Client, ClientError
from rooflight.errors import Refused
from rooflight.hardware.siblings import Behind, behind, identity
from rooflight.protocol import encode

#: Reasons that the summary tells; the JSON has all.
REASONS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_device(parser, "all")
    add_server(parser)
    parser.add_argument("--quick", action="store_true", help="a few seconds for each figure, less certain")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it there too")
    parser.add_argument(
        "--json", action="store_true", help="print the calibration as JSON; of all devices a line each"
    )


def run(args: argparse.Namespace) -> int:
    """0 measured and, where a server was given, sent; 1 measured and kept, but not sent."""
    settings = read_config(args)
    target, store, devices = client(args, settings), Store(settings.state), _devices(args)
    measured, sent = [], True
    for device in devices:
        calibration = calibrate(device, quick=args.quick, note=note)
        kept = store.save(calibration)
        if args.out is not None:
            write(args.out, encode(calibration))
        sent = _send(calibration, target) and sent
        measured.append(calibration)
        say(_as_json(calibration, indent=len(devices) == 1) if args.json else render(calibration, kept))
    for slow in _behind(measured, store):
        note(told(slow))
    return 0 if sent else 1


def _devices(args: argparse.Namespace) -> list[Device]:
    if args.device != "all":
        return [pick(args.device)]
    devices = every_gpu()
    if args.out is not None and len(devices) > 1:
        raise Refused(f"--out holds one calibration, and there are {len(devices)} GPUs", hint="leave it out")
    return devices


def _as_json(calibration: Calibration, *, indent: bool) -> str:
    text = encode(calibration).decode()
    return json.dumps(json.loads(text), indent=2) if indent else text


def _send(calibration: Calibration, target: Client | None) -> bool:
    if target is None:
        return True
    try:
        target.push_calibration(calibration)
    except ClientError as e:
        note(f"the calibration was not sent: {e}")
        return False
    return True


def _behind(measured: Sequence[Calibration], store: Store) -> list[Behind]:
    """Where one of ``measured`` is behind the devices of its model that were measured on this host."""
    mine = {identity(c) for c in measured}
    host = {c.host for c in measured}
    known = [c for c in store.calibrations(note) if c.host in host]
    names = {(c.device, c.uuid) for c in known if identity(c) in mine}
    return [b for b in behind(known) if (b.device, b.uuid) in names]


def told(b: Behind) -> str:
    """One sentence on a device that is behind."""
    who = printable(f"{b.device} {b.uuid or b.host or ''}".strip())
    others = "the other one" if b.siblings == 1 else f"the median of {b.siblings} others"
    how_far = f"{b.behind_pct:.0f} % below {others} of its model"
    return f"{who}: {b.figure} is {how_far} ({b.value:.4g}, not {b.median:.4g})"


def render(calibration: Calibration, kept: Path) -> str:
    """The ceilings as a short table with their spread, and how sure they are."""
    spread = calibration.spread_pct
    lines = [f"ceilings of {printable(calibration.device)} ({calibration.kind})"]
    for name, value, key in _rows(calibration):
        scatter = f"   spread {spread[key]:.1f} %" if key in spread else ""
        lines.append(f"  {name:<16}{value:>16}{scatter}")
    for name, clock in calibration.clocks_mhz.items():
        median, ends = f"{clock.median:.0f} MHz", f"{clock.min:.0f} to {clock.max:.0f}"
        lines.append(f"  {f'{name} clock':<16}{median:>16}   {ends}")
    lines.append(f"  confidence {calibration.confidence}: {_reasons(calibration)}")
    return "\n".join([*lines, f"  kept in {kept}"])


def _rows(calibration: Calibration) -> Iterator[tuple[str, str, str]]:
    """Name and value in words, and the name that the spread goes by."""
    for dtype, rate in calibration.gemm_tflops.items():
        yield f"{dtype} products", f"{rate:.4g} TFLOP/s", f"gemm_{dtype}"
    for name, value, unit, key in (
        ("memory stream", calibration.stream_gbs, "GB/s", "stream"),
        ("memory read", calibration.streams_gbs.get("read"), "GB/s", "read"),
        ("copy", calibration.copy_gbs, "GB/s", "copy"),
        ("copy to host", calibration.link_gbs.get("d2h"), "GB/s", "d2h"),
        ("launch", calibration.launch_us, "us", "launch"),
    ):
        if value is not None:
            yield name, f"{value:.4g} {unit}", key
    for peer, rate in calibration.p2p_gbs.items():
        yield f"to {printable(peer)[:12]}", f"{rate:.4g} GB/s", f"p2p {peer}"


def _reasons(calibration: Calibration) -> str:
    reasons = calibration.confidence_reasons
    more = f" and {len(reasons) - REASONS} more" if len(reasons) > REASONS else ""
    return printable("; ".join(reasons[:REASONS])) + more
