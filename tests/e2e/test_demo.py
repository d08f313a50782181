"""scripts/demo, as a person starts it: the whole road, and nothing left behind."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.shared import CHECKOUT

# Two steps of 40 us; a kernel of 10 us, launched in each.
TRACE = {
    "traceEvents": [
        event
        for n in (1, 2)
        for event in (
            {"ph": "X", "cat": "user_annotation", "name": f"ProfilerStep#{n}", "pid": 1, "tid": 1,
             "ts": 40 * n, "dur": 40},
            {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
             "ts": 40 * n + 5, "dur": 3, "args": {"correlation": n}},
            {"ph": "X", "cat": "kernel", "name": "a_kernel", "pid": 0, "tid": 7, "ts": 40 * n + 10, "dur": 10,
             "args": {"device": 0, "context": 1, "stream": 7, "correlation": n}},
        )
    ]
}  # fmt: skip


def demo(tmp_path: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    command = [
        sys.executable,
        CHECKOUT / "scripts/demo.py",
        "--data",
        tmp_path / "data",
        "--port",
        "0",
        *arguments,
    ]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=tmp_path
    )


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "two-steps.json"
    path.write_text(json.dumps(TRACE))
    return path


def page_of(process: subprocess.Popen[str]) -> str:
    """The address that the demo prints."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line)
        if found := re.match(r"page +(http\S+)", line):
            return found[1]
    raise AssertionError("".join(lines))


def answers(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except OSError:
        return False
    return True


def gone(url: str, seconds: float = 20) -> bool:
    until = time.monotonic() + seconds
    while answers(url) and time.monotonic() < until:
        time.sleep(0.1)
    return not answers(url)


def test_a_trace_is_uploaded_checked_and_the_server_stopped(tmp_path: Path, trace: Path) -> None:
    process = demo(tmp_path, "--check", "--trace", trace)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    # 40 us is 0.040 ms.
    assert "step time  0.040 ms (median of 2 steps)" in output
    assert "a_kernel" in output
    assert "API agree" in output
    address = re.search(r"page +(http\S+)", output)
    assert address
    assert not answers(address[1])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_however_it_ends_no_server_is_left(tmp_path: Path, trace: Path, number: signal.Signals) -> None:
    process = demo(tmp_path, "--trace", trace)
    try:
        page = page_of(process)
        assert answers(page)
        process.send_signal(number)
        process.wait(30)
    finally:
        process.kill()
        process.communicate()
    assert gone(page)


def test_a_broken_trace_ends_with_the_reason(tmp_path: Path, trace: Path) -> None:
    trace.write_text(trace.read_text()[:-40])
    process = demo(tmp_path, "--check", "--trace", trace)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 1
    assert "demo: rooflight upload failed" in output
    assert "two-steps.json" in output or "ends before its end" in output
    assert "Traceback" not in output
