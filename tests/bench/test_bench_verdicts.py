"""bench/verdicts.py runs, and its verdict is that of the figures beside it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench import verdicts
from bench.verdicts import Sample, main, report
from tests.shared import traces_dir


def test_a_line_with_the_ratios_and_the_exit_status_of_its_verdict(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status = main(["-n", "1", str(traces_dir() / "h100_before_fix.json")])
    line = capsys.readouterr().out
    found = re.search(r"together ([\d.]+)x \(limit 0.5x\)\n", line)
    assert found, line
    assert re.search(
        r"read [\d.]+ s, verdicts [\d.]+ s = .*, findings [\d.]+ s = .*, whatif [\d.]+ s = ", line
    )
    assert status == (float(found[1]) > verdicts.LIMIT)


def test_over_the_limit_is_over_the_limit() -> None:
    """0.3 + 0.2 + 0.1 of 1 s are over 0.5, by the medians: one slow round of three changes nothing."""
    slow, fast = Sample(1.0, 0.3, 0.2, 0.1), Sample(1.0, 0.2, 0.1, 0.1)
    assert [report(Path("x"), [slow, *rest])[1] for rest in ([], [slow], [fast, fast])] == [
        False,
        False,
        True,
    ]
