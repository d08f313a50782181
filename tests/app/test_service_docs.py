"""The pages on the API and on running the service name everything there is, and nothing that there is not."""

from __future__ import annotations

import re
from pathlib import Path

from app.main import create_app
from app.settings import Settings
from tests.shared import CHECKOUT

API = (CHECKOUT / "docs/api.md").read_text()
OPERATIONS = (CHECKOUT / "docs/operations.md").read_text()


def test_every_route_has_its_heading_and_no_other(tmp_path: Path) -> None:
    paths = create_app(Settings(data=tmp_path)).openapi()["paths"]
    routes = {f"{verb.upper()} {path}" for path, operations in paths.items() for verb in operations}
    assert set(re.findall(r"^### `([A-Z]+ /\S+)`$", API, re.MULTILINE)) == routes


def test_every_setting_has_its_row_and_no_other() -> None:
    rows = re.findall(r"^\| `ROOFLIGHT_([A-Z_]+)` \|", OPERATIONS, re.MULTILINE)
    assert [name.lower() for name in rows] == list(Settings.model_fields)


def test_every_command_is_described() -> None:
    for command in ("serve", "worker", "migrate", "token create", "token list", "token revoke"):
        assert command in OPERATIONS
