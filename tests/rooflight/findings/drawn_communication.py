"""Rules about what ranks say to each other.  A column is 20 us."""

from __future__ import annotations

from tests.rooflight.findings.scenes import Drawn, Scene, kernel

REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
GROUP = {"Collective name": "allreduce", "Process Group Name": "dp", "Process Group Ranks": "[0, 1]"}
NCCL = {"nccl": kernel(REDUCE)}

EXPOSED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1cuL^2
stream 7   gemm^1=============================
stream 20                           nccl^2===================
"""
HIDDEN = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1cuL^2
stream 7   gemm^1============================================
stream 20                           nccl^2===================
"""
#: Eight of three columns each, beside which nothing runs.
MANY = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1cuL^2cuL^3cuL^4cuL^5cuL^6cuL^7cuL^8cuL^9
stream 20   c^1  c^2  c^3  c^4  c^5  c^6  c^7  c^8
stream 7                                            gemm^9===
"""
SEVEN = MANY.replace("c^8", "   ")


def message(elements: int) -> Scene:
    args = {"Collective name": "allreduce", "dtype": "Float", "Group size": 8}
    return Scene(
        MANY, {"c": kernel(REDUCE, **args, **dict.fromkeys(("In msg nelems", "Out msg nelems"), elements))}
    )


#: Four all-to-alls of three columns each, beside which nothing runs.
EXCHANGED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1cuL^2cuL^3cuL^4               cuL^5
stream 20   a^1  a^2  a^3  a^4
stream 7                                      gemm^5=========
"""
THREE = EXCHANGED.replace("a^4", "   ")


def split(drawing: str, sizes: str) -> Scene:
    args = {"Collective name": "all_to_allv", "dtype": "Float", "Group size": 2, "In split size": sizes}
    sizes_of = {"In msg nelems": 1000, "Out msg nelems": 1000}
    return Scene(drawing, {"a": kernel("ncclDevKernel_SendRecv", **args, **sizes_of)})


def ranks(*late: int) -> Scene:
    """Collectives that end together; the late one of each begins 5 columns after the other."""
    drawings = []
    for rank in (0, 1):
        calls = [f"     nccl^{i}=" if who == rank else f"nccl^{i}======" for i, who in enumerate(late, 1)]
        launches = [f"cuL^{i}".ljust(12) for i, _ in enumerate(late, 1)]
        rows = [
            "us         0         200",
            f"thread 1   {'ProfilerStep#1'.ljust(50, '=')}",
            f"thread 1   {''.join(launches)}",
            f"stream 20  {''.join(calls)}",
        ]
        drawings.append("\n".join(rows))
    return Scene(drawings[0], {"nccl": kernel(REDUCE, **GROUP)}, others=drawings[1:])


#: One product, in a step.
MARKED = """
us         0         200       400       600       800       1000
thread 1   ProfilerStep#1====================================
thread 1   cuL^1
stream 7   gemm^1============================================
"""
UNMARKED = MARKED.replace("ProfilerStep#1", "aten::mm======")

DRAWN = {
    "exposed-communication": Drawn(
        "gemm ends in column 30 and the collective in column 46",
        Scene(EXPOSED, NCCL),
        15 * 20,
        [Scene(HIDDEN, NCCL)],
        "hta/a100_control_rank3of8.json.gz",
    ),
    "small-collectives": Drawn(
        "eight of 60 us that nothing hides",
        message(1024),
        8 * 60,
        [message(1 << 18), message(0), Scene(SEVEN, message(1024).told)],
    ),
    "uneven-experts": Drawn(
        "750 of 1,000 are 1.5 times the mean: a third of four times 60 us goes",
        split(EXCHANGED, "[250, 750]"),
        4 * 60 / 3,
        [split(EXCHANGED, "[400, 600]"), split(THREE, "[250, 750]")],
    ),
    "unlike-recordings": Drawn(
        "nothing is claimed",
        Scene(MARKED, others=[UNMARKED]),
        None,
        [Scene(MARKED, others=[MARKED]), Scene(UNMARKED, others=[UNMARKED]), Scene(UNMARKED)],
    ),
    "straggler": Drawn(
        "rank 1 comes 5 columns late in three of four",
        ranks(1, 1, 0, 1),
        3 * 5 * 20,
        [ranks(1, 1, 0, 0), ranks(1, 1, 1), ranks(0, 0, 1, 0)],
        "dlrm_8ranks",
    ),
}
