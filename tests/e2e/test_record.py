"""``rooflight.record`` in ranks of a training, against the service as it is served."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Server
from tests.rooflight.test_recorder import LOOP, run

SCRIPT = f"""{LOOP}
import rooflight
units = {{"tokens": 32}}
with rooflight.record(project="sdk", run="two ranks", wait=1, active=3, units_per_step=units) as rec:
    train(10, rec.step)
assert rec.wait(120), rec.problem
print("page", rec.page)
"""


def analysis(server: Server, token: str, run_id: str) -> Any:
    request = urllib.request.Request(
        f"{server.url}/api/v1/runs/{run_id}/analysis", headers={"Authorization": f"Bearer {token}"}
    )
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def pages(*ended: subprocess.CompletedProcess[str]) -> list[str]:
    assert all(done.returncode == 0 for done in ended), ended
    lines = [line for done in ended for line in done.stdout.splitlines()]
    return [line.split("/")[-1] for line in lines if line.startswith("page ")]


@pytest.mark.torch
def test_the_ranks_of_a_launch_are_one_run_however_they_are_started(
    server: Server, token: str, tmp_path: Path
) -> None:
    told = {"ROOFLIGHT_SERVER": server.url, "ROOFLIGHT_TOKEN": token, "OMP_NUM_THREADS": "1"}
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    launched = pages(run(tmp_path / "state", SCRIPT, *torchrun, **told))
    # From a shell, twice, rank after rank: they have one parent.
    started = [
        pages(run(tmp_path / "state", SCRIPT, RANK=str(rank), WORLD_SIZE="2", **told))
        for _ in range(2)
        for rank in range(2)
    ]
    runs = [*launched, *(page for [page] in started)]
    assert len(runs) == 6
    assert runs[0::2] == runs[1::2]
    assert len(set(runs)) == 3
    for run_id in set(runs):
        document = analysis(server, token, run_id)
        assert [(rank["rank"], rank["n_steps"]) for rank in document["ranks"]] == [(0, 3), (1, 3)]
        assert (document["world_size"], document["missing_ranks"]) == (2, [])
        assert document["units_per_step"] == {"tokens": 32}
