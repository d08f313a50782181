"""Both wheels, built from the checkout and installed into empty environments outside it, work.

The environments get their libraries from the package index, in the releases of constraints.txt.
"""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.shared import CHECKOUT

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging"), pytest.mark.timeout(900)]

# One stream: 10 us of kernel, 2 us of gap, 3 us of kernel: span 15, busy 13.
TRACE = {
    "traceEvents": [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": ts, "dur": dur,
         "args": {"device": 0, "context": 1, "stream": 7, "correlation": n}}
        for n, (name, ts, dur) in enumerate([("gemm", 100, 10), ("add", 112, 3)])
    ]
}  # fmt: skip


def run(*command: str | Path, cwd: Path) -> str:
    """Run a program as a stranger would: nothing of this checkout is on its paths."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "ROOFLIGHT_", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both wheels by project name."""
    folder = tmp_path_factory.mktemp("wheels")
    for project in ("packaging", "."):
        run(
            sys.executable,
            "-m",
            "build",
            "--wheel",
            "--no-isolation",
            "--outdir",
            folder,
            project,
            cwd=CHECKOUT,
        )
    found = {path.name.split("-")[0]: path for path in folder.glob("*.whl")}
    assert set(found) == {"rooflight", "rooflight_server"}
    return found


def install(folder: Path, *what: str | Path) -> Path:
    """An empty environment with ``what`` in it; its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    pip = [sys.executable, "-m", "pip", "--python", folder / "bin/python", "install", "-q"]
    run(
        *pip,
        "--disable-pip-version-check",
        "--constraint",
        CHECKOUT / "constraints.txt",
        *what,
        cwd=folder.parent,
    )
    return folder / "bin"


@pytest.fixture(scope="module")
def library(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with the wheel ``rooflight`` alone."""
    return install(tmp_path_factory.mktemp("library") / "env", wheels["rooflight"])


@pytest.fixture(scope="module")
def server(wheels: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs of an environment with the service."""
    wanted = f"rooflight-server[server] @ {wheels['rooflight_server'].as_uri()}"
    return install(tmp_path_factory.mktemp("server") / "env", wheels["rooflight"], wanted)


def names_in(wheel: Path) -> set[str]:
    return set(zipfile.ZipFile(wheel).namelist())


def top_level(wheel: Path) -> set[str]:
    return {name.split("/")[0] for name in names_in(wheel) if ".dist-info/" not in name}


def test_a_wheel_brings_its_own_import_names_only(wheels: dict[str, Path]) -> None:
    assert top_level(wheels["rooflight"]) == {"rooflight"}
    assert top_level(wheels["rooflight_server"]) == {"agent", "app"}


def test_every_module_and_data_file_is_in_a_wheel(wheels: dict[str, Path]) -> None:
    packed = names_in(wheels["rooflight"]) | names_in(wheels["rooflight_server"])
    places = {
        "rooflight": "rooflight",
        "agent": "agent",
        "app": "app",
        "web": "app/_web",
        "migrations": "app/_migrations",
    }
    tracked = run("git", "ls-files", *places, cwd=CHECKOUT).split()
    for name in tracked:
        folder, _, rest = name.partition("/")
        if rest and not rest.endswith(".gitkeep") and (CHECKOUT / name).exists():
            assert f"{places[folder]}/{rest}" in packed


def test_the_library_analyses_a_trace(library: Path, tmp_path: Path) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    answer = json.loads(run(library / "rooflight", "analyze", "trace.json", "--format", "json", cwd=tmp_path))
    device = answer["ranks"][0]["devices"]["0"]
    assert device["span_us"] == 15.0
    assert device["busy_us"] == 13.0
    assert device["kernels"] == 2


def test_the_library_brings_its_catalogue(library: Path, tmp_path: Path) -> None:
    answer = json.loads(
        run(library / "rooflight", "gpus", "NVIDIA A100-SXM4-80GB", "--format", "json", cwd=tmp_path)
    )
    # NVIDIA's A100 data sheet: 312 TFLOP/s dense in bf16.
    assert answer["peaks_tflops"]["bf16"] == 312


def test_the_library_needs_three_libraries(library: Path, tmp_path: Path) -> None:
    code = "import importlib.metadata as m; print(*sorted(d.name.lower() for d in m.distributions()))"
    assert run(library / "python", "-c", code, cwd=tmp_path).split() == [
        "isal",
        "msgspec",
        "numpy",
        "rooflight",
    ]


@pytest.mark.parametrize("table", ["kernels", "steps"])
def test_a_table_without_pandas_names_the_extra(library: Path, tmp_path: Path, table: str) -> None:
    (tmp_path / "trace.json").write_text(json.dumps(TRACE))
    code = f"""
import rooflight
try:
    rooflight.analyze(rooflight.read("trace.json")).{table}
except rooflight.errors.MissingExtra as e:
    print(e)
"""
    assert "rooflight[notebook]" in run(library / "python", "-c", code, cwd=tmp_path)


def test_folders_of_a_training_script_are_not_shadowed(library: Path, tmp_path: Path) -> None:
    for name in ("app", "agent"):
        # No __init__.py: a regular package of that name in the environment would win.
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(f"owner = 'user {name}'\n")
    (tmp_path / "train.py").write_text(
        "import rooflight, app.mine, agent.mine\nprint(app.mine.owner, agent.mine.owner)\n"
    )
    assert run(library / "python", "train.py", cwd=tmp_path) == "user app user agent\n"


def test_the_service_migrates_serves_and_brings_its_pages(
    server: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(CHECKOUT / "scripts"))
    monkeypatch.chdir(tmp_path)
    service, demo_check = importlib.import_module("service"), importlib.import_module("demo_check")
    env = service.environment(tmp_path / "data")
    migrated = subprocess.run(
        [server / "rooflight-server", "migrate"], env=env, capture_output=True, text=True
    )
    assert migrated.returncode == 0, migrated.stderr
    with service.serving(tmp_path / "data", 0, server) as running:
        page = running.get("/")
        assert page.status == 200
        assert page.content_type == "text/html"
        files = demo_check.PageParts(page.body.decode()).files
        assert any(".css" in file for file in files)
        assert any(".js" in file for file in files)
        for file in files:
            assert running.get(file).status == 200, file
        plotly = running.get("/static/plotly.min.js")
        assert plotly.status == 200
        # The library itself, not a page about its absence.
        assert len(plotly.body) > 1_000_000
