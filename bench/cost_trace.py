"""A trace of very many launches of a few hundred different calls, in the layout of torch's profiler.

It holds no more than costing needs (ops with their inputs, launches, kernels), so that reading it is as
cheap as it can be beside costing it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path

from isal import igzip

_PROCESS, _DEVICE, _STREAM = 41234, 0, 7
_BF16 = '"c10::BFloat16"'
_GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_cublas"
_NORM = (
    "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int, float)"
)
_ADD = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
)
_CAT = (
    "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous namespace)::"
    "OpaqueType<2u>, unsigned int, 3, 64, 64>(at::native::(anonymous namespace)::OpaqueType<2u>*)"
)
_FPROP, _DGRAD, _WGRAD = (
    f"sm90_xmma_{verb}_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_cudnn"
    for verb in ("fprop", "dgrad", "wgrad")
)


@dataclass(frozen=True)
class Call:
    """An op with its recorded inputs as JSON, the ops that it stands in, and the kernels it launches."""

    names: tuple[str, ...]
    dims: str
    types: str
    values: str
    kernels: tuple[str, ...]


def calls(shapes: int) -> list[Call]:
    """``shapes`` different calls, of six kinds in turn: one or two ops deep, one or two kernels each, with
    lists whose type only the kernel's name tells."""
    return [_KINDS[i % len(_KINDS)](64 + 8 * (i // len(_KINDS))) for i in range(shapes)]


def _call(names: str, inputs: tuple[tuple[str, str, str], ...], *kernels: str) -> Call:
    dims, types, values = (", ".join(column) for column in zip(*inputs, strict=True))
    return Call(tuple(names.split(" > ")), dims, types, values, kernels)


def _tensor(*dims: int) -> tuple[str, str, str]:
    return str(list(dims)), _BF16, '""'


def _value(text: str, kind: str = "ScalarList") -> tuple[str, str, str]:
    return "[]", f'"{kind}"', f'"{text}"'


def _linear(n: int) -> Call:
    inputs = (
        _tensor(1024),
        _tensor(n, 4096),
        _tensor(4096, 1024),
        _value("1", "Scalar"),
        _value("1", "Scalar"),
    )
    return _call("aten::linear > aten::addmm", inputs, _GEMM)


def _layer_norm(n: int) -> Call:
    inputs = (_tensor(n, 4096), _value("[4096]"), _tensor(4096), _tensor(4096), _value("0.00001", "Scalar"))
    return _call("aten::layer_norm > aten::native_layer_norm", inputs, _NORM)


def _add(n: int) -> Call:
    return _call("aten::add", (_tensor(n, 1024), _tensor(n, 1024), _value("1", "Scalar")), _ADD)


def _cat(n: int) -> Call:
    parts = (f"[[{n}, 512], [{n}, 256]]", '"TensorList"', '""')
    return _call("aten::cat", (parts, _value("1", "Scalar")), _CAT)


_CONV = (_value("[1, 1]"), _value("[1, 1]"), _value("[1, 1]"))


def _conv(n: int) -> Call:
    rest = (_value("False", "Scalar"), _value("[0, 0]"), _value("1", "Scalar"))
    inputs = (_tensor(8, n, 28, 28), _tensor(128, n, 3, 3), ("[]", '""', '""'), *_CONV, *rest)
    return _call("aten::convolution", inputs, _FPROP)


def _conv_backward(n: int) -> Call:
    rest = (
        _value("False", "Scalar"),
        _value("[0, 0]"),
        _value("1", "Scalar"),
        _value("[True, True, False]", ""),
    )
    tensors = (_tensor(8, 128, 28, 28), _tensor(8, n, 28, 28), _tensor(128, n, 3, 3), ("[]", '""', '""'))
    return _call("aten::convolution_backward", (*tensors, *_CONV, *rest), _DGRAD, _WGRAD)


_KINDS = (_linear, _layer_norm, _add, _cat, _conv, _conv_backward)


def write(path: Path, launches: int, shapes: int) -> int:
    """Write a trace of at least ``launches`` launches; answers how many there are."""
    done = 0
    with igzip.open(path, "wb", compresslevel=1) as out:
        out.write(_HEAD.encode())
        for block in _blocks(launches, shapes):
            done += block.count('"cat":"kernel"')
            out.write(block.encode())
        out.write(b'{"ph":"M","name":"process_name","pid":41234,"args":{"name":"python"}}]}')
    return done


_HEAD = (
    '{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3"}],"record_shapes":1,'
    '"displayTimeUnit":"ms","baseTimeNanoseconds":1790857026000000000,"traceEvents":['
)
_BLOCK = 4096  # calls a write


def _blocks(launches: int, shapes: int) -> Iterator[str]:
    clock, made = 0, 0
    known = cycle(calls(shapes))
    while made < launches:
        rows: list[str] = []
        for call in islice(known, _BLOCK):
            rows += _events(call, clock, made)
            clock += 40
            made += len(call.kernels)
            if made >= launches:
                break
        yield ",\n".join(rows) + ",\n"


def _events(call: Call, clock: int, correlation: int) -> Iterator[str]:
    """The rows of one call from ``clock`` us on: ops from outside in, then each launch with its kernel."""
    args = (
        f'{{"Concrete Inputs":[{call.values}],"Input type":[{call.types}],"Input Dims":[{call.dims}],'
        f'"Sequence number":{correlation},"Fwd thread id":0,"Record function id":0}}'
    )
    host = f'"pid":{_PROCESS},"tid":{_PROCESS}'
    for depth, name in enumerate(call.names):
        yield (
            f'{{"ph":"X","cat":"cpu_op","name":"{name}",{host},"ts":{clock + depth}.000,'
            f'"dur":{30 - 2 * depth}.000,"args":{args}}}'
        )
    for i, kernel in enumerate(call.kernels, 1):
        own = f'"correlation":{correlation + i}'
        yield (
            f'{{"ph":"X","cat":"cuda_runtime","name":"cudaLaunchKernel",{host},"ts":{clock + 4 * i}.500,'
            f'"dur":3.000,"args":{{"cbid":211,{own}}}}}'
        )
        yield (
            f'{{"ph":"X","cat":"kernel","name":"{kernel}","pid":{_DEVICE},"tid":{_STREAM},'
            f'"ts":{clock + 20 + 8 * i}.000,"dur":7.500,"args":{{"device":0,"context":1,"stream":{_STREAM},'
            f'{own},"grid":[{100 + correlation % 7},1,1],"block":[256,1,1]}}}}'
        )
