"""Uvicorn around the application."""

from __future__ import annotations

import socket

import uvicorn

from app.main import create_app
from app.settings import Settings

_GRACE_S = 10


class _Server(uvicorn.Server):
    """Prints its address once it listens: with port 0 nobody knows it before."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print(f"rooflight-server: listening on {_address(self)}", flush=True)  # noqa: T201


def serve(settings: Settings) -> bool:
    """Serve until a signal; false when it could not start."""
    config = uvicorn.Config(
        create_app(settings),
        host=settings.host,
        port=settings.port,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=_GRACE_S,
    )
    server = _Server(config)
    server.run()
    return server.started


def _address(server: uvicorn.Server) -> str:
    host, port = server.servers[0].sockets[0].getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
