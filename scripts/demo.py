"""The body of scripts/demo: the main job, end to end, on this machine."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import demo_check
import summary
from service import BIN, DemoError, Service, environment, serving

CHECKOUT = Path(__file__).resolve().parent.parent
PROJECT = "demo"
ANALYSIS_SECONDS = 600.0


def parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/demo", description=__doc__)
    parser.add_argument("--check", action="store_true", help="verify the page and the API, then end")
    parser.add_argument("--trace", type=Path, metavar="FILE", help="upload this trace instead of a workload")
    parser.add_argument("--workload", default="transformer", help="built-in workload (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8585, help="port (default: %(default)s, else a free one)")
    default = os.environ.get("ROOFLIGHT_DATA") or CHECKOUT / "var" / "demo"
    parser.add_argument(
        "--data", type=Path, default=default, help="folder of the service (default: %(default)s)"
    )
    return parser.parse_args(argv)


def main(argv: Sequence[str]) -> int:
    """0 when the run's page is served (and, with --check, verified)."""
    # Ctrl-C, an end from outside and a closed terminal all unwind, so that the server is stopped.
    # A shell starts its background jobs with interrupts ignored; the demo ends on one all the same.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda received, _: sys.exit(128 + received))
    options = parse(argv)
    start = time.monotonic()
    try:
        with serving(options.data.resolve(), options.port) as service:
            run = push(service, options)
            show(service, run, time.monotonic() - start)
            if options.check:
                check(service, run)
            else:
                print("The service goes on until Ctrl-C.", flush=True)
                signal.pause()
    except DemoError as e:
        print(f"demo: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print()
    return 0


def push(service: Service, options: argparse.Namespace) -> str:
    """Bring one run into the service; its id."""
    token = demo_token(service)
    name = f"{options.trace.name if options.trace else options.workload} {time.strftime('%Y-%m-%d %H:%M:%S')}"
    if options.trace:
        upload(service, token, options.trace, name)
    else:
        measure(service, token, options.workload, name)
    return wait_for(service, name)


def demo_token(service: Service) -> str:
    """A token that may write; kept in the data folder, readable by its owner only."""
    path = service.data / "demo-token"
    if not path.exists():
        command = ["rooflight-server", "token", "create", "--name", "demo"]
        words = program(service, *command, quiet=True).split()
        token = next((word for word in words if word.startswith("rfl_")), None)
        if token is None:
            raise DemoError("rooflight-server token create printed no token")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write(token)
    return path.read_text()


def measure(service: Service, token: str, workload: str, name: str) -> None:
    """Calibrate this machine, then run ``workload`` under the profiler; both are pushed."""
    where = {"ROOFLIGHT_SERVER": service.url, "ROOFLIGHT_TOKEN": token, "ROOFLIGHT_PROJECT": PROJECT}
    print("demo: measuring the ceilings of this device", flush=True)
    program(service, "rooflight-agent", "calibrate", "--quick", quiet=True, **where)
    print(f"demo: running the workload {workload} under the profiler", flush=True)
    program(service, "rooflight-agent", "run", "--workload", workload, "--run", name, quiet=True, **where)


def upload(service: Service, token: str, trace: Path, name: str) -> None:
    if not trace.is_file():
        raise DemoError(f"there is no file {trace}")
    print(f"demo: uploading {trace}", flush=True)
    where = ["--server", service.url, "--project", PROJECT, "--run", name]
    program(service, "rooflight", "upload", str(trace), *where, ROOFLIGHT_TOKEN=token)


def program(service: Service, *command: str, quiet: bool = False, **variables: str) -> str:
    """Run one of our console scripts; what it printed. When it fails, its own words are shown."""
    env = environment(service.data) | variables
    done = subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        raise DemoError(f"{' '.join(command[:2])} failed ({done.returncode}):\n{done.stdout.strip()}")
    for line in done.stdout.splitlines():
        # What makes the figures worse than the machine is worth a line in any case.
        if not quiet or "other programs used" in line:
            print(line, flush=True)
    return done.stdout


def wait_for(service: Service, name: str) -> str:
    """Id of the run called ``name`` once its analysis is there."""
    until = time.monotonic() + ANALYSIS_SECONDS
    while time.monotonic() < until:
        run = find(service, name)
        if run and run["state"] == "ready":
            return str(run["id"])
        if run and run["state"] in ("failed", "refused"):
            raise DemoError(f"the analysis was {run['state']}: {run.get('problem')}")
        time.sleep(0.2)
    raise DemoError(f"the run {name!r} was not analysed in {ANALYSIS_SECONDS:.0f} s")


def find(service: Service, name: str) -> dict[str, Any] | None:
    runs = service.get("/api/v1/runs").json["items"]
    return next((run for run in runs if run["name"] == name), None)


def show(service: Service, run: str, seconds: float) -> None:
    """The one-screen summary."""
    document = service.get(f"/api/v1/runs/{run}/analysis").json
    print("\n" + "\n".join(summary.lines(document)))
    print(f"\npage       {service.url}/runs/{run}\n           ({seconds:.1f} s after the start)", flush=True)


def check(service: Service, run: str) -> None:
    document = demo_check.check_api(service, run)
    demo_check.check_page(service, run, document)
    print("check      page, style sheets, scripts, plotly and API agree", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
