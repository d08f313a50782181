"""Execution traces: what torch's ``ExecutionTraceObserver`` writes (Chakra JSON).

The shape of a document, as far as it is read (torch, execution_trace_observer.cpp):

    {"schema": "1.1.1-chakra.0.0.4", "pid": 7, "nodes": [
      {"id": 204, "name": "aten::cat", "inputs": SIDE, "outputs": SIDE,
       "attrs": [{"name": "rf_id", "type": "uint64", "value": 42}, ...]}, ...]}

    SIDE = {"values": [[[205, 206, 0, 12, 4, "cpu"], ...], 0], "shapes": [[[3, 4], ...], []],
            "types": ["GenericList[Tensor(float),...]", "Int"], "strides": [[[4, 1], ...], []]}

``strides`` came with 1.1.1.  Names are written unescaped; other nodes than those of ops are passed over.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

import msgspec
import numpy as np
from msgspec import Raw, Struct

from rooflight.errors import Malformed, NotATrace, TooLarge
from rooflight.readers.events import EventStream
from rooflight.readers.limits import DEFAULT_LIMITS, Limits
from rooflight.trace.builder import Interner
from rooflight.trace.execution import Call, Execution

_NOTHING = Raw(b"[]")
_TENSOR = re.compile(r"Tensor\((.*)\)\Z", re.DOTALL)
_LIST = re.compile(r"GenericList\[(.*)\]\Z", re.DOTALL)
#: A name that is written as it is, quotes and all.
_NAME = re.compile(r'("id": \d{1,19}, "name": ")(.{0,500}?)(", "ctrl_deps": \d{1,19},)', re.DOTALL)
_SIGNS = re.compile(r"[(),\[\]]")
_SCALARS = frozenset({"Int", "Double", "Bool"})
_ARRAY = re.compile(rb'"(nodes|traceEvents)"\s*:\s*\[')
_INT64 = 1 << 63


class _Side(Struct, frozen=True, gc=False):
    values: list[Raw] = []
    shapes: Raw = _NOTHING
    types: list[str] = []
    strides: Raw = _NOTHING


class _Attr(Struct, frozen=True, gc=False):
    name: str = ""
    value: Raw = _NOTHING


class _Node(Struct, frozen=True, gc=False):
    name: str
    inputs: _Side
    outputs: _Side
    attrs: list[_Attr]


_nodes = msgspec.json.Decoder(list[_Node])
_texts = msgspec.json.Decoder(list[Raw])
_node = msgspec.json.Decoder(_Node)


def is_execution(head: bytes) -> bool:
    """Whether a document that begins so is an execution trace."""
    arrays = {found[1] for found in _ARRAY.finditer(head)}
    return arrays == {b"nodes"} and b'"schema"' in head


def read(pieces: Iterable[bytes], source: str, *, limits: Limits = DEFAULT_LIMITS) -> Execution:
    """The ops of the unpacked bytes of an execution trace; Refused says why not."""
    reader = _Reader(limits)
    stream = _Nodes(iter(pieces), reader.decode)
    stream.run()
    schema = stream.meta.get("schema")
    if not reader.record:
        raise NotATrace(
            f"an execution trace without ops that are understood (schema {_short(schema)})",
            where=source,
            hint="record it with torch 2.1 or newer",
        )
    pid = stream.meta.get("pid")
    return Execution(
        source=source,
        pid=str(pid) if isinstance(pid, int) else "",
        names=tuple(reader.names),
        calls=tuple(_call(*key) for key in reader.calls),
        record=np.array(reader.record, np.int64),
        name=np.array(reader.name, np.int32),
        call=np.array(reader.call, np.int32),
        unread=reader.unread,
    )


def _short(value: object) -> str:
    return repr(value)[:40]


class _Nodes(EventStream):
    """Nodes have objects inside them, and so a comma between two of these is no border."""

    key = "nodes"

    def _last_border(self, before: int) -> int:
        window = self._window
        while (at := window.rfind(b'"id"', before)) > 0:
            head = window.slice(at - 64, at).rstrip()
            if head.endswith(b"{") and head[:-1].rstrip().endswith(b","):
                return super()._last_border(at)
            before = at
        return super()._last_border(before)


#: Shapes, types and strides as texts, the concrete values, and those of the outputs.
_Key = tuple[bytes, tuple[str, ...], bytes, tuple[str, ...], bytes, tuple[str, ...]]


class _Reader:
    """Decodes chunks of nodes into columns."""

    def __init__(self, limits: Limits) -> None:
        self.names: Interner[str] = Interner()
        self.calls: Interner[_Key] = Interner()
        self.record: list[int] = []
        self.name: list[int] = []
        self.call: list[int] = []
        self.unread = 0
        self._limit = limits.max_events

    def decode(self, data: memoryview, *, last_resort: bool = False) -> None:
        """Take a JSON array of nodes; those of another shape are passed over, one by one."""
        text: bytes | memoryview = _mended(data) if last_resort else data
        try:
            nodes = _nodes.decode(text)
        except msgspec.ValidationError:
            nodes = [node for raw in _texts.decode(text) if (node := self._understood(raw)) is not None]
        for node in nodes:
            self._add(node)

    def _understood(self, raw: Raw) -> _Node | None:
        try:
            return _node.decode(raw)
        except msgspec.ValidationError:
            self.unread += 1
            return None

    def _add(self, node: _Node) -> None:
        record = next((_whole(a.value) for a in node.attrs if a.name == "rf_id"), 0)
        if not 0 < record < _INT64:
            return
        if len(self.record) >= self._limit:
            raise TooLarge(
                f"too large: more than the limit of {self._limit} nodes", hint="record fewer steps"
            )
        inputs, outputs = node.inputs, node.outputs
        self.record.append(record)
        self.name.append(self.names[node.name])
        self.call.append(
            self.calls[
                bytes(inputs.shapes),
                tuple(inputs.types),
                bytes(inputs.strides),
                tuple(_concrete(inputs)),
                bytes(outputs.shapes),
                tuple(outputs.types),
            ]
        )


def _whole(raw: Raw) -> int:
    text = bytes(raw)
    return int(text) if text.isdigit() and len(text) < 20 else 0


def _mended(data: memoryview) -> bytes:
    text = str(data, "utf-8", "backslashreplace")
    return _NAME.sub(lambda m: m[1] + json.dumps(m[2])[1:-1] + m[3], text).encode()


def _concrete(side: _Side) -> list[str]:
    """The values that are no tensors, in the profiler's words; "" for those that are."""
    if len(side.values) != len(side.types):
        return []
    return [
        "" if kind.startswith(("Tensor(", "GenericList[Tensor(", "None", "Device")) else _word(value)
        for kind, value in zip(side.types, side.values, strict=True)
    ]


def _word(raw: Raw) -> str:
    try:
        value = msgspec.json.decode(raw)
        return "" if value == "<None>" else value if isinstance(value, str) else str(value)
    except (ValueError, RecursionError):
        # Nested without end, or a number of thousands of digits.
        return ""


# -- one distinct call -------------------------------------------------------------------------------


def _call(
    shapes: bytes,
    types: tuple[str, ...],
    strides: bytes,
    concrete: tuple[str, ...],
    out_shapes: bytes,
    out_types: tuple[str, ...],
) -> Call:
    dims, steps = _list(shapes), _list(strides)
    n = len(types)
    if len(dims) != n or len(concrete) != n:
        return Call((), (), (), (), _results(_list(out_shapes), out_types))
    steps = steps if len(steps) == n else [[]] * n
    kinds = [_kind(t, d) for t, d in zip(types, dims, strict=True)]
    tensors = [isinstance(k, list) or _TENSOR.match(t) is not None for k, t in zip(kinds, types, strict=True)]
    return Call(
        tuple(d if is_tensor else [] for d, is_tensor in zip(dims, tensors, strict=True)),
        tuple(kinds),
        tuple(s if is_tensor else [] for s, is_tensor in zip(steps, tensors, strict=True)),
        tuple("" if isinstance(k, list) else c for k, c in zip(kinds, concrete, strict=True)),
        _results(_list(out_shapes), out_types),
    )


def _kind(text: str, dims: Any) -> str | list[str]:
    """The type column of the profiler: an element type, Scalar, ScalarList, "" or a list of element types."""
    if tensor := _TENSOR.match(text):
        return tensor[1]
    if text in _SCALARS:
        return "Scalar"
    inside = _LIST.match(text)
    if inside is None or not inside[1]:
        return ""
    members = _members(inside[1])
    found = [_TENSOR.match(m) for m in members]
    if not any(found):
        return "ScalarList" if set(members) <= _SCALARS else ""
    whole = isinstance(dims, list) and len(dims) == len(members)
    return [m[1] if m else "" for m in found] if whole else ""


def _members(text: str) -> list[str]:
    """The types in a list; a comma inside of brackets is none between members."""
    members, begin, depth = [], 0, 0
    for sign in _SIGNS.finditer(text):
        depth += (sign[0] in "([") - (sign[0] in ")]")
        if sign[0] == "," and depth == 0:
            members.append(text[begin : sign.start()])
            begin = sign.end()
    return [*members, text[begin:]]


def _results(dims: list[Any], types: tuple[str, ...]) -> tuple[tuple[Any, str], ...]:
    """(dims, element type) of every tensor, those in lists one by one; nothing where one is unclear."""
    if len(dims) != len(types):
        return ()
    found: list[tuple[Any, str]] = []
    for d, text in zip(dims, types, strict=True):
        kind = _kind(text, d)
        if isinstance(kind, list):
            found += zip(d, kind, strict=True)
        elif _TENSOR.match(text):
            found.append((d, kind))
    return tuple(found)


def _list(text: bytes) -> list[Any]:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as e:
        raise Malformed("the execution trace is malformed: a list of shapes does not end") from e
    return value if isinstance(value, list) else []
