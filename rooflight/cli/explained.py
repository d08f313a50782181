"""The derivation of a cost in words, for a terminal: what went in, by which rule, and what came out."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice
from typing import Any

from rooflight.cli.terminal import fit, safe
from rooflight.cost.derivation import numbers, symbols, where
from rooflight.cost.explain import Explanation, NamedPiece
from rooflight.cost.model import Cost
from rooflight.cost.reasons import REASONS
from rooflight.cost.tensor import Piece, Tensor, Unknown
from rooflight.dtypes import DType
from rooflight.protocol import Ceiling, Roofs
from rooflight.roofline.bounds import Bound, Work, bound, compute_ceiling
from rooflight.units import GIGA, TERA

_WIDTH = 100
_LABEL = 12
_MOST = 24  # arguments or pieces; beyond, lists of a thousand tensors would bury the sum
_NAME = 120


def lines(told: Explanation, roofs: Roofs | None = None) -> Iterator[str]:
    """The whole explanation; ``roofs`` are those of the device asked for."""
    call, cost = told.args.call, told.cost
    family = f"  ({cost.family}{', matrix units' if cost.matrix else ''})" if cost.family else ""
    yield f"{fit(str(call.op), _NAME)}{family}"
    yield from _block("arguments", _arguments(told))
    yield from _block("rule", _wrapped(told.rule))
    yield from _block("not counted", _wrapped(told.not_counted))
    yield from _block("FLOPs", _flops(told))
    work = told.work
    yield from _block("read", _traffic(None if work is None else work.reads, cost.bytes_read, told))
    yield from _block("written", _traffic(None if work is None else work.writes, cost.bytes_written, told))
    yield from _block("link", _link(told))
    yield from _block("total", [_total(cost)])
    yield from _block("origin", [_origin(cost)])
    yield from _block("reason", _reason(cost))
    if roofs is not None:
        yield from _block("bound", _bound(told, roofs))
    yield from _block("source", _wrapped(told.source))


def _block(label: str, rows: Iterable[str]) -> Iterator[str]:
    for i, row in enumerate(rows):
        yield f"  {label if i == 0 else '':<{_LABEL}}{row}".rstrip()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(" ".join(text.split()), _WIDTH - _LABEL)


# --- what went in --------------------------------------------------------------------------------


def _arguments(told: Explanation) -> Iterator[str]:
    args = told.args
    count = max(len(args), len(args.call.concrete))
    given = [(args.label(i), _argument(told, i)) for i in range(min(count, 4 * _MOST))]
    given += _own(args.call.comm) + _own(args.call.gpu_args)
    shown = [(label, text) for label, text in given if text]
    width = max((len(label) for label, _ in shown), default=0)
    for label, text in shown[:_MOST]:
        yield f"{label:<{width}}  {text}"
    hidden = max(0, len(shown) - _MOST) + max(0, count - 4 * _MOST)
    if hidden:
        yield f"… and {hidden:,} more"


def _own(args: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What a message or a copy says of itself."""
    simple = ((k, v) for k, v in islice(args.items(), _MOST) if isinstance(v, str | int | float))
    return [(fit(str(k), _NAME), fit(str(v), _NAME)) for k, v in simple]


def _argument(told: Explanation, i: int) -> str:
    """The argument at ``i`` as it was understood; empty for one that was not given."""
    args = told.args
    try:
        tensor = args.maybe(i)
        if tensor is not None:
            return _tensor(tensor)
        if args.kind(i) == "TensorList":
            return _list(args.tensors(i))
    except Unknown as unknown:
        return f"not usable ({unknown.reason})"
    text = args.text(i)
    return "" if text is None else fit(text, _NAME)


def _tensor(t: Tensor) -> str:
    kind = t.dtype.name if t.dtype else "of unrecorded type"
    return f"{_dims(t.dims)} {kind}{_layout(t)}"


def _layout(t: Tensor) -> str:
    if t.strides is None or t.is_contiguous():
        return ""
    still = [str(i) for i, (n, s) in enumerate(zip(t.dims, t.strides, strict=True)) if n > 1 and s == 0]
    expanded = f", expanded along dim {', '.join(still)}" if still else ""
    return f", strides {_dims(t.strides)}{expanded}"


def _list(tensors: list[Tensor]) -> str:
    first = ", ".join(map(_tensor, tensors[:3]))
    return f"list of {len(tensors):,}: {first}{', …' if len(tensors) > 3 else ''}"


def _dims(dims: tuple[int, ...]) -> str:
    return f"[{', '.join(str(int(n)) for n in dims)}]"


# --- how it was counted --------------------------------------------------------------------------


def _flops(told: Explanation) -> Iterator[str]:
    flops = told.cost.flops
    if flops is None:
        yield "unknown"
    elif told.is_empty:
        yield "0 FLOP: the result is empty, nothing runs"
    else:
        counted = None if told.work is None else told.work.flops
        yield from _equation(flops if counted is None else counted, "FLOP")


def _equation(n: int, unit: str) -> Iterator[str]:
    """The steps from symbols to the number, without those that say the same again."""
    result = f"{int(n):,}"
    steps = [symbols(n), numbers(n)]
    if steps[0] != steps[1]:
        yield safe(steps[0])
        for name, made in where(n).items():
            yield f"  where {safe(name)} = {safe(symbols(made))}"
            yield f"        = {numbers(made)} = {int(made):,}"
    if steps[1] != result:
        yield f"= {steps[1]}"
    sign = "" if steps == [result, result] else "= "
    yield f"{sign}{result} {unit}"


def _traffic(moved: tuple[Piece, ...] | None, total: int | None, told: Explanation) -> Iterator[str]:
    if told.is_empty:
        return
    if moved is None:
        yield "unknown"
        return
    rows = list(_grouped(moved))
    yield from (_piece(*row) for row in rows[:_MOST])
    if len(rows) > _MOST:
        rest = [
            size
            for label, elements, dtype, note in rows[_MOST:]
            if (size := _bytes(elements, dtype)) is not None
        ]
        yield f"… and {len(rows) - _MOST:,} more pieces: {sum(rest):,} B"
    if not rows:
        yield "nothing"
    elif total is None:
        yield "unknown in all" if told.cost.bytes_total is None else "counted with the rest: see the total"
    elif len(rows) > 1:
        yield f"= {total:,} B"


_Row = tuple[str, int, DType | None, str]


def _grouped(moved: tuple[Piece, ...]) -> Iterator[_Row]:
    """Label, elements, type and note of each piece; those of one list together."""
    for (label, dtype, note), group in groupby(moved, _heading):
        same = list(group)
        if len(same) == 1 or not _of_a_list(same[0]):
            yield from ((label, p.elements, dtype, note) for p in same)
        else:
            yield label, sum(p.elements for p in same), dtype, f"{note}, {len(same):,} tensors".lstrip(", ")


def _heading(piece: Piece) -> tuple[str, DType | None, str]:
    if not isinstance(piece, NamedPiece):
        return "", piece.dtype, ""
    t = piece.tensor
    note = "" if piece.whole else "a result of its size"
    if piece.whole and piece.elements != t.numel:
        note = f"the different ones of {int(t.numel):,}"
    return t.argument, piece.dtype, note


def _of_a_list(piece: Piece) -> bool:
    return isinstance(piece, NamedPiece) and piece.tensor.name != piece.tensor.argument


def _piece(label: str, elements: int, dtype: DType | None, note: str) -> str:
    made = _made(elements, bare=bool(label))
    size = _bytes(elements, dtype)
    weight = "of unrecorded type" if dtype is None else f"x {dtype.size} B ({dtype.name})"
    total = "unknown" if size is None else f"{size:,} B"
    note = f", {note}" if note else ""
    return f"{safe(label) + '  ' if label else ''}{made} elements {weight} = {total}{note}"


def _made(elements: int, *, bare: bool) -> str:
    """The number of elements; ``bare`` of the symbols, which for a whole argument are its own dims."""
    result, steps = (
        f"{int(elements):,}",
        [numbers(elements)] if bare else [symbols(elements), numbers(elements)],
    )
    kept = [s for i, s in enumerate(steps) if s != result and s not in steps[:i]]
    return " = ".join([*map(safe, kept), result])


def _bytes(elements: int, dtype: DType | None) -> int | None:
    return Piece(int(elements), dtype).bytes


def _link(told: Explanation) -> Iterator[str]:
    crossing = told.cost.link_bytes
    if crossing and told.work is not None and told.work.link_bytes is not None:
        yield from _equation(told.work.link_bytes, "B cross the link")


# --- what came out -------------------------------------------------------------------------------


def _total(cost: Cost) -> str:
    flops = "FLOPs unknown" if cost.flops is None else f"{cost.flops:,} FLOP"
    if cost.bytes is None:
        return f"{flops}, bytes unknown"
    intensity = f", {cost.flops / cost.bytes:.4g} FLOP/B" if cost.flops and cost.bytes else ""
    return f"{flops}, {cost.bytes:,} B{intensity}"


_ORIGINS = {
    "modelled": "from shapes and types",
    "inferred": "roles of the arguments are inferred",
    "measured": "the bytes were recorded or counted",
    "unknown": "nothing is known",
}


def _origin(cost: Cost) -> str:
    return f"{cost.origin}: {_ORIGINS.get(cost.origin, '')}"


def _reason(cost: Cost) -> Iterator[str]:
    if not cost.reason:
        return
    reason = REASONS.get(cost.reason)
    yield from _wrapped(safe(cost.reason) + (f": {reason.meaning}" if reason else ""))
    if reason and reason.remedy and (cost.flops is None or cost.bytes is None):
        yield from _wrapped(f"to know it: {reason.remedy}")


def _bound(told: Explanation, roofs: Roofs) -> Iterator[str]:
    cost = told.cost
    over_pcie = cost.family == "memcpy" and "PtoP" not in told.args.name
    work = Work(cost.flops, cost.bytes, cost.link_bytes, cost.dtype, cost.matrix, over_pcie=over_pcie)
    limit, roof = bound(work, roofs), compute_ceiling(work, roofs)
    unit = f"{cost.dtype or 'unknown type'} {'matrix' if cost.matrix else 'vector'}"
    yield f"under {safe(roofs.name or roofs.gpu_id or '')}, practical roofs (datasheet in brackets)"
    if cost.flops != 0:
        yield f"compute  {_roof(roof, TERA, 'TFLOP/s')} {unit}{_time(limit.compute_ns)}"
    yield f"memory   {_roof(roofs.memory, GIGA, 'GB/s')}{_time(limit.memory_ns)}"
    if cost.link_bytes:
        link = roofs.pcie if over_pcie else roofs.link
        yield f"link     {_roof(link, GIGA, 'GB/s')}{_time(limit.link_ns)}"
    yield _side(limit)


def _roof(roof: Ceiling | None, scale: float, unit: str) -> str:
    if roof is None or roof.practical is None:
        return f"unknown {unit}"
    datasheet = "" if roof.datasheet is None else f" [{roof.datasheet / scale:,.4g}]"
    return f"{roof.practical / scale:,.4g}{datasheet} {unit}"


def _time(ns: float | None) -> str:
    return "" if ns is None else f": {ns / 1000:,.4g} us"


def _side(limit: Bound) -> str:
    if not limit.bound_ns:
        return "no bound: no work is known, or no roof for it"
    ridge = "" if limit.ridge is None else f", ridge {limit.ridge:.4g} FLOP/B"
    intensity = "" if limit.ai is None else f", intensity {limit.ai:.4g}"
    side = f"{limit.side} side" if limit.side else "side unknown"
    return f"at least {limit.bound_ns / 1000:,.4g} us: {side}{intensity}{ridge}"
