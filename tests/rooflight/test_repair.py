"""Mending of what is no JSON and leaves no doubt."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from rooflight.errors import Malformed
from rooflight.readers import events, kineto
from rooflight.readers.repair import repaired

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
