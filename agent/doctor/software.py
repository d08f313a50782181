"""Python, our own versions, and the torch of this environment; nothing heavy is imported."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterator

from agent.doctor.rows import Row
from rooflight import __version__
from rooflight.protocol import SCHEMA_VERSION

LEAST_PYTHON = (3, 11)
#: The first release whose Kineto asks a daemon over the socket.
LEAST_TORCH = (2, 1)


def python(version: tuple[int, ...] = sys.version_info[:2]) -> Iterator[Row]:
    """Whether this Python is new enough, and which versions are here."""
    told = f"{platform.python_version()}, rooflight {__version__} (schema {SCHEMA_VERSION})"
    if version < LEAST_PYTHON:
        yield Row("python", "problem", told, "Install Python 3.11 or newer")
    else:
        yield Row("python", "ok", told)


def torch(version: str | None) -> Iterator[Row]:
    """What the torch of this environment can do; ``None`` where there is none."""
    if version is None:
        told = "not in this environment: daemon, capture and push need none"
        yield Row("torch", "ok", told, "run and calibrate do: install the agent beside torch for these")
        return
    numbers = tuple(map(int, re.findall(r"\d+", version)[:2]))
    if numbers < LEAST_TORCH:
        yield Row(
            "torch",
            "warning",
            f"{version} cannot be recorded while it runs",
            "Use torch 2.1 or newer, or `rooflight-agent run -- COMMAND`",
        )
    else:
        yield Row("torch", "ok", f"{version} can be recorded while it runs (KINETO_USE_DAEMON=1)")


def installed(package: str) -> str | None:
    """The version of a package of this environment, without importing it."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
