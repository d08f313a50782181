"""Which proxy stands before a server, and whose word is taken for the server's name."""

from __future__ import annotations

import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from rooflight.client import Client, Unreachable
from rooflight.errors import Refused
from rooflight.proxy import proxy_of
from rooflight.retry import Retry

PROXY = {"HTTPS_PROXY": "http://proxy.example:3128", "no_proxy": "intra.example, .corp.example"}


@pytest.mark.parametrize(
    ("url", "through"),
    [
        ("https://rooflight.example", ("proxy.example", 3128)),
        ("https://rooflight.example:8443/base", ("proxy.example", 3128)),
        ("https://intra.example.org", ("proxy.example", 3128)),
        ("https://notintra.example", ("proxy.example", 3128)),
        ("http://rooflight.example", None),
        ("https://intra.example", None),
        ("https://a.intra.example", None),
        ("https://gpu.corp.example", None),
        ("https://127.0.0.1", None),
        ("https://localhost:8585", None),
    ],
)
def test_the_environment_names_the_proxy(url: str, through: tuple[str, int] | None) -> None:
    proxy = proxy_of(url, PROXY)
    assert (proxy and (proxy.host, proxy.port)) == through


def test_no_proxy_for_all_and_one_for_all() -> None:
    assert proxy_of("https://a.example", {"ALL_PROXY": "p.example:80", "NO_PROXY": "*"}) is None
    proxy = proxy_of("http://a.example", {"all_proxy": "p.example:81"})
    assert proxy is not None
    assert (proxy.host, proxy.port) == ("p.example", 81)


def test_a_proxy_with_a_password_is_told_it_and_nobody_else() -> None:
    proxy = proxy_of("http://a.example", {"http_proxy": "http://me:p%40ss@p.example:81"})
    assert proxy is not None
    assert proxy.headers == {"Proxy-Authorization": "Basic bWU6cEBzcw=="}  # base64 of me:p@ss
    assert "bWU6" not in repr(proxy)


@pytest.mark.parametrize("named", ["socks5://p.example:1080", "http://:0:0", "https://p.example"])
def test_a_proxy_that_cannot_be_used_is_refused(named: str) -> None:
    with pytest.raises(Refused, match="proxy"):
        proxy_of("http://a.example", {"http_proxy": named})


@contextmanager
def serving(seen: list[tuple[str, str, dict[str, str]]], context: ssl.SSLContext | None) -> Iterator[int]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            seen.append((self.command, self.path, dict(self.headers)))
            self.send_response(201)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"{}")

        def do_CONNECT(self) -> None:
            seen.append((self.command, self.path, dict(self.headers)))
            self.send_error(502)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield server.server_port
    server.shutdown()
    server.server_close()
    thread.join()


def a_client(url: str, **kw: object) -> Client:
    return Client(url, retry=Retry(tries=1), **kw)  # type: ignore[arg-type]


def test_plain_http_goes_to_the_proxy_with_the_whole_address(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, dict[str, str]]] = []
    with serving(seen, None) as port:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        a_client("http://rooflight.example:81/base").push_telemetry(b"{}")
    [(_, path, headers)] = seen
    assert path == "http://rooflight.example:81/base/api/v1/telemetry"
    assert headers["Host"] == "rooflight.example:81"


def test_https_asks_the_proxy_for_a_tunnel(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str, dict[str, str]]] = []
    with serving(seen, None) as port:
        monkeypatch.setenv("https_proxy", f"http://u:p@127.0.0.1:{port}")
        monkeypatch.delenv("no_proxy", raising=False)
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(Unreachable):
            a_client("https://rooflight.example", token="rfl_a_b").push_telemetry(b"{}")
    [(method, path, headers)] = seen
    assert (method, path) == ("CONNECT", "rooflight.example:443")
    assert headers["Proxy-Authorization"] == "Basic dTpw"
    assert "Authorization" not in headers, "the token is the server's alone"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = (
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost "
        f"-addext subjectAltName=DNS:localhost,IP:127.0.0.1 -out {cert} -keyout {key}"
    )
    subprocess.run(command.split(), check=True, capture_output=True)
    return cert, key


def test_authorities_of_your_own_are_believed_and_nobody_without(certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    seen: list[tuple[str, str, dict[str, str]]] = []
    with serving(seen, context) as port:
        with pytest.raises(Unreachable, match="not trusted"):
            a_client(f"https://127.0.0.1:{port}").push_telemetry(b"{}")
        assert seen == []
        a_client(f"https://127.0.0.1:{port}", ca_file=str(cert)).push_telemetry(b"{}")
    assert [path for _, path, _ in seen] == ["/api/v1/telemetry"]


def test_authorities_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(Refused, match="certificates"):
        a_client("https://127.0.0.1:1", ca_file=str(tmp_path / "none.pem")).push_telemetry(b"{}")
