"""The agent's own /metrics, in Prometheus' text: itself as ``rooflight_agent_*``, devices by DCGM's names.

Who scrapes DCGM already finds the same names with the same units here: nothing has to be learnt anew.
"""

from __future__ import annotations

import http.server
import resource
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from agent.sampler.names import NAMES
from agent.sampler.sample import DeviceSample
from rooflight import __version__

_PAGE = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Reading:
    """One metric of the agent: its name without prefix, help, and values by labels."""

    name: str
    help: str
    values: Mapping[tuple[tuple[str, str], ...], float]
    kind: str = "gauge"


def plain(name: str, text: str, value: float, kind: str = "gauge") -> Reading:
    """A reading without labels."""
    return Reading(name, text, {(): value}, kind)


def own() -> list[Reading]:
    """What this process takes of the host."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    cpu = used.ru_utime + used.ru_stime
    return [
        plain("cpu_seconds_total", "CPU time of the agent (in s).", cpu, "counter"),
        plain("resident_memory_bytes", "Memory of the agent (in bytes).", _resident()),
        Reading("info", "The agent's version.", {(("version", __version__),): 1.0}),
    ]


def text(host: str, readings: Iterable[Reading], samples: Iterable[DeviceSample]) -> str:
    """The page."""
    lines: list[str] = []
    for r in readings:
        name = f"rooflight_agent_{r.name}"
        lines += [f"# HELP {name} {r.help}", f"# TYPE {name} {r.kind}"]
        lines += [f"{name}{_labels(labels)} {value:.12g}" for labels, value in r.values.items()]
    return "\n".join([*lines, *_devices(host, list(samples))]) + "\n"


def _devices(host: str, samples: list[DeviceSample]) -> list[str]:
    lines: list[str] = []
    for name in NAMES:
        known = [(s, value) for s in samples if (value := getattr(s, name.field)) is not None]
        if not known:
            continue
        kind = "counter" if name.kind == "total" else "gauge"
        lines += [f"# HELP {name.dcgm} {name.help}", f"# TYPE {name.dcgm} {kind}"]
        lines += [
            f"{name.dcgm}{_labels(_device(host, s))} {value * name.per_unit:.12g}" for s, value in known
        ]
    return lines


def _device(host: str, sample: DeviceSample) -> list[tuple[str, str]]:
    index = "" if sample.index is None else str(sample.index)
    known = [
        ("gpu", index),
        ("UUID", sample.uuid or ""),
        ("modelName", sample.name or ""),
        ("Hostname", host),
    ]
    instance = sample.gpu_instance_id
    return [
        *known,
        *([("GPU_I_PARENT", sample.parent_uuid)] if sample.parent_uuid else []),
        *([("GPU_I_ID", str(instance))] if instance is not None else []),
    ]


def _labels(labels: Iterable[tuple[str, str]]) -> str:
    pairs = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels)
    return f"{{{pairs}}}" if pairs else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _resident() -> float:
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - read at every scrape
            return float(int(file.read().split()[1]) * _PAGE)
    except (OSError, IndexError, ValueError):
        return float("nan")


class _Handler(http.server.BaseHTTPRequestHandler):
    page: Callable[[], str]
    timeout = 10

    def do_GET(self) -> None:
        """/metrics, and /healthz for whoever watches the process."""
        known = {"/metrics": type(self).page, "/healthz": lambda: "ok\n"}
        make = known.get(self.path.partition("?")[0])
        if make is None:
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        body = make().encode()
        self.send_response(HTTPStatus.OK)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """A scrape is no news."""


@dataclass
class MetricsLoop:
    """Serves ``page`` at ``address``; ``port`` is the one that was bound (port 0: any that is free)."""

    address: tuple[str, int]
    page: Callable[[], str]
    port: int = 0

    def __call__(self, stop: threading.Event) -> None:
        handler = type("Handler", (_Handler,), {"page": staticmethod(self.page)})
        with http.server.ThreadingHTTPServer(self.address, handler) as server:
            server.daemon_threads = True
            self.port = server.server_address[1]
            serving = threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.5}, daemon=True
            )
            serving.start()
            stop.wait()
            server.shutdown()
