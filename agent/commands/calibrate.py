"""``rooflight-agent calibrate``: measure this device's ceilings, keep and send them."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from agent.calibrate import calibrate
from agent.commands.options import add_device, add_server, client, read_config
from agent.console import note, say
from agent.device import pick
from agent.store import Store, write
from agent.summary import printable
from rooflight.client import Client, ClientError
from rooflight.protocol import Calibration, encode


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_device(parser)
    add_server(parser)
    parser.add_argument("--quick", action="store_true", help="a few seconds for each figure, less certain")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write it there too")
    parser.add_argument("--json", action="store_true", help="print the calibration as JSON")


def run(args: argparse.Namespace) -> int:
    """0 measured and, where a server was given, sent; 1 measured and kept, but not sent."""
    settings = read_config(args)
    target = client(args, settings)
    calibration = calibrate(pick(args.device), quick=args.quick, note=note)
    kept = Store(settings.state).save(calibration)
    if args.out is not None:
        write(args.out, encode(calibration))
    sent = _send(calibration, target)
    text = json.dumps(json.loads(encode(calibration)), indent=2) if args.json else render(calibration, kept)
    say(text)
    return 0 if sent else 1


def _send(calibration: Calibration, target: Client | None) -> bool:
    if target is None:
        return True
    try:
        target.push_calibration(calibration)
    except ClientError as e:
        note(f"the calibration was not sent: {e}")
        return False
    return True


def render(calibration: Calibration, kept: Path) -> str:
    """The ceilings as a short table with their spread."""
    spread = calibration.spread_pct
    rows = [
        (f"{dtype} products", f"{rate:.4g} TFLOP/s", f"gemm_{dtype}")
        for dtype, rate in calibration.gemm_tflops.items()
    ]
    for name, value, unit, key in (
        ("memory stream", calibration.stream_gbs, "GB/s", "stream"),
        ("copy", calibration.copy_gbs, "GB/s", "copy"),
        ("launch", calibration.launch_us, "us", "launch"),
    ):
        if value is not None:
            rows.append((name, f"{value:.4g} {unit}", key))
    lines = [f"ceilings of {printable(calibration.device)} ({calibration.kind})"]
    lines += [f"  {name:<16}{value:>16}   spread {spread.get(key, 0):.1f} %" for name, value, key in rows]
    return "\n".join([*lines, f"  kept in {kept}"])
