"""The callbacks, in trainings by the frameworks themselves."""

from __future__ import annotations

import gzip
import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.servers import FakeServer, accepts, running
from tests.rooflight.test_recorder import run

pytestmark = [pytest.mark.torch, pytest.mark.frameworks]

HUGGINGFACE = """
import os, sys, torch, transformers
from rooflight.integrations.huggingface import RooflightCallback
config = transformers.GPT2Config(
    n_layer=1, n_head=2, n_embd=8, vocab_size=32, n_positions=8, bos_token_id=0, eos_token_id=0
)
model = transformers.GPT2LMHeadModel(config)
ids = torch.arange(8)
data = [{"input_ids": ids, "labels": ids}] * 64
settings = transformers.TrainingArguments(
    "checkpoints", max_steps=int(sys.argv[1]), per_device_train_batch_size=1, gradient_accumulation_steps=2,
    report_to=[], save_strategy="no", use_cpu=True, disable_tqdm=True,
)
callback = RooflightCallback(project="llm", run="gpt", wait=3, active=4, units_per_step={"tokens": 16})
"""
TRAIN = """
trainer = transformers.Trainer(model=model, args=settings, train_dataset=data, callbacks=[callback])
trainer.train()
print("|", callback.recorder.wait(120), callback.recorder.problem, callback.recorder.folder, sep="|")
"""

BROKEN = """
train = trainer.training_step
def broken(*given, **more):
    if trainer.state.global_step == 7:
        raise RuntimeError("no")
    return train(*given, **more)
trainer.training_step = broken
trainer.train()
"""

LIGHTNING = """
import sys, logging, torch, lightning
from rooflight.integrations.lightning import RooflightCallback
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def training_step(self, batch, index):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)
callback = RooflightCallback(project="llm", run="linear", wait=3, active=4, units_per_step={"samples": 4})
quiet = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer = lightning.Trainer(
    accelerator="cpu", max_steps=12, accumulate_grad_batches=2, callbacks=[callback], **quiet, **OPTIONS
)
loader = torch.utils.data.DataLoader(torch.ones(200, 8), batch_size=2)
"""
FIT = """
trainer.fit(Model(), loader)
print("|", callback.recorder.wait(120), callback.recorder.problem, callback.recorder.folder, sep="|")
"""


def said(stdout: str) -> list[str]:
    """What the recorder said at the end: whether it is done, its problem, its folder."""
    [line] = [line for line in stdout.splitlines() if line.startswith("||")]
    return line.split("|")[2:]


def analysis(folder: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((Path(folder) / "analysis.json").read_bytes())
    return found


def test_a_step_of_transformers_is_one_of_its_optimizer(tmp_path: Path) -> None:
    done = run(tmp_path / "state", HUGGINGFACE.replace("sys.argv[1]", "12") + TRAIN)
    assert done.returncode == 0, done.stderr
    well, problem, folder = said(done.stdout)
    assert (well, problem) == ("True", "None")
    document = analysis(folder)
    [rank] = document["ranks"]
    # 3 wait, 2 warm up, 4 of 12 are recorded; each is 2 batches.
    assert rank["n_steps"] == 4
    assert document["units_per_step"] == {"tokens": 16}


def test_a_training_of_transformers_that_is_broken_off_ends_as_it_would(tmp_path: Path) -> None:
    script = HUGGINGFACE.replace("sys.argv[1]", "12") + TRAIN.replace("trainer.train()", BROKEN)
    done = run(tmp_path / "state", script)
    assert done.returncode == 1
    assert "RuntimeError: no" in done.stderr.splitlines()
    # After 3 + 2 steps 2 of the 4 are over: what there is of them is kept.
    [trace] = (tmp_path / "state").glob("records/*/*.pt.trace.json.gz")
    names = [e.get("name") for e in json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]]
    assert sum(str(name).startswith("ProfilerStep#") for name in names) in (2, 3)


def test_a_step_of_lightning_ends_with_the_batch_in_which_an_optimizer_took_one(tmp_path: Path) -> None:
    done = run(tmp_path / "state", LIGHTNING.replace("**OPTIONS", "devices=1") + FIT)
    assert done.returncode == 0, done.stderr
    well, problem, folder = said(done.stdout)
    assert (well, problem) == ("True", "None")
    document = analysis(folder)
    [rank] = document["ranks"]
    assert rank["n_steps"] == 4
    # 2 batches gather their gradients for each of the 4 steps.
    [forward] = [op for op in rank["cpu"]["ops"] if op["name"] == "aten::addmm"]
    assert forward["count"] == 2 * 4
    assert document["units_per_step"] == {"samples": 4}


def test_ranks_that_lightning_starts_are_one_run(tmp_path: Path) -> None:
    script = LIGHTNING.replace("**OPTIONS", "devices=2, strategy='ddp'") + FIT
    with running(FakeServer(accepts)) as server:
        done = run(tmp_path / "state", script, ROOFLIGHT_SERVER=server.url, OMP_NUM_THREADS="1")
    assert done.returncode == 0, done.stderr
    made = [request for request in server.seen if request.path.endswith("/runs")]
    assert len(made) == 2
    assert len({request.headers["idempotency-key"] for request in made}) == 1
    pushed = [json.loads(r.body) for r in server.seen if r.path.endswith("/profiles")]
    assert sorted((p["ranks"][0]["rank"], p["world_size"], p["ranks"][0]["n_steps"]) for p in pushed) == [
        (0, 2, 4),
        (1, 2, 4),
    ]


@pytest.mark.parametrize("framework", ["huggingface", "lightning"])
def test_arguments_that_cannot_be_are_refused_where_the_callback_is_made(framework: str) -> None:
    callback = importlib.import_module(f"rooflight.integrations.{framework}").RooflightCallback
    with pytest.raises(ValueError, match="at least one step"):
        callback(active=0)
    with pytest.raises(TypeError, match="projekt"):
        callback(projekt="llm")
