"""dcgm-exporter's text: blanks, spikes, MIG, and whatever else a page may hold."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import agent.sampler.dcgm as module
from agent.counters import Windows
from agent.doctor.driver import dcgm as doctor
from agent.loops.sampling import SamplingLoop
from agent.sampler.dcgm import MOST_BYTES, Address, Dcgm, fill, read
from agent.sampler.exposition import LONGEST_LINE, Exposition
from agent.sampler.nvml import NO_DRIVER, NoDriverError
from agent.sampler.sample import DeviceSample
from agent.spool import Spool
from tests.cases import FOLDER, load
from tests.training import wait_until

UUID = "GPU-bbbbbbbb-0000-4000-8000-00000000000b"
CASE = "65-blank-sentinels-and-spikes"


def line(name: str, value: object, uuid: str = UUID, **labels: str) -> str:
    given = {"gpu": "0", "UUID": uuid, "modelName": "NVIDIA H100", **labels}
    told = ",".join(f'{key}="{text}"' for key, text in given.items())
    return f"{name}{{{told}}} {value}\n"


def filled(text: str, **known: Any) -> DeviceSample:
    """A sample of the device after the page."""
    sample = DeviceSample(UUID, 0.0, 0, **known)
    fill(sample, read(text), flags=True)
    return sample


def test_case_65() -> None:
    """Five pages of one device: what each makes of the sample, and what the window of all says."""
    expect = load(CASE)["expect"]
    windows, samples = Windows(), []
    for row in json.loads((FOLDER / CASE / "input.dcgm.json").read_text()):
        page = "".join(line(k, v, row["uuid"]) for k, v in row.items() if k.startswith("DCGM"))
        sample = DeviceSample(row["uuid"], row["t"], 0)
        fill(sample, read(page), flags=True)
        windows.add([sample])
        samples.append(sample)
    assert [s.util_pct for s in samples] == expect["util_pct"]
    assert [s.mem_temp_c for s in samples] == expect["mem_temp_c"]
    assert [s.sm_active for s in samples] == expect["sm_active"]
    assert [s.pcie_tx_bytes_per_s for s in samples] == expect["pcie_tx"]
    [window] = windows.take()
    assert window["util_pct"]["mean"] == expect["util_avg"]
    assert window["sm_active"]["mean"] == pytest.approx(expect["sm_active_avg"])
    flags = [f for f in window["flags"] if f["code"] == "out_of_range"]
    assert sum(f["count"] for f in flags) == 2
    assert [f["detail"].rpartition(" ")[2] for f in flags] == ["808334905", "101"]
    # must_not: an axis up to 9.2e18, a mean of 8.6e8 %, a clamp to 100
    assert max(window["util_pct"].values()) == 97
    assert max(window["pcie_tx_bytes_per_s"].values()) == 1_300_000


def test_what_nvml_knows_stays_and_what_it_lacks_is_added() -> None:
    page = line("DCGM_FI_DEV_POWER_USAGE", "299.5") + line("DCGM_FI_DEV_GPU_TEMP", 61)
    sample = filled(page + line("DCGM_FI_PROF_DRAM_ACTIVE", "0.25"), power_w=310.0)
    assert (sample.power_w, sample.temp_c, sample.dram_active) == (310.0, 61, 0.25)


def test_units_are_ours() -> None:
    page = line("DCGM_FI_DEV_FB_USED", 3) + line("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", 1_234_567_890_123)
    sample = filled(page + line("DCGM_FI_DEV_CLOCKS_EVENT_REASONS", 4))
    assert (sample.mem_used, sample.energy_mj, sample.throttle) == (3 * 2**20, 1_234_567_890_123, 4)


@pytest.mark.parametrize(
    ("name", "field", "value"),
    [
        ("DCGM_FI_PROF_SM_ACTIVE", "sm_active", "1.0001"),
        ("DCGM_FI_PROF_SM_ACTIVE", "sm_active", "-0.1"),
        ("DCGM_FI_DEV_GPU_UTIL", "util_pct", "100.5"),
        ("DCGM_FI_DEV_POWER_USAGE", "power_w", "-1"),
        ("DCGM_FI_PROF_PCIE_TX_BYTES", "pcie_tx_bytes_per_s", "-5"),
    ],
)
def test_what_cannot_be_is_unknown_and_flagged(name: str, field: str, value: str) -> None:
    sample = filled(line(name, value))
    assert getattr(sample, field) is None
    [flag] = sample.flags
    assert (flag.code, flag.count) == ("out_of_range", 1)
    assert value in flag.detail


@pytest.mark.parametrize(
    "value",
    ["NaN", "+Inf", "-Inf", "140737488355328.000000", "4294967295.000000", "2147483633",
     "9.223372036854776e+18", "18446744073709551615", "1e400"],
)  # fmt: skip
def test_blanks_are_unknown_and_not_flagged(value: str) -> None:
    sample = filled(line("DCGM_FI_DEV_GPU_UTIL", value) + line("DCGM_FI_PROF_SM_ACTIVE", value))
    assert (sample.util_pct, sample.sm_active, sample.flags) == (None, None, [])


def test_temperatures_may_be_below_zero_and_counts_may_be_4294967295() -> None:
    sample = filled(line("DCGM_FI_DEV_GPU_TEMP", -3) + line("DCGM_FI_DEV_ECC_SBE_AGG_TOTAL", 4294967295))
    assert (sample.temp_c, sample.ecc_corrected_aggregate) == (-3, 4294967295)


def test_a_mig_instance_is_found_by_its_number_and_gets_ratios_alone() -> None:
    page = (
        line("DCGM_FI_PROF_GR_ENGINE_ACTIVE", 0.5, GPU_I_PROFILE="1g.5gb", GPU_I_ID="7")
        + line("DCGM_FI_DEV_POWER_USAGE", 200, GPU_I_PROFILE="1g.5gb", GPU_I_ID="7")
        + line("DCGM_FI_DEV_POWER_USAGE", 200)
        + line("DCGM_FI_DEV_GPU_UTIL", 33)
    )
    parent, instance = DeviceSample(UUID, 0.0, 0), DeviceSample("MIG-1", 0.0, 0, parent_uuid=UUID)
    for sample in (parent, instance):
        sample.flag("mig_utilisation_unavailable", "")
        instance.gpu_instance_id = 7
        fill(sample, read(page), flags=True)
    assert (instance.gr_engine_active, instance.power_w, parent.gr_engine_active) == (0.5, None, None)
    assert (parent.power_w, parent.util_pct) == (200, None)
    other = DeviceSample("MIG-2", 0.0, 0, parent_uuid=UUID, gpu_instance_id=8)
    fill(other, read(page), flags=True)
    assert other.gr_engine_active is None


def test_devices_are_joined_by_uuid_and_never_by_index() -> None:
    sample = DeviceSample("GPU-other", 0.0, 0)
    fill(sample, read(line("DCGM_FI_PROF_SM_ACTIVE", 0.5)), flags=True)
    assert sample.sm_active is None
    assert read('DCGM_FI_PROF_SM_ACTIVE{gpu="0"} 0.5\n') == {}


def test_a_lost_device_gets_no_figures() -> None:
    assert filled(line("DCGM_FI_DEV_POWER_USAGE", 200), state="lost").power_w is None


def test_the_same_line_twice_is_once_and_two_values_are_none() -> None:
    twice = line("DCGM_FI_DEV_GPU_TEMP", 61, pod="a") + line("DCGM_FI_DEV_GPU_TEMP", 61, pod="b")
    assert filled(twice).temp_c == 61
    for third in ("62", "63"):
        twice += line("DCGM_FI_DEV_GPU_TEMP", third)
        sample = filled(twice)
        assert (sample.temp_c, {f.code for f in sample.flags}) == (None, {"field_unavailable"})


def samples_of(text: str) -> tuple[list[Any], int]:
    exposition = Exposition({"A"})
    return list(exposition.samples(text)), exposition.skipped


def test_lines_as_prometheus_has_them() -> None:
    text = '# HELP A x\n# TYPE A gauge\nA 1\nA{x="1",} 2 1395066363000\n'
    text += 'A { x = "a\\"b\\\\c\\nd{},=" } 3.5\nAB 9\n\n'
    got, skipped = samples_of(text)
    assert [(s.labels, s.value) for s in got] == [
        ({}, 1),
        ({"x": "1"}, 2),
        ({"x": 'a"b\\c\nd{},='}, 3.5),
    ]
    assert skipped == 0


@pytest.mark.parametrize(
    "broken",
    ['A{x="1" 2', 'A{x="1"y="2"} 2', 'A{x=1} 2', 'A{x="1",x="2"} 2', "A", "A{}", "A x", "A 1 2 3", "A 1_0",
     "A 0x10", "A \u0661", "A " + "9" * 41, 'A{x="' + "y" * LONGEST_LINE + '"} 1', 'A{x="\\',
     "A{" + 'a="",' * 9000,
     "A{" + ",".join(f'l{i}=""' for i in range(65)) + "} 1"],
)  # fmt: skip
def test_a_broken_line_is_skipped_and_counted(broken: str) -> None:
    got, skipped = samples_of(f"A 1\n{broken}\nA 2\n")
    assert ([s.value for s in got], skipped) == ([1, 2], 1)


def test_a_page_of_too_many_devices_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_DEVICES", 3)
    page = "".join(line("DCGM_FI_DEV_GPU_TEMP", 50, f"GPU-{i}") for i in range(9)) * 2
    assert [key[0] for key in read(page)] == ["GPU-0", "GPU-1", "GPU-2"]
    assert read(line("DCGM_FI_DEV_GPU_TEMP", 50, "G" * 201)) == {}


@contextmanager
def exporter(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Address]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            """Quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield Address("127.0.0.1", server.server_address[1], "/metrics")
        server.shutdown()


def page(text: str, status: int = 200) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.end_headers()
        handler.wfile.write(text.encode())

    return answer


def test_a_page_fills_samples_until_it_is_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []
    text = line("DCGM_FI_PROF_SM_ACTIVE", 0.5) + line("DCGM_FI_DEV_GPU_UTIL", 101)
    with exporter(page(text)) as address:
        dcgm = Dcgm(address, notes.append)
        dcgm.look()
    looks = [DeviceSample(UUID, float(t)) for t in range(3)]
    for sample in looks[:2]:
        dcgm.fill([sample])
    monkeypatch.setattr(module, "FRESH_S", 0.0)
    dcgm.fill(looks[2:])
    assert [s.sm_active for s in looks] == [0.5, 0.5, None]
    # The page had one value that cannot be: it is counted once, however often the page is used.
    assert [len(s.flags) for s in looks] == [1, 0, 0]
    dcgm.look()
    dcgm.look()
    assert dcgm.failures == 2
    assert len(notes) == 1, "the exporter's end is said once"
    assert "no figures of DCGM from http://127.0.0.1" in notes[0]


def test_the_page_of_another_host_is_said_once() -> None:
    notes: list[str] = []
    with exporter(page(line("DCGM_FI_PROF_SM_ACTIVE", 0.5))) as address:
        dcgm = Dcgm(address, notes.append)
        dcgm.look()
    for uuid in ("GPU-ours", "GPU-ours", UUID, "GPU-ours"):
        dcgm.fill([DeviceSample(uuid, 0.0)])
    dcgm.fill([])
    assert [note.partition(" names ")[2][:29] for note in notes] == ["none of this host's devices: "] * 2


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (page("", 503), "it answers 503"),
        (page("moved", 302), "it answers 302"),
        (page("x" * (MOST_BYTES + 1)), "more than 4 MiB"),
        (page("hello\n"), "names no GPU"),
        (lambda handler: handler.wfile.write(b"\x00\xff not http\r\n\r\n"), "no figures of DCGM"),
    ],
)
def test_what_is_no_page_of_an_exporter_is_said(
    answer: Callable[[BaseHTTPRequestHandler], None], says: str
) -> None:
    notes: list[str] = []
    with exporter(answer) as address:
        dcgm = Dcgm(address, notes.append)
        dcgm.look()
    assert says in notes[0]
    sample = DeviceSample(UUID, 0.0)
    dcgm.fill([sample])
    assert sample == DeviceSample(UUID, 0.0)


def test_a_page_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TIMEOUT_S", 0.2)
    done = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        while not done.wait(0.05):
            handler.wfile.write(b"# \n")

    with exporter(drip) as address:
        with pytest.raises(OSError, match=r"more than 0\.4 s"):
            address.fetch()
        done.set()


def test_the_exporter_stands_in_where_there_is_no_driver(tmp_path: Path) -> None:
    def no_driver() -> Any:
        raise NoDriverError(NO_DRIVER)

    with exporter(page(line("DCGM_FI_DEV_GPU_UTIL", 42))) as address:
        dcgm = Dcgm(address, print)
        dcgm.look()
    spool = Spool(tmp_path, note=print)
    loop = SamplingLoop(spool, "h", 0.05, 0.1, open=no_driver, dcgm=dcgm)
    stop = threading.Event()
    thread = threading.Thread(target=loop, args=(stop,))
    thread.start()
    wait_until(lambda: len(spool))
    stop.set()
    thread.join()
    spool.close()
    [sample] = loop.latest
    assert (sample.uuid, sample.index, sample.name, sample.util_pct) == (UUID, 0, "NVIDIA H100", 42)


@pytest.mark.parametrize(
    ("text", "status", "state", "says"),
    [
        (line("DCGM_FI_PROF_SM_ACTIVE", 0.5), 200, "ok", "tells profiling figures"),
        (line("DCGM_FI_DEV_GPU_UTIL", 5), 200, "warning", "no profiling figures"),
        ("hello", 200, "warning", "names no GPU"),
        ("", 404, "warning", "does not answer: it answers 404"),
    ],
)
def test_the_doctor_asks_the_exporter(text: str, status: int, state: str, says: str) -> None:
    with exporter(page(text, status)) as address:
        [row] = doctor(address)
    assert (row.check, row.state) == ("dcgm", state)
    assert says in row.text
    assert bool(row.fix) == (state != "ok")


def test_the_doctor_says_nothing_of_an_exporter_that_nobody_set() -> None:
    assert list(doctor(None)) == []
