"""The traces of a :class:`bench.ranks_plan.Plan`, in the layout of torch's profiler: a file per rank.

The events of a step are one text with holes for times and numbers, made once; a rank's step fills them.  Only
one step's text is held at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from isal import igzip

from bench.ranks_plan import BESIDE, GRAPH_GAP, I64, LOADER, ORIGIN, PLAIN, PLAIN_GAP, US, Group, Plan

BASE = 1_790_857_026_000_000_000
#: Bases differ between hosts as those of real recordings may.
BASE_STEP = 7_000_000_000
STREAM, COMM_STREAM, GRAPH_ID = 7, 20, 3
_ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, {0}, std::array<char*, 3ul> >(int, {0})"
_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)"
)
_GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas"
_ADD = _ELEMENTWISE.format("at::native::CUDAFunctor_add<c10::BFloat16>")
_GELU = _ELEMENTWISE.format("at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)::{lambda()#2}")
_MUL = _ELEMENTWISE.format("at::native::binary_internal::MulFunctor<float>")
#: What a rank launches one by one: op, the op inside, kernel, the dims of its inputs.
OPS = (
    ("aten::linear", "aten::addmm", _GEMM, "[[4096], [2048, 4096], [4096, 4096]]"),
    ("aten::layer_norm", "aten::native_layer_norm", _NORM, "[[2048, 4096], [], [4096], [4096], []]"),
    ("aten::add", "aten::add", _ADD, "[[2048, 4096], [2048, 4096], []]"),
    ("aten::matmul", "aten::mm", "ampere_bf16_s16816gemm_bf16_128x128_tn", "[[2048, 4096], [4096, 11008]]"),
    ("aten::gelu", "aten::gelu", _GELU, "[[2048, 11008], []]"),
    ("aten::mul", "aten::mul", _MUL, "[[2048, 11008], [2048, 11008]]"),
)
GRAPH_OP = "CUDAGraph::replay"
GRAPH_NAMES = (
    "nvjet_tst_128x256_64x4_2x1_v_bz_TNT",
    "triton_poi_fused_add_mul_silu_3",
    "triton_red_fused_native_layer_norm_7",
    "triton_poi_fused__to_copy_11",
)
BESIDE_NAME = "nvjet_tst_256x128_64x4_1x2_h_bz_coopA_NTT"
_NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
_NELEMS = {"tp": 8_388_608, "dp": 26_214_400, "world": 1}
_PROPERTIES = (
    '"name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85028765696, "computeMajor": 9, "computeMinor": 0,'
    ' "maxThreadsPerBlock": 1024, "maxThreadsPerMultiprocessor": 2048, "regsPerBlock": 65536, "warpSize": 32,'
    ' "sharedMemPerBlock": 49152, "numSms": 132, "regsPerMultiprocessor": 65536,'
    ' "sharedMemPerBlockOptin": 232448, "sharedMemPerMultiprocessor": 233472'
)
#: Anchors of a step's times: its start, then three of each slot; and its variable lengths.
STEP, BEGIN, ARRIVAL, FREE = 0, 1, 2, 3
KERNEL, COLLECTIVE = 1, 2


@dataclass
class Holes:
    """Numbers that a step fills in: times by anchor, lengths by variable (-1: fixed), counts."""

    text: list[str] = field(default_factory=list)
    size: int = 0
    times: list[tuple[int, int, int]] = field(default_factory=list)
    lengths: list[tuple[int, int, int]] = field(default_factory=list)
    counts: list[tuple[int, int, int]] = field(default_factory=list)
    events: int = 0
    correlation: int = 0
    external: int = 0

    def time(self, anchor: int, after: int) -> str:
        self.times.append((self.size, anchor, after))
        self.size += 2
        return "%d.%03d"

    def length(self, ns: int, variable: int = -1) -> str:
        self.lengths.append((self.size, variable, ns))
        self.size += 2
        return "%d.%03d"

    def count(self, first: int, per_step: int) -> str:
        self.counts.append((self.size, first, per_step))
        self.size += 1
        return "%d"

    def add(self, text: str) -> None:
        self.text.append(text)
        self.events += 1


class StepText:
    """The text of a step, in which ``@`` marks what differs between ranks."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.holes = Holes()
        self._launched = 0
        self._slots = [self._slot(slot, kind) for slot, kind in enumerate(plan.slots)]
        self._host("user_annotation", "ProfilerStep#%d", STEP, 0, (0, 0), number=True)
        self._host("user_annotation", "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", STEP,
                   LOADER[0], (LOADER[1], -1))  # fmt: skip
        self._numbered()
        h = self.holes
        self.text = "".join(h.text)
        self.times, self.lengths, self.counts = (
            np.array(rows, np.int64).reshape(-1, 3).T for rows in (h.times, h.lengths, h.counts)
        )

    def filled(self, text: str, step: int, anchors: I64, lengths: I64) -> str:
        """The events of a step; ``text`` is :attr:`text` with a rank's marks replaced."""
        values = np.empty(self.holes.size, np.int64)
        place, anchor, after = self.times
        ns = anchors[anchor] + after
        values[place], values[place + 1] = ns // US, ns % US
        place, variable, fixed = self.lengths
        ns = np.where(variable < 0, fixed, lengths[variable] + fixed)
        values[place], values[place + 1] = ns // US, ns % US
        place, first, per_step = self.counts
        values[place] = first + step * per_step
        return text % tuple(values.tolist())

    def _numbered(self) -> None:
        """Numbers that grow by a step's events from step to step."""
        h = self.holes
        grow = {-1: h.correlation, -2: h.external}
        h.counts = [(place, first, grow.get(per, per)) for place, first, per in h.counts]

    def _slot(self, slot: int, kind: str) -> None:
        plan, anchor = self._plan, 3 * slot
        at = 0
        durations = PLAIN[: plan.plain[slot]]
        for i, (op, duration) in enumerate(zip(OPS, durations, strict=False)):
            stretched = KERNEL + 2 * slot if i == len(durations) - 1 else -1
            self._launch(op, anchor + BEGIN, at, (duration, stretched))
            at += duration + PLAIN_GAP
        self._collective(slot, kind)
        if BESIDE[kind]:
            op = ("aten::matmul", "aten::mm", BESIDE_NAME, "[[2048, 4096], [4096, 4096]]")
            self._launch(op, anchor + ARRIVAL, 0, (BESIDE[kind], -1))
        if kernels := plan.graph_kernels(kind):
            self._graph(anchor + FREE, kernels)

    def _launch(
        self, op: tuple[str, str, str, str], anchor: int, after: int, length: tuple[int, int]
    ) -> None:
        outer, inner, kernel, dims = op
        types = ", ".join(['"c10::BFloat16"' if d else '""' for d in dims[1:-1].split("], ")])
        inputs = f', "Input Dims": {dims}, "Input type": [{types}]'
        for name, depth in ((outer, 0), (inner, 1)):
            self._host("cpu_op", name, STEP, self._cpu(200 * depth), (2_200 - 400 * depth, -1), inputs)
        number = self._call("cudaLaunchKernel")
        shape = (
            ', "registers per thread": 128, "shared memory": 49152, "grid": [512, 1, 1], "block": [256, 1, 1]'
        )
        self._kernel(kernel, STREAM, number, anchor, after, length, shape)

    def _graph(self, anchor: int, kernels: list[int]) -> None:
        self._host("cpu_op", GRAPH_OP, STEP, self._cpu(0), (2_200, -1))
        number = self._call("cudaGraphLaunch")
        at = 0
        for node, duration in enumerate(kernels, 1):
            of = f', "graph id": {GRAPH_ID}, "graph node id": {node}'
            self._kernel(GRAPH_NAMES[node % len(GRAPH_NAMES)], STREAM, number, anchor, at, (duration, -1), of)
            at += duration + GRAPH_GAP

    def _collective(self, slot: int, kind: str) -> None:
        before = self._plan.slots[:slot].count(kind)
        seq = self.holes.count
        per_step = self._plan.slots.count(kind)
        args = f', "Collective name": "allreduce", "dtype": "BFloat16", @{kind}@'
        args += f', "In msg nelems": {_NELEMS[kind]}, "Out msg nelems": {_NELEMS[kind]}, "Seq": '
        self._host("cpu_op", "record_param_comms", STEP, self._cpu(0), (2_200, -1),
                   lambda: args + seq(1_000 + before, per_step))  # fmt: skip
        number = self._call("cudaLaunchKernelExC")
        self._kernel(_NCCL, COMM_STREAM, number, 3 * slot + ARRIVAL, 0, (0, COLLECTIVE + 2 * slot),
                     lambda: args + seq(1_000 + before, per_step))  # fmt: skip

    def _cpu(self, after: int) -> int:
        """When the thread issues the next launch: every 2.5 µs, ahead of the device."""
        return LOADER[0] + LOADER[1] + US + 2_500 * self._launched + after

    def _call(self, name: str) -> int:
        """The API call inside the op that was just written; its correlation."""
        h = self.holes
        number, h.correlation = h.correlation, h.correlation + 1
        at = self._cpu(500)
        self._host("cuda_runtime", name, STEP, at, (1_200, -1),
                   lambda: f', "cbid": 211, "correlation": {h.count(1_000 + number, -1)}')  # fmt: skip
        self._flow("s", number, "@pid@", "@pid@", (STEP, at))
        self._launched += 1
        return number

    def _host(
        self, cat: str, name: str, anchor: int, after: int, length: tuple[int, int],
        args: object = "", *, number: bool = False,
    ) -> None:  # fmt: skip
        h = self.holes
        if number:
            name = name.replace("%d", h.count(0, 1))
        head = f'  {{\n    "ph": "X", "cat": "{cat}", "name": "{name}", "pid": @pid@, "tid": @pid@,\n'
        self._event(head, (anchor, after), length, args)

    def _kernel(
        self, name: str, stream: int, number: int, anchor: int, after: int, length: tuple[int, int],
        args: object,
    ) -> None:  # fmt: skip
        h = self.holes
        name = name.replace("%", "%%")
        head = f'  {{\n    "ph": "X", "cat": "kernel", "name": "{name}", "pid": @device@, "tid": {stream},\n'

        def own() -> str:
            text = f', "device": @device@, "context": 1, "stream": {stream}, "correlation": '
            text += h.count(1_000 + number, -1) + ', "est. achieved occupancy %%": 50'
            return text + (args() if callable(args) else str(args))

        self._event(head, (anchor, after), length, own)
        self._flow("f", number, "@device@", str(stream), (anchor, after))

    def _event(self, head: str, time: tuple[int, int], length: tuple[int, int], args: object) -> None:
        h = self.holes
        text = head + f'    "ts": {h.time(*time)}, "dur": {h.length(*length)},\n    "args": {{\n'
        text += f'      "External id": {h.count(h.external, -2)}'
        h.external += 1
        h.add(text + (args() if callable(args) else str(args)) + "\n    }\n  },\n")

    def _flow(self, phase: str, number: int, pid: str, tid: str, time: tuple[int, int]) -> None:
        h = self.holes
        end = ', "bp": "e"' if phase == "f" else ""
        text = f'  {{\n    "ph": "{phase}", "id": {h.count(1_000 + number, -1)}, "pid": {pid}, "tid": {tid},'
        h.add(text + f' "ts": {h.time(*time)},\n    "cat": "ac2g", "name": "ac2g"{end}\n  }},\n')


def write(plan: Plan, folder: Path) -> tuple[list[Path], int]:
    """A ``.json.gz`` per rank; the files, and how many events each has."""
    step = StepText(plan)
    files = [folder / f"rank{rank:04d}.json.gz" for rank in range(plan.shape.ranks)]
    for rank, path in enumerate(files):
        with igzip.open(path, "wb", compresslevel=1) as file:
            for text in _texts(plan, step, rank):
                file.write(text.encode())
    return files, step.holes.events * plan.shape.steps + 1


def _texts(plan: Plan, step: StepText, rank: int) -> Iterator[str]:
    host, device = divmod(rank, plan.shape.per_host)
    base = BASE - BASE_STEP * (host % 2)
    yield _head(plan, rank, host, base)
    text = step.text.replace("@pid@", str(40_000 + rank)).replace("@device@", str(device))
    for kind in plan.groups:
        text = text.replace(f"@{kind}@", _group(plan.groups[kind][plan.members(kind)[rank]]))
    clock = ORIGIN + int(plan.clock_of_host[host]) + BASE - base
    for n in range(plan.shape.steps):
        yield step.filled(text, n, _anchors(plan, n, rank) + clock, _lengths(plan, n, rank))
    end = plan.step_start[-1] + clock
    yield (
        f'  {{\n    "ph": "i", "s": "g", "name": "Record Window End", "pid": "", "tid": "",'
        f' "ts": {end // US}.{end % US:03d}\n  }}\n  ],\n  "traceName": "/tmp/x.json"\n}}\n'
    )


def _anchors(plan: Plan, step: int, rank: int) -> I64:
    slots = [getattr(plan, name)[step, :, rank] for name in ("begin", "arrival", "free")]
    return np.concatenate(([plan.step_start[step]], np.column_stack(slots).ravel()))


def _lengths(plan: Plan, step: int, rank: int) -> I64:
    """The step's, and of each slot the stretch of its last kernel and the collective's."""
    whole = plan.step_start[step + 1] - plan.step_start[step]
    at = (step, slice(None), rank)
    slots = np.column_stack((plan.stretch[at], plan.completion[at] - plan.arrival[at]))
    return np.concatenate(([whole], slots.ravel()))


def _group(group: Group) -> str:
    return (
        f'"Group size": {len(group.ranks)}, "Process Group Name": "{group.name}",'
        f' "Process Group Description": "{group.description}", "Process Group Ranks": "{group.listed}"'
    )


def _head(plan: Plan, rank: int, host: int, base: int) -> str:
    device = rank % plan.shape.per_host
    return (
        f'{{\n  "schemaVersion": 1,\n  "deviceProperties": [{{"id": {device}, {_PROPERTIES}}}],\n'
        '  "cuda_runtime_version": 12080, "record_shapes": 1,\n'
        f'  "distributedInfo": {{"backend": "nccl", "rank": {rank}, "world_size": {plan.shape.ranks}}},\n'
        f'  "host_name": "gpu-node-{host:03d}",\n'
        f'  "displayTimeUnit": "ms", "baseTimeNanoseconds": {base},\n  "traceEvents": [\n'
    )
