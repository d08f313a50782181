"""The what-if of the Run page: the form as it was filled in, and the answer as ranges."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from urllib.parse import urlencode

from app.advice.price import Pricing
from app.advice.question import Question, in_usd
from app.pages import numbers as n
from app.pages.money_view import Option, options_of
from rooflight.errors import Refused
from rooflight.hardware import find, gpus
from rooflight.prices.money import STEPS, amount
from rooflight.prices.rate import Rate
from rooflight.protocol import Document
from rooflight.report.summary import counted
from rooflight.scenarios import KernelForecast, Range, WhatIf, whatif
from rooflight.scenarios.model import exactly
from rooflight.scenarios.money import cost
from rooflight.scenarios.target import SIZES

TOP_KERNELS = 5
#: Middles that change by less than this share of their time are no change to point at.
_LEAST = 0.01
_NEAR_ONE, _MANY, _MOSTLY = 0.1, 100.0, 50.0
#: What may be changed, beside GPU and number type: its label, its meaning, and the part that it is about.
_CHANGES = {
    "roofs_reached": ("roofs reached", "every kernel of known cost runs at its practical roof", ""),
    "fused": ("elementwise fused", "each chain of elementwise kernels on a stream is one kernel", ""),
    "overlapped": (
        "communication overlapped",
        "exposed communication runs behind compute, as far as that is long enough",
        "communication",
    ),
    "input_ready": ("input never waits", "no step waits for its input", "input"),
}
#: What a forecast of a kernel goes by, for people.
_BASES = {"tiny": "start and end", "latency": "no roof near", "unknown": "unknown cost", "pcie": "PCIe"}


@dataclass(frozen=True, slots=True)
class Change:
    """A box to tick; ``stake`` is the time that it is about, where that is a part of the wall time."""

    name: str
    label: str
    meaning: str
    checked: bool
    stake: str


@dataclass(frozen=True, slots=True)
class Line:
    """A time as recorded and as a range; ``at`` are the places of recorded, low, middle and high on the
    line's own axis, in percent."""

    label: str
    recorded: str
    low: str
    mid: str
    high: str
    change: str
    at: tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Moved:
    """One of the kernel groups whose middle changes most; times are of all launches."""

    kernel: KernelForecast
    basis: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The prediction: ``lead`` and ``said`` are its sentence, ``rests`` what it rests on."""

    lead: str
    said: str
    lines: list[Line]
    cost: str
    rests: list[str]
    assumptions: list[str]
    kernels: list[Moved]
    query: str


@dataclass(frozen=True, slots=True)
class WhatIfView:
    """The form and what came of it; ``withheld`` says why there is neither, ``problem`` what is wrong with
    what was asked."""

    gpus: dict[str, list[Option]]
    dtypes: list[Option]
    changes: list[Change]
    instances: list[Option]
    there_price: str
    asked: bool
    answer: Answer | None = None
    withheld: str = ""
    problem: str = ""


def whatif_view(
    document: Document, parts: Mapping[str, float], unit: n.TimeUnit, asked: Question, here: Pricing
) -> WhatIfView:
    """What the page shows; ``parts`` are those of the waterfall, ``here`` is the recorded GPU's price."""
    answer, problem = None, ""
    withheld = _withheld(document)
    if asked.asked and not withheld:
        try:
            answer = _answer(whatif(document, scenario=asked.scenario), document, unit, asked, here)
        except Refused as e:
            problem = f"{e.title[:1].upper()}{e.title[1:]}{f': {e.hint}' if e.hint else ''}."
    return WhatIfView(
        gpus=_gpus(asked.scenario.gpu),
        dtypes=[Option(d, d, d == asked.scenario.dtype) for d in SIZES],
        changes=list(_changes(asked, parts, unit)),
        instances=list(options_of(asked.listed, asked.scenario.gpu, asked.there)),
        there_price=asked.there_price,
        asked=asked.asked,
        answer=answer,
        withheld=withheld,
        problem=problem,
    )


def _withheld(document: Document) -> str:
    """Why nothing is predicted; "" where something can be."""
    rank = document.ranks[0]
    if not any(d.n_gpu_events for d in rank.devices.values()):
        return "No GPU work was recorded, so there is none to move."
    reason = rank.verdict_withheld
    return f"No prediction where there is no verdict: {reason}." if reason else ""


# --- the form --------------------------------------------------------------------------------------


def _gpus(chosen: str | None) -> dict[str, list[Option]]:
    """The devices of the catalogue by vendor; the one that was asked for by another name is among them."""
    found = find(chosen) if chosen else None
    by_vendor: dict[str, list[Option]] = {}
    for g in gpus():
        if g.device_unit != "card":
            label = " ".join(t for t in (g.name, g.variant) if t)
            mine = found is not None and g.id == found.id
            by_vendor.setdefault(g.vendor, []).append(Option(g.id, label, mine))
    return by_vendor


def _changes(asked: Question, parts: Mapping[str, float], unit: n.TimeUnit) -> Iterator[Change]:
    for name, (label, meaning, part) in _CHANGES.items():
        us = parts.get(part, 0.0)
        stake = "" if not part else unit.text(us) if us else "none"
        yield Change(name, label, meaning, bool(getattr(asked.scenario, name)), stake)


# --- the answer ------------------------------------------------------------------------------------


def _answer(w: WhatIf, document: Document, unit: n.TimeUnit, asked: Question, here: Pricing) -> Answer:
    of = f", rank {document.ranks[0].rank}" if len(document.ranks) > 1 else ""
    return Answer(
        lead=_lead(w),
        said=_said(w, unit, asked),
        lines=list(_lines(w, unit, of)),
        cost=_cost(w, asked, here),
        rests=list(_rests(w)),
        assumptions=w.assumptions,
        kernels=[Moved(k, _BASES.get(k.basis, k.basis)) for k in _most_changed(w)],
        query=_query(asked),
    )


def _main(w: WhatIf) -> tuple[str, float, Range]:
    """What the sentence is about: a step where there are some, else the recording, else the kernels."""
    if w.step_time_us is not None and w.recorded_step_time_us is not None:
        return "a step takes", w.recorded_step_time_us, w.step_time_us
    if w.recording_us is not None and w.recorded_us is not None:
        return "the recording takes", w.recorded_us, w.recording_us
    return "the kernels take", w.recorded_kernel_time_us, w.kernel_time_us


def _lead(w: WhatIf) -> str:
    """How many times as fast, as a range; where that holds 1, nobody can tell."""
    _, recorded, r = _main(w)
    if not recorded or not r.low:
        return "Nothing to compare."
    slowest, fastest = (_times(recorded / v) for v in (r.high, r.low))
    times = slowest if slowest == fastest else f"{slowest} to {fastest}"
    if r.low <= recorded <= r.high:
        return "No change." if r.low == r.high else f"Faster or slower is open: {times} times the speed."
    return f"{'Faster' if r.high < recorded else 'Slower'}: {times} times the speed."


def _times(speed: float) -> str:
    """Two digits, and a third where these would hide the difference from 1."""
    return n.significant(speed, 3 if abs(speed - 1) < _NEAR_ONE or speed >= _MANY else 2)


def _said(w: WhatIf, unit: n.TimeUnit, asked: Question) -> str:
    what, recorded, r = _main(w)
    named = [f"in {w.dtype}"] if w.dtype else []
    named += [label for name, (label, _, _) in _CHANGES.items() if getattr(asked.scenario, name)]
    moved = f"On {w.gpu}" if asked.scenario.gpu and w.gpu else "On the same GPU"
    took = f"{unit.number(r.low)} to {unit.text(r.high)}, in the middle {unit.text(r.mid)}"
    took = took if r.low < r.high else unit.text(r.mid)
    said = f"{', '.join([moved, *named])}: {what} {took}; recorded {unit.text(recorded)}."
    if (w.unknown_share or 0.0) > _MOSTLY:
        said += f" Most of it is open: of {n.percent(w.unknown_share)}{n.NB}% cost, roof or link are unknown."
    return said


def _lines(w: WhatIf, unit: n.TimeUnit, of: str) -> Iterator[Line]:
    if w.step_time_us is not None and w.recorded_step_time_us is not None:
        yield _line("Mean step", w.recorded_step_time_us, w.step_time_us, unit)
    yield _line(f"Kernel time{of}", w.recorded_kernel_time_us, w.kernel_time_us, unit)
    if w.recording_us is not None and w.recorded_us is not None:
        yield _line(f"Recording{of}", w.recorded_us, w.recording_us, unit)


def _line(label: str, recorded: float, r: Range, unit: n.TimeUnit) -> Line:
    longest = max(recorded, r.high)
    scale = 100 / longest if 0 < longest < math.inf else 0.0
    change = n.signed_percent(100 * (r.mid / recorded - 1) if recorded else None)
    at = (scale * recorded, scale * r.low, scale * r.mid, scale * r.high)
    figures = (unit.number(v) for v in (recorded, r.low, r.mid, r.high))
    return Line(label, *figures, change, at)


def _cost(w: WhatIf, asked: Question, here: Pricing) -> str:
    """What a thousand steps cost there; "" without a price or without steps."""
    moved = asked.scenario.gpu is not None and w.gpu != w.recorded_gpu
    rate = asked.rate(w.gpu_id, moved=moved, here=here)
    usd = None if rate is None else cost(w.step_time_us, float(rate.per_gpu_hour), w.devices)
    if rate is None or usd is None:
        return ""
    low, mid, high = (amount(STEPS * v) for v in (usd.low, usd.mid, usd.high))
    at = f"{amount(float(rate.per_gpu_hour))} per GPU and hour ({rate.source}), {counted(w.devices, 'GPU')}"
    return f"1,000 steps cost {low} to {high}, in the middle {mid}, at {at}{_before(w, in_usd(here))}."


def _before(w: WhatIf, rate: Rate | None) -> str:
    """What they cost as recorded, where that has a price."""
    recorded = None if w.recorded_step_time_us is None else exactly(w.recorded_step_time_us)
    usd = None if rate is None else cost(recorded, float(rate.per_gpu_hour), w.devices)
    if rate is None or usd is None:
        return ""
    return f"; as recorded {amount(STEPS * usd.mid)} at {amount(float(rate.per_gpu_hour))}"


def _rests(w: WhatIf) -> Iterator[str]:
    """What the answer rests on, in words."""
    if w.unknown_share:
        share = n.percent(w.unknown_share)
        yield f"{share}{n.NB}% of the kernel time (middle) rests on costs, roofs or links that are not known"
    for lacking, instead in w.dtype_fallback.items():
        yield f"{lacking} runs as {instead}: there is no roof for it there"
    if w.ranks > 1:
        yield f"the step is that of the slowest of {w.ranks} ranks, kernels are those of the first"
    if w.step_time_us is None:
        yield "the recording marks no steps"


def _most_changed(w: WhatIf) -> list[KernelForecast]:
    """The kernel groups whose middle moves furthest from what they took."""
    changed = [k for k in w.per_kernel if abs(k.predicted_us.mid - k.time_us) > _LEAST * k.time_us]
    return sorted(changed, key=lambda k: -abs(k.predicted_us.mid - k.time_us))[:TOP_KERNELS]


def _query(asked: Question) -> str:
    """The same question to the JSON."""
    given = {k: str(v).lower() if v is True else v for k, v in asdict(asked.scenario).items() if v}
    return urlencode(given)
