"""The Kineto reader: dialects, chunks, broken documents."""

from __future__ import annotations

import gzip
import json
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight import read
from rooflight.errors import Malformed, NotATrace, Refused, TooLarge, Truncated
from rooflight.readers import events, kineto, kineto_rows
from rooflight.readers.source import Limits
from rooflight.trace.tables import HostKind
from rooflight.trace.timeline import Timeline

OP = {
    "ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 9, "tid": 9, "ts": 100.0, "dur": 20.5,
    "args": {"External id": 1, "Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]},
}  # fmt: skip
CALL = {
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": 9, "ts": 105.25,
    "dur": 2.5, "args": {"correlation": 7, "External id": 1},
}  # fmt: skip
KERNEL: dict[str, Any] = {
    "ph": "X", "cat": "kernel", "name": "gemm<4, float>", "pid": 0, "tid": 7, "ts": 110.001, "dur": 5.002,
    "args": {"device": 0, "context": 1, "stream": 7, "correlation": 7,
             "grid": [2, 1, 1], "block": [64, 1, 1]},
}  # fmt: skip
META = {"ph": "M", "name": "process_name", "pid": 9, "tid": 0, "ts": 0, "args": {"name": "python"}}
EVENTS = [META, OP, CALL, KERNEL]
DOC: dict[str, Any] = {
    "schemaVersion": 1,
    "deviceProperties": [{"id": 0, "name": "NVIDIA A10", "numSms": 72}],
    "distributedInfo": {"rank": 3, "world_size": 4},
    "traceEvents": EVENTS,
    "traceName": "x.json",
}


def parse(data: bytes, **options: Any) -> Timeline:
    return kineto.read([data], "t.json", **options)


def text(doc: Any, **style: Any) -> bytes:
    return json.dumps(doc, **style).encode()


def facts(t: Timeline) -> tuple[Any, ...]:
    """What a recording says, whatever the order of its string table."""
    gpu = [
        (t.names[n], int(s), int(e), t.device_keys[d], t.stream_keys[q], int(c))
        for n, s, e, d, q, c in zip(
            t.gpu.name, t.gpu.start, t.gpu.end, t.gpu.device, t.gpu.stream, t.gpu.correlation, strict=True
        )
    ]
    host = [
        (t.names[n], int(k), int(s), int(e), t.threads[th])
        for n, k, s, e, th in zip(
            t.host.name, t.host.kind, t.host.start, t.host.end, t.host.thread, strict=True
        )
    ]
    return sorted(gpu), sorted(host), t.meta


def test_times_ids_and_args_are_read() -> None:
    t = parse(text(DOC))
    assert t.gpu.start.tolist() == [110_001]
    assert t.gpu.end.tolist() == [115_003]  # 110.001 + 5.002
    assert t.host.start.tolist() == [100_000, 105_250]
    assert t.host.end.tolist() == [120_500, 107_750]
    assert t.gpu.correlation.tolist() == [7]
    assert t.meta.rank == 3
    assert t.meta.world_size == 4
    assert t.meta.devices[0].sm_count == 72
    assert t.op_args[t.host.args[0]].decoded()[0] == [[2, 3], [3, 4]]
    shape = t.shape(0)
    assert shape is not None
    assert (shape.grid, shape.block) == ((2, 1, 1), (64, 1, 1))


LAYOUTS = {
    "minified": text(DOC, separators=(",", ":")),
    "indented": text(DOC, indent=2),
    "sorted keys": text(DOC, sort_keys=True),
    "meta last": text({"traceEvents": EVENTS, **{k: v for k, v in DOC.items() if k != "traceEvents"}}),
    "byte order mark": b"\xef\xbb\xbf" + text(DOC),
    "trailing space": text(DOC) + b"\n\n  ",
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layout_changes_nothing(layout: str) -> None:
    assert facts(parse(LAYOUTS[layout])) == facts(parse(text(DOC)))


AWKWARD = ('a},{"b', "plain", "ж\\n\u2713", "],[")


def many(n: int, seed: int = 1) -> dict[str, Any]:
    rng = random.Random(seed)
    rows = [
        {**KERNEL, "ts": round(i * 3 + rng.random(), 3), "name": rng.choice(AWKWARD),
         "args": {**KERNEL["args"], "correlation": i, "nest": [{"a": [{}]}, {}]}}
        for i in range(n)
    ]  # fmt: skip
    return {
        "deviceProperties": [],
        "traceEvents": rows,
        "distributedInfo": {"rank": 1, "pg_config": [{"a": 1}, {"b": 2}]},
    }


@settings(max_examples=40)
@given(st.integers(1, 4000), st.integers(1, 700), st.booleans())
def test_chunks_of_any_size_give_the_same(chunk: int, piece: int, pretty: bool) -> None:
    doc = text(many(60), indent=1 if pretty else None, ensure_ascii=False)
    whole = facts(parse(doc))
    before = events.CHUNK
    events.CHUNK = chunk
    try:
        cut = kineto.read((doc[i : i + piece] for i in range(0, len(doc), piece)), "t.json")
    finally:
        events.CHUNK = before
    assert facts(cut) == whole


@given(st.integers(1, 6), st.randoms())
def test_gzip_members_change_nothing(members: int, rng: random.Random) -> None:
    doc = text(many(20))
    cuts = sorted(rng.randrange(len(doc)) for _ in range(members - 1))
    packed = b"".join(gzip.compress(doc[a:b]) for a, b in zip([0, *cuts], [*cuts, len(doc)], strict=True))

    def pieces() -> Iterator[bytes]:
        from rooflight.readers.source import Unpacker

        unpacker = Unpacker()
        yield from unpacker.feed(packed)
        yield from unpacker.finish()

    assert facts(kineto.read(pieces(), "t.json")) == facts(parse(doc))


@given(st.integers(0, 10**6))
def test_every_cut_of_an_object_is_refused_with_its_place(at: int) -> None:
    doc = text(DOC)
    cut = doc[: at % (len(doc) - 1) + 1]
    with pytest.raises(Refused):
        parse(cut)


def test_a_bare_array_may_lack_its_end() -> None:
    t = parse(text(EVENTS).rstrip(b"]") + b",\n")
    assert [f.code for f in t.flags] == ["unterminated_array"]
    assert len(t.gpu) == 1


def test_a_bare_array_that_ends_inside_an_event_is_truncated() -> None:
    with pytest.raises(Truncated, match="truncated"):
        parse(text(EVENTS)[:-30])


def test_salvage_keeps_whole_events_and_says_so() -> None:
    doc = text(DOC)
    cut = doc[: doc.index(b"gemm")]
    t = parse(cut, salvage=True)
    assert t.salvaged
    assert len(t.host) == 2
    assert len(t.gpu) == 0
    [flag] = t.flags
    assert (flag.code, flag.count) == ("truncated", 3)


def test_the_dialect_of_2021() -> None:
    """Upper-case categories, tids as text, annotations among the operators."""
    rows = [
        {**OP, "cat": "Operator", "tid": "9"},
        {**OP, "cat": "Operator", "tid": "9", "name": "ProfilerStep#5", "ts": 90, "dur": 100},
        {**OP, "cat": "Operator", "name": "enumerate(DataLoader)#_Iter.__next__", "ts": 91, "dur": 1},
        {**CALL, "cat": "Runtime"},
        {**KERNEL, "cat": "Kernel", "tid": "stream 7"},
        {**KERNEL, "cat": "Memcpy", "name": "Memcpy HtoD", "ts": 120},
    ]
    t = parse(text({"traceEvents": rows}))
    kinds = {t.names[n]: HostKind(k) for n, k in zip(t.host.name, t.host.kind, strict=True)}
    assert kinds["aten::mm"] == HostKind.CPU_OP
    assert kinds["ProfilerStep#5"] == kinds["enumerate(DataLoader)#_Iter.__next__"] == HostKind.ANNOTATION
    assert kinds["cudaLaunchKernel"] == HostKind.RUNTIME
    assert len(t.gpu) == 2
    assert t.threads == (("9", "9"),)  # 9 and "9" are one thread


def test_quoted_numbers_count() -> None:
    rows = [
        {**KERNEL, "ts": "1764500000000120.003", "dur": "50.004", "args": {**KERNEL["args"], "device": "0"}}
    ]
    t = parse(text({"traceEvents": rows}))
    assert t.gpu.start.tolist() == [1_764_500_000_000_120_003]
    assert t.gpu.dur.tolist() == [50_004]


def test_epoch_times_with_fractions_keep_their_nanoseconds() -> None:
    """Binary64 has steps of 0.25 µs there; both kernels touch exactly."""
    doc = b'{"traceEvents": [%s]}' % b",".join(
        b'{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":%s,"dur":0.321,"args":{"stream":7}}' % ts
        for ts in (b"1764500000000000.100", b"1764500000000000.421")
    )
    t = parse(doc)
    assert t.gpu.start.tolist() == [1_764_500_000_000_000_100, 1_764_500_000_000_000_421]
    assert t.gpu.end[0] == t.gpu.start[1]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"dur": None}, "bad_dur"),
        ({"dur": -1}, "negative_dur"),
        ({"ts": "soon"}, "bad_ts"),
        ({"ts": None}, "bad_ts"),
        ({"dur": "x"}, "bad_dur"),
    ],
)
def test_unusable_intervals_are_counted_by_reason(row: dict[str, Any], reason: str) -> None:
    t = parse(text({"traceEvents": [*EVENTS, {**KERNEL, **row}]}))
    assert t.invalid_events == {reason: 1}
    assert len(t.gpu) == 2
    assert t.valid_gpu.tolist() == [0]


def test_a_missing_duration_and_a_lost_time_stamp() -> None:
    epoch = [{**e, "ts": e["ts"] + 1.7645e15} if "dur" in e else e for e in EVENTS]
    lost = {**KERNEL, "ts": 0}
    endless = {k: v for k, v in epoch[3].items() if k != "dur"}
    t = parse(text({"traceEvents": [*epoch, lost, endless]}))
    assert t.invalid_events == {"zero_ts": 1, "missing_dur": 1}


def test_a_serial_stream_clips_and_a_graph_does_not() -> None:
    """[0, 100) meets a start at 60: cut to 60, 40 µs over; graph kernels may overlap."""

    def kernel(ts: float, dur: float, stream: int, node: int = 0) -> dict[str, Any]:
        args = {"device": 0, "stream": stream, "graph node id": node}
        return {**KERNEL, "ts": ts, "dur": dur, "args": args}

    t = parse(
        text(
            {
                "traceEvents": [
                    kernel(0, 100, 7),
                    kernel(60, 10, 7),
                    kernel(0, 100, 8, 5),
                    kernel(60, 10, 8, 6),
                ]
            }
        )
    )
    assert t.gpu.end.tolist() == [60_000, 70_000, 100_000, 70_000]
    assert t.gpu.dur.tolist() == [100_000, 10_000, 100_000, 10_000]
    assert t.overlong_clipped == 1


def test_annotations_on_the_gpu_are_no_work() -> None:
    rows = [
        {**KERNEL, "cat": c} for c in ("gpu_user_annotation", "gpu_user_Annotation", "cuda_sync", "overhead")
    ]
    assert len(parse(text({"traceEvents": [*EVENTS, *rows]})).gpu) == 1


BROKEN = {
    "empty": (b"", NotATrace, "empty"),
    "no object": (b'"text"', NotATrace, "no JSON object"),
    "no events": (b'{"a": 1}', NotATrace, "traceEvents"),
    "events of a wrong type": (b'{"traceEvents": 5}', NotATrace, "traceEvents"),
    "no rows": (b'{"traceEvents": []}', NotATrace, "no events"),
    "missing key quote": (text(DOC).replace(b'"dur": 5.002', b'dur": 5.002'), Malformed, r"byte \d+"),
    "two documents": (text(EVENTS) + text(EVENTS), Malformed, "follows the end"),
    "deep": (
        b'{"traceEvents": [{"args": ' + b"[" * 100_000 + b"]" * 100_000 + b"}]}",
        Refused,
        "deep|malformed",
    ),
    "cut in the metadata": (text(DOC)[:-8], Truncated, "metadata"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_refused_with_a_reason(case: str) -> None:
    data, error, says = BROKEN[case]
    with pytest.raises(error, match=says):
        parse(data)


@pytest.mark.parametrize("digits", [400, 5_000, 100_000])
@pytest.mark.parametrize("field", [b'"ts": 110.001', b'"correlation": 7'])
def test_a_number_of_thousands_of_digits_is_no_number(field: bytes, digits: int) -> None:
    key = field.partition(b" ")[0]
    t = parse(text(DOC).replace(field, key + b" " + b"9" * digits))
    assert len(t.gpu) == 1
    if key == b'"ts":':
        assert t.invalid_events == {"bad_ts": 1}
    else:
        assert t.gpu.correlation.tolist() == [-1]


def test_a_cut_behind_an_inner_bracket_is_a_cut() -> None:
    doc = text(DOC)
    for end in (b'"block": [64, 1, 1]', b"[[2, 3], [3, 4]]", b'"float"]', b'"External id": 1}'):
        with pytest.raises(Truncated, match="middle of an event"):
            parse(doc[: doc.index(end) + len(end)])


def test_half_surrogates_of_the_metadata_are_escaped() -> None:
    half = b'"' + rb"\ud800x" + b'"'
    doc = text({**DOC, "host_name": "HALF", "trace_id": "HALF"}).replace(b'"HALF"', half)
    t = parse(doc.replace(b'"NVIDIA A10"', half))
    said = (t.meta.host, t.meta.software["trace_id"], t.meta.devices[0].name)
    assert said == ("\\ud800x",) * 3


def test_many_inner_keys_of_that_name_are_not_all_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    read_object = events.read_object
    monkeypatch.setattr(events, "read_object", lambda *a: tried.append(1) or read_object(*a))
    inner = {str(i): {"traceEvents": []} for i in range(1000)}
    with pytest.raises(Malformed):
        parse(text({"inner": inner, "traceEvents": EVENTS}))
    assert len(tried) == events.MAX_TRIES
    few = {str(i): {"traceEvents": []} for i in range(5)}
    assert len(parse(text({"inner": few, "traceEvents": EVENTS})).gpu) == 1


def test_the_place_of_an_error_counts_from_the_start_of_the_document() -> None:
    doc = text(DOC).replace(b'"dur": 5.002', b'dur": 5.002')
    with pytest.raises(Malformed) as caught:
        parse(doc)
    at = int(caught.value.where.removeprefix("byte "))
    assert abs(at - doc.index(b'dur": 5.002')) <= 2


def test_text_that_is_no_utf8_or_no_strict_json_is_repaired_and_counted() -> None:
    doc = text(DOC).replace(b"gemm<4", b"ge\xff\tmm<4").replace(b'"block": [64, 1, 1]', b'"block": NaN')
    t = parse(doc)
    assert t.names[t.gpu.name[0]] == "ge\\xff\tmm<4, float>"
    assert [f.code for f in t.flags] == ["json_repaired"]
    assert t.gpu.start.tolist() == [110_001]


def test_of_a_key_that_is_there_twice_the_last_one_counts() -> None:
    """KINETO §1.5.8: the metadata of an event is written beside its fixed keys."""
    doc = text(DOC).replace(b'"stream": 7', b'"stream": 9, "grid": [9, 9, 9], "stream": 7')
    t = parse(doc)
    assert t.stream_keys == (("0", "0", "1", "7"),)
    shape = t.shape(0)
    assert shape is not None
    assert shape.grid == (2, 1, 1)


def test_a_huge_text_in_args_that_are_skipped_costs_its_reading_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """4 MiB of Call stack in one event, 64 times the chunk: read, and nothing is lost."""
    monkeypatch.setattr(events, "CHUNK", 1 << 16)
    doc = text(DOC).replace(b'"External id": 1}', b'"Call stack": "' + b"},{ " * (1 << 20) + b'"}', 1)
    begin = time.process_time()
    assert facts(kineto.read([doc], "t.json"))[0] == facts(parse(text(DOC)))[0]
    assert time.process_time() - begin < 10


def test_a_word_that_is_no_number_beside_a_surprising_type_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A list where a number is expected, and NaN: once strictly, once leniently, and once mended."""
    seen: list[int] = []
    loads = json.loads

    def counted(text: Any, **options: Any) -> Any:
        seen.append(1)
        return loads(text, **options)

    monkeypatch.setattr(kineto_rows.json, "loads", counted)
    doc = text(DOC).replace(b'"correlation": 7', b'"correlation": [7]').replace(b"[64, 1, 1]", b"NaN")
    assert parse(doc).gpu.correlation.tolist() == [-1]
    assert len(seen) < 10


def test_limits_on_events_and_devices() -> None:
    with pytest.raises(TooLarge, match="limit of 10 events"):
        parse(text(many(11)), limits=Limits(max_events=10))
    rows = [{**KERNEL, "args": {"device": i, "stream": 1}} for i in range(1025)]
    with pytest.raises(TooLarge, match="1024 devices"):
        parse(text({"traceEvents": rows}))


def test_memory_peaks_are_those_of_the_device() -> None:
    def row(kind: int, allocated: int, reserved: int) -> dict[str, Any]:
        args = {"Device Type": kind, "Total Allocated": allocated, "Total Reserved": reserved}
        return {"ph": "i", "name": "[memory]", "pid": 9, "tid": 9, "ts": 1, "args": args}

    t = parse(text({"traceEvents": [*EVENTS, row(1, 100, 900), row(1, 300, 800), row(0, 10**9, 10**9)]}))
    assert t.memory is not None
    assert (t.memory.peak_allocated, t.memory.peak_reserved) == (300, 900)


def test_a_file_that_cannot_be_opened_is_refused(tmp_path: Any) -> None:
    with pytest.raises(Refused, match="cannot read the file"):
        read(tmp_path / "absent.json")


def test_read_takes_gzip_by_content_not_by_name(tmp_path: Any) -> None:
    file = tmp_path / "trace.json"
    file.write_bytes(gzip.compress(text(DOC)))
    assert np.array_equal(read(file).gpu.start, [110_001])
