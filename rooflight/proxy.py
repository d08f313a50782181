"""The proxy between this host and a server, as HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY name it."""

from __future__ import annotations

import base64
import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from rooflight.errors import Refused


@dataclass(frozen=True, slots=True)
class Proxy:
    """Where to connect to instead, with the headers it wants."""

    host: str
    port: int
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


def proxy_of(url: str, environ: Mapping[str, str] | None = None) -> Proxy | None:
    """The proxy that the environment names for a server's address; this machine is reached without one."""
    parts = urlsplit(url)
    if is_loopback(parts.hostname or ""):
        return None
    env = {k.lower(): v for k, v in (os.environ if environ is None else environ).items()}
    named = env.get(f"{parts.scheme}_proxy") or env.get("all_proxy")
    if not named or _bypassed(parts.hostname or "", env.get("no_proxy", "")):
        return None
    try:
        proxy = urlsplit(named if "://" in named else f"http://{named}")
        host, port = proxy.hostname, proxy.port or 80
    except ValueError:
        host = None
    if not host or proxy.scheme != "http":
        raise Refused("not the address of a proxy", where=f"{parts.scheme}_proxy", hint="http://host:port")
    if proxy.username is None:
        return Proxy(host, port)
    who = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return Proxy(host, port, {"Proxy-Authorization": f"Basic {base64.b64encode(who).decode('ascii')}"})


def _bypassed(host: str, no_proxy: str) -> bool:
    """Whether a host is one of NO_PROXY's: itself, a domain above it, or all of them."""
    names = (name.strip().lower().removeprefix("*").lstrip(".") for name in no_proxy.split(","))
    return no_proxy.strip() == "*" or any(n and (host == n or host.endswith(f".{n}")) for n in names)


def is_loopback(host: str) -> bool:
    """Whether ``host`` can only be this machine."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
