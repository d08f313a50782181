"""Every rule has a drawing that triggers it, one that nearly does, and a shared trace that shows it, or none.

A rule that is added needs an entry in one of the ``drawn_*`` files: the table below holds all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from rooflight import analyze, read
from rooflight.errors import RooflightError
from rooflight.findings import all_rules
from tests.rooflight.findings import drawn_communication, drawn_idle, drawn_kernels, drawn_memory
from tests.rooflight.findings.scenes import NONE_HAS_IT, Drawn, Scene
from tests.shared import traces_dir

DRAWN: Mapping[str, Drawn] = {
    **drawn_idle.DRAWN,
    **drawn_kernels.DRAWN,
    **drawn_memory.DRAWN,
    **drawn_communication.DRAWN,
}
NEAR = [(code, scene) for code, drawn in DRAWN.items() for scene in drawn.near]


def test_no_rule_lacks_its_drawings() -> None:
    assert {rule.code for rule in all_rules()} == DRAWN.keys()
    for code, drawn in DRAWN.items():
        assert drawn.near, f"{code} has nothing that it must not see"
        assert drawn.why, f"{code} does not say what its saving is made of"


@pytest.mark.parametrize("code", DRAWN)
def test_the_drawing_triggers_the_rule(code: str) -> None:
    found = DRAWN[code].trigger.findings()
    assert code in found
    expected = DRAWN[code].saving_us
    assert found[code].saving_us == (None if expected is None else pytest.approx(expected, abs=0.01))
    assert found[code].evidence


@pytest.mark.parametrize("code", DRAWN)
def test_the_order_of_the_file_changes_nothing(code: str) -> None:
    scene = DRAWN[code].trigger
    found = scene.findings()
    for seed in range(3):
        assert scene.findings(seed) == found


@pytest.mark.parametrize(("code", "scene"), NEAR, ids=[code for code, _ in NEAR])
def test_what_nearly_does_is_not_told(code: str, scene: Scene) -> None:
    assert code not in scene.findings()


@pytest.fixture(scope="module")
def codes() -> dict[str, set[str]]:
    """What is found in each shared trace, read one by one, and in the one run of several ranks."""
    root = Path(traces_dir())
    found: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.json*")):
        try:
            ranks = analyze(read(path)).document.ranks
        except RooflightError:  # what lies beside the traces
            continue
        found[str(path.relative_to(root))] = {f.code for r in ranks for f in r.findings}
    run = analyze([read(p) for p in sorted((root / "dlrm_8ranks").glob("*.json"))]).document
    found["dlrm_8ranks"] = {f.code for r in run.ranks for f in r.findings}
    return found


@pytest.mark.traces
def test_the_shared_traces_show_what_is_said_of_them(codes: dict[str, set[str]]) -> None:
    assert len(codes) > 25
    said = {code: drawn.trace for code, drawn in DRAWN.items()}
    missing = {c: t for c, t in said.items() if t != NONE_HAS_IT and c not in codes[t]}
    assert not missing
    shown = set().union(*codes.values())
    assert not {c for c, t in said.items() if t == NONE_HAS_IT} & shown
