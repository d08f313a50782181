"""What the agent does on a machine with a GPU, in turn: it calibrates, runs a workload under the profiler,
records a program from its start, samples, and records a training on order.

    scripts/gpu_check.sh FOLDER [--device cpu]

FOLDER gets small recordings and summary.json.  It ends in under four minutes, whatever hangs.  Settings of
the GPU are read, never changed.  Exit status 0 when all of it worked, else 1.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AGENT = (sys.executable, "-m", "agent.cli")
TRAIN = (sys.executable, str(ROOT / "examples/train.py"))
TOTAL_S = 235.0
SAMPLED_S = 9.0
METRICS = 9437
#: What torch and the driver say of themselves.
SOFTWARE = """
import torch
print("torch", torch.__version__, "CUDA", torch.version.cuda)
for i in range(torch.cuda.device_count()):
    print(torch.cuda.get_device_properties(i))
"""


class FailedError(Exception):
    """A check did not do what it should; the words are for the summary."""


@dataclass(frozen=True)
class Row:
    """What became of a check."""

    check: str
    seconds: float
    problem: str | None


@dataclass
class Checks:
    """Runs the checks into ``out``, each in what is left of the time."""

    out: Path
    device: str
    sockets: Path
    ends: float = field(default_factory=lambda: time.monotonic() + TOTAL_S)
    rows: list[Row] = field(default_factory=list)

    @property
    def state(self) -> Path:
        """Where the agent keeps what it keeps."""
        return self.out / "state"

    def check(self, name: str, deed: Callable[[], object]) -> None:
        """Do it, and write down what became of it."""
        began, problem = time.monotonic(), None
        try:
            deed()
        except (FailedError, OSError) as e:
            problem = str(e)
        self.rows.append(Row(name, round(time.monotonic() - began, 1), problem))
        print(f"{name:12} {self.rows[-1].seconds:6.1f} s   {problem or 'ok'}", flush=True)

    def run(self, name: str, *command: str, most_s: float) -> None:
        """Run a program to its end; its output lies in ``NAME.txt``, its other words in ``NAME.err``."""
        with (self.out / f"{name}.txt").open("wb") as said, (self.out / f"{name}.err").open("wb") as words:
            try:
                limit = min(most_s, self.ends - time.monotonic())
                done = subprocess.run(
                    command, env=self.environ(), stdout=said, stderr=words, timeout=limit, check=False
                )
            except subprocess.TimeoutExpired as e:
                raise FailedError(f"did not end within {e.timeout:.0f} s") from e
        if done.returncode:
            told = (self.out / f"{name}.err").read_text(errors="replace").strip().splitlines()
            raise FailedError(f"exit status {done.returncode}: {told[-1] if told else 'no word'}")

    def environ(self, **more: str) -> dict[str, str]:
        own = {k: v for k, v in os.environ.items() if not k.startswith(("ROOFLIGHT_", "KINETO_"))}
        ours = {"PYTHONPATH": str(ROOT), "ROOFLIGHT_STATE": str(self.state), "ROOFLIGHT_CONFIG": os.devnull}
        return own | ours | {"KINETO_LOG_LEVEL": "6"} | more

    def software(self) -> None:
        """torch, the driver, and what the agent's doctor says, which is no judgement here."""
        self.run("software", sys.executable, "-c", SOFTWARE, most_s=60)
        if shutil.which("nvidia-smi"):
            self.run("nvidia-smi", "nvidia-smi", "-q", most_s=20)
        with contextlib.suppress(FailedError):
            self.run("doctor", *AGENT, "doctor", "--json", "--socket-dir", str(self.sockets), most_s=30)

    def calibrate(self) -> None:
        out = str(self.out / "calibration.json")
        command = ("calibrate", "--quick", "--device", self.device, "--no-push", "--out", out)
        self.run("calibrate", *AGENT, *command, most_s=90)

    def workload(self) -> None:
        """A workload under the profiler, NVML beside it."""
        what = ("--workload", "transformer", "--steps", "3", "--size", "medium", "--device", self.device)
        self.run(
            "workload", *AGENT, "run", *what, "--no-push", "--out", str(self.out / "workload"), most_s=60
        )
        windows = (_document(self.out / "workload").get("telemetry") or {}).get("windows")
        if self.device != "cpu" and not windows:
            raise FailedError("no device was sampled")

    def launched(self) -> None:
        """A program that knows nothing of Rooflight, from its start."""
        out = self.out / "launched"
        window = ("--wait", "5", "--steps", "3", "--no-push", "--out", str(out))
        program = (*TRAIN, "--steps", "20", "--device", self.device)
        self.run("launched", *AGENT, "run", *window, "--", *program, most_s=60)
        _has_steps(out, 3)

    def captured(self, training: int) -> None:
        """The same while it runs: by steps, then by time."""
        for name, window in (("iterations", ("--iterations", "3")), ("duration", ("--duration-ms", "200"))):
            order = ("capture", str(training), *window, "--socket-dir", str(self.sockets), "--no-push")
            self.run(name, *AGENT, *order, most_s=60)
            [folder] = (self.state / "captures").iterdir()
            folder.rename(self.out / name)
        _has_steps(self.out / "iterations", 3)

    def sampled(self) -> None:
        """The daemon's samples beside the training, as /metrics and as what it would send."""
        command = ("daemon", "--metrics", str(METRICS), "--interval-s", "0.25", "--window-s", "2")
        with (self.out / "sampled.err").open("wb") as words:
            daemon = subprocess.Popen((*AGENT, *command), env=self.environ(), stderr=words)
        try:
            time.sleep(SAMPLED_S)
            with urllib.request.urlopen(f"http://127.0.0.1:{METRICS}/metrics", timeout=10) as page:
                (self.out / "metrics.txt").write_bytes(page.read())
        finally:
            daemon.terminate()
            status = daemon.wait(20)
        if status:
            raise FailedError(f"the daemon ended with {status}")
        batches = sorted((self.state / "spool").glob("*-telemetry.batch"))
        bodies = [path.read_bytes().partition(b"\n")[2] for path in batches]
        (self.out / "windows.jsonl").write_bytes(b"".join(body + b"\n" for body in bodies))
        if self.device != "cpu" and not bodies:
            raise FailedError("no device was sampled")

    @contextlib.contextmanager
    def training(self) -> Iterator[int]:
        """A training that can be recorded; its pid."""
        environ = self.environ(KINETO_USE_DAEMON="1", KINETO_IPC_SOCKET_DIR=str(self.sockets))
        command = (*TRAIN, "--seconds", str(TOTAL_S), "--device", self.device)
        with (self.out / "training.txt").open("wb") as said:
            process = subprocess.Popen(command, env=environ, stdout=said, stderr=said)
        try:
            # It has taken its first 20 steps when it says something.
            while not (self.out / "training.txt").stat().st_size and time.monotonic() < self.ends:
                if process.poll() is not None:
                    raise FailedError(f"the training ended with {process.returncode}")
                time.sleep(0.2)
            yield process.pid
        finally:
            process.kill()
            process.wait()


def everything(checks: Checks) -> bool:
    """All checks in turn; whether all of them did well."""
    checks.check("software", checks.software)
    checks.check("calibrate", checks.calibrate)
    checks.check("workload", checks.workload)
    checks.check("launched", checks.launched)

    def beside_a_training() -> None:
        with checks.training() as pid:
            checks.check("sampled", checks.sampled)
            checks.check("captured", lambda: checks.captured(pid))

    checks.check("training", beside_a_training)
    return all(row.problem is None for row in checks.rows)


def tidy(out: Path) -> None:
    """Traces are packed; what the agent kept for itself goes."""
    shutil.rmtree(out / "state", ignore_errors=True)
    for trace in out.rglob("*.pt.trace.json"):
        with trace.open("rb") as file, gzip.open(f"{trace}.gz", "wb", 9) as packed:
            shutil.copyfileobj(file, packed)
        trace.unlink()


def _document(folder: Path) -> dict[str, object]:
    document: dict[str, object] = json.loads((folder / "analysis.json").read_bytes())
    return document


def _has_steps(folder: Path, n: int) -> None:
    ranks = _document(folder)["ranks"]
    found = [max(r["n_steps"], len(r["inferred_steps"])) for r in ranks] if isinstance(ranks, list) else []
    if found != [n]:
        raise FailedError(f"recorded {found} steps, not {n}")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/gpu_check.sh", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where recordings and summary go")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda", help="cpu: tried without a GPU")
    args = parser.parse_args(argv)
    args.folder.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    # The path of a socket has at most 107 bytes.
    with tempfile.TemporaryDirectory() as sockets:
        checks = Checks(args.folder.resolve(), args.device, Path(sockets))
        good = everything(checks)
    tidy(checks.out)
    size = sum(path.stat().st_size for path in checks.out.rglob("*"))
    seconds = round(time.monotonic() - began, 1)
    summary = {"device": args.device, "good": good, "seconds": seconds, "bytes": size}
    rows = [asdict(row) for row in checks.rows]
    (checks.out / "summary.json").write_text(json.dumps(summary | {"checks": rows}, indent=1) + "\n")
    print(f"{'all well' if good else 'not all is well'}: {seconds} s, {size / 1e6:.1f} MB in {checks.out}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
