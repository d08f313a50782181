"""The schema of every figure that a page, a table or a chart shows.

A key is ``scope.field``: scope ``kernel``, ``step``, ``part``, ``device`` or ``rank``, field as in
:mod:`rooflight.protocol`.  ``unit`` is that of the JSON; ``better`` is the direction that is good, if any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class Metric:
    """``label`` heads a column, ``explanation`` is its hover: what is counted and what is not."""

    key: str
    label: str
    unit: str
    better: Better | None
    explanation: str


_KERNEL = (
    Metric(
        "kernel.count",
        "Calls",
        "",
        None,
        "Launches in this group: same kernel, op, module, shapes, types and device.",
    ),
    Metric(
        "kernel.time_us",
        "Time",
        "µs",
        "lower",
        "Sum of the durations of its launches over the whole recording. Launches on parallel "
        "streams count in full, so the column may pass the wall time.",
    ),
    Metric(
        "kernel.share_pct",
        "Share",
        "%",
        "lower",
        "Its time as a share of all kernel time of its device.",
    ),
    Metric("kernel.min_us", "Min", "µs", "lower", "Shortest launch."),
    Metric(
        "kernel.p50_us",
        "Median",
        "µs",
        "lower",
        "Median launch: the time that its regime is decided with.",
    ),
    Metric(
        "kernel.p95_us",
        "p95",
        "µs",
        "lower",
        "Nineteen launches of twenty are not longer; interpolated linearly.",
    ),
    Metric(
        "kernel.p99_us",
        "p99",
        "µs",
        "lower",
        "Ninety-nine launches of a hundred are not longer; interpolated linearly.",
    ),
    Metric("kernel.max_us", "Max", "µs", "lower", "Longest launch."),
    Metric(
        "kernel.flops",
        "FLOPs",
        "FLOP",
        None,
        "Floating-point operations of all its launches; a multiply-add is two. Unknown without "
        "shapes, never 0.",
    ),
    Metric(
        "kernel.bytes",
        "Bytes",
        "B",
        None,
        "Least device-memory traffic of all its launches: each operand read once, each result "
        "written once. Caches may save more, repeated reads cost more.",
    ),
    Metric(
        "kernel.ai",
        "Intensity",
        "FLOP/B",
        None,
        "Arithmetic intensity: FLOPs per byte of device memory. Left of the ridge the memory "
        "limits, right of it the compute units.",
    ),
    Metric("kernel.achieved_tflops", "TFLOP/s", "TFLOP/s", "higher", "FLOPs divided by time."),
    Metric("kernel.achieved_gbs", "GB/s", "GB/s", "higher", "Bytes divided by time, in 10⁹ bytes."),
    Metric(
        "kernel.bound_us",
        "Bound",
        "µs",
        None,
        "Least time of all its launches under the practical roofs: the largest of compute, memory "
        "and link time that is known.",
    ),
    Metric(
        "kernel.roof_fraction",
        "Of roof",
        "fraction",
        "higher",
        "Bound of one launch divided by the median launch: 1 is at the practical roof. Above 1 it beat the "
        "practical roof; above the datasheet it is marked, since then the cost or the data is "
        "wrong.",
    ),
    Metric(
        "kernel.exclusive_us",
        "Its own",
        "µs",
        "lower",
        "Time of the recording that is its alone: of kernels that run at once, one has the instant. Rows add "
        "up to the parts of the wall time.",
    ),
    Metric(
        "kernel.steps_exclusive_us",
        "Its own in steps",
        "µs",
        "lower",
        "Time within the steps that is its alone, summed over them.",
    ),
    Metric(
        "kernel.steps_count",
        "Calls in steps",
        "",
        None,
        "Launches that start on the device within the steps.",
    ),
    Metric(
        "kernel.blocks",
        "Blocks",
        "",
        None,
        "Blocks of the first launch; on HIP it may count work-items.",
    ),
    Metric(
        "kernel.link_bytes",
        "Link bytes",
        "B",
        None,
        "Bytes over PCIe or the link between GPUs, summed over the launches.",
    ),
    Metric(
        "kernel.chained_in_bytes",
        "From the one before",
        "B",
        None,
        "Bytes that the elementwise kernel right before on the stream wrote, summed over the launches.",
    ),
    Metric(
        "kernel.chained_out_bytes",
        "To the one after",
        "B",
        None,
        "Bytes that are left to the elementwise kernel right after on the stream, summed over the launches.",
    ),
)
_STEP = (
    Metric(
        "step.step_time_us",
        "Step time",
        "µs",
        "lower",
        "Duration of the step's own annotation on the host.",
    ),
    Metric(
        "step.gpu_busy_in_window_us",
        "Busy",
        "µs",
        None,
        "Time within the step in which the device ran anything: a union, so parallel streams count once.",
    ),
    Metric(
        "step.gpu_launched_us",
        "Launched",
        "µs",
        None,
        "Sum of the durations of the kernels that were launched within the step, wherever they ran.",
    ),
    Metric(
        "step.attainable_us",
        "Attainable",
        "µs",
        None,
        "Its kernel time if every kernel ran at its practical roof and nothing waited; kernels of "
        "unknown cost keep their time.",
    ),
    Metric("step.bound_us", "Bound", "µs", None, "As attainable, over the kernels of known cost only."),
    Metric(
        "step.work_of_us",
        "Calculating",
        "µs",
        None,
        "Time of the kernels that start in the step on its device and are no communication and no copy.",
    ),
    Metric(
        "step.mfu",
        "MFU",
        "fraction",
        "higher",
        "Model FLOPs (without recomputation) against the datasheet peak over the step time. Unknown "
        "when less than 80 % of matrix kernel time has a known cost.",
    ),
    Metric(
        "step.hfu",
        "HFU",
        "fraction",
        "higher",
        "FLOPs that were executed, recomputation included, against the datasheet peak over the step time.",
    ),
    Metric("step.wait_us", "Wait", "µs", "lower", "Exposed communication before the last rank arrived."),
    Metric(
        "step.transfer_us",
        "Transfer",
        "µs",
        "lower",
        "Exposed communication after the last rank arrived.",
    ),
)
_PART = (
    Metric(
        "part.compute",
        "Compute",
        "µs",
        None,
        "A kernel runs that reaches 60 % of its practical compute roof.",
    ),
    Metric(
        "part.memory",
        "Memory",
        "µs",
        None,
        "A kernel runs that reaches 60 % of the practical memory bandwidth.",
    ),
    Metric(
        "part.latency",
        "Latency",
        "µs",
        "lower",
        "A kernel runs that keeps neither the compute units nor the memory busy: too small, too few "
        "blocks, too little occupancy, or inefficient.",
    ),
    Metric("part.unknown", "Unknown", "µs", "lower", "A kernel runs whose FLOPs, bytes or roof are unknown."),
    Metric(
        "part.communication",
        "Communication",
        "µs",
        "lower",
        "Only communication runs: nothing hides it.",
    ),
    Metric("part.copy", "Copies", "µs", "lower", "Only copies and fills run: nothing hides them."),
    Metric(
        "part.input",
        "Input",
        "µs",
        "lower",
        "The device is idle while the host waits for the next batch of its data loader.",
    ),
    Metric(
        "part.sync",
        "Sync",
        "µs",
        "lower",
        "The device is idle while the host waits in a call that synchronises with it, such as .item().",
    ),
    Metric(
        "part.dispatch",
        "Dispatch",
        "µs",
        "lower",
        "The device is idle while the host works its way through framework ops and driver calls to "
        "the next launch.",
    ),
    Metric(
        "part.host",
        "Host",
        "µs",
        "lower",
        "The device is idle while the host runs something else: Python, logging, checks.",
    ),
    Metric(
        "part.launch",
        "Launch",
        "µs",
        "lower",
        "The device is idle between a launch and the start of its kernel, or for less than 5 µs "
        "between kernels that were queued.",
    ),
    Metric(
        "part.dependency",
        "Dependency",
        "µs",
        "lower",
        "The device is idle although the next kernel was queued: it waits for another stream, "
        "device or process.",
    ),
    Metric(
        "part.unknown_idle",
        "Idle, unknown",
        "µs",
        "lower",
        "The device is idle and the recording holds no launch of the kernel that ends the gap.",
    ),
)
_DEVICE = (
    Metric("device.n_gpu_events", "GPU events", "", None, "Valid kernels, copies and fills on this device."),
    Metric("device.kernels", "Kernels", "", None, "Kernels on this device, communication included."),
    Metric("device.span_us", "Span", "µs", None, "From the first start to the last end of its work."),
    Metric("device.busy_us", "Busy", "µs", None, "Time in which any work ran: a union over its streams."),
    Metric("device.idle_us", "Idle", "µs", "lower", "Span without busy."),
    Metric(
        "device.busy_pct",
        "Busy",
        "%",
        "higher",
        "Busy as a share of the span. It says that something ran, not that it ran well.",
    ),
    Metric(
        "device.kernel_sum_us",
        "Kernel sum",
        "µs",
        None,
        "Plain sum of kernel durations; above busy where streams overlap, and no utilisation.",
    ),
    Metric(
        "device.compute_us",
        "Kernels",
        "µs",
        None,
        "Time in which a kernel other than communication ran.",
    ),
    Metric("device.comm_us", "Communication", "µs", None, "Time in which communication ran, hidden or not."),
    Metric("device.mem_us", "Copies", "µs", None, "Time in which copies or fills ran, hidden or not."),
    Metric(
        "device.exposed_comm_us",
        "Exposed communication",
        "µs",
        "lower",
        "Communication time in which no other kernel ran.",
    ),
    Metric(
        "device.overlap_pct",
        "Overlap",
        "%",
        "higher",
        "Share of the communication time that other kernels hide.",
    ),
    Metric("device.exposed_mem_us", "Exposed copies", "µs", "lower", "Copy time in which no kernel ran."),
    Metric("device.unlinked_kernels", "Unlinked", "", "lower", "Kernels whose launch is not in the file."),
    Metric(
        "device.unlinked_us",
        "Unlinked time",
        "µs",
        "lower",
        "Time of the kernels whose launch is not in the file.",
    ),
)
_RANK = (
    Metric(
        "rank.busy_pct",
        "Busy",
        "%",
        "higher",
        "Busy time of its headline device as a share of that device's span.",
    ),
    Metric(
        "rank.communication_rows",
        "Kinds of collectives",
        "",
        None,
        "How many kinds of collectives the rank ran; of many only the longest are listed.",
    ),
    Metric(
        "rank.findings_total_us",
        "Together at most",
        "µs",
        None,
        "What the findings save together at most, mean per step: time that several speak of counts once.",
    ),
    Metric("rank.n_steps", "Steps", "", None, "Steps that the recording marks."),
    Metric("rank.steps_total_us", "Steps total", "µs", "lower", "Sum of the step times."),
    Metric("rank.attributed_kernels", "Attributed", "", None, "Kernels whose launch lies within an op."),
    Metric(
        "rank.unattributed_us",
        "Unattributed",
        "µs",
        "lower",
        "Kernel time that belongs to no op; it stays in every total.",
    ),
    Metric(
        "rank.host_api_us",
        "API calls",
        "µs",
        "lower",
        "Host time in driver and runtime calls, a union per thread.",
    ),
    Metric("rank.graph_launches", "Graph launches", "", None, "Launches of captured graphs."),
    Metric(
        "rank.graph_launches_with_kernels",
        "With kernels",
        "",
        None,
        "Graph launches whose kernels the recording holds; under nine in ten no idle time can be trusted.",
    ),
    Metric(
        "rank.flops_total",
        "FLOPs",
        "FLOP",
        None,
        "Sum of the known FLOPs: a lower bound where coverage is under 100 %.",
    ),
)


def _by_key(metrics: Iterable[Metric]) -> Mapping[str, Metric]:
    found: dict[str, Metric] = {}
    for metric in metrics:
        if metric.key in found:
            raise ValueError(f"two metrics are called {metric.key}")
        found[metric.key] = metric
    return found


#: Every metric by its key.
METRICS = _by_key((*_KERNEL, *_STEP, *_PART, *_DEVICE, *_RANK))


def metric(scope: str, field: str) -> Metric:
    """The metric of a field; ``KeyError`` names one that has none."""
    return METRICS[f"{scope}.{field}"]


def of_scope(scope: str) -> list[Metric]:
    """The metrics of a scope in the order in which they are shown."""
    return [m for key, m in METRICS.items() if key.startswith(f"{scope}.")]
