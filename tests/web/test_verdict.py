"""The sentence at the head of a run's page."""

from __future__ import annotations

from app.pages.numbers import TimeUnit
from app.pages.verdict import verdict
from rooflight.protocol import PARTS

MS = TimeUnit("ms", 1000.0, 1)


def parts(**us: float) -> dict[str, float]:
    return dict.fromkeys(PARTS, 0.0) | us


def test_a_cpu_is_spoken_of_as_a_cpu() -> None:
    said = verdict("latency", None, parts(latency=600.0, host=400.0), MS, per="per step", cpu=True)
    assert said.text.endswith("are ops that keep neither the cores nor the memory busy.")
    assert said.share_pct == 60.0
    assert "launches" in verdict("latency", None, parts(latency=1.0), MS, per="per step", cpu=False).text


def test_unknown_costs_come_with_what_makes_them_known() -> None:
    assert (
        "calibrate" in verdict(None, "costs unknown", parts(unknown=1.0), MS, per="per step", cpu=True).advice
    )
    assert "--gpu" in verdict(None, "costs unknown", parts(unknown=1.0), MS, per="per step", cpu=False).advice
    said = verdict(None, "costs unknown", parts(unknown=9.0, memory=1.0), MS, per="per step", cpu=False)
    assert said.text == "what bounds 90\u00a0% of the kernel time is unknown"  # 9 of 9 + 1
    assert verdict(None, "truncated", parts(unknown=1.0), MS, per="per step", cpu=False).advice == ""
