"""The server: whether it answers, takes our token, speaks our protocol, and has our time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from agent.config import Config
from agent.doctor.rows import Row
from agent.sender import client_of
from rooflight.client import Client, Received, Rejected, Unreachable
from rooflight.errors import Refused

TIMEOUT_S = 10.0
#: As the server flags it (clock_skew).
SKEW_S = 5.0
_EMPTY = b'{"windows":[]}'
_FIXES = {
    401: "Make one with rooflight-server token create; set ROOFLIGHT_TOKEN, or token in agent.toml",
    403: "The token may not write: make one that may with rooflight-server token create",
    404: "Is this the address of a Rooflight server? Leave its path out",
    426: "Upgrade the server; the agent keeps what it has until then",
}


def server(settings: Config, make: Callable[[Config], Client] = client_of) -> Iterator[Row]:
    """A push of nothing tells all of it."""
    if settings.server is None:
        fix = "Set --server, ROOFLIGHT_SERVER, or server in agent.toml"
        yield Row("server", "warning", "none is set: all stays on this disk", fix)
        return
    try:
        client = replace(make(settings), timeout_s=TIMEOUT_S)
        received = client.push_telemetry(_EMPTY)
    except Refused as e:
        yield Row("server", "problem", f"{settings.server}: {e}")
    except Unreachable as e:
        yield Row("server", "problem", str(e), _reach(str(e)))
    except Rejected as e:
        yield from _refused(settings, e)
    else:
        yield Row("server", "ok", f"{settings.server} answers")
        yield Row("token", "ok", "may write" if settings.token else "none is needed")
        yield from _clock(received)


def _refused(settings: Config, error: Rejected) -> Iterator[Row]:
    about = {401: "token", 403: "token", 426: "protocol"}.get(error.status)
    fix = _FIXES.get(error.status, "Look at the server's log")
    if about is None:
        yield Row("server", "problem", str(error), fix)
        return
    yield Row("server", "ok", f"{settings.server} answers")
    unset = about == "token" and settings.token is None
    yield Row(about, "problem", "none is set, and the server wants one" if unset else str(error), fix)


def _clock(received: Received) -> Iterator[Row]:
    skew = received.skew_s
    if skew is None:
        return
    if abs(skew) <= SKEW_S:
        yield Row("clock", "ok", f"{abs(skew):.1f} s off the server's, the way there included")
        return
    side = "behind" if skew > 0 else "ahead of"
    fix = "Synchronise the clocks (chrony, systemd-timesyncd) of both"
    yield Row("clock", "warning", f"this host's clock is {abs(skew):.1f} s {side} the server's", fix)


def _reach(told: str) -> str:
    if "certificate" in told:
        return "Name the authority that vouches for it: ROOFLIGHT_CA_FILE, or ca_file in agent.toml"
    return "Does it run? Check address, firewall and HTTPS_PROXY/NO_PROXY"
