"""Every case by command line: each figure, each flag, each refusal, and what must not come out."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rooflight.errors import TooLarge
from rooflight.readers.source import Limits, unpacked_file
from tests import cases
from tests.cases import PARTS, TRACES, Answer, Part, by_command, command, differences, load, parts_of
from tests.must_not import MUST_NOT, broken
from tests.shared import cases_dir

ACCEPTED = [p for p in PARTS if p.outcome not in ("reject", "any_of")]
REFUSED = [p for p in PARTS if p.outcome == "reject"]


def label(value: Any) -> str | None:
    return value.label if isinstance(value, Part) else None


@pytest.mark.parametrize("part", PARTS, ids=label)
def test_a_case_gets_its_answer(part: Part) -> None:
    began = time.monotonic()
    ran = by_command(part)
    assert differences(part, ran.answer) == []
    assert ran.status in (0, 2)
    assert time.monotonic() - began < 10, "hangs are among what is forbidden"


@pytest.mark.parametrize("part", REFUSED, ids=label)
def test_a_refusal_is_one_line_and_harms_nobody(part: Part) -> None:
    ran = by_command(part)
    assert (ran.status, ran.out) == (2, b"")
    assert ran.err.count("\n") == 1
    # The good input right after it, in the same process and not from the cache of answers.
    good = command.__wrapped__("analyze", str(part.good.files[0]), "--format", "json")
    assert differences(part.good, good.answer) == []


@pytest.mark.parametrize("case", TRACES)
def test_what_a_case_forbids_does_not_happen(case: str) -> None:
    answers = [by_command(p).answer for p in parts_of(case)]
    assert list(broken(case, answers)) == []


def test_the_flops_of_the_matmul_family() -> None:
    case = "51-matmul-family-shapes"
    events = json.loads((cases.FOLDER / case / "input.json").read_text())
    run = really("cost", stdin="\n".join(json.dumps(e) for e in events))
    assert (run.returncode, run.stderr) == (0, "")
    flops = [cases.strict_json(line)["flops"] for line in run.stdout.splitlines()]
    assert flops == load(case)["expect"]["flops"]
    assert list(broken(case, [Answer({"flops": flops})])) == []


# -- through the real command -------------------------------------------------------------------------


def really(*argv: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
    """The installed command in a process of its own."""
    program = Path(sys.executable).with_name("rooflight")
    return subprocess.run([program, *argv], input=stdin, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "case", ["03-gzip-many-members", "09-missing-key-quote", "44-missing-and-double-ranks"]
)
def test_the_command_itself_answers_the_same(case: str) -> None:
    for part in parts_of(case):
        run, here = really("analyze", *map(str, part.files), "--format", "json"), by_command(part)
        assert (run.returncode, run.stdout.encode(), run.stderr) == (here.status, here.out, here.err)


_BOMB = """
import json, sys, time
from pathlib import Path
from rooflight import read
from rooflight.errors import Refused
from rooflight.readers.source import Limits

def peak_kib():
    [line] = [x for x in Path("/proc/self/status").read_text().splitlines() if x.startswith("VmHWM")]
    return int(line.split()[1])

bomb, good = sys.argv[1:]
read(good)
before, began = peak_kib(), time.monotonic()
try:
    read(bomb, limits=Limits(max_bytes=32 << 20, max_ratio=1 << 40))
except Refused as e:
    said = {"status": e.status, "words": str(e)}
grown, took = peak_kib() - before, time.monotonic() - began
print(json.dumps({**said, "mib": grown / 1024, "seconds": took, "then": len(read(good).gpu)}))
"""


def test_a_bomb_is_stopped_while_it_is_inflated() -> None:
    """120 MiB under a limit of 32: memory and time stay within what the case allows."""
    [part] = parts_of("15-gzip-bomb")
    files = [str(part.files[0]), str(part.good.files[0])]
    run = subprocess.run([sys.executable, "-c", _BOMB, *files], capture_output=True, text=True, timeout=60)
    assert run.stderr == ""
    said = json.loads(run.stdout)
    assert said["status"] in part.statuses
    assert differences(part, Answer(None, said["words"])) == []
    assert said["mib"] < part.expect["peak_rss_growth_mib_max"]
    assert said["seconds"] < part.expect["seconds_max"]
    assert said["then"] == 2, "the good file right after it"


def test_nothing_of_a_bomb_is_inflated_beyond_its_limit() -> None:
    [part] = parts_of("15-gzip-bomb")
    inflated: list[int] = []
    with pytest.raises(TooLarge):
        inflated.extend(map(len, unpacked_file(part.files[0], Limits(max_bytes=32 << 20, max_ratio=1 << 40))))
    assert 31 << 20 < sum(inflated) <= 32 << 20


def test_what_is_salvaged_of_a_cut_file_is_marked_incomplete() -> None:
    """The file ends inside its third event: an op and a call are whole, no kernel is."""
    [part] = parts_of("01-truncated-object")
    ran = command("analyze", str(part.files[0]), "--salvage", "--format", "json")
    rank = ran.answer.rank
    assert rank["grade"] == "unreliable"
    assert rank["verdict_withheld"]
    assert "truncated" in [f["code"] for f in rank["flags"]]


# -- the law itself -----------------------------------------------------------------------------------


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of all numbers, texts and nulls."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(inner, (*path, key))
    else:
        yield path


def changed(expect: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """The same expectation, but for another value at ``path``."""
    other = copy.deepcopy(expect)
    inner: Any = other
    for key in path[:-1]:
        inner = inner[key]
    was = inner[path[-1]]
    inner[path[-1]] = was + "x" if isinstance(was, str) else 12_345 if was is None else was + 1
    return other


#: What is no figure of an answer, or (null bandwidth, strict JSON) has only one value.
NO_FIGURES = {*cases.OF_REFUSALS, "tol", "responses_are_strict_json", "args_bandwidth_of_bad_events"}


@pytest.mark.parametrize("part", ACCEPTED, ids=label)
def test_the_law_sees_every_figure_that_a_case_gives(part: Part) -> None:
    answer = by_command(part).answer
    paths = [p for p in leaves(part.expect) if p[0] not in NO_FIGURES]
    assert paths
    for path in paths:
        assert differences(replace(part, expect=changed(part.expect, path)), answer), path


@pytest.mark.parametrize("part", ACCEPTED, ids=label)
def test_the_law_sees_every_flag_and_refusal(part: Part) -> None:
    answer = by_command(part).answer
    assert answer.document is not None
    for codes in ({cases.WORDING[f][0]} for f in part.flags):
        bare = copy.deepcopy(answer.document)
        for holder in (bare, *bare["ranks"]):
            holder["flags"] = [f for f in holder["flags"] if f["code"] not in codes]
        assert differences(part, Answer(bare)), codes
    assert differences(part, Answer(None, "no"))
    assert differences(replace(part, outcome="reject", ways=()), answer)


def test_every_flag_of_every_case_has_its_wording() -> None:
    texts = {f for p in PARTS for one in (p, *p.ways) for f in one.flags}
    assert texts == set(cases.WORDING)
    for text, (code, count, words) in cases.WORDING.items():
        assert text.startswith(code)
        assert count is None or cases.numbers_of(text) in ([count], []) or f"{count} " in words[0]


def test_no_line_is_looked_for_that_no_case_has() -> None:
    lines = {(name[:2], line) for name in cases.NAMES for line in load(name).get("must_not", [])}
    assert lines == set(MUST_NOT)


@pytest.mark.traces
def test_the_cases_are_those_that_are_shared() -> None:
    wanted = {"trace_upload", "flops", "peaks", "agent_script", "nvml_sample", "dcgm_sample", "amdsmi_sample"}
    shared = [
        f.parent
        for f in cases_dir().glob("*/expect.json")
        # The other cases of pages and pushes wait for what they ask for.
        if json.loads(f.read_text())["entry"] in wanted or f.parent.name.startswith(("54-", "93-"))
    ]
    assert sorted(f.name for f in shared) == cases.NAMES
    for folder in shared:
        for file in folder.iterdir():
            assert (cases.FOLDER / folder.name / file.name).read_bytes() == file.read_bytes(), file
