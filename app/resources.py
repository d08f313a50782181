"""Where the files beside the code lie: in the wheel first, in the checkout second."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


def folder(name: str) -> Path:
    """The folder ``web`` or ``migrations``; :class:`FileNotFoundError` when neither place holds files."""
    for place in (PACKAGE / f"_{name}", PACKAGE.parent / name):
        if place.is_dir() and any(place.iterdir()):
            return place
    raise FileNotFoundError(f"the folder {name}/ is missing from this installation of rooflight-server")
