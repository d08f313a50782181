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
    (root / "stat").write_text("cpu  1 2 3\nbtime 0\n")
    for pid, name in ((1, "python"), (77, "bash")):
        a_process(root, pid, name)
    return root


def a_process(root: Path, pid: int, name: str, uid: int = 0, ticks: int = 0) -> None:
    """What /proc tells of a process; ``ticks`` after the boot it was started."""
    folder = root / str(pid)
    folder.mkdir(exist_ok=True)
    (folder / "stat").write_text(f"{pid} ({name}) S" + " 0" * 18 + f" {ticks} 0 0\n")
    (folder / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")
