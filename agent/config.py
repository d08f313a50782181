"""Where the agent's settings come from: flags, else the environment, else a file.

The file is TOML at ``$ROOFLIGHT_CONFIG``, else ``~/.config/rooflight/agent.toml``:

    server = "https://rooflight.example"
    token = "rfl_..."
    project = "vision"
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rooflight.errors import Refused

#: Setting → environment variable; the file uses the names of the settings.
VARIABLES = {
    "server": "ROOFLIGHT_SERVER",
    "token": "ROOFLIGHT_TOKEN",
    "project": "ROOFLIGHT_PROJECT",
    "state": "ROOFLIGHT_STATE",
    "ca_file": "ROOFLIGHT_CA_FILE",
}
DEFAULT_PROJECT = "default"


@dataclass(frozen=True, slots=True)
class Config:
    """``state`` is the folder for calibrations, kept runs and what waits to be sent; ``server`` is ``None``
    when nothing is to be sent; ``ca_file`` vouches for it instead of the system's authorities.
    The token stays out of the representation, and so out of logs."""

    server: str | None
    token: str | None = field(repr=False)
    project: str
    state: Path
    ca_file: str | None = None


def load(flags: Mapping[str, str | None], env: Mapping[str, str] | None = None) -> Config:
    """Merge ``flags`` (``None``: not given) over the environment over the file."""
    env = os.environ if env is None else env
    file = _read(_file(env))
    chosen = {
        name: flags.get(name) or env.get(variable) or file.get(name) for name, variable in VARIABLES.items()
    }
    state = chosen["state"]
    return Config(
        server=chosen["server"],
        token=chosen["token"],
        project=chosen["project"] or DEFAULT_PROJECT,
        state=Path(state).expanduser() if state else _home(env, "XDG_STATE_HOME", ".local/state"),
        ca_file=chosen["ca_file"],
    )


def _file(env: Mapping[str, str]) -> Path:
    given = env.get("ROOFLIGHT_CONFIG")
    return Path(given).expanduser() if given else _home(env, "XDG_CONFIG_HOME", ".config") / "agent.toml"


def _home(env: Mapping[str, str], variable: str, default: str) -> Path:
    base = env.get(variable)
    return (Path(base) if base else Path.home() / default) / "rooflight"


def _read(path: Path) -> dict[str, str]:
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as e:
        raise Refused(f"the agent's settings cannot be read: {e}", where=str(path)) from e
    for key, value in table.items():
        if key not in VARIABLES or not isinstance(value, str):
            hint = f"known settings, all text: {', '.join(VARIABLES)}"
            raise Refused(f"unknown setting {key!r}", where=str(path), hint=hint)
    return table
