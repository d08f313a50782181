#!/usr/bin/env python3
"""Writes the table of docs/verdicts.md, grade and regime of each shared trace: ``verdict_docs.py TRACES``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from rooflight.analysis import analyze_files
from rooflight.errors import RooflightError
from rooflight.protocol import Rank

PAGE = Path(__file__).resolve().parent.parent / "docs" / "verdicts.md"
MARK = "<!-- the table is written by scripts/verdict_docs.py -->\n"
_OTHER_FORMATS = ("rocprof", "ncu")
_LISTS = ("TRUTH.json", "PARTS.json")


def recordings(root: Path) -> Iterator[Path]:
    """The torch recordings of the folder; the eight ranks of one run are that folder."""
    for path in sorted(root.rglob("*.json*")):
        place = path.relative_to(root)
        if place.parts[0] in _OTHER_FORMATS or path.name in _LISTS:
            continue
        if place.parts[0] == "dlrm_8ranks":
            if path == min(path.parent.iterdir()):
                yield path.parent
            continue
        yield path


def table(root: Path) -> str:
    """A row per recording, by name."""
    lines = ["| recording | grade | because | bound by | confidence |", "|---|---|---|---|---|"]
    for path in recordings(root):
        name = str(path.relative_to(root)).removesuffix(".gz").removesuffix(".json").removesuffix(".pt.trace")
        lines.append(f"| {name} | {' | '.join(_told(path))} |")
    return "\n".join(lines) + "\n"


def _told(path: Path) -> tuple[str, str, str, str]:
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        rank = analyze_files([str(file) for file in files]).document.ranks[0]
    except RooflightError as refused:
        return "refused", str(refused).splitlines()[0].rpartition(": ")[2], "–", "–"
    return rank.grade, "; ".join(rank.grade_reasons) or "nothing is missing", *_verdict(rank)


def _verdict(rank: Rank) -> tuple[str, str]:
    of = rank.cpu or rank
    if of.regime is None:
        return f"– ({rank.verdict_withheld or of.regime_reason or 'nothing ran'})", "–"
    return of.regime, of.regime_confidence or "–"


def page(text: str, root: Path) -> str:
    """The page with a new table."""
    before, _, _ = text.partition(MARK)
    return before + MARK + "\n" + table(root)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(), Path(sys.argv[1])))
