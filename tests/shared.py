"""Where the recordings lie that many tests read, and how long the long loops run."""

from __future__ import annotations

import os
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent


def traces_dir() -> Path:
    """The shared traces: ``ROOFLIGHT_TRACES``, else ``../shared/traces`` beside the checkout.

    Tests that call it carry the marker ``traces``, so they run only where the folder exists.
    """
    named = os.environ.get("ROOFLIGHT_TRACES")
    return Path(named) if named else CHECKOUT.parent / "shared" / "traces"


def cases_dir() -> Path:
    """The shared cases, each a folder with ``input.*`` and ``expect.json``; beside the traces."""
    return traces_dir().parent / "cases"


def rounds(short: int, long: int) -> int:
    """How often a test marked ``slow`` goes round: ``short``, or ``long`` under ``ROOFLIGHT_LONG=1``."""
    return long if os.environ.get("ROOFLIGHT_LONG") == "1" else short


def chromium() -> str | None:
    """Path of the Chromium that the browser tests start: ``ROOFLIGHT_CHROMIUM``, else the first found."""
    import shutil

    named = os.environ.get("ROOFLIGHT_CHROMIUM")
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return named or next((path for path in found if path), None)


def postgres_url() -> str:
    """An administrator's address of the PostgreSQL in which tests create their own databases."""
    return os.environ.get("ROOFLIGHT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


def missing_traces() -> bool:
    """Whether the shared traces are absent, for lists of cases that are made at collection."""
    return not traces_dir().is_dir()
