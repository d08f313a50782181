"""JSON of any size, member by member, is what the standard reader makes of it whole."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooflight.errors import Malformed, Refused, Truncated
from rooflight.prices import walk as module
from rooflight.prices.walk import walk

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=25,
)


class Slow(io.StringIO):
    """Gives a few characters at a time, whatever is asked for."""

    def read(self, size: int | None = -1) -> str:
        return super().read(min(3, size or 3) if size and size > 0 else 3)


def whole(text: str) -> Any:
    """Every member, with the numbers as they are written."""
    return json.loads(text, parse_float=str, parse_int=str, parse_constant=str)


def entered(value: Any, depth: int, path: module.Path = ()) -> list[tuple[module.Path, Any]]:
    """What a walk that enters ``depth`` levels gives, from the value read whole."""
    if not isinstance(value, (dict, list)) or len(path) >= depth:
        return [(path, value)]
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    return [row for key, v in inner for row in entered(v, depth, (*path, key))]


@settings(deadline=None, max_examples=200)
@given(VALUES, st.integers(0, 4), st.sampled_from([None, 1]))
def test_members_are_those_of_the_whole(value: Any, depth: int, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    for stream in (io.StringIO(text), Slow(text)):
        assert list(walk(stream, "x.json", lambda path: len(path) < depth)) == entered(whole(text), depth)


def test_documents_one_after_another() -> None:
    found = list(walk(Slow('{"a": 1}\n[2] {"a": 3.50}'), "x.json", lambda _: True))
    assert found == [(("a",), "1"), ((0,), "2"), (("a",), "3.50")]


def test_a_number_keeps_its_digits_where_the_buffer_cuts_it() -> None:
    assert list(walk(Slow("[98.320000000000000000001, 12345678]"), "x.json", lambda p: p == ())) == [
        ((0,), "98.320000000000000000001"),
        ((1,), "12345678"),
    ]


@pytest.mark.parametrize("depth", [0, 1, 3])
def test_a_text_that_is_cut_is_truncated(depth: int) -> None:
    text = '{"a": [1, "two", {"b": null, "c": "\\u00e9"}], "d": true}'
    for end in range(1, len(text)):
        with pytest.raises(Truncated):
            list(walk(Slow(text[:end]), "x.json", lambda path: len(path) < depth))


@pytest.mark.parametrize("depth", [0, 1, 3])
@pytest.mark.parametrize(
    "text",
    ["[1,]", "[,]", '{"a" 1}', "{1: 2}", '{"a": 1,}', "[1 2]", "{]", "nul", "[1}", '{"a": tru}', "'a'", "]"],
)
def test_a_text_that_is_wrong_is_refused_at_its_place(text: str, depth: int) -> None:
    padded = text + " " * 100
    for stream in (io.StringIO(padded), Slow(padded)):
        with pytest.raises(Refused, match="character"):
            list(walk(stream, "x.json", lambda path: len(path) < depth))


def test_what_is_wrong_far_behind_is_found_without_reading_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CHUNK", 1000)
    stream = io.StringIO("[" + "1, " * 100 + "oops, " + "1, " * 100_000 + "1]")
    with pytest.raises(Malformed, match="character"):
        list(walk(stream, "x.json", lambda path: path == ()))
    assert stream.tell() < 5_000
