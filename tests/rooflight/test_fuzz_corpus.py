"""Files on which the reader or the analysis once failed (scripts/fuzz); each is to end as any input does.

A new finding is put into ``tests/data/fuzz/`` under a name that says what was wrong, and is fixed at its
root.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attempts import CHUNKS, attempt

FOLDER = Path(__file__).resolve().parent.parent / "data" / "fuzz"
FILES = sorted(path.name for path in FOLDER.iterdir())


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("salvage", [False, True])
def test_what_once_failed_is_analysed_or_refused(name: str, salvage: bool) -> None:
    for chunk in CHUNKS:
        assert attempt(FOLDER / name, chunk=chunk, salvage=salvage).startswith(("analysed", "refused: "))
