"""What lies around the events: encodings, metadata that surprises, and where it is cut."""

from __future__ import annotations

import json
import time

import pytest

from rooflight.errors import Malformed, NotATrace, Refused, Truncated
from rooflight.readers import kineto
from rooflight.readers.source import Checker
from rooflight.trace.timeline import Timeline

KERNEL = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 1, "dur": 2}
EVENTS = json.dumps([KERNEL])


def document(before: str = "", behind: str = "", events: str = EVENTS) -> str:
    """Events with keys of metadata before and behind them."""
    return "{" + before + '"traceEvents": ' + events + behind + "}"


def parse(text: str | bytes) -> Timeline:
    return kineto.read([text.encode() if isinstance(text, str) else text], "t.json")


def checked(data: bytes, size: int = 1) -> None:
    checker = Checker()
    for i in range(0, len(data), size):
        checker.feed(data[i : i + size])
    checker.finish()


WIDE = {
    "PowerShell": ("\ufeff", "utf-16-le", "UTF-16"),
    "big endian": ("\ufeff", "utf-16-be", "UTF-16"),
    "without a mark": ("", "utf-16-le", "UTF-16"),
    "big endian without a mark": ("", "utf-16-be", "UTF-16"),
    "UTF-32": ("\ufeff", "utf-32-le", "UTF-32"),
    "UTF-32 without a mark": ("", "utf-32-be", "UTF-32"),
}


@pytest.mark.parametrize("kind", WIDE)
def test_wide_encodings_are_refused_by_name_with_the_way_out(kind: str) -> None:
    mark, encoding, says = WIDE[kind]
    data = (mark + '{"traceEvents": ' + EVENTS + "}").encode(encoding)
    for refuse in (parse, checked):
        with pytest.raises(NotATrace, match=f"the file is {says}") as caught:
            refuse(data)
        assert f"iconv -f {says} -t UTF-8" in caught.value.hint


@pytest.mark.parametrize("head", ["{", "[", " {", "\ufeff{", "\ufeff \n["])
def test_short_documents_begin_as_long_ones_do(head: str) -> None:
    data = (head + {"{": "}", "[": "]"}[head[-1]]).encode()
    for size in (1, 2, 100):
        checked(data, size)


META = (
    '{"deviceProperties": [{"name": "NVIDIA A10"}], "host_name": "gpu\\u00e9", "n": [1.5, -2e3, true, null]'
)


def test_every_cut_of_the_metadata_is_called_a_cut() -> None:
    """Before the events and behind them, also behind a brace, in a word, a number and an escape."""
    before, behind = META + ', "traceEvents": ', '{"traceEvents": ' + EVENTS + "," + META[1:] + "}"
    for end in range(1, len(before)):
        with pytest.raises(Truncated, match="truncated"):
            parse(before[:end])
    for end in range(behind.index("]") + 1, len(behind)):
        with pytest.raises(Truncated, match="truncated"):
            parse(behind[:end])


BROKEN = {
    "a value missing": ('{"a": , "traceEvents": %s}', 6),
    "a bare word": ('{"a": [word], "traceEvents": %s}', 7),
    "behind the events": ('{"traceEvents": %s, "a": }', 17 + len(EVENTS) + 6),
    "after letters of two bytes": ('{"\u00e9\u00e9": , "traceEvents": %s}', 9),
    "no events": ('{"a": ]}%.0s', 6),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_metadata_is_refused_with_its_byte(case: str) -> None:
    doc, at = BROKEN[case]
    with pytest.raises(Malformed, match="malformed") as caught:
        parse(doc % EVENTS)
    assert caught.value.where == f"byte {at}"


@pytest.mark.parametrize("value", ["NaN", "-Infinity", "inf", "-nan", "9" * 100_000, "1e999", "-0.0", '"x"'])
@pytest.mark.parametrize("key", ["baseTimeNanoseconds", "cuda_runtime_version", "distributedInfo", "other"])
def test_numbers_that_are_none_leave_a_key_unknown(key: str, value: str) -> None:
    t = parse(document(f'"{key}": {value}, ', f', "host_name": "h", "z": {value}'))
    assert t.meta.host == "h"
    assert t.meta.base_ns == 0
    assert t.meta.rank is None
    assert t.gpu.dur.tolist() == [2000]
    repaired = [f.count for f in t.flags if f.code == "json_repaired"]
    assert repaired == ([2] if value in ("inf", "-nan") else [])


def test_windows_1252_is_kept_as_what_it_is() -> None:
    """0xe9 is no UTF-8: it is shown as its byte, in names and in metadata, and counted."""
    doc = document('"host_name": "caf\xe9", ', events=EVENTS.replace('"k"', '"\xe9"'))
    t = parse(doc.encode("cp1252"))
    assert t.meta.host == "caf\\xe9"
    assert t.names[t.gpu.name[0]] == "\\xe9"
    [flag] = t.flags
    assert (flag.code, flag.count) == ("json_repaired", 2)


def test_a_backslash_in_the_metadata_stands_for_itself() -> None:
    t = parse(document(r'"host_name": "C:\dir", '))
    assert t.meta.host == r"C:\dir"


def test_a_second_array_of_events_is_not_passed_over() -> None:
    """JSON says that the last one counts; which of them the writer meant nobody knows."""
    with pytest.raises(Malformed, match="second traceEvents"):
        parse(document(behind=f', "a": 1, "traceEvents": {EVENTS}'))
    with pytest.raises(Malformed, match="second traceEvents"):
        parse(document(behind=', "traceEvents": 5'))


def test_a_key_of_that_name_within_the_metadata_is_another_one() -> None:
    inner = r'"inner": {"traceEvents": [{"ph": "X"}], "x": "\"traceEvents\": ["}'
    assert len(parse(document(inner + ", ")).gpu) == 1
    assert len(parse(document(behind=", " + inner)).gpu) == 1
    with pytest.raises(NotATrace, match="has no traceEvents"):
        parse("{" + inner + "}")


@pytest.mark.parametrize(
    "where",
    ['{"a": %s, "traceEvents": []}', '{"traceEvents": [{"args": %s}]}', '{"traceEvents": [], "a": %s}', "%s"],
)
@pytest.mark.parametrize(
    "deep", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 100_000 + "1" + "}" * 100_000]
)
def test_deep_nesting_is_refused(where: str, deep: str) -> None:
    with pytest.raises(Refused, match=r"deep|malformed|truncated|not a trace"):
        parse(where % deep)


@pytest.mark.parametrize(
    "value",
    ["9" * 1_000_000, "-" + "1" * 1_000_000 + ".5", "1e" + "9" * 1_000_000, "0." + "0" * 1_000_000 + "1"],
)
@pytest.mark.parametrize("key", ["ts", "dur", "pid", "args", "unread"])
def test_numbers_of_a_million_digits_cost_no_time(key: str, value: str) -> None:
    row = json.dumps({**KERNEL, key: 0}).replace(f'"{key}": 0', f'"{key}": {value}')
    begin = time.process_time()
    t = parse(document(events=f"[{row}]"))
    assert len(t.gpu) == 1
    assert time.process_time() - begin < 5
    unusable = {"ts": "bad_ts", "dur": "bad_dur"}.get(key)
    # 0.00...01 is a time: zero nanoseconds.
    assert t.invalid_events == ({unusable: 1} if unusable and not value.startswith("0.") else {})
