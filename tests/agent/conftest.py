from __future__ import annotations

from pathlib import Path

import pytest

from tests.agent.nvml_stub import StubNvml, compile_stub


@pytest.fixture(scope="session")
def stub_library(tmp_path_factory: pytest.TempPathFactory) -> StubNvml:
    return compile_stub(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc of a container: its PID namespace is not the kernel's first."""
    root = tmp_path / "proc"
    (root / "self/ns").mkdir(parents=True)
    (root / "self/ns/pid").symlink_to("pid:[4026532999]")
    (root / "meminfo").write_text("MemTotal:       127600748 kB\nMemAvailable:   118566368 kB\n")
    for pid, name in ((1, "python"), (77, "bash")):
        (root / str(pid)).mkdir()
        (root / str(pid) / "comm").write_text(f"{name}\n")
    return root
