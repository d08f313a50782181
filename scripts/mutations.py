"""Small damage and small lies in the files that the reader takes: JSON, gzip, zip and the stored form.

Most changes keep the document a document, since what does not parse is soon refused.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

_MAX = 1 << 20
_RAW = "\ue000"  # a text that begins so is written without quotes
_KEYS = [
    "ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp", "s", "traceEvents", "schemaVersion",
    "deviceProperties", "rank", "distributedInfo", "world_size", "baseTimeNanoseconds", "host_name",
    "numSms", "totalGlobalMem", "computeMajor", "correlation", "device", "context", "stream", "grid",
    "block", "bytes", "dtype", "Seq", "kernel_backend", "kernel_num_gb",
    "kernel_flop", "kernel_kwargs", "External id", "Input Dims", "Input type", "Input Strides",
    "Concrete Inputs", "Sequence number", "Fwd thread id", "registers per thread", "shared memory",
    "Collective name", "In msg nelems", "Out msg nelems", "Group size", "Process Group Name",
    "Process Group Ranks", "graph id", "graph node id", "Device Type", "Total Allocated", "Total Reserved",
    "Python id", "Python parent id", "Python module id", "Record function id", "schema", "nodes", "inputs",
    "outputs", "values", "shapes", "types", "strides", "attrs", "value", "rf_id", "ctrl_deps",
]  # fmt: skip
_TEXTS = (
    "", "X", "i", "M", "s", "kernel", "Kernel", "gpu_memcpy", "gpu_memset", "cpu_op", "Operator",
    "cuda_runtime", "cuda_driver", "user_annotation", "python_function", "gpu_user_annotation", "cuda_sync",
    "ac2g", "ProfilerStep#0", "ProfilerStep#7", "ProfilerStep#99999999999999999999",
    "Optimizer.step#SGD.step", "enumerate(DataLoader)#_Iter.__next__", "cudaLaunchKernel",
    "cudaGraphLaunch", "cudaStreamSynchronize", "cudaMemcpyAsync", "hipLaunchKernel",
    "Memcpy HtoD (Pageable -> Device)", "Memset (Device)", "aten::mm", "aten::addmm", "aten::bmm",
    "aten::linear", "aten::convolution", "aten::convolution_backward", "aten::item",
    "aten::_scaled_dot_product_flash_attention", "aten::native_layer_norm", "aten::add_", "aten::cat",
    "aten::sum", "aten::embedding", "aten::copy_", "aten::_foreach_add_", "flash_attn::_flash_attn_forward",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "ampere_sgemm_128x64_nn",
    "triton_poi_fused_0", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "[memory]", "nn.Module: Linear_0", "autograd::engine::evaluate_function: MmBackward0",
    "## Call CompiledFxGraph x ##", "record_param_comms", "Torch-Compiled Region: 0/0", "_allgather_base",
    "default_pg", "[0, 1, ...]", "float", "c10::BFloat16", "TensorList", "long int", "False", "[]",
    "Tensor(float)", "GenericList[Tensor(float),Tensor(c10::Half)]", "Int", "rf_id", "<None>",
    "[1, 1]", "None", "0", "7", "-1", "12.5", "1e5", "NaN", "0x10", "\u0661", "\ud800", "\x00",
    "\U0001f600", "x" * 300, 'a"b', "C:\\dir", "stream 7", "GPU 0", "python", "NVIDIA H100 80GB HBM3",
    "Tesla V100-SXM2-32GB", "AMD Instinct MI300X", "NVIDIA A100-SXM4-80GB",
)  # fmt: skip
_NUMBERS = (
    0, 1, -1, 2, 3, 7, 64, 1000, 1 << 31, (1 << 32) - 1, (1 << 53) + 1, (1 << 63) - 1, 1 << 63, -(1 << 63),
    1 << 64, 0.1, 0.0005, 1e-9, 1e9, 1.7645e15, 9.2e15, 9.3e15, 9.2e18, 1e308, -0.0, 4398046511104.5,
)  # fmt: skip
_SHAPES = (
    [], [[]], [[2, 3], [3, 4]], [[1 << 40, 1 << 40], [1 << 40, 1 << 40]], [[-1, 2], [2]], [[], [], []],
    [[0, 0], [0]], [[[2, 3], [4]], []], [2, 3], [[2, 3, 4, 5], [6, 3, 1, 1], [6]], [[1.5], ["2"]], {},
    {"a": [{}]}, [None], [[None]], ["float", "float"], ["", 5, None], [1, 1, 1], [1 << 70],
    [[8, 12, 128, 64]] * 3,
)  # fmt: skip
_WORDS = (
    "NaN", "inf", "-nan", "-Infinity", "1e999", "-", "1e99999999999999999999", "9" * 5000,
    "0." + "0" * 50 + "1", "tru", "1.", ".5", "01", "1E+3",
)  # fmt: skip
_TOKENS = (
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"},{", b"\n", b"\t", b"\x00", b"\xff\xfe",
    b"\xef\xbb\xbf", b"\xe9", b'"traceEvents":[', b'"name":"', b'"args":{', b"NaN", b"inf", b"-", b"1e9",
    b"9" * 30, b"[" * 200, b'{"a":' * 200, b"]}", b"[{", b'"ph":"X",', b" " * 300, b'\\"', b"\\u12",
    b"\\ud800",
)  # fmt: skip


class Mutator:
    """Changes files at random, the same way for the same seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self, data: bytes) -> bytes:
        """The file with one to four changes, in a container or not."""
        pick = self.random.random()
        if pick < 0.05:
            return self._bytes(data)
        body = _opened(data)
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 4))):
            body = self._one_of((self._tree, 12), (self._text, 5), (self._bytes, 1))(body)
        if data[:2] == body[:2] and pick < 0.9:
            return body
        return self._one_of((_same, 6), (self._gzip, 1), (self._zip, 1))(body)

    def _one_of(self, *options: tuple[Callable[[bytes], bytes], int]) -> Callable[[bytes], bytes]:
        functions, weights = zip(*options, strict=True)
        chosen: Callable[[bytes], bytes] = self.random.choices(functions, weights)[0]
        return chosen

    # -- documents ---------------------------------------------------------------------------------

    def _tree(self, data: bytes) -> bytes:
        try:
            document = json.loads(data, strict=False)
        except (ValueError, RecursionError):
            return self._text(data)
        for _ in range(self.random.choice((1, 1, 2, 4))):
            self._change(document)
        return self._written(document)

    def _written(self, document: Any) -> bytes:
        indent = self.random.choice((None, None, None, 1))
        text = json.dumps(document, indent=indent, ensure_ascii=self.random.random() < 0.7)
        while (at := text.find('"' + json.dumps(_RAW)[1:-1])) >= 0 or (at := text.find('"' + _RAW)) >= 0:
            end = text.index('"', at + 1)
            text = (
                text[:at]
                + text[at + 1 : end].replace(json.dumps(_RAW)[1:-1], "").replace(_RAW, "")
                + text[end + 1 :]
            )
        return text.encode("utf-8", "surrogatepass")

    def _change(self, document: Any) -> None:
        places = list(_places(document))
        if not places:
            return
        holder, key = self.random.choice(places)
        if self.random.random() < 0.25:
            self._restructure(holder, key)
        else:
            holder[key] = self._other(holder[key])

    def _restructure(self, holder: Any, key: Any) -> None:
        """Remove, rename, repeat, move or nest what is there."""
        way, value = self.random.randrange(6), holder[key]
        if way == 0:
            del holder[key]
        elif way == 1 and isinstance(holder, dict):
            holder[self.random.choice(_KEYS)] = holder.pop(key)
        elif way == 2 and isinstance(holder, dict):
            holder[self.random.choice(_KEYS)] = value
        elif isinstance(holder, list):
            copies = self.random.choice((1, 1, 2, 40))
            holder[key:key] = (
                [json.loads(json.dumps(value)) for _ in range(copies)] if len(holder) < 2000 else []
            )
        elif way == 3:
            holder[key] = [value]
        else:
            holder[key] = {self.random.choice(_KEYS): value}

    def _other(self, value: Any) -> Any:
        """A value that a writer might have put here, or never would."""
        r = self.random
        if r.random() < 0.6 or isinstance(value, bool | None | dict | list):
            return self._any()
        if isinstance(value, str):
            start = "" if r.random() < 0.7 else value[: r.randrange(len(value) + 1)]
            return start + r.choice(_TEXTS)
        near = (-value, value + 1, value * 1000, str(value), 0)
        if abs(value) > 1e18 or value != value:
            return r.choice(near)
        return r.choice((*near, value / 3, value + 0.0005, int(value)))

    def _any(self) -> Any:
        r = self.random
        kind = r.randrange(10)
        if kind < 3:
            return r.choice(_NUMBERS)
        if kind < 6:
            return r.choice(_TEXTS)
        if kind < 8:
            return json.loads(json.dumps(r.choice(_SHAPES)))
        if kind == 8:
            return _RAW + r.choice(_WORDS)
        return r.choice((None, True, False, [], {}))

    # -- text and bytes ----------------------------------------------------------------------------

    def _text(self, data: bytes) -> bytes:
        r = self.random
        at, n = r.randrange(len(data) + 1), r.choice((1, 2, 8, 64, 512))
        way = r.randrange(6)
        if way == 0:
            return data[:at] + data[at + n :]
        if way == 1:
            return data[:at] + data[at : at + n] * r.choice((2, 3, 50)) + data[at + n :]
        if way == 2:
            return data[:at]
        if way == 3:
            other = r.randrange(len(data) + 1)
            return data[:at] + data[other : other + n] + data[at:]
        return data[:at] + r.choice(_TOKENS) + data[at + (r.random() < 0.5) :]

    def _bytes(self, data: bytes) -> bytes:
        changed = bytearray(data)
        for _ in range(self.random.choice((1, 1, 2, 8))):
            if changed:
                changed[self.random.randrange(len(changed))] = self.random.randrange(256)
        return bytes(changed)

    # -- containers --------------------------------------------------------------------------------

    def _gzip(self, data: bytes) -> bytes:
        cut = self.random.randrange(len(data) + 1)
        packed = gzip.compress(data[:cut], 1, mtime=0) + gzip.compress(data[cut:], 1, mtime=0)
        return self._maybe_damaged(packed)

    def _zip(self, data: bytes) -> bytes:
        r = self.random
        target = io.BytesIO()
        with zipfile.ZipFile(target, "w", r.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
            for name in r.sample(("a/", "log.txt", "__MACOSX/x.json", ".x.json"), r.randrange(3)):
                archive.writestr(zipfile.ZipInfo(name), b"x" * (0 if name.endswith("/") else 9))
            inner = self._gzip(data) if r.random() < 0.3 else data
            archive.writestr(
                zipfile.ZipInfo(r.choice(("t.json", "../t.json.gz", "T.JSON"))), inner, archive.compression
            )
        packed = target.getvalue()
        return self._maybe_damaged(_described(data) if r.random() < 0.3 else packed)

    def _maybe_damaged(self, packed: bytes) -> bytes:
        way = self.random.random()
        return self._bytes(packed) if way < 0.3 else self._text(packed) if way < 0.4 else packed


def _same(data: bytes) -> bytes:
    return data


def _places(document: Any) -> Any:
    """Every (holder, key) of a document that is not absurdly large."""
    todo, seen = [document], 0
    while todo and seen < 20_000:
        holder = todo.pop()
        items = (
            holder.items()
            if isinstance(holder, dict)
            else enumerate(holder)
            if isinstance(holder, list)
            else ()
        )
        for key, value in items:
            seen += 1
            yield holder, key
            todo.append(value)


def _described(data: bytes) -> bytes:
    """A zip of one file whose sizes follow it, as a writer makes it that cannot go back."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    body = packer.compress(data) + packer.flush()
    local = struct.pack("<4sHHHHHIIIHH", b"PK\3\4", 20, 8, 8, 0, 0, 0, 0, 0, 6, 0) + b"t.json"
    tail = struct.pack("<4sIII", b"PK\7\x08", zlib.crc32(data), len(body), len(data))
    central = b"PK\1\2" + bytes(24) + struct.pack("<HHH", 6, 0, 0) + bytes(12) + b"t.json"
    return local + body + tail + central + b"PK\5\6" + bytes(18)


def _opened(data: bytes) -> bytes:
    """What is in a container, as far as it can be had."""
    try:
        if data.startswith(b"\x1f\x8b"):
            return zlib.decompressobj(31).decompress(data, _MAX)
        if data.startswith(b"PK"):
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                for info in archive.infolist():
                    if info.filename.lower().endswith((".json", ".json.gz")) and info.file_size < _MAX:
                        return _opened(archive.read(info))
    except Exception:
        return data  # damaged as it is, it is changed as it is
    return data
