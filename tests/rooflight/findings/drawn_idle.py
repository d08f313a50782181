"""Rules about time in which the device waits, copies or communicates.  A column is 20 us."""

from __future__ import annotations

from tests.rooflight.findings.scenes import Drawn, Scene, kernel

LOADING = {"load": ("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", {})}
WORKERS = {"load": ("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__", {})}
#: 15 columns of loading before the launch.
STARVED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   «load»=========
thread 1                  cuL^1
stream 7                  gemm^1=============================
"""
#: The kernel before is still running while the loader works.
FED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1«load»====                      cuL^2
stream 7   first^1==============================gemm^2=======
"""
DISPATCHED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1     aten::slow===
thread 1                         cuL^2
stream 7   first^1==             gemm^2======================
"""
AHEAD = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1     aten::slow===
thread 1                  cuL^2
stream 7   first^1===============gemm^2======================
"""
ITEM = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1aten::item=====cuL^2
stream 7   first^1===          gemm^2========================
"""
UNDER = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1aten::item=====cuL^2
stream 7   first^1=============gemm^2========================
"""
ALLOCATED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1     aten::empty===
thread 1               cudaMalloc= cuL^2
stream 7   first^1==               gemm^2====================
"""
POOLED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1     aten::empty=====
thread 1             cudaMallocAsync=cuL^2
stream 7   first^1==                 gemm^2==================
"""
BEFORE_THE_STEP = """
us         0         200       400       600       800       1000
thread 1   cudaMalloc=  ProfilerStep#1=======================
thread 1                cuL^1
stream 7                gemm^1===============================
"""
COPIED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cudaMemcpyAsync^1cuL^2
stream 9   Memcpy^1====
stream 7           gemm^2====================================
"""
HIDDEN_COPY = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^2cudaMemcpyAsync^1
stream 9             Memcpy^1====
stream 7   gemm^2============================================
"""
PAGEABLE = {"Memcpy": kernel("Memcpy HtoD (Pageable -> Device)", bytes=1 << 20)}
PINNED = {"Memcpy": kernel("Memcpy HtoD (Pinned -> Device)", bytes=1 << 20)}
UNEVEN = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1=ProfilerStep#2=ProfilerStep#3=ProfilerStep#4=ProfilerStep#5================
thread 1   cuL^1          cuL^2          cuL^3          cuL^4          cuL^5
stream 7   gemm^1========= gemm^2======== gemm^3======== gemm^4======== gemm^5=======================
"""
EVEN = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1=ProfilerStep#2=ProfilerStep#3=ProfilerStep#4=ProfilerStep#5====
thread 1   cuL^1          cuL^2          cuL^3          cuL^4          cuL^5
stream 7   gemm^1========= gemm^2======== gemm^3======== gemm^4======== gemm^5===========
"""
FOUR = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1=ProfilerStep#2=ProfilerStep#3=ProfilerStep#5================
thread 1   cuL^1          cuL^2          cuL^3          cuL^5
stream 7   gemm^1========= gemm^2======== gemm^3======== gemm^5=======================
"""
RESNET = "v100_resnet50_workers0.pt.trace.json.gz"

DRAWN = {
    "input-starved": Drawn(
        "the loader works in 15 columns of 20 us before the launch",
        Scene(STARVED, WORKERS),
        300,
        [Scene(FED, WORKERS), Scene(STARVED, {"load": ("my_loader", {})})],
        RESNET,
    ),
    "dataloader-workers": Drawn(
        "the same, in the training process",
        Scene(STARVED, LOADING),
        300,
        [Scene(STARVED, WORKERS), Scene(FED, LOADING)],
        RESNET,
    ),
    "host-bound-dispatch": Drawn(
        "first ends in column 9, the op is open from column 10 on, gemm starts in column 22",
        Scene(DISPATCHED),
        240,
        [Scene(AHEAD)],
        "pairs/h100/gaunernst_bert-small-uncased__1016001.json.gz",
    ),
    "synchronising-calls": Drawn(
        "first ends in column 10, .item() in column 20",
        Scene(ITEM),
        200,
        [Scene(UNDER)],
        "v100_resnet50_workers4.pt.trace.json.gz",
    ),
    "allocations": Drawn(
        "cudaMalloc is open in 11 columns in which the device waits",
        Scene(ALLOCATED),
        220,
        [Scene(POOLED), Scene(BEFORE_THE_STEP)],
    ),
    "exposed-copies": Drawn(
        "the copy begins in column 0 and gemm in column 8",
        Scene(COPIED, PINNED),
        160,
        [Scene(HIDDEN_COPY, PINNED)],
        RESNET,
    ),
    "pageable-copies": Drawn(
        "the same, from pageable memory",
        Scene(COPIED, PAGEABLE),
        160,
        [Scene(COPIED, PINNED), Scene(HIDDEN_COPY, PAGEABLE)],
        RESNET,
    ),
    "uneven-steps": Drawn(
        "four steps of 15 columns, one of 30: 15 columns of 20 us above the median, over five steps",
        Scene(UNEVEN),
        15 * 20 / 5,
        [Scene(EVEN), Scene(FOUR)],
        "v100_resnet50_workers4.pt.trace.json.gz",
    ),
}
