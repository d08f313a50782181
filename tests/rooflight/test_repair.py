"""Mending of what is no JSON and leaves no doubt."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rooflight.errors import Malformed, Truncated
from rooflight.readers import envelope, events, kineto
from rooflight.readers.repair import repaired, repairs

ROW = '{"ph":"X","cat":"kernel","name":"%s","pid":0,"tid":7,"ts":%d,"dur":1.5,"args":{"stream":7,"x":%s}}'


@pytest.mark.parametrize(
    ("broken", "mended", "kinds"),
    [
        ("[inf, -inf, nan, -NaN, Infinity]", "[null, null, null, null, null]", {"non-finite numbers": 5}),
        (r'["torch\cuda\__init__.py"]', r'["torch\\cuda\\__init__.py"]', {"invalid escapes": 2}),
        (r'["C:\\fine\n", "\u00e9"]', r'["C:\\fine\n", "\u00e9"]', {}),
        (r'["\u12"]', r'["\\u12"]', {"invalid escapes": 1}),
        ('["a\tb\n"]', '["a\tb\n"]', {"raw control characters": 2}),
        ('["inf", "nan of \\" inf"]', '["inf", "nan of \\" inf"]', {}),
        ('{"info": 1}', '{"info": 1}', {}),
    ],
)
def test_only_what_is_certain_is_mended(broken: str, mended: str, kinds: dict[str, int]) -> None:
    text, found = repaired(broken)
    assert text == mended
    assert dict(found) == kinds
    json.loads(text, strict=False)


def document(rows: int, odd: dict[int, str]) -> bytes:
    """``rows`` kernels 2 µs apart, some of them broken; about 150 bytes each."""
    parts = [odd.get(i) or ROW % ("kernel_of_a_long_name_" + "x" * 40, 2 * i, "1") for i in range(rows)]
    return ('{"traceEvents":[' + ",\n".join(parts) + '],"traceName":"t"}').encode("utf-8", "surrogateescape")


ODD = {
    "bare nan": ROW % ("k", 20, "nan"),
    "backslash": ROW % (r"torch\cuda", 20, "1"),
    "no utf-8": ROW % ("\udcff\udcfe", 20, "1"),
    "control": ROW % ("a\tb", 20, "1"),
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("at", [0, 10, 4999, 9999])
def test_one_broken_row_costs_no_other_row_and_no_time(kind: str, at: int, monkeypatch: Any) -> None:
    """10,000 rows in chunks of 64 KiB; the broken one keeps its place, and nothing is tried row by row."""
    monkeypatch.setattr(events, "CHUNK", 1 << 16)
    row = ODD[kind].replace('"ts":20', f'"ts":{2 * at}')
    doc = document(10_000, {at: row})
    begin = time.process_time()
    t = kineto.read((doc[i : i + 4096] for i in range(0, len(doc), 4096)), "t.json")
    assert time.process_time() - begin < 20
    assert t.gpu.start.tolist() == [2000 * i for i in range(10_000)]
    assert t.gpu.dur.tolist() == [1500] * 10_000
    [flag] = t.flags
    assert flag.code == "json_repaired"
    assert flag.count == (2 if kind == "no utf-8" else 1)


def test_what_is_not_certain_is_refused_with_its_place(monkeypatch: Any) -> None:
    monkeypatch.setattr(events, "CHUNK", 1 << 16)
    doc = document(10_000, {5_000: (ROW % ("k", 20, "1")).replace('"dur"', 'dur"')})
    with pytest.raises(Malformed) as caught:
        kineto.read((doc[i : i + 4096] for i in range(0, len(doc), 4096)), "t.json")
    at = int(caught.value.where.removeprefix("byte "))
    assert abs(at - doc.index(b',dur"')) <= 4


#: Layouts of the C++ profiler (with its own order of keys), of Python, minified, and by sorted keys.
LAYOUTS = {
    "c++": """{"traceEvents": [
  {
    "ph": "X", "cat": "kernel", "name": "NAME", "pid": 0, "tid": 7,
    "ts": 1, "dur": 2.5,
    "args": {
      "stream": 7
    }
  }
  ],
  "traceName": "t"
}""",
    "a line per key": """{"traceEvents": [
  {
    "ph": "X",
    "cat": "kernel",
    "name": "NAME",
    "pid": 0,
    "tid": 7,
    "ts": 1,
    "dur": 2.5
  }
]}""",
    "minified": '{"traceEvents":[{"ph":"X","cat":"kernel","name":"NAME","pid":0,"tid":7,"ts":1,"dur":2.5}]}',
    "name last": '{"traceEvents": [{"cat": "kernel", "dur": 2.5, "ph": "X", "pid": 0, "tid": 7, "ts": 1, '
    '"name": "NAME"}, {"ph": "M", "name": "x"}]}',
}
QUOTED = (
    'Library("my_ns", "IMPL")',
    '"',
    '"all of it"',
    'f({"a": 1})',
    'x = "a" + "b", "c"',
    '<string>("x")(3): forward',
)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", QUOTED)
def test_quotes_in_a_name_are_mended_and_counted(layout: str, name: str) -> None:
    t = kineto.read([LAYOUTS[layout].replace("NAME", name).encode()], "t.json")
    assert t.names[t.gpu.name[0]] == name
    assert t.gpu.dur.tolist() == [2500]
    assert [(f.code, f.count) for f in t.flags] == [("json_repaired", 1), ("names_repaired", 1)]


#: Names after which a quote may be missing, or whose end may be another one.
DOUBTFUL = ('f("a", "b": "c")', '{"a": "b", "c": "d"}', 'x", "tid": "y" z', "a\\", '"a\\')


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_name_whose_end_is_in_doubt_is_refused_with_its_place(layout: str, name: str) -> None:
    with pytest.raises(Malformed, match=r"malformed.*byte \d+"):
        kineto.read([LAYOUTS[layout].replace("NAME", name).encode()], "t.json")


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_missing_quote_at_the_end_of_a_name_swallows_nothing(layout: str) -> None:
    doc = LAYOUTS[layout].replace("NAME", "gemm")
    with pytest.raises(Malformed):
        kineto.read([doc.replace('gemm"', "gemm").encode()], "t.json")
    with pytest.raises(Malformed):
        kineto.read([doc.replace('"gemm', "gemm").encode()], "t.json")


def test_a_mended_name_changes_no_other_row() -> None:
    """A name with its quotes escaped, one that looks like a key, and one whose next key is a stranger."""
    rows = [
        '{"ph":"X","cat":"kernel","name":"a\\"b","color":"red","pid":0,"tid":7,"ts":1,"dur":1}',
        '{"ph":"X","cat":"kernel","name":"Library("x")","pid":0,"tid":7,"ts":3,"dur":1}',
        '{"ph":"X","cat":"kernel","pid":0,"tid":7,"ts":5,"dur":1,"name":"\\"name\\": \\""}',
        '{"ph":"M","name":"x","args":{"name":"python"}}',
    ]
    t = kineto.read([('{"traceEvents":[' + ",".join(rows) + "]}").encode()], "t.json")
    assert [t.names[n] for n in t.gpu.name] == ['a"b', 'Library("x")', '"name": "']
    assert t.flags[1].count == 1


LOGS = (
    '{"traceEvents": [%s],\n  "WARNING": [%s],\n  "traceName": "t.json",\n  "distributedInfo": {"rank": 3}}'
)
GOOD = ROW % ("k", 1, "1")


@pytest.mark.parametrize(
    "messages", ['"no "libcupti" here","second: "a", b"', '"""', '"[Profiler = "x"] [1, 2]"', r'"C:\dir "x""']
)
def test_log_lists_are_mended_since_nobody_reads_them(messages: str) -> None:
    t = kineto.read([(LOGS % (GOOD, messages)).encode()], "t.json")
    assert t.meta.rank == 3
    assert [f.code for f in t.flags] == ["json_repaired"]
    assert "log lists" in t.flags[0].detail
    before = '{"WARNING": [' + messages + '], "distributedInfo": {"rank": 3}, "traceEvents": [' + GOOD + "]}"
    assert kineto.read([before.encode()], "t.json").meta.rank == 3


@pytest.mark.parametrize("messages", ['"a", "distributedInfo": {"rank": 4}, "b": ["c"', '"a'])
def test_a_log_list_that_may_have_swallowed_a_key_is_refused(messages: str) -> None:
    with pytest.raises(Malformed, match="malformed"):
        kineto.read([(LOGS % (GOOD, messages)).encode()], "t.json")


HOSTILE = {
    "names": '"name":"' * 60_000,
    "ends": '"name":"' + '",' * 200_000,
    "half ends": '"name":"' + '","x' * 100_000,
    "inner keys": '"name":"' + ',{"x"' * 80_000 + '","a":',
    "escaped quotes": '"' + '\\"' * 200_000,
    "an escape without a sign": '"' + '\\"' * 200_000 + "\\",
    "logs": '"INFO":["' * 50_000,
    "space": '"name":"x"' + " " * 400_000,
    "quotes": '"' * 400_000,
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_grows_with_the_size_alone(kind: str) -> None:
    begin = time.process_time()
    for _ in repairs("[" + HOSTILE[kind] + "]"):
        pass
    assert time.process_time() - begin < 5


#: A row to mend between good ones.
ROWS = (ROW % ("k", 1, "1"), ROW % ('Library("x")', 3, "nan"), ROW % ("k", 5, "1"))


@pytest.mark.parametrize("tail", [',{"ph":"X","na', ',{"ph":"X"', ",", "", ',{"args":{"x":[1]'])
def test_a_cut_behind_a_row_that_was_mended_is_a_cut(tail: str) -> None:
    """Whole rows are three; with salvage they are all kept."""
    doc = ('{"traceEvents":[' + ",".join(ROWS) + tail).encode()
    with pytest.raises(Truncated, match="truncated"):
        kineto.read([doc], "t.json")
    t = kineto.read([doc], "t.json", salvage=True)
    assert t.gpu.start.tolist() == [1000, 3000, 5000]
    assert [f.code for f in t.flags] == ["json_repaired", "names_repaired", "truncated"]


def test_a_bare_array_that_was_mended_may_lack_its_end() -> None:
    t = kineto.read([("[" + ",".join(ROWS) + ",\n").encode()], "t.json")
    assert len(t.gpu) == 3
    assert [f.code for f in t.flags] == ["unterminated_array", "json_repaired", "names_repaired"]


def test_the_place_is_that_of_what_cannot_be_mended() -> None:
    """NaN beside a type that surprises is mended; the key without its quote, 50 bytes on, is not."""
    row = (ROW % ("k", 1, "NaN")).replace('"stream":7', '"stream":[7]')
    doc = '{"traceEvents":[' + row + "," + row.replace('"dur"', 'dur"') + "]}"
    with pytest.raises(Malformed) as caught:
        kineto.read([doc.encode()], "t.json")
    at = int(caught.value.where.removeprefix("byte "))
    # NaN became null in the text that was looked at, one byte longer.
    assert abs(at - doc.index(',dur"')) <= 4


def test_what_is_mended_in_one_go_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes up to a hundred times its size: a trace with one event or with metadata beyond is refused."""
    for module in (events, envelope):
        monkeypatch.setattr(module, "MAX_REPAIRED", 1000)
    long = ROW % ("k", 1, '"' + "x" * 1000 + '"')
    assert len(kineto.read([b'{"traceEvents": [' + long.encode() + b"]}"], "t.json").gpu) == 1
    for broken in (
        '{"traceEvents": [' + long.replace("1.5", "nan") + "]}",
        '{"traceEvents": [' + GOOD + '], "INFO": ["' + 'a "b" ' * 200 + '"], "x": 1}',
    ):
        with pytest.raises(Malformed, match="malformed"):
            kineto.read([broken.encode()], "t.json")
