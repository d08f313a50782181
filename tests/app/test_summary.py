"""The columns of the runs list, from the analysis of a run."""

from __future__ import annotations

from app.ingest.summary import summary
from rooflight.protocol import SCHEMA_VERSION, Cpu, CpuStep, Document, Parts, Rank, Roofs, Step
from tests.factories import a_document


def on_a_cpu(name: str | None) -> Document:
    """Steps of 10 and 30 ms, recorded without GPU work: their parts are the CPU's."""
    cpu_steps = [
        CpuStep(n=i, step_time_us=us, parts_us=Parts(memory=us - 2_000.0, host=2_000.0))
        for i, us in enumerate((10_000.0, 30_000.0))
    ]
    plain = [Step(n=s.n, step_time_us=s.step_time_us) for s in cpu_steps]
    cpu = Cpu(roof=Roofs(kind="cpu", name=name), name=name, steps=cpu_steps, regime="memory")
    rank = Rank(rank=0, host="lab1", steps=plain, n_steps=2, cpu=cpu, grade="usable")
    return Document(schema_version=SCHEMA_VERSION, source="cpu.json", ranks=[rank])


def test_a_run_on_a_cpu_has_its_bar_and_its_device() -> None:
    seen = summary(on_a_cpu("EPYC 7B13"))
    parts = seen["parts_us"]
    # (8 + 28) / 2 = 18 ms of memory, 2 ms of host: 20 ms, the mean of 10 and 30.
    assert (parts["memory"], parts["host"], sum(parts.values())) == (18_000.0, 2_000.0, 20_000.0)
    assert (seen["device_name"], seen["regime"], seen["n_steps"]) == ("EPYC 7B13", "memory", 2)
    assert seen["step_time_p50_us"] == 20_000.0


def test_a_cpu_that_nobody_named_is_a_cpu() -> None:
    assert summary(on_a_cpu(None))["device_name"] == "CPU"


def test_a_run_on_a_gpu_keeps_the_parts_of_its_gpu() -> None:
    document = a_document(steps=2)
    document.ranks[0].cpu = on_a_cpu("EPYC").ranks[0].cpu
    seen = summary(document)
    assert seen["device_name"] == "Tesla V100-DGXS-32GB"
    assert seen["parts_us"]["input"] == 58_700.0
