"""Files of hardware counters: what profilers print, read as it is meant."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from rooflight import read_counters
from rooflight.counters.derive import derive
from rooflight.counters.work import Kernel
from rooflight.errors import Malformed, NotATrace, Refused, TooLarge
from rooflight.readers import Limits
from rooflight.readers.amounts import amount, number, sizes
from rooflight.trace.counters import CountedLaunch, CounterFile
from tests.shared import CHECKOUT, traces_dir

DATA = CHECKOUT / "tests/data/counters"
IDS = '"ID","Process ID","Kernel Name","Block Size","Grid Size","Device"'


def written(tmp_path: Path, text: str | bytes, name: str = "x.csv") -> CounterFile:
    (tmp_path / name).write_bytes(text.encode() if isinstance(text, str) else text)
    return read_counters(tmp_path / name)


# -- Nsight Compute ----------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["details", "raw"])
def test_both_layouts_of_nsight_compute_hold_the_same(layout: str) -> None:
    """1,234.56 Mbyte = 1,234,560,000 bytes, 15.04 us = 15,040 ns; 512 Kbyte = 512,000 bytes, 2,176 ns; the
    share of the second is "n/a"."""
    found = read_counters(DATA / f"ncu_{layout}.csv")
    assert [launch.name for launch in found.launches] == [
        'void ns::gemm_kernel<float, (int)4>(T1 *, const T1 *, "tag")',
        "copy_kernel(float *)",
    ]
    assert [launch.values for launch in found.launches] == [
        {
            "dram__bytes.sum": 1_234_560_000,
            "gpu__time_duration.sum": 15_040,
            "sm__throughput.avg.pct_of_peak_sustained_elapsed": 62.5,
        },
        {"dram__bytes.sum": 512_000, "gpu__time_duration.sum": 2_176},
    ]
    assert {(launch.grid, launch.block) for launch in found.launches} == {((1024, 1, 1), (256, 1, 1))}
    assert found.unavailable == 1


def test_a_packed_file_is_read_like_itself(tmp_path: Path) -> None:
    raw = (DATA / "ncu_raw.csv").read_bytes()
    packed = written(tmp_path, gzip.compress(raw))
    assert packed.launches == read_counters(DATA / "ncu_raw.csv").launches


def test_sections_tell_bytes_by_rate_and_duration(tmp_path: Path) -> None:
    """200 Gbyte/second for 15 us are 3,000,000 bytes.  "Memory Throughput" is a share, too."""
    rows = [
        ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "21.68"),
        ("GPU Speed Of Light Throughput", "Duration", "us", "15"),
        ("Memory Workload Analysis", "Memory Throughput", "Gbyte/second", "200.00"),
    ]
    head = IDS + ',"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name"\n'
    body = "".join(
        f'"0","1","k","(256, 1, 1)","(8, 1, 1)","0","{s}","{m}","{u}","{v}",""\n' for s, m, u, v in rows
    )
    rule = '"0","1","k","(256, 1, 1)","(8, 1, 1)","0","SpeedOfLight","","","","Bottleneck"\n'
    (launch,) = written(tmp_path, head + body + rule).launches
    moved = derive(launch.values, Kernel()).moved
    assert moved is not None
    assert (moved.total, moved.read, moved.written) == (3_000_000, None, None)


def test_what_the_program_prints_is_no_row(tmp_path: Path) -> None:
    """Also a quote that it leaves open before the table, messages between the rows, and a byte order mark."""
    text = (
        '\ufeffloss: "3,5\n==PROF== Connected\n'
        f'{IDS},"dram__bytes.sum"\n"","","","","","","Kbyte"\n==PROF== Profiling "k"\nepoch 1, loss 2\n'
        '"0","1","k","(256, 1, 1)","(8, 1, 1)","0","1"\n'
    )
    (launch,) = written(tmp_path, text).launches
    assert launch.values == {"dram__bytes.sum": 1000}


def test_processes_number_their_launches_alike(tmp_path: Path) -> None:
    rows = "".join(f'"0","{pid}","k","(1, 1, 1)","(1, 1, 1)","0","{pid}"\n' for pid in (11, 12))
    found = written(tmp_path, f'{IDS},"dram__bytes.sum"\n{rows}').launches
    assert [(x.process, x.values["dram__bytes.sum"]) for x in found] == [("11", 11), ("12", 12)]


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("1,234.56", "Mbyte", 1_234_560_000),
        ("15.04", "usecond", 15_040),
        ("15.04", "us", 15_040),
        ("1.5", "ms", 1_500_000),
        ("2", "second", 2_000_000_000),
        ("3.2", "Tbyte/second", 3_200_000_000_000),
        ("1,024", "sector", 1024),
        ("1.2e3", "inst", 1200),
        ("0.5", "byte", 0.5),
        ("62.5", "%", 62.5),
        ("n/a", "byte", None),
        ("nan", "byte", None),
        ("", "byte", None),
        ("12,34", "byte", None),  # a comma for a point, as other languages have it, is not guessed at
        ("-5", "byte", None),
        ("9" * 30, "byte", None),
        ("1", "furlong", None),
    ],
)
def test_an_amount(text: str, unit: str, value: float | None) -> None:
    assert amount(text, unit) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("(1,024, 1, 1)", (1024, 1, 1)),
        ("(9, 32, 1)", (9, 32, 1)),
        ("256", (256,)),
        ("", None),
        ("(0, 1, 1)", None),
        ("(1, 2, 3, 4)", None),
        ("(a, 1, 1)", None),
    ],
)
def test_sizes(text: str, value: tuple[int, ...] | None) -> None:
    assert sizes(text) == value


def test_a_number_is_never_longer_than_numbers_are() -> None:
    assert number("1" * 10_000) is None


# -- AMD ---------------------------------------------------------------------------------------------


def test_a_table_of_dispatches_has_sums_beside_the_channels(tmp_path: Path) -> None:
    text = (
        "Dispatch_ID,GPU_ID,Grid_Size,Workgroup_Size,Kernel_Name,Wave_Size,"
        "TCC_EA0_RDREQ[0],TCC_EA0_RDREQ_sum,SQ_INSTS_MFMA\n"
        '0,2,1048576,256,"vecCopy(double*, int) (.kd)",64,7,65775,\n'
        '1,2,1048576,256,"vecCopy(double*, int) (.kd)",64,7,nan,0\n'
    )
    found = written(tmp_path, text)
    assert found.launches == (
        CountedLaunch(
            "vecCopy(double*, int)", {"TCC_EA0_RDREQ_sum": 65775.0}, "", "2", None, (256,), 1_048_576
        ),
        CountedLaunch("vecCopy(double*, int)", {"SQ_INSTS_MFMA": 0.0}, "", "2", None, (256,), 1_048_576),
    )
    assert found.unavailable == 1


def test_a_table_of_counters_is_put_together_by_dispatch(tmp_path: Path) -> None:
    """Counters of instances (here two) add up, and stand for the sum that was not asked for."""
    columns = ("Correlation_Id", "Dispatch_Id", "Agent_Id", "Process_Id", "Grid_Size", "Kernel_Name",
               "Workgroup_Size", "Counter_Name", "Counter_Value")  # fmt: skip
    head = ",".join(columns) + "\n"
    rows = [
        ("TCC_EA0_WRREQ", 30),
        ("TCC_EA0_WRREQ", 12),
        ("SQ_INSTS_MFMA", 5),
        ("GRBM_COUNT", 9),
    ]
    body = "".join(f'1,1,"Agent 4",77,512,"k.kd",256,"{name}",{value}\n' for name, value in rows)
    (launch,) = written(tmp_path, head + body).launches
    assert (launch.name, launch.process, launch.device, launch.threads) == ("k", "77", "Agent 4", 512)
    assert launch.values == {"TCC_EA0_WRREQ": 42.0, "TCC_EA0_WRREQ_sum": 42.0, "SQ_INSTS_MFMA": 5.0}


def rocprofv3(collected: list[dict[str, Any]]) -> bytes:
    process = {
        "metadata": {"pid": 908},
        "counters": [{"id": {"handle": 7}, "name": "FETCH_SIZE"}, {"id": {"handle": 8}, "name": "SQ_WAVES"}],
        "kernel_symbols": [{"kernel_id": 3, "formatted_kernel_name": "k", "kernel_name": "_Z1k.kd"}],
        "callback_records": {"counter_collection": collected},
        "buffer_records": {"kernel_dispatch": [{"anything": None}]},
    }
    return json.dumps({"rocprofiler-sdk-tool": [process]}).encode()


def test_rocprofv3_json(tmp_path: Path) -> None:
    info = {
        "kernel_id": 3,
        "agent_id": {"handle": 5},
        "grid_size": {"x": 512, "y": 2, "z": 1},
        "workgroup_size": {"x": 64, "y": 4, "z": 1},
    }
    records = [{"counter_id": {"handle": 7}, "value": 2.5}, {"counter_id": {"handle": 8}, "value": 16}]
    data = rocprofv3([{"dispatch_data": {"dispatch_info": info}, "records": records}])
    (launch,) = written(tmp_path, data, "x.json").launches
    # 512 x 2 work-items in groups of 64 x 4; counters that tell neither FLOPs nor bytes are left.
    assert launch == CountedLaunch("k", {"FETCH_SIZE": 2.5}, "908", "5", None, (256,), 1024)


def test_rocprofv3_json_without_counters_says_how_to_get_them(tmp_path: Path) -> None:
    with pytest.raises(NotATrace, match=r"no counters.*x\.json.*--pmc"):
        written(tmp_path, rocprofv3([]), "x.json")


@pytest.mark.traces
def test_a_copy_on_mi300_moved_what_it_copies() -> None:
    """2 x 1,048,576 doubles, 8 bytes each, are 16,777,216 bytes; the counters say 0.1 % more."""
    found = read_counters(traces_dir() / "rocprof/vcopy_mi300x/pmc_perf.csv")
    assert len(found.launches) == 3
    for launch in found.launches:
        moved = derive(launch.values, Kernel(compute="9.4")).moved
        assert moved is not None
        assert 16_777_216 <= moved.total <= 1.001 * 16_777_216


@pytest.mark.traces
def test_a_recording_of_dispatches_alone_holds_no_counters() -> None:
    with pytest.raises(NotATrace, match="--pmc"):
        read_counters(traces_dir() / "rocprof/rocprofv3_results.json.gz")


@pytest.mark.traces
def test_a_real_export_of_sections() -> None:
    found = read_counters(traces_dir() / "ncu/cublaslt_fp8_gemm_sm100.ncu.csv")
    assert [(x.grid, x.block) for x in found.launches] == [((9, 32, 1), (384, 1, 1))]


# -- what is refused ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello\nworld\n",
        b"a,b\n1,2\n",
        IDS.encode("utf-16"),
        b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 1}]}',
        b'{"rocprofiler-sdk-tool": 5}',
        b'{"rocprofiler-sdk-tool": [' + b"[" * 100_000,
        f'{IDS},"dram__bytes.sum"\n"0","1","{"k" * 200_000}","1","1","0","1"\n'.encode(),
    ],
    ids=["empty", "text", "table", "utf-16", "trace", "json", "deep", "long-name"],
)
def test_what_holds_no_counters_is_refused_by_its_name(data: bytes, tmp_path: Path) -> None:
    with pytest.raises(Refused, match=r"odd\.file"):
        written(tmp_path, data, "odd.file")


def test_a_broken_row_is_refused_with_its_line(tmp_path: Path) -> None:
    """The quote that opens in line 3 never closes, and a field may not be longer than 128 KiB."""
    text = f'{IDS},"dram__bytes.sum"\n"0","1","k","1","1","0","1"\n"1","1","k' + "\nx" * 100_000
    with pytest.raises(Malformed, match=r"x\.csv, line \d+"):
        written(tmp_path, text)


def test_more_rows_than_the_limit_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_text(f"{IDS}\n" + '"0","1","k","1","1","0"\n' * 11)
    with pytest.raises(TooLarge, match="10 rows"):
        read_counters(tmp_path / "x.csv", limits=Limits(max_events=10))


def test_a_line_without_end_is_refused_before_it_is_held(tmp_path: Path) -> None:
    with pytest.raises(Malformed, match="line of over 8 MiB"):
        written(tmp_path, b"x" * (10 << 20))


def test_a_layout_that_lacks_a_column_is_the_other(tmp_path: Path) -> None:
    """Without "Metric Name" the values of a row can be of anything, so that nothing is read from them."""
    text = f'{IDS},"Metric Unit","Metric Value"\n"0","1","k","1","1","0","byte","7"\n'
    (launch,) = written(tmp_path, text).launches
    assert launch.values == {}
