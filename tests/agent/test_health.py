"""The agent's /metrics: Prometheus' text, DCGM's names and units."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request

import pytest

from agent.health import MetricsLoop, own, plain, text
from agent.sampler.names import NAMES
from agent.sampler.sample import DeviceSample
from tests.shared import CHECKOUT
from tests.training import wait_until


def _lines(page: str) -> dict[str, str]:
    return dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))


def test_devices_have_dcgms_names_and_units() -> None:
    sample = DeviceSample(
        "GPU-1", 0.0, index=3, name='A "100"\n', util_pct=97.0, mem_used=3 << 20, power_w=301.5
    )
    labels = 'gpu="3",UUID="GPU-1",modelName="A \\"100\\"\\n",Hostname="node1"'
    assert _lines(text("node1", [], [sample])) == {
        f"DCGM_FI_DEV_GPU_UTIL{{{labels}}}": "97",
        f"DCGM_FI_DEV_POWER_USAGE{{{labels}}}": "301.5",
        f"DCGM_FI_DEV_FB_USED{{{labels}}}": "3",  # MiB
    }


def test_links_and_errors_have_dcgms_names_too() -> None:
    sample = DeviceSample(
        "GPU-1",
        0.0,
        nvlink_tx_bytes_per_s=5,
        pcie_rx_bytes_per_s=6,
        ecc_uncorrected_aggregate=7,
        throttle=0x44,
    )
    page = text("h", [], [sample])
    assert {name.partition("{")[0]: value for name, value in _lines(page).items()} == {
        "DCGM_FI_PROF_NVLINK_TX_BYTES": "5",
        "DCGM_FI_PROF_PCIE_RX_BYTES": "6",
        "DCGM_FI_DEV_ECC_DBE_AGG_TOTAL": "7",
        "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS": "68",
    }
    assert "# TYPE DCGM_FI_DEV_ECC_DBE_AGG_TOTAL counter" in page
    assert "# TYPE DCGM_FI_PROF_NVLINK_TX_BYTES gauge" in page


def test_what_is_not_known_has_no_line_and_zero_has_one() -> None:
    samples = [DeviceSample("GPU-1", 0.0, index=0, util_pct=0.0), DeviceSample("GPU-2", 0.0, index=1)]
    page = text("h", [], samples)
    assert page.count("DCGM_FI_DEV_GPU_UTIL{") == 1
    assert 'UUID="GPU-1",modelName="",Hostname="h"} 0' in page
    assert "GPU-2" not in page
    assert "nan" not in page.lower()


def test_every_name_has_its_help_and_type_once() -> None:
    samples = [DeviceSample(f"GPU-{i}", 0.0, index=i, energy_mj=5) for i in range(3)]
    page = text("h", [plain("samples_total", "Looks.", 7, "counter"), *own()], samples)
    assert page.count("# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter") == 1
    assert "# TYPE rooflight_agent_samples_total counter\nrooflight_agent_samples_total 7\n" in page
    assert float(_lines(page)["rooflight_agent_resident_memory_bytes"]) > 1 << 20


def test_it_is_served_and_nothing_else_is() -> None:
    loop, stop = MetricsLoop(("127.0.0.1", 0), lambda: "page\n"), threading.Event()
    thread = threading.Thread(target=loop, args=(stop,))
    thread.start()
    try:
        base = f"http://127.0.0.1:{wait_until(lambda: loop.port)}"
        with urllib.request.urlopen(f"{base}/metrics") as answer:
            assert answer.read() == b"page\n"
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        with urllib.request.urlopen(f"{base}/healthz") as answer:
            assert answer.read() == b"ok\n"
        with pytest.raises(urllib.error.HTTPError, match="404") as refused:
            urllib.request.urlopen(f"{base}/etc/passwd")
        refused.value.close()
    finally:
        stop.set()
        thread.join()


def test_the_page_of_telemetry_has_every_name() -> None:
    """docs/agent.md: field, DCGM's name and OpenTelemetry's in one row each."""
    page = (CHECKOUT / "docs/agent.md").read_text()
    rows = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in page.splitlines()
        if line.startswith("| `")
    ]
    told = {row[0].strip("`"): row for row in rows if len(row) == 4}
    for name in NAMES:
        _, _, dcgm, otel = told[name.field]
        assert dcgm == f"`{name.dcgm}`"
        assert otel.partition(",")[0] == (f"`{name.otel}`" if name.otel else "")
    assert len({name.dcgm for name in NAMES}) == len({name.field for name in NAMES}) == len(NAMES)
