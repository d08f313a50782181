"""Where the agent's settings come from: flags, else the environment, else a file.

The file is TOML at ``$ROOFLIGHT_CONFIG``, else ``~/.config/rooflight/agent.toml``:

    server = "https://rooflight.example"
    token = "rfl_..."
    project = "vision"
"""

from __future__ import annotations

import os
import socket
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from agent.sampler.dcgm import Address
from rooflight.errors import Refused

#: Setting → environment variable; the file uses the names of the settings.
VARIABLES = {
    "server": "ROOFLIGHT_SERVER",
    "token": "ROOFLIGHT_TOKEN",
    "project": "ROOFLIGHT_PROJECT",
    "state": "ROOFLIGHT_STATE",
    "ca_file": "ROOFLIGHT_CA_FILE",
    "host": "ROOFLIGHT_HOST",
    "socket_dir": "ROOFLIGHT_SOCKET_DIR",
    "metrics": "ROOFLIGHT_METRICS",
    "dcgm": "ROOFLIGHT_DCGM",
    "interval_s": "ROOFLIGHT_INTERVAL_S",
    "window_s": "ROOFLIGHT_WINDOW_S",
    "spool_mib": "ROOFLIGHT_SPOOL_MIB",
}
NUMBERS = ("interval_s", "window_s", "spool_mib")
_NUMBERS = (str, int, float)
DEFAULT_PROJECT = "default"
DCGM_PORT = 9400


@dataclass(frozen=True, slots=True)
class DaemonConfig:
    """``host`` is the name under which this host is known; ``socket_dir`` the folder of the captures' socket
    beside the abstract one; ``metrics`` the address (host and port) where /metrics is served, ``None`` for
    nowhere; ``dcgm`` where dcgm-exporter is asked.  Devices are looked at every ``interval_s`` s, a window is
    sent every ``window_s`` s, and at most ``spool_mib`` MiB wait on disk."""

    host: str = field(default_factory=socket.gethostname)
    socket_dir: Path | None = None
    metrics: tuple[str, int] | None = None
    dcgm: Address | None = None
    interval_s: float = 1.0
    window_s: float = 10.0
    spool_mib: float = 256.0


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
    daemon: DaemonConfig = field(default_factory=lambda: DaemonConfig())


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
        daemon=_daemon(chosen),
    )


def _daemon(chosen: Mapping[str, str | None]) -> DaemonConfig:
    standard = DaemonConfig()
    folder = chosen["socket_dir"]
    interval = _number(chosen, "interval_s", standard.interval_s, 0.1, 60.0)
    return DaemonConfig(
        host=chosen["host"] or standard.host,
        socket_dir=Path(folder).expanduser() if folder else None,
        metrics=_address(chosen["metrics"]),
        dcgm=_exporter(chosen["dcgm"]),
        interval_s=interval,
        window_s=_number(chosen, "window_s", standard.window_s, interval, 3600.0),
        spool_mib=_number(chosen, "spool_mib", standard.spool_mib, 1.0, 1e6),
    )


def _number(chosen: Mapping[str, str | None], name: str, standard: float, least: float, most: float) -> float:
    text = chosen[name]
    try:
        value = standard if text is None else float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise Refused(f"{name} is {text!r}, not a number from {least:g} to {most:g}", where=VARIABLES[name])
    return value


def _address(text: str | None) -> tuple[str, int] | None:
    """``HOST:PORT`` or ``PORT``, which is this machine's alone; ``off`` is nowhere."""
    if text is None or text == "off":
        return None
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise Refused(f"metrics is {text!r}, not HOST:PORT", where=VARIABLES["metrics"])
    return host or "127.0.0.1", int(port)


def _exporter(text: str | None) -> Address | None:
    """``http://HOST[:PORT][/PATH]``; port and path are those of dcgm-exporter unless they are named."""
    if text is None or text == "off":
        return None
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port or DCGM_PORT
    except ValueError:
        host = None
    plain = text.isascii() and text.isprintable() and " " not in text
    if not plain or not host or parts.scheme != "http" or parts.username is not None or parts.fragment:
        raise Refused(f"dcgm is {text!r}, not http://HOST:PORT/PATH", where=VARIABLES["dcgm"])
    return Address(host, port, (parts.path or "/metrics") + (f"?{parts.query}" if parts.query else ""))


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
        if key not in VARIABLES or type(value) not in (_NUMBERS if key in NUMBERS else (str,)):
            hint = (
                f"known settings: {', '.join(VARIABLES)}; numbers are {', '.join(NUMBERS)}, the rest is text"
            )
            raise Refused(f"unknown setting {key!r}", where=str(path), hint=hint)
    return {key: str(value) for key, value in table.items()}
