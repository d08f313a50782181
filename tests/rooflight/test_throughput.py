"""Units per second: the units of all recorded ranks over the median step of the slowest one."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from rooflight import analyze
from rooflight.cli.main import main
from rooflight.cli.markdown import markdown
from rooflight.cli.table import table
from rooflight.errors import Refused
from rooflight.prices.money import Money
from rooflight.prices.rate import Rate
from rooflight.protocol import Document, decode, encode
from rooflight.report.html import report
from rooflight.report.money import priced
from rooflight.results.throughput import checked, joined, number, throughputs, written
from tests.agent.servers import FakeServer, accepts, running
from tests.recording import Recording


def recorded(*steps_us: float, rank: int = 0, marked: bool = True, gpu: bool = True) -> Document:
    """One rank, whose steps follow one another, each with a kernel in it."""
    scene, at = Recording(), 0.0
    for n, us in enumerate(steps_us):
        if marked:
            scene.step(n, at, us)
        if gpu:
            scene.kernel("gemm", at + 10, at + 20, us - 100)
        else:
            scene.host("aten::mm", at + 10, us - 100)
        at += us
    document = analyze(scene.timeline()).document
    document.ranks[0].rank = rank
    return document


def together(*documents: Document, world: int | None = None, **units: float) -> Document:
    first = documents[0]
    first.ranks = [rank for d in documents for rank in d.ranks]
    first.world_size, first.units_per_step = world, units
    return first


def test_the_units_of_a_step_over_its_median() -> None:
    """Steps of 400, 500 and 900 us: the median is 500 us; 8192 / 0.0005 s = 16,384,000 in a second."""
    [found] = throughputs(together(recorded(400, 500, 900), tokens=8192))
    assert found.per_s == pytest.approx(16_384_000)
    assert (found.said, found.basis) == ("16,384,000 tokens/s", "8,192 per step")


def test_of_several_ranks_the_slowest_tells() -> None:
    """Medians of 400 and 500 us, 8192 on each: 2 x 8192 / 0.0005 s = 32,768,000."""
    run = together(recorded(400, 400, 900), recorded(500, 300, 500, rank=1), world=2, tokens=8192)
    [found] = throughputs(run)
    assert found.per_s == pytest.approx(32_768_000)
    assert found.basis == "8,192 per step and rank"


def test_it_speaks_of_the_ranks_that_were_recorded_and_so_does_its_price() -> None:
    """2 of 8 ranks with a GPU each at 3.60: 7.20 an hour. 32,768,000 a second are 117,964.8 million in it."""
    run = together(recorded(500), recorded(500, rank=1), world=8, tokens=8192)
    [found] = throughputs(run)
    assert found.per_s == pytest.approx(32_768_000)
    assert found.basis == "8,192 per step and rank, 2 of 8 ranks"
    money = Money(Rate(Decimal("3.60")), 8)
    assert found.per_million(money) == pytest.approx(7.20 / 117_964.8)


def test_a_process_with_several_devices_pays_for_all() -> None:
    """1000 samples in a step of 1 ms are a million a second, 3,600 million an hour: 4 x 9.00 / 3600."""
    [found] = throughputs(together(recorded(1000), samples=1000))
    assert found.per_million(Money(Rate(Decimal(9)), 4)) == pytest.approx(0.01)
    assert found.price(Money(Rate(Decimal(9)), 4)) == "$0.010 per million samples"
    assert found.price(None) == ""


def test_on_the_cpu_its_steps_tell() -> None:
    """32 in a median step of 2 ms: 16,000 a second."""
    [found] = throughputs(together(recorded(2000, 2000, gpu=False), samples=32))
    assert found.per_s == pytest.approx(16_000)


def test_it_is_absent_where_anything_is_unknown() -> None:
    assert throughputs(recorded(500)) == []
    assert throughputs(together(recorded(500, marked=False), tokens=1)) == []
    assert throughputs(together(recorded(500), recorded(500, rank=1, marked=False), tokens=1)) == []
    assert throughputs(Document(1, "", [], units_per_step={"tokens": 1})) == []


def test_an_inferred_step_need_not_be_the_one_that_was_counted() -> None:
    document = together(recorded(500, 500), tokens=8)
    [rank] = document.ranks
    rank.inferred_steps, rank.steps = rank.steps, []
    assert throughputs(document) == []


def test_ranks_that_say_different_numbers_are_added_up_all_the_same() -> None:
    """100 on one rank and 400 on each of two: 900 in all, 300 on each in the mean."""
    one = together(recorded(500), tokens=100, samples=1)
    two = together(recorded(500, rank=1), recorded(500, rank=2), tokens=400)
    assert joined([one, two]) == {"tokens": 300}
    assert joined([two, two]) == {"tokens": 400}
    assert joined([one, recorded(500, rank=3)]) == {}


@pytest.mark.parametrize(
    ("value", "shown"), [(81920.4, "81,920"), (100, "100"), (99.94, "99.9"), (0.01234, "0.0123")]
)
def test_numbers_have_three_digits_at_least(value: float, shown: str) -> None:
    assert number(value) == shown


def test_what_can_be_written() -> None:
    assert written(["tokens=8192", "samples=0.5"]) == {"tokens": 8192, "samples": 0.5}
    assert checked({"tokens": 8192}) == {"tokens": 8192}


@pytest.mark.parametrize(
    "wrong",
    [["tokens"], ["=3"], ["tokens="], ["tokens=0"], ["tokens=-1"], ["tokens=inf"], ["tokens=nan"],
     ["tokens=1", "tokens=2"], ["tokens=1e300"], [f"{'t' * 41}=1"], [" t=1"], [f"u{n}=1" for n in range(17)]],
)  # fmt: skip
def test_what_cannot(wrong: list[str]) -> None:
    with pytest.raises(Refused):
        written(wrong)


def test_table_markdown_and_report_show_it_and_its_price() -> None:
    # 500 us: 8192 / 0.0005 s. At 3.60 an hour a million of them cost 3.60 / 58,982.4 = 0.000061.
    document = priced(together(recorded(500, 500), tokens=8192), Rate(Decimal("3.60")))
    line = "16,384,000 tokens/s (8,192 per step), $6.1e-05 per million tokens"
    assert f"throughput  {line}" in table(document)
    assert f"Throughput: {line}" in markdown(document).replace("\\", "")
    page = report(document)
    assert "16,384,000 tokens/s (8,192 per step)" in page
    assert "$6.1e-05 per million tokens" in page


def test_nothing_of_it_is_shown_without_units() -> None:
    document = recorded(500, 500)
    shown = table(document) + markdown(document)
    assert "hroughput" not in shown


def test_the_command_takes_units_for_traces_and_for_an_analysis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    analysis = tmp_path / "analysis.json"
    analysis.write_bytes(encode(recorded(500, 500)))
    assert main(["analyze", str(analysis), "--units", "tokens=8192", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["units_per_step"] == {"tokens": 8192}
    assert main(["analyze", str(analysis), "--units", "tokens"]) == 2
    assert "tokens=8192" in capsys.readouterr().err
    page = tmp_path / "report.html"
    assert main(["report", str(analysis), "--units", "tokens=8192", "-o", str(page)]) == 0
    assert "16,384,000 tokens/s" in page.read_text()


def test_it_is_kept_in_the_json() -> None:
    document = together(recorded(500), tokens=8192)
    assert decode(encode(document)).units_per_step == {"tokens": 8192}


def test_an_upload_tells_the_server(tmp_path: Path) -> None:
    trace = tmp_path / "t.json"
    trace.write_text("{}")
    with running(FakeServer(accepts)) as server:
        wanted = ["--units", "tokens=8192", "--units", "samples=4", "--run", "r", "--no-wait"]
        assert main(["upload", str(trace), "--server", server.url, *wanted]) == 0
    made = json.loads(server.seen[1].body)
    assert made == {"name": "r", "units_per_step": {"tokens": 8192, "samples": 4}}
