"""What the tests need outside Python: found, installed where that is possible, started and stopped."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

#: What is needed, the programs of which one must be there, and Debian's packages that bring it.
PROGRAMS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "PostgreSQL": (("initdb",), ("postgresql",)),
    "Chromium": (("chromium", "chromium-browser", "google-chrome"), ("chromium", "fonts-liberation")),
    "a C compiler": (("gcc", "cc"), ("gcc", "libc6-dev")),
    "Node": (("node",), ("nodejs",)),
    "curl": (("curl",), ("curl",)),
    "systemd-analyze": (("systemd-analyze",), ("systemd",)),
}


def find_program(name: str) -> str | None:
    """Path of a program; PostgreSQL's own are off the path on Debian, the newest release first."""
    releases = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=_release, reverse=True)
    return shutil.which(name) or next((str(path) for path in releases), None)


def _release(path: Path) -> int:
    text = path.parts[-3]
    return int(text) if text.isdigit() else 0


def absent() -> list[str]:
    """The needs of which no program is here; a PostgreSQL that answers needs none."""
    needs = [need for need, (names, _) in PROGRAMS.items() if not any(map(find_program, names))]
    if "PostgreSQL" in needs and _lets_us_in(_postgres_url()):
        needs.remove("PostgreSQL")
    return needs


def install(needs: list[str]) -> None:
    """Install with apt where we are root and apt is there; else, or when it fails, leave it as it is."""
    if not needs or os.geteuid() != 0 or not shutil.which("apt-get"):
        return
    packages = [package for need in needs for package in PROGRAMS[need][1]]
    print(f"test: installing {', '.join(needs)} ({' '.join(packages)})", flush=True)
    env = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        done = subprocess.run(["apt-get", *command], env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            print(f"test: apt-get {command[0]} failed: {done.stderr.strip()[-400:]}", flush=True)


@contextlib.contextmanager
def postgres() -> Iterator[str | None]:
    """Address of a PostgreSQL that lets us in: the one on 127.0.0.1:5432, else one of our own.

    None where there is none and none can be started. Our own is thrown away at the end.
    """
    url = _postgres_url()
    if _lets_us_in(url):
        yield url
        return
    programs = find_program("initdb")
    if programs is None or (os.geteuid() == 0 and not _has_user("postgres")):
        yield None
        return
    with _own_cluster(Path(programs).parent) as own:
        yield own


def _postgres_url() -> str:
    return os.environ.get("ROOFLIGHT_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/postgres")


def _lets_us_in(url: str) -> bool:
    import psycopg

    try:
        psycopg.connect(url, connect_timeout=3).close()
    except psycopg.Error:
        return False
    return True


def _has_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


@contextlib.contextmanager
def _own_cluster(programs: Path) -> Iterator[str | None]:
    folder = Path(tempfile.mkdtemp(prefix="rooflight-postgres-"))
    data, port = folder / "data", _free_port(5432)
    if os.geteuid() == 0:
        # PostgreSQL refuses to run as root.
        shutil.chown(folder, "postgres")
    control = [str(programs / "pg_ctl"), "-D", str(data), "-l", str(folder / "log"), "-w"]
    # A throw-away cluster need not survive a power cut.
    options = f"-c listen_addresses=127.0.0.1 -c port={port} -c unix_socket_directories={folder} -c fsync=off"
    try:
        _as_postgres(
            [str(programs / "initdb"), "-D", str(data), "-U", "postgres", "-A", "trust", "-E", "UTF8"]
        )
        _as_postgres([*control, "-o", options, "start"])
        url = f"postgresql://postgres@127.0.0.1:{port}/postgres"
        _create_role(url, "root")
        yield url
    except subprocess.CalledProcessError as e:
        print(
            f"test: PostgreSQL could not be started: {(e.stderr or e.stdout or '').strip()[-400:]}",
            flush=True,
        )
        yield None
    finally:
        if (data / "postmaster.pid").exists():
            _as_postgres([*control, "-m", "immediate", "stop"])
        shutil.rmtree(folder, ignore_errors=True)


def _as_postgres(command: list[str]) -> None:
    prefix = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    # The started server inherits a pipe and would keep it open for ever: its words go to a file.
    with tempfile.TemporaryFile("w+") as words:
        done = subprocess.run([*prefix, *command], stdout=words, stderr=words, cwd="/", check=False)
        words.seek(0)
        if done.returncode:
            raise subprocess.CalledProcessError(done.returncode, command, stderr=words.read())


def _create_role(url: str, name: str) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {name} SUPERUSER LOGIN")


def _free_port(wanted: int) -> int:
    """``wanted`` when nobody listens there, else any free port of the loopback."""
    for port in (wanted, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise OSError("no free port on 127.0.0.1")
