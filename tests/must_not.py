"""What each case forbids (its ``must_not`` lines), as a look at the answers to its parts.

An entry is true when the forbidden thing has happened; a text says where else the line is asserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tests.cases import Answer, flags_of, load, ns, parts_of, timeline

Forbidden = Callable[[Sequence[Answer]], bool]


def broken(case: str, answers: Sequence[Answer]) -> Iterator[str]:
    """The lines of a case that its answers break, and those that nothing looks for."""
    for line in load(case).get("must_not", []):
        look = MUST_NOT.get((case[:2], line))
        if look is None:
            yield f"nothing looks for {line!r}"
        elif callable(look) and look(answers):
            yield line


def _device(answers: Sequence[Answer], figure: str, device: str = "0") -> Any:
    return answers[0].rank["devices"][device][figure]


def _kernel(answers: Sequence[Answer], name: str) -> list[dict[str, Any]]:
    return [k for k in answers[0].rank["kernels"] if k["name"] == name]


def _time(answers: Sequence[Answer], name: str) -> int:
    return sum(ns(k["time_us"]) for k in _kernel(answers, name))


def _ops(answers: Sequence[Answer], kernel: str) -> set[str | None]:
    return {a["op"] for a in answers[0].rank["attribution"] if a["kernel"] == kernel}


def _accepted(answers: Sequence[Answer]) -> bool:
    return any(a.document is not None for a in answers)


def _words(answers: Sequence[Answer], *words: str) -> bool:
    return any(w.lower() in a.words.lower() for a in answers for w in words)


def _names(answers: Sequence[Answer]) -> list[str]:
    return [k["name"] for k in answers[0].rank["kernels"]]


def _gaps(file: Path) -> set[int]:
    """The distances in ns from the end of each GPU event to the start of the next."""
    gpu = timeline(file).gpu
    order = np.argsort(gpu.start)
    return set((gpu.start[order][1:] - (gpu.start + gpu.dur)[order][:-1]).tolist())


def _invented_gaps(answers: Sequence[Answer]) -> bool:
    # a: 1.001 us every 1.25 us leaves 249 ns; b: every kernel starts where the last one ended.
    a, b = parts_of("16-ns-precision")
    return _gaps(a.files[0]) != {249} or _gaps(b.files[0]) != {0}


_FIVE = "test_cases_http: no refusal of any case is answered with a 5xx"
_TIMED = "test_cases: every case answers within seconds, and the suite ends what hangs"

_NVML = "tests/agent/test_telemetry_cases.py"
MUST_NOT: dict[tuple[str, str], Forbidden | str] = {
    ("01", "store the events that happened to be complete as if the trace were whole"): _accepted,
    ("01", "5xx"): _FIVE,
    (
        "02",
        (
            "accept input-b: its JSON is complete but the CRC/length trailer (last 8 bytes) never arrived, "
            "so integrity is unknown"
        ),
    ): lambda a: a[1].document is not None,
    # The members hold 300 events together.
    ("03", "read the first member only"): lambda a: _device(a, "n_gpu_events") < 300,
    ("03", "split a UTF-8 character at a member border"): lambda a: any(
        "�" in n or "\\x" in n for n in _names(a)
    ),
    ("08", "5xx"): _FIVE,
    ("08", "silently lose the kernel that the broken op launched"): lambda a: (
        _accepted(a) and _device(a, "n_gpu_events") != 2
    ),
    ("10", "repair it into one run"): _accepted,
    ("10", "5xx"): _FIVE,
    ("14", "ZeroDivision/min() of an empty sequence"): lambda a: _words(
        a, "ZeroDivision", "division by zero", "empty sequence", "Traceback"
    ),
    ("14", "show 0 % GPU utilisation for a trace that never recorded the GPU"): lambda a: (
        a[3].rank["busy_pct"] is not None or a[3].rank["devices"] != {}
    ),
    ("16", "gaps or overlaps that the file does not contain"): _invented_gaps,
    # A second is far more than the 110 us of the file, and far less than the time since 1970.
    ("17", "a span of about 1.76e9 seconds (epoch)"): lambda a: _device(a, "span_us") > 1e6,
    ("17", "count the 3 us of the fourth event as busy time"): lambda a: _device(a, "busy_us") == 83,
    ("18", "subtract 10 us from busy"): lambda a: _device(a, "busy_us") == 70,
    ("18", "swap start and end of the negative event"): lambda a: bool(_kernel(a, "neg")),
    ("19", "1.6 s of kernel time"): lambda a: _device(a, "kernel_sum_us") > 1e6
    or sum(k["time_us"] for k in a[0].rank["kernels"]) > 1e6,
    ("19", "clip the two graph kernels, which may truly run side by side"): lambda a: (
        (_time(a, "g1"), _time(a, "g2")) != (100_000, 70_000)
    ),
    ("21", "a negative delay"): lambda a: any(
        d is not None and d < 0 for d in a[0].rank["launch_delay_us"].values()
    ),
    # (20 + 0 + 5) / 3
    ("21", "a delay clamped to 0 that drags the mean to 8.333"): lambda a: (
        a[0].rank["launch_delay"]["mean_us"] == 8.333 or a[0].rank["launch_delay_us"]["k2"] == 0
    ),
    ("22", "busy 110, kernel_sum 270, or 90 us of communication"): lambda a: any(
        (d["busy_us"], d["kernel_sum_us"], d["comm_us"]) != (70, 70, 0)
        for one in a
        for d in one.rank["devices"].values()
    ),
    ("23", "overlap 100 %"): lambda a: _device(a, "overlap_pct") == 100,
    # 250 or 300 of 260 us
    ("24", "utilisation 96 or 115 % (sum over streams)"): lambda a: _device(a, "busy_pct") > 81,
    ("24", "shares of one pie that add up to more than 100 %"): lambda a: (
        sum(k["share_pct"] for k in a[0].rank["kernels"] if k["kind"] == "kernel") > 100.01
    ),
    ("25", "one merged timeline in which device 1 fills the gap of device 0"): lambda a: (
        len(a[0].rank["devices"]) != 2 or _device(a, "idle_us") == 0
    ),
    ("26", "6 steps"): lambda a: a[0].rank["n_steps"] == 6 or len(a[0].rank["steps"]) == 6,
    ("26", "a step of 160 us"): lambda a: any(s["step_time_us"] == 160 for s in a[0].rank["steps"]),
    ("26", "lose the kernel that runs after the last step has ended"): lambda a: (
        _device(a, "n_gpu_events") < 3 or _device(a, "span_us") < 300
    ),
    ("30", "bar_kernel under aten::foo"): lambda a: "aten::foo" in _ops(a, "bar_kernel"),
    ("31", "5 x 20 us launch overhead"): lambda a: a[0].rank["host_api_us"] == 100,
    ("31", "keep only one of the kernels with equal correlation"): lambda a: (
        _device(a, "kernels") < 5 or a[0].rank["attributed_kernels"] < 5
    ),
    ("32", "drop the two kernels"): lambda a: _device(a, "kernels") < 3,
    ("32", "spread their 40 us over known ops"): lambda a: (
        sum(t for op, t in a[0].rank["attribution_op_time_us"].items() if op is not None) > 30
    ),
    ("32", "KeyError"): lambda a: _words(a, "KeyError"),
    ("35", "beta_kernel under aten::alpha or vice versa"): lambda a: (
        _accepted(a)
        and ("aten::alpha" in _ops(a, "beta_kernel") or "aten::beta" in _ops(a, "alpha_kernel"))
    ),
    ("35", "hang"): _TIMED,
    ("41", "NaN"): lambda a: "NaN" in str(a[0].document) or "nan" in str(_device(a, "overlap_pct")),
    ("41", "overlap 0 % or 100 %"): lambda a: _device(a, "overlap_pct") in (0, 100),
    # What the starts differ by when nobody sets the clock of rank 1 back.
    ("43", "rank 1 is late by 910, 840 and 970 us"): lambda a: any(
        c["wait_us"]["0"] in (910, 840, 970) for c in (a[0].document or {})["collectives"]
    ),
    ("44", "count the absent rank 2 as an idle GPU or as straggler"): lambda a: (
        2 in [r["rank"] for r in (a[0].document or {})["ranks"]]
        or any(c["straggler"] == 2 or "2" in c["wait_us"] for c in (a[0].document or {})["collectives"])
    ),
    ("44", "ask the user to edit the file by hand"): lambda a: _words(a, "edit", "by hand"),
    # 55 years are 1.7e12 ms; the kernels start 30 us apart.
    ("45", "put the runs 55 years apart"): lambda a: _walls(a)[1] - _walls(a)[0] > 10**12,
    ("45", "rebase every file to its own first event"): lambda a: (
        _walls(a)[1] == _walls(a)[0] or min(_walls(a)) == 0
    ),
    ("50", "1073741824 for linear+addmm"): lambda a: _flops(a, "gemm_bf16") == {1_073_741_824},
    ("50", "134217728 or 201326592 for the attention"): lambda a: bool(
        _flops(a, "flash_fwd_kernel") & {134_217_728, 201_326_592}
    ),
    ("51", "0 instead of null for the last two"): lambda a: 0 in (a[0].document or {})["flops"][-2:],
    # The first is 2 x 8 x 16 x 4 = 1024.
    ("51", "MACs (half of it)"): lambda a: (a[0].document or {})["flops"][0] == 512,
    ("55", "clip to 100 %"): lambda a: any(
        k["roof_fraction"] == 1 or k["achieved_tflops"] <= 989.5 for k in a[0].rank["kernels"]
    ),
    ("55", "hide the kernel"): lambda a: (
        not _kernel(a, "gemm_bf16")
        or "above_peak" not in {f["code"] for f in flags_of(a[0].document or {})}
    ),
    ("53", "a default GPU (e.g. A100's 312) for unknown names"): "tests/rooflight/test_case_peaks.py",
    (
        "53",
        "datasheet numbers 'with sparsity' (1979 for H100 SXM, 1513 for H100 PCIe)",
    ): "tests/rooflight/test_case_peaks.py",
    ("54", "NaN/inf in the figure JSON"): "tests/web/test_figures.py",
    ("54", "log10(0)"): "tests/web/test_figures.py",
    ("60", "0 W"): _NVML,
    ("60", "drop the whole sample"): _NVML,
    ("60", "string 'N/A' or '[N/A]' in a number field"): _NVML,
    ("61", "0 % utilisation"): _NVML,
    ("61", "29974511616 bytes (parent + instances)"): _NVML,
    ("61", "roofline of the whole A100 for a 1g.5gb slice"): _NVML,
    ("62", "stop sampling the other three"): _NVML,
    (
        "62",
        "file the readings of U(7) under the lost GPU when the count shrinks to 3 and indices shift",
    ): _NVML,
    ("62", "keep repeating the last good value"): _NVML,
    ("63", "a 'leak' of 312 MB on an idle GPU"): _NVML,
    ("63", "occupancy taken from utilization.memory (10)"): _NVML,
    ("64", "'no GPU detected'"): _NVML,
    ("64", "0 of 0 bytes, division by zero"): _NVML,
    ("65", "y axis up to 9.2e18"): "tests/agent/test_dcgm.py",
    ("65", "an average of 8.6e8 %"): "tests/agent/test_dcgm.py",
    ("65", "clamp to 100"): "tests/agent/test_dcgm.py",
    ("67", "call process 77 'bash' (a host PID that by chance equals a container PID)"): _NVML,
    ("67", "1.8e19 bytes"): _NVML,
    ("67", "'no processes'"): _NVML,
    ("69", "TypeError on a string where a table is expected"): "tests/agent/test_amd.py",
    ("69", "lose gpu 2 because of gpu 1"): "tests/agent/test_amd.py",
    ("93", "5 or more rows"): "tests/app/test_telemetry.py",
    ("93", "IntegrityError as 500"): "tests/app/test_telemetry.py",
    ("93", "overwrite 50 by 99"): "tests/app/test_telemetry.py",
    ("95", "retry a 400 for ever and block the queue"): "tests/agent/test_delivery.py",
    ("95", "send the whole body again and again on 401"): "tests/agent/test_delivery.py",
    ("95", "3600 requests in an hour"): "tests/agent/test_delivery.py",
    ("95", "lose b1 after the time-out"): "tests/agent/test_delivery.py",
    ("96", "unbounded spool"): "tests/agent/test_agent_cases.py",
    ("96", "crash on ENOSPC"): "tests/agent/test_agent_cases.py",
    ("96", "reject or re-date the samples because of the skew"): "tests/agent/test_agent_cases.py",
    ("96", "silence for the missing process"): "tests/agent/test_agent_cases.py",
}  # fmt: skip


def _walls(answers: Sequence[Answer]) -> list[int]:
    return [int(r["first_kernel_wall_ns"]) for r in (answers[0].document or {})["ranks"]]


def _flops(answers: Sequence[Answer], name: str) -> set[int]:
    return {k["flops"] for k in _kernel(answers, name)}
