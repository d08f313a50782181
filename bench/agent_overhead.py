"""What the agent costs the training beside it, and itself; ends with 1 over the bars.

    .venv/bin/python -m bench.agent_overhead [-n ALTERNATIONS] [--seconds S]

Two processes of one training (bench/agent_overhead_train.py) take turns on one CPU, a few steps each: one
plain, one under ``rooflight-agent run`` or with ``KINETO_USE_DAEMON=1`` beside a daemon; so other work of
the machine is in both.  An alternation is a new pair of processes; its figure is the ratio of their CPU
times, all threads, over all turns, so that what happens once a second is in it; the median of alternations
counts.  Steps within the recorded window are left out.  The first row has two plain ones: what it is off 0
by is the method's. torch asks the daemon every second here, five times as often as it does by itself.  A
step is short, of some ten ms; what is added to it does not grow with the step, so the microseconds are told
beside the share.

The idle daemon (bench/agent_idle.py) samples eight GPUs of a stub of NVML and sends to a server.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.agent_idle import AGENT, Idle, environment, measure

LIMIT = 0.01
BLOCK, BLOCKS, START, RECORDED = 3, 40, 20, 3
#: The window is well over after so many steps.
WINDOW = 10
#: glibc keeps what is freed.  Else it gives the end of the heap back or not, by chance of what lies there,
#: and the page faults are up to 2 % of a step, from one process to the next of the same program.
KEEPING = {"MALLOC_TRIM_THRESHOLD_": str(1 << 30), "MALLOC_MMAP_THRESHOLD_": str(1 << 30)}
TRAINING = Path(__file__).with_name("agent_overhead_train.py")


@dataclass(frozen=True)
class Arm:
    """How a training is started."""

    command: tuple[str, ...]
    environ: Mapping[str, str]


@dataclass
class Training:
    """A training that waits for orders."""

    process: subprocess.Popen[str]

    def steps(self, n: int) -> int:
        """Take ``n`` steps; the CPU time of them, ns."""
        assert self.process.stdin
        self.process.stdin.write(f"{n}\n")
        self.process.stdin.flush()
        return int(self._line())

    def ready(self) -> None:
        """Wait until it is there."""
        self._line()

    def end(self) -> None:
        self.process.communicate()
        if self.process.returncode:
            raise SystemExit(f"a training ended with {self.process.returncode}")

    def _line(self) -> str:
        assert self.process.stdout
        if not (line := self.process.stdout.readline()):
            raise SystemExit("a training ended before its time")
        return line


@dataclass(frozen=True)
class Sample:
    """An alternation: the CPU time of one arm over the plain one's, whose steps take ``step_us``."""

    before: float
    after: float
    step_us: float


def alternation(plain: Arm, other: Arm, *, other_first: bool) -> Sample:
    """One pair of processes, block about."""
    pair = [Training(_start(arm)) for arm in (plain, other)]
    for training in pair:
        training.ready()
        training.steps(START)
    before, step_us = _ratio(pair, other_first=other_first)
    for training in pair:
        training.steps(WINDOW)
    after, _ = _ratio(pair, other_first=other_first)
    for training in pair:
        training.end()
    return Sample(before, after, step_us)


def _ratio(pair: Sequence[Training], *, other_first: bool) -> tuple[float, float]:
    """CPU of the second over that of the first, and a step of the first in µs."""
    spent = [0, 0]
    for number in range(BLOCKS):
        first = (number + other_first) % 2
        for which in (first, 1 - first):
            spent[which] += pair[which].steps(BLOCK)
    return spent[1] / spent[0], spent[0] / (BLOCK * BLOCKS) / 1e3


def _start(arm: Arm) -> subprocess.Popen[str]:
    return subprocess.Popen(
        arm.command,
        env=dict(arm.environ),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )


def launched(folder: Path) -> Arm:
    """The training under the launcher; its window opens when the blocks before it are done."""
    window = (
        "--wait",
        str(START + BLOCK * BLOCKS),
        "--steps",
        str(RECORDED),
        "--no-push",
        "--out",
        str(folder),
    )
    plain = training()
    return Arm((*AGENT, "run", *window, "--", *plain.command), plain.environ)


def training(**more: str) -> Arm:
    """The training as it is, on one thread."""
    return Arm((sys.executable, str(TRAINING)), environment() | KEEPING | {"OMP_NUM_THREADS": "1"} | more)


def of_the_launcher(n: int) -> list[Sample]:
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for i in range(n):
            out = Path(folder) / str(i)
            found.append(alternation(training(), launched(out), other_first=i % 2 == 1))
            document = json.loads((out / "analysis.json").read_bytes())
            steps = document["ranks"][0]["n_steps"]
            if steps != RECORDED:
                raise SystemExit(f"{steps} steps were recorded, not {RECORDED}: nothing was compared")
    return found


def of_the_daemon(n: int) -> list[Sample]:
    with tempfile.TemporaryDirectory() as name, _a_daemon(Path(name)) as told:
        return [alternation(training(), training(**told), other_first=i % 2 == 1) for i in range(n)]


def of_nothing(n: int) -> list[Sample]:
    return [alternation(training(), training(), other_first=i % 2 == 1) for i in range(n)]


@contextlib.contextmanager
def _a_daemon(folder: Path) -> Iterator[dict[str, str]]:
    """A daemon that answers; what tells a training of it."""
    settings = folder / "libkineto.conf"
    settings.write_text("ON_DEMAND_CONFIG_UPDATE_INTERVAL_SECS=1\n")
    environ = environment(ROOFLIGHT_STATE=str(folder / "state"))
    command = [*AGENT, "daemon", "--socket-dir", str(folder)]
    daemon = subprocess.Popen(command, env=environ, stderr=subprocess.DEVNULL)
    try:
        while not (folder / "dynolog").exists():
            if daemon.poll() is not None:
                raise SystemExit("the daemon ended at once")
            time.sleep(0.05)
        kineto = {
            "KINETO_USE_DAEMON": "1",
            "KINETO_IPC_SOCKET_DIR": str(folder),
            "KINETO_CONFIG": str(settings),
        }
        yield kineto | {"KINETO_LOG_LEVEL": "6"}
    finally:
        daemon.terminate()
        daemon.wait(30)


def report(label: str, ratios: Sequence[float], step_us: float) -> bool:
    """Print the median; whether it is within the bar."""
    over = [100 * (ratio - 1) for ratio in ratios]
    low, _, high = statistics.quantiles(over, n=4) if len(over) > 1 else (over[0], 0.0, over[0])
    median = statistics.median(over)
    told = f"{median:+6.2f} % = {median / 100 * step_us:+6.0f} µs a step"
    print(f"{label:34} {told}   middle half {low:+.2f} to {high:+.2f} %", flush=True)
    return median < 100 * LIMIT


def trainings(n: int) -> bool:
    """Measure and print all; whether all are within the bar."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(f"CPU time of a step against a plain training, median of {n} alternations; bar {100 * LIMIT:.0f} %")
    nothing = of_nothing(n)
    step_us = statistics.median(sample.step_us for sample in nothing)
    print(f"{'a step of a plain one':34} {step_us:6.0f} µs")
    report("another plain one", [r for s in nothing for r in (s.before, s.after)], step_us)
    run = of_the_launcher(n)
    good = [report("under run, before the window", [s.before for s in run], step_us)]
    good.append(report("under run, after the window", [s.after for s in run], step_us))
    daemon = of_the_daemon(n)
    ratios = [(s.before + s.after) / 2 for s in daemon]
    good.append(report("with KINETO_USE_DAEMON and a daemon", ratios, step_us))
    return all(good)


def idle(seconds: float) -> bool:
    """Measure and print the idle daemon; whether it is within its bars."""
    found = measure(seconds)
    print(f"idle daemon over {seconds:.0f} s, {found.gpus} GPUs once a second")
    print(f"{'CPU':34} {100 * found.cpu_frac:6.2f} %   of a core; bar {100 * Idle.MOST_CPU:g} %")
    memory = f"{found.rss_mib:6.1f} and {found.peak_mib:.1f} MiB; bar {Idle.MOST_MB} MB"
    print(f"{'memory, now and at most':34} {memory}", flush=True)
    for name in found.heavy:
        print(f"{name} is loaded")
    return found.good


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.agent_overhead", description=__doc__.splitlines()[0]
    )
    parser.add_argument("-n", "--alternations", type=int, default=20, help="0 leaves the trainings out")
    parser.add_argument("--seconds", type=float, default=60.0, help="of the idle daemon; 0 leaves it out")
    options = parser.parse_args(argv)
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}")
    good = options.seconds <= 0 or idle(options.seconds)
    return 0 if (options.alternations <= 0 or trainings(options.alternations)) and good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
