"""The hardware catalogue over HTTP: device models, instances, prices."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli import main
from app.settings import Settings
from rooflight.prices import instances
from tests.app.conftest import Service, a_service

OWN = (
    "provider,instance,usd_per_hour,region,date,source\n"
    "AWS,p5.48xlarge,20.00,us-east-1,2026-11-30,our contract\n"
)


def test_a_stranger_from_elsewhere_is_refused(service: Service) -> None:
    headers = {"Host": "elsewhere.example"}
    for path in ("/hardware/instances", "/hardware/gpus"):
        assert service.get(path, headers=headers).status_code in (400, 401, 403)


def test_the_catalogue_and_one_entry(service: Service) -> None:
    assert len(service.get("/hardware/gpus").json()["items"]) > 60
    (found,) = service.get("/hardware/gpus", params={"name": "NVIDIA H100 80GB HBM3"}).json()["items"]
    assert found["id"] == "h100-sxm"
    assert service.get("/hardware/gpus", params={"name": "Foo X1"}).json() == {"items": []}


def test_instances_by_the_price_of_a_gpu_hour(service: Service) -> None:
    answer = service.get("/hardware/instances").json()
    assert answer["total"] == len(answer["items"]) == len(instances())
    assert answer["next_cursor"] is None
    prices = [i["usd_per_gpu_hour"] for i in answer["items"]]
    known = [p for p in prices if p is not None]
    assert known == sorted(known)
    assert set(prices[len(known) :]) == {None}


def test_instances_are_selected(service: Service) -> None:
    def found(**params: str) -> list[str]:
        answer = service.get("/hardware/instances", params=params)
        return [i["instance"] for i in answer.json()["items"]]

    assert found(gpu="NVIDIA H100 80GB HBM3", provider="aws") == ["p5.48xlarge", "p5.4xlarge"]
    assert found(gpu="h100-sxm", region="us-east4") == ["a3-highgpu-8g"]
    assert found(gpu="Foo X1") == []
    assert found(provider="nobody") == []


def test_instances_come_in_pages(service: Service) -> None:
    names, cursor = [], 0
    while cursor is not None:
        page = service.get("/hardware/instances", params={"limit": 30, "cursor": cursor}).json()
        names += [i["instance"] for i in page["items"]]
        cursor = page["next_cursor"]
    assert len(names) == len(instances())
    assert service.get("/hardware/instances", params={"limit": 0}).status_code == 422
    assert service.get("/hardware/instances", params={"limit": 2001}).status_code == 422
    assert service.get("/hardware/instances", params={"cursor": 10**6}).json()["items"] == []


def test_the_services_own_prices_win(settings: Settings, tmp_path: Path) -> None:
    (tmp_path / "mine.csv").write_text(OWN)
    with a_service(settings.model_copy(update={"prices": tmp_path / "mine.csv"})) as service:
        answer = service.get("/hardware/instances", params={"gpu": "h100-sxm", "provider": "AWS"}).json()
    first = answer["items"][0]
    assert first["usd_per_gpu_hour"] == 2.5  # 20.00 / 8
    assert first["price_from"] == "mine.csv"
    assert str(tmp_path) not in str(answer)


@pytest.mark.parametrize("text", [OWN.replace("20.00", "-1"), None])
def test_a_service_does_not_start_on_a_list_that_is_wrong(
    text: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.csv"
    if text is not None:
        path.write_text(text)
    monkeypatch.setenv("ROOFLIGHT_PRICES", str(path))
    assert main(["serve", "--port", "0", "--data", str(tmp_path / "data")]) == 2
    err = capsys.readouterr().err
    assert ("line 2, column usd_per_hour" if text else "No such file") in err
    assert err.count("\n") == 1
