"""An analysis is pushed: what is kept, what is refused, and that it happens once."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from rooflight import protocol
from rooflight.http_form import http_form
from rooflight.protocol import Kernel
from tests.app.conftest import Service
from tests.factories import a_document


def body_of(document: protocol.Document) -> dict[str, Any]:
    return json.loads(protocol.encode(document))


def push(service: Service, run: str, body: Any, **headers: str) -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return service.post(f"/runs/{run}/profiles", content=content, headers=headers)


def test_what_was_pushed_is_what_is_answered(service: Service) -> None:
    run, document = service.a_run(), a_document(kernels=12, steps=6)
    answer = push(service, run, body_of(document))
    assert answer.status_code == 201, answer.text
    assert answer.json()["ranks"] == [0]
    assert service.get(f"/runs/{run}/analysis").json() == http_form(document)


def test_the_headline_of_a_run(service: Service) -> None:
    """Six steps of 174.8 ms, each with 58.7 ms of input: median 174,800 µs, mean input 58,700 µs."""
    run = service.a_run(name="first")
    push(service, run, body_of(a_document(steps=6)))
    [seen] = service.get("/runs").json()["items"]
    assert seen["id"] == run
    assert seen["state"] == "ready"
    assert (seen["number"], seen["name"], seen["project"]) == (1, "first", "demo")
    assert seen["device_name"] == "Tesla V100-DGXS-32GB"
    assert (seen["n_steps"], seen["step_time_p50_us"]) == (6, 174_800.0)
    assert (seen["regime"], seen["regime_confidence"], seen["grade"]) == ("input", "high", "usable")
    assert seen["parts_us"]["input"] == 58_700.0
    assert round(sum(seen["parts_us"].values()), 3) == 174_800.0
    assert seen["created_at"].endswith("Z")


def test_the_kernel_table_has_totals_pages_and_an_order(service: Service) -> None:
    run = service.a_run()
    push(service, run, body_of(a_document(kernels=12)))
    page = service.get(f"/runs/{run}/kernels", params={"limit": 5}).json()
    assert (page["total"], len(page["items"]), page["next_cursor"]) == (12, 5, 5)
    times = [k["time_us"] for k in page["items"]]
    assert times == sorted(times, reverse=True)
    last = service.get(f"/runs/{run}/kernels", params={"limit": 5, "cursor": 10}).json()
    assert (len(last["items"]), last["next_cursor"]) == (2, None)
    # Every fourth of the twelve is a memory kernel (factories.a_kernel).
    memory = service.get(f"/runs/{run}/kernels", params={"regime": "memory"}).json()
    assert memory["total"] == 3
    # Functor1, Functor10 and Functor11.
    assert service.get(f"/runs/{run}/kernels", params={"search": "functor1"}).json()["total"] == 3
    # An underscore is no wildcard: all twelve names hold `kernel<`, none holds `kernel_`.
    assert service.get(f"/runs/{run}/kernels", params={"search": "kernel_<"}).json()["total"] == 0


def test_unknown_values_come_last_in_either_order(service: Service) -> None:
    run = service.a_run()
    push(service, run, body_of(a_document(kernels=8)))
    for sort in ("flops", "-flops"):
        values = [
            k["flops"] for k in service.get(f"/runs/{run}/kernels", params={"sort": sort}).json()["items"]
        ]
        assert values[-2:] == [None, None]
        assert None not in values[:-2]


def test_steps_regimes_ranks(service: Service) -> None:
    run = service.a_run()
    push(service, run, body_of(a_document(kernels=12, steps=6)))
    steps = service.get(f"/runs/{run}/steps").json()
    assert steps["total"] == 6
    assert [s["n"] for s in steps["items"]] == [5, 6, 7, 8, 9, 10]
    assert steps["items"][0]["parts_us"]["dispatch"] == 12_200.0
    [rank] = service.get(f"/runs/{run}/regimes").json()["items"]
    assert rank["steps"] == {"input": 6}
    assert {r["regime"]: r["kernels"] for r in rank["kernels"]} == {
        "compute": 3,
        "memory": 3,
        "latency": 3,
        "unknown": 3,
    }
    [summary] = service.get(f"/runs/{run}/ranks").json()["items"]
    assert summary["devices"]["0"]["busy_us"] == 536_000.0
    assert "kernels" not in summary


def test_integers_past_the_doubles_come_back_exactly(service: Service) -> None:
    run, document = service.a_run(), a_document(kernels=1)
    document.ranks[0].kernels[0].flops = 2**53 + 1
    document.ranks[0].kernels[0].bytes = 2**63 - 1
    assert push(service, run, body_of(document)).status_code == 201
    [kernel] = service.get(f"/runs/{run}/kernels").json()["items"]
    assert (kernel["flops"], kernel["bytes"]) == ("9007199254740993", "9223372036854775807")


def test_an_integer_that_fits_no_column_is_named(service: Service) -> None:
    run, body = service.a_run(), body_of(a_document())
    body["ranks"][0]["steps"][2]["n"] = 2**63
    answer = push(service, run, body)
    assert answer.status_code == 422
    assert answer.json()["where"] == "ranks[0].steps[2].n"


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_none_is_named_and_nothing_is_stored(service: Service, token: str) -> None:
    run, body = service.a_run(), body_of(a_document(kernels=5))
    body["ranks"][0]["kernels"][3]["time_us"] = "HERE"
    answer = push(service, run, json.dumps(body).replace('"HERE"', token).encode())
    assert answer.status_code == 422
    assert answer.json()["where"] == "ranks[0].kernels[3].time_us"
    assert "not finite" in answer.json()["title"]
    assert service.get("/runs").json()["items"] == []
    assert service.get(f"/runs/{run}/kernels").json()["total"] == 0


@pytest.mark.parametrize("value", [1.1e30, -1.1e30, 1e308])
def test_a_number_whose_sums_would_overflow_is_named(service: Service, value: float) -> None:
    run, body = service.a_run(), body_of(a_document(kernels=5))
    body["ranks"][0]["kernels"][3]["time_us"] = value
    answer = push(service, run, body)
    assert (answer.status_code, answer.json()["where"]) == (422, "ranks[0].kernels[3].time_us")
    assert service.get(f"/runs/{run}/kernels").json()["total"] == 0


def test_a_number_that_no_division_survives_is_nothing(service: Service) -> None:
    run, body = service.a_run(), body_of(a_document(kernels=1))
    body["ranks"][0]["kernels"][0]["time_us"] = 5e-324
    assert push(service, run, body).status_code == 201
    [kernel] = service.get(f"/runs/{run}/kernels").json()["items"]
    assert kernel["time_us"] == 0
    assert service.get(f"/runs/{run}/roofline").status_code == 200


@pytest.mark.parametrize("value", [0, -1, -1e29, 5e-324])
@pytest.mark.parametrize("place", ["compute.fp16", "memory"])
def test_a_roof_that_no_logarithm_takes_is_named(service: Service, place: str, value: float) -> None:
    run, body = service.a_run(), body_of(a_document())
    roofs = body["ranks"][0]["roofs"]["0"]
    for part in place.split("."):
        roofs = roofs[part]
    roofs["practical"] = value
    answer = push(service, run, body)
    assert (answer.status_code, answer.json()["where"]) == (422, f"ranks[0].roofs.0.{place}.practical")
    assert service.get("/runs").json()["items"] == []


@pytest.mark.parametrize(
    ("body", "status", "named"),
    [
        (b"", 400, "not JSON"),
        (b"{", 400, "not JSON"),
        (b"[]", 422, "JSON object"),
        (b"{}", 422, "schema_version"),
        (b'{"schema_version": 1, "source": "x", "ranks": []}', 422, "at least one rank"),
        (b'{"schema_version": 99, "source": "x", "ranks": []}', 422, "newer"),
        (b'{"schema_version": 1, "source": "x", "ranks": [{"rank": 0}]}', 422, "grade"),
        (
            b'{"schema_version": 1, "source": "x", "ranks": [{"rank": -1, "grade": "usable"}]}',
            422,
            "negative",
        ),
        (b'{"schema_version": 1, "source": "x", "ranks": [{"rank": 0, "grade": "great"}]}', 422, "one of"),
        (b'{"kernels": []}', 422, "at least one kernel"),
        (b'{"kernels": [{"time_us": 1}]}', 422, "name"),
        (b'{"kernels": [{"name": "k"}]}', 422, "time_us"),
        (b'{"kernels": [{"name": "k", "time_us": -1}]}', 422, "negative"),
        (b'{"kernels": [{"name": "k", "start_ns": 20, "end_ns": 10}]}', 422, "end_ns"),
        (
            b'{"kernels": [{"name": "k", "time_us": 1}], "metrics": [{"name": "m", "value": "x"}]}',
            422,
            "metrics[0].value",
        ),
        (b"[" * 100_000, 400, "deep"),
        (b'{"a":' * 200 + b"1" + b"}" * 200, 422, "deeper"),
        (b'"\xff\xfe"', 400, "not JSON"),
    ],
)
def test_what_is_no_analysis_is_refused(service: Service, body: bytes, status: int, named: str) -> None:
    run = service.a_run()
    answer = push(service, run, body)
    assert answer.status_code == status, answer.text
    assert named in answer.json()["detail"]
    assert "Traceback" not in answer.text
    assert service.get("/runs").json()["items"] == []
    assert service.get(f"/runs/{run}/analysis").status_code == 404
    # The same process takes the next.
    assert push(service, run, body_of(a_document())).status_code == 201


def test_a_body_past_the_limit_is_413(service: Service) -> None:
    answer = push(service, service.a_run(), b" " * (8 * 2**20 + 1))
    assert answer.status_code == 413
    assert "limit" in answer.json()["title"]


def test_the_same_push_twice_is_one(service: Service) -> None:
    run, body = service.a_run(), json.dumps(body_of(a_document())).encode()
    first = push(service, run, body, **{"Idempotency-Key": "k-001"})
    second = push(service, run, body, **{"Idempotency-Key": "k-001"})
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    other = push(
        service, run, json.dumps(body_of(a_document(seed=2))).encode(), **{"Idempotency-Key": "k-001"}
    )
    assert other.status_code == 409
    assert other.json()["where"] == "header Idempotency-Key"
    assert service.get(f"/runs/{run}/analysis").json() == http_form(a_document())


def test_eight_pushes_at_once_are_one(service: Service) -> None:
    run, body = service.a_run(), json.dumps(body_of(a_document())).encode()
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: push(service, run, body, **{"Idempotency-Key": "k-003"}), range(8)))
    assert sorted(a.status_code for a in answers) == [200] * 7 + [201]
    assert len({a.json()["id"] for a in answers}) == 1
    assert service.get(f"/runs/{run}/kernels").json()["total"] == 12


def test_a_failed_push_leaves_its_key_free(service: Service) -> None:
    run, body = service.a_run(), json.dumps(body_of(a_document())).encode()
    push(service, run, body)
    again = push(service, run, body, **{"Idempotency-Key": "k"})
    assert again.status_code == 409  # rank 0 is there already
    other = service.a_run()
    assert push(service, other, body, **{"Idempotency-Key": "k"}).status_code == 201


def test_the_second_profile_of_a_rank_is_refused_and_the_first_stays(service: Service) -> None:
    run = service.a_run()
    push(service, run, body_of(a_document(source="a.json")))
    answer = push(service, run, body_of(a_document(source="b.json", seed=2)))
    assert answer.status_code == 409
    for word in ("rank 0", "a.json", "b.json"):
        assert word in answer.json()["detail"]
    assert service.get(f"/runs/{run}/analysis").json()["source"] == "a.json"


def test_ranks_come_one_by_one_and_what_is_missing_is_said(service: Service) -> None:
    run = service.a_run()
    for rank in (2, 0):
        document = a_document(source=f"rank{rank}.json")
        document.ranks[0].rank, document.world_size = rank, 4
        assert push(service, run, body_of(document)).status_code == 201
    seen = service.get(f"/runs/{run}/analysis").json()
    assert [r["rank"] for r in seen["ranks"]] == [0, 2]
    assert seen["missing_ranks"] == [1, 3]
    assert {"code": "missing_ranks", "count": 2, "detail": "1, 3"} in seen["flags"]
    assert service.get(f"/runs/{run}/kernels", params={"rank": 2}).json()["total"] == 12


HOSTILE = [
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int>>(int)",
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    "a\"b'c`d${7*7}{{7*7}}",
    '=HYPERLINK("http://192.0.2.1/","x")',
    "\u202eevil\u2066 \U0001f600 \t\r\n %s %00 \\ '; DROP TABLE kernels; --",
    "x" * 10_000,
]


def test_names_are_data(service: Service) -> None:
    run = service.a_run(name="<img src=x onerror=alert(1)>", host="</script><script>alert(1)</script>")
    kernels = [{"name": name, "time_us": 10 + i} for i, name in enumerate(HOSTILE)]
    assert push(service, run, {"kernels": kernels}).status_code == 201
    rows = service.get(f"/runs/{run}/kernels", params={"sort": "time_us"}).json()["items"]
    assert [r["name"] for r in rows] == HOSTILE
    [seen] = service.get("/runs").json()["items"]
    assert seen["name"] == "<img src=x onerror=alert(1)>"
    assert seen["host"] == "</script><script>alert(1)</script>"
    for name in HOSTILE[:5]:
        found = service.get(f"/runs/{run}/kernels", params={"search": name}).json()
        assert [k["name"] for k in found["items"]] == [name]


def test_a_nul_is_left_out_on_every_database(service: Service) -> None:
    """PostgreSQL holds no NUL and JSON may carry one; a lone surrogate has no UTF-8."""
    run = service.a_run(name="a\0b")
    raw = rb'{"kernels": [{"name": "k\u0000ernel", "time_us": 1}, {"name": "lone \ud800", "time_us": 2}]}'
    assert push(service, run, raw).status_code == 201
    rows = service.get(f"/runs/{run}/kernels", params={"sort": "time_us"}).json()["items"]
    assert [r["name"] for r in rows] == ["kernel", "lone \\ud800"]
    assert service.get(f"/runs/{run}").json()["name"] == "ab"
    for path in (
        "/runs?search=a%00b",
        "/runs/%00",
        f"/runs/{run}/kernels?search=%00&regime=%00",
        "/jobs/%00",
    ):
        assert service.get(path).status_code in (200, 404), path


def test_launches_of_another_tool_keep_their_nanoseconds(service: Service) -> None:
    """790 - 789 = 1 ns; 999 - 791 = 208 ns; the gap between them 791 - 790 = 1 ns."""
    base = 1_764_500_000_123_456_000
    kernels = [
        {"name": "a", "start_ns": base + 789, "end_ns": base + 790, "bytes": 2**53 + 1},
        {"name": "b", "start_ns": base + 791, "end_ns": base + 999, "bytes": 85_899_345_920},
    ]
    run = service.a_run()
    assert push(service, run, {"kernels": kernels}).status_code == 201
    a, b = service.get(f"/runs/{run}/launches").json()["items"]
    assert (a["start_ns"], a["dur_ns"], a["bytes"]) == ("1764500000123456789", "1", "9007199254740993")
    assert (b["dur_ns"], b["bytes"]) == ("208", "85899345920")
    assert int(b["start_ns"]) - int(a["start_ns"]) - int(a["dur_ns"]) == 1
    times = {k["name"]: k["time_us"] for k in service.get(f"/runs/{run}/kernels").json()["items"]}
    assert times == {"a": 0.001, "b": 0.208}


def test_launches_of_one_kernel_are_one_row(service: Service) -> None:
    kernels = [
        {"name": "k", "start_ns": 1000 * i, "end_ns": 1000 * i + d, "flops": 7}
        for i, d in enumerate((10, 30, 20))
    ]
    run = service.a_run()
    push(service, run, {"kernels": kernels, "metrics": [{"name": "util", "value": 65.0, "unit": "%"}]})
    [row] = service.get(f"/runs/{run}/kernels").json()["items"]
    # 10 + 30 + 20 = 60 ns; the median is 20; 3 × 7 FLOPs.
    assert (row["count"], row["time_us"], row["min_us"], row["p50_us"], row["max_us"]) == (
        3,
        0.06,
        0.01,
        0.02,
        0.03,
    )
    assert (row["flops"], row["share_pct"]) == ("21", 100.0)
    assert service.get(f"/runs/{run}/analysis").json()["telemetry"]["metrics"][0]["value"] == 65.0


def test_a_push_without_launches_makes_no_file(service: Service) -> None:
    run = service.a_run()
    push(service, run, body_of(a_document()))
    assert service.files() == []
    assert service.get(f"/runs/{run}/launches").json() == {"items": [], "total": 0, "next_cursor": None}


def test_every_field_of_a_kernel_has_its_column() -> None:
    from app.models import KernelRow

    assert set(Kernel.__struct_fields__) <= {c.name for c in KernelRow.__table__.columns}


def test_an_unknown_run_is_404(service: Service) -> None:
    for run in ("nope", "00000000-0000-4000-8000-000000000000", "..", "%2e%2e%2f"):
        assert push(service, run, body_of(a_document())).status_code == 404
    assert service.post("/projects/nope/runs", json={}).status_code == 404
