"""What a step holds: said when a run is made, or by the analysis that is pushed."""

from __future__ import annotations

from typing import Any

import pytest

from rooflight.protocol import encode
from tests.app.conftest import Service
from tests.app.test_reanalyze import a_trace, again, send
from tests.factories import a_document


def pushed(service: Service, run: str, rank: int, **units: float) -> Any:
    document = a_document()
    document.ranks[0].rank, document.world_size, document.units_per_step = rank, 2, units
    return service.post(f"/runs/{run}/profiles", content=encode(document))


def units_of(service: Service, run: str) -> Any:
    return service.get(f"/runs/{run}/analysis").json()["units_per_step"]


def test_a_run_says_what_a_step_of_its_traces_holds(service: Service) -> None:
    run = service.a_run(units_per_step={"tokens": 8192, "samples": 0.5})
    for rank in (0, 1):
        assert send(service, run, f"r{rank}.json", a_trace(rank)) == "done"
        assert units_of(service, run) == {"tokens": 8192, "samples": 0.5}
    again(service, run)
    assert units_of(service, run) == {"tokens": 8192, "samples": 0.5}


def test_an_analysis_that_is_pushed_says_it_itself(service: Service) -> None:
    run = service.a_run()
    assert pushed(service, run, 0, tokens=100).status_code == 201
    assert units_of(service, run) == {"tokens": 100}
    # 100 on one rank and 300 on the other: 200 on each in the mean, 400 in all.
    assert pushed(service, run, 1, tokens=300).status_code == 201
    assert units_of(service, run) == {"tokens": 200}


def test_what_one_rank_does_not_say_is_unknown_of_the_run(service: Service) -> None:
    run = service.a_run()
    pushed(service, run, 0, tokens=100)
    pushed(service, run, 1)
    assert units_of(service, run) == {}


def test_two_ranks_that_make_one_run_with_one_key_have_one(service: Service) -> None:
    made = [
        service.post("/projects/demo/runs", json={"name": "first"}, headers={"Idempotency-Key": "launch"})
        for _ in range(2)
        if service.post("/projects", json={"name": "demo"})
    ]
    assert [answer.status_code for answer in made] == [201, 200]
    assert made[0].json()["id"] == made[1].json()["id"]


@pytest.mark.parametrize(
    "wrong",
    [{"t": 0}, {"t": -1}, {"t": 1e300}, {"t": "x"}, {"": 1}, {"t" * 41: 1}, {f"u{n}": 1 for n in range(17)}],
)  # fmt: skip
def test_units_that_cannot_be_are_422(service: Service, wrong: dict[str, Any]) -> None:
    service.post("/projects", json={"name": "demo"})
    assert service.post("/projects/demo/runs", json={"units_per_step": wrong}).status_code == 422
    run = service.a_run()
    body = encode(a_document()).replace(b'"units_per_step":{}', b'"units_per_step":' + encode(wrong))
    assert service.post(f"/runs/{run}/profiles", content=body).status_code == 422
