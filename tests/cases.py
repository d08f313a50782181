"""The cases of ``tests/data/cases``: what is asked, and one law for the answers of every way of asking.

A case has parts; a part is the files of one run with what must come of them.  The law takes a part and an
:class:`Answer` and gives the differences in words, so that a test is ``assert differences(...) == []``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from functools import cache
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

from rooflight import read
from rooflight.cli.main import main
from rooflight.trace.timeline import Timeline
from tests.shared import CHECKOUT

FOLDER = CHECKOUT / "tests" / "data" / "cases"
Differences = Iterator[str]


def load(case: str) -> dict[str, Any]:
    """The ``expect.json`` of a case."""
    found: dict[str, Any] = json.loads((FOLDER / case / "expect.json").read_text())
    return found


def load_input(case: str) -> Any:
    """The ``input.json`` of a case whose input is a script or a body."""
    return json.loads((FOLDER / case / "input.json").read_text())


NAMES = sorted(p.parent.name for p in FOLDER.glob("*/expect.json"))
#: Cases whose entry is a trace; the others are asked in ways of their own.
TRACES = [name for name in NAMES if load(name)["entry"] == "trace_upload"]


@dataclass(frozen=True)
class Part:
    """The files of one run, and what must come of them.  ``ways`` are complete alternatives (``any_of``)."""

    case: str
    label: str
    files: tuple[Path, ...]
    outcome: str
    expect: dict[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    error_names: tuple[tuple[str, ...], ...] = ()
    ways: tuple[Part, ...] = ()
    statuses: tuple[int, ...] = (400, 409, 413, 415, 422)

    @property
    def good(self) -> Part:
        """What must be accepted right after a refusal: the case's own good file, else any."""
        own = sorted((FOLDER / self.case).glob("input-good.*"))
        file = own[0] if own else FOLDER / _GOOD / "input-good.json"
        return Part(self.case, "good", (file,), "ok", self.expect.get("then_good", _good_figures()))


_GOOD = "01-truncated-object"


def _good_figures() -> dict[str, Any]:
    # Every input-good of the cases holds the same two kernels, [120, 170) and [200, 230).
    figures: dict[str, Any] = load(_GOOD)["expect"]["then_good"]
    return figures


def _part(case: str, label: str, body: dict[str, Any], files: tuple[Path, ...]) -> Part:
    ways = body["parts"] if body["outcome"] == "any_of" else ()
    expect = body.get("expect", {})
    statuses = body.get("http_status") or expect.get("http_status")
    return Part(
        case=case,
        label=label,
        files=files,
        outcome=body["outcome"],
        expect=expect,
        flags=tuple(body.get("flags", ())),
        error_names=tuple((n,) if isinstance(n, str) else tuple(n) for n in body.get("error_names", ())),
        ways=tuple(_part(case, f"{label} way {i}", way, files) for i, way in enumerate(ways)),
        **({"statuses": tuple(statuses)} if statuses else {}),
    )


def parts_of(case: str) -> list[Part]:
    """The runs that a case asks for, in order."""
    body, folder = load(case), FOLDER / case
    if "outcome" in body:
        files = [f for f in sorted(folder.glob("input*")) if not f.name.startswith("input-good")]
        return [_part(case, case, body, tuple(files))]
    return [
        _part(case, f"{case} {i}", part, tuple(folder / f for f in part.get("inputs") or [part["input"]]))
        for i, part in enumerate(body["parts"])
    ]


PARTS = [part for case in TRACES for part in parts_of(case)]


@dataclass(frozen=True)
class Answer:
    """What was answered: an analysis in the form of the command line, or a refusal in words."""

    document: dict[str, Any] | None
    words: str = ""

    @property
    def rank(self) -> dict[str, Any]:
        """The lowest rank: a case's top-level figures are its."""
        assert self.document is not None, self.words
        first: dict[str, Any] = self.document["ranks"][0]
        return first


@dataclass(frozen=True)
class Ran:
    """A command as its caller sees it."""

    status: int
    out: bytes
    err: str

    @property
    def answer(self) -> Answer:
        """Standard output as an analysis, or standard error as a refusal."""
        return Answer(strict_json(self.out) if self.status == 0 else None, self.err)


@cache
def command(*argv: str) -> Ran:
    """``rooflight`` in this process."""
    out, err = TextIOWrapper(BytesIO(), "utf-8"), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(argv)
    out.flush()
    return Ran(status, out.buffer.getvalue(), err.getvalue())  # type: ignore[attr-defined]


def by_command(part: Part) -> Ran:
    """The part, asked by command line."""
    return command("analyze", *map(str, part.files), "--format", "json")


def strict_json(text: bytes | str) -> Any:
    """JSON without the words that JSON does not have."""

    def refuse(word: str) -> Any:
        raise AssertionError(f"{word} in an answer")

    return json.loads(text, parse_constant=refuse)


# -- the law ------------------------------------------------------------------------------------------


def differences(part: Part, answer: Answer) -> list[str]:
    """What the answer says otherwise than the part wants; for alternatives, of the one that comes closest."""
    if part.ways:
        return min((differences(way, answer) for way in part.ways), key=len)
    if part.outcome == "reject":
        return list(_refusal(part, answer))
    if answer.document is None:
        return [f"refused: {answer.words}"]
    return [*_figures(part, part.expect, answer, answer.rank), *_flags(part, answer)]


def _refusal(part: Part, answer: Answer) -> Differences:
    if answer.document is not None:
        yield "accepted"
    said = answer.words.lower()
    for any_of in part.error_names:
        if not any(word.lower() in said for word in any_of):
            yield f"none of {any_of} in {answer.words!r}"
    if "traceback" in said:
        yield "a traceback"


#: What a refusal must be like is asserted where it is asked for; these are no figures of an analysis.
OF_REFUSALS = {"stored_runs", "then_good", "http_status", "peak_rss_growth_mib_max", "seconds_max"}


def _figures(part: Part, expect: dict[str, Any], answer: Answer, rank: dict[str, Any]) -> Differences:
    tolerances = expect.get("tol", {})
    for key, want in expect.items():
        if key in ("tol", *OF_REFUSALS):
            continue
        if key in _LAWS:
            yield from _LAWS[key](part, want, answer, rank)
        elif key in rank:
            yield from _near(key, rank[key], want)
        elif key in _DERIVED:
            got = _DERIVED[key](rank, answer)
            yield from _near(key, got, want, tolerances.get(key))
        else:
            yield f"no law for {key}"


def _near(what: str, got: Any, want: Any, within: float | None = None) -> Differences:
    """Times agree to the nanosecond, percent to 0.01, all else exactly (a quotient but for its last digits).

    Keys that are not asked for are not looked at.
    """
    if isinstance(want, dict):
        for key, value in want.items():
            has = isinstance(got, dict) and key in got
            yield from _near(f"{what}.{key}", got[key], value) if has else [f"{what}.{key} is absent"]
    elif not _agree(what, got, want, within):
        yield f"{what} {got} != {want}"


def _agree(what: str, got: Any, want: Any, within: float | None) -> bool:
    if not isinstance(want, int | float) or got is None:
        return bool(got == want)
    if within is not None:
        return bool(abs(got - want) <= within)
    if what.endswith("_us"):
        return ns(got) == ns(want)
    if what.endswith("pct"):
        return bool(abs(got - want) <= 0.01)
    return bool(abs(got - want) <= 1e-12 * abs(want)) if isinstance(got, float) else bool(got == want)


def ns(us: float) -> int:
    """The nanoseconds of a time in µs."""
    return round(us * 1000)


Law = Callable[[Part, Any, Answer, dict[str, Any]], Differences]
_LAWS: dict[str, Law] = {}


def _law(check: Law) -> Law:
    _LAWS[check.__name__.removeprefix("_")] = check
    return check


@_law
def _devices(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    if set(rank["devices"]) != set(want):
        yield f"devices {sorted(rank['devices'])}"
    yield from _near("devices", rank["devices"], want)


@_law
def _invalid_events(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    # A reason that is not asked for must not be there.
    if rank["invalid_events"] != want:
        yield f"invalid_events {rank['invalid_events']} != {want}"


@_law
def _launch_delay_us(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    if set(rank["launch_delay_us"]) != set(want):
        yield f"launch_delay_us of {sorted(rank['launch_delay_us'])}"
    for kernel, delay in want.items():
        yield from _near("delay_us", rank["launch_delay_us"].get(kernel), delay)


@_law
def _attribution(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    have = {(a["kernel"], a["op"]): (a["count"], ns(a["time_us"])) for a in rank["attribution"]}
    for row in want:
        got = have.get((row["kernel"], row["op"]))
        if got != (row["count"], ns(row["time_us"])):
            yield f"attribution of {row['kernel']} to {row['op']}: {got}"


@_law
def _attribution_op_time_us(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    got = {op: ns(t) for op, t in rank["attribution_op_time_us"].items()}
    if got != {op: ns(t) for op, t in want.items()}:
        yield f"attribution_op_time_us {got}"


@_law
def _steps(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    if [s["n"] for s in rank["steps"]] != [s["n"] for s in want]:
        yield f"steps {[s['n'] for s in rank['steps']]}"
    for got, step in zip(rank["steps"], want, strict=False):
        yield from _near(f"step {step['n']}", got, step)


@_law
def _ranks(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    yield from _near("ranks", [r["rank"] for r in _document(answer)["ranks"]], want)


@_law
def _each_rank(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    for one in _document(answer)["ranks"]:
        yield from _figures(part, want, answer, one)


@_law
def _collectives(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    have = _document(answer)["collectives"]
    if len(have) != len(want):
        yield f"{len(have)} collectives"
    for row in want:
        got = [c for c in have if c["n"] == row["n"]]
        if len(got) != 1:
            yield f"{len(got)} collectives of number {row['n']}"
            continue
        yield from _near(f"collective {row['n']}", {**got[0], "wait_us": {}}, {**row, "wait_us": {}})
        waits = {r: ns(t) for r, t in got[0]["wait_us"].items()}
        if waits != {r: ns(t) for r, t in row["wait_us"].items()}:
            yield f"collective {row['n']} waits {waits}"


@_law
def _clock_offset_us(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    got = {r: ns(t) for r, t in _document(answer)["clock_offset_us"].items()}
    if got != {r: ns(t) for r, t in want.items()}:
        yield f"clock_offset_us {got}"


@_law
def _frame_names(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    yield from _near("frame_names", timeline(part.files[0]).frame_names, want)


@_law
def _op_children(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    yield from _near("op_children", timeline(part.files[0]).op_children, want)


@_law
def _responses_are_strict_json(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    # Every answer went through strict_json; what it holds must also go back through it.
    assert want is True
    json.dumps(answer.document, allow_nan=False)
    yield from ()


@_law
def _args_bandwidth_of_bad_events(part: Part, want: Any, answer: Answer, rank: dict[str, Any]) -> Differences:
    # The recorded bandwidth is not read: bytes over time is, which does not exist for a copy of 0 us.
    assert want is None
    for row in rank["kernels"]:
        if row["kind"] != "kernel" and row["time_us"] == 0 and row["achieved_gbs"] is not None:
            yield f"{row['name']} has a bandwidth of {row['achieved_gbs']}"


def _document(answer: Answer) -> dict[str, Any]:
    assert answer.document is not None
    return answer.document


def _rows(figure: str) -> Callable[[dict[str, Any], Answer], Any]:
    """A figure of the kernel rows, by kernel name; rows of one name add up."""

    def of(rank: dict[str, Any], answer: Answer) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for row in rank["kernels"]:
            name = row["name"]
            found[name] = row[figure] if name not in found else found[name] + row[figure]
        return found

    return of


def _pct_of_peak(rank: dict[str, Any], answer: Answer) -> float:
    [row] = [k for k in rank["kernels"] if k["achieved_tflops"] is not None]
    peak = rank["roofs"][row["device"]]["compute"][row["dtype"]]["datasheet"]
    return float(100 * row["achieved_tflops"] * 1e12 / peak)


def _wall_ns(rank: dict[str, Any], answer: Answer) -> dict[str, str]:
    return {str(r["rank"]): r["first_kernel_wall_ns"] for r in _document(answer)["ranks"]}


def _apart_us(rank: dict[str, Any], answer: Answer) -> float:
    walls = _wall_ns(rank, answer)
    return (int(walls["1"]) - int(walls["0"])) / 1000


#: Figures of a case that the analysis has under another name.
_DERIVED: dict[str, Callable[[dict[str, Any], Answer], Any]] = {
    "kernel_rows": lambda rank, _: sorted(k["name"] for k in rank["kernels"]),
    "kernel_counts": _rows("count"),
    "kernel_time_us": _rows("time_us"),
    "flops": _rows("flops"),
    "achieved_tflops": _rows("achieved_tflops"),
    "pct_of_peak": _pct_of_peak,
    "gpu_model": lambda rank, _: rank["devices"]["0"]["name"],
    "launch_delay_mean_us": lambda rank, _: rank["launch_delay"]["mean_us"],
    "launch_delay_n": lambda rank, _: rank["launch_delay"]["n"],
    "wall_ns_of_first_kernel": _wall_ns,
    "rank1_minus_rank0_us": _apart_us,
    "world_size": lambda _, answer: _document(answer)["world_size"],
}


@cache
def timeline(file: Path) -> Timeline:
    """The recording in a file, for what a case asks of the Timeline in Python."""
    return read(file)


# -- flags --------------------------------------------------------------------------------------------

#: How we say what a case's flag says: its code, its count (None: not given) and words of its detail.
WORDING: dict[str, tuple[str, int | None, tuple[str, ...]]] = {
    "json_repaired": ("json_repaired", None, ()),
    "json_repaired: 3 non-finite numbers": ("json_repaired", 3, ("3 non-finite numbers",)),
    "json_repaired: invalid escapes": ("json_repaired", None, ("invalid escapes",)),
    "json_repaired: raw control characters": ("json_repaired", None, ("raw control characters",)),
    "unterminated_array": ("unterminated_array", None, ()),
    "gpu_model_unknown": ("gpu_model_unknown", None, ()),
    "no_gpu_activity": ("no_gpu_activity", None, ()),
    "invalid_events: ts=0: 4": ("invalid_events", 4, ("zero_ts: 4",)),
    "invalid_events: 5": ("invalid_events", 5, ()),
    "overlong_clipped: 1": ("overlong_clipped", 1, ()),
    "kernel_before_launch: 1": ("kernel_before_launch", 1, ()),
    "ambiguous_correlation: 1": ("ambiguous_correlation", 1, ()),
    "clock_aligned: hostB +850 us": (
        "clock_aligned",
        1,
        ("rank 1", "+850 us"),
    ),  # the file does not name its host
    "missing_ranks: [2]": ("missing_ranks", 1, ("[2]",)),
    "rank_assumed": ("rank_assumed", None, ()),
    "above_peak: 1": ("above_peak", 1, ()),
}
#: Statements that something is wrong with the file; none may be made of one that is whole (outcome ``ok``).
DAMAGE = {
    "json_repaired", "unterminated_array", "truncated", "invalid_events", "zero_timestamps", "names_repaired",
    "overlong_clipped", "kernel_before_launch", "ambiguous_correlation", "missing_ranks", "above_peak",
    "graph_under_recorded", "gpu_events_missing_in_steps", "collectives_unaligned", "merged_ranks",
}  # fmt: skip


def flags_of(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The flags of the run and of its ranks."""
    return [*document["flags"], *(f for r in document["ranks"] for f in r["flags"])]


def _flags(part: Part, answer: Answer) -> Differences:
    have = flags_of(_document(answer))
    for flag in part.flags:
        code, count, words = WORDING[flag]
        rows = [f for f in have if f["code"] == code]
        if not any(count in (None, f["count"]) and all(w in f["detail"] for w in words) for f in rows):
            yield f"flag {flag!r}: {rows}"
    if part.outcome == "ok":
        yield from (f"a flag of damage: {f}" for f in have if f["code"] in DAMAGE)


def numbers_of(flag: str) -> list[int]:
    """The counts that a flag's text names, for the test of :data:`WORDING`."""
    return [int(n) for n in re.findall(r"(?<![+\w=\[])\d+\b(?!\])", flag)]
