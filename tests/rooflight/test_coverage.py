"""How much of the kernel time of every shared trace has a cost, and why the rest has none.

The table is printed: ``scripts/test -k coverage -s`` shows it.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from rooflight.analysis import analyze_files
from rooflight.errors import Refused
from rooflight.protocol import Kernel
from rooflight.results.above import UNEXPLAINED
from tests.shared import traces_dir

pytestmark = pytest.mark.traces

MODELS = [
    "Falconsai_nsfw_image_detection__1016002",
    "Qwen_Qwen1.5-0.5B-Chat__1016005",
    "gaunernst_bert-small-uncased__1016001",
]
PAIRS = [f"pairs/{gpu}/{model}.json.gz" for gpu in ("h100", "mi300") for model in MODELS]
ORIGINS = ("measured", "modelled", "inferred", "unknown")
RESNET, FLUX = "mi300_resnet_act_checkpoint_rank0of8.json.gz", "mi300_xdit_flux.json.gz"
V100 = [f"v100_resnet50_workers{n}.pt.trace.json.gz" for n in (0, 4)]
WITH_DIMS = [*PAIRS, *V100, RESNET, FLUX, "mi300_normalization_layers.json.gz"]


@cache
def kernels(trace: str) -> list[Kernel] | None:
    """The kernels of the recording; ``None`` for a file that is refused, or is none."""
    try:
        analysis = analyze_files([str(Path(traces_dir()) / trace)])
    except Refused:
        return None
    return [k for rank in analysis.document.ranks for k in rank.kernels if k.kind == "kernel"]


def share(rows: list[Kernel], *origins: str) -> float:
    """The share in percent of the time of ``rows`` whose cost has one of these origins."""
    whole = sum(k.time_us for k in rows)
    return 100 * sum(k.time_us for k in rows if k.origin in origins) / whole if whole else 100.0


@pytest.mark.parametrize("trace", WITH_DIMS)
def test_nearly_all_time_of_ops_with_dims_is_modelled(trace: str) -> None:
    rows = [k for k in kernels(trace) or [] if k.op is not None and k.input_dims is not None]
    assert rows
    assert share(rows, "modelled", "measured") >= 95


@pytest.mark.parametrize("trace", [*PAIRS, RESNET])
def test_nearly_all_time_has_a_cost(trace: str) -> None:
    assert share(kernels(trace) or [], "modelled", "measured", "inferred") >= 95


def test_graph_replays_without_grid_or_op_stay_unknown() -> None:
    """No kernel of these graphs has a grid, an op or a sibling: name and time are all there is, and a time
    tells no work.  Of the rest of the recording (11 % of the time) nearly all has a cost."""
    rows = kernels(FLUX) or []
    replayed = [k for k in rows if k.cost_reason.startswith("graph replay:")]
    assert share(replayed, "unknown") == 100
    assert share([k for k in rows if k not in replayed], "modelled") > 99.9


def _recordings() -> list[str]:
    root = Path(traces_dir())
    found = [p for p in sorted(root.rglob("*.json*")) if p.name not in ("TRUTH.json", "PARTS.json")]
    return [str(p.relative_to(root)) for p in found if "rocprof" not in p.parts and "ncu" not in p.parts]


def test_the_table_of_all_shared_traces() -> None:
    """Prints coverage and the reasons of the rest; what is faster than 1.1 x a datasheet roof says why."""
    lines, unexplained = [], []
    for trace in _recordings():
        rows = kernels(trace)
        if not rows:
            lines.append(f"{trace[-52:]:<52}  no kernels")
            continue
        shares = " ".join(
            f"{o} {share(rows, o):5.1f}" for o in ("measured", "modelled", "inferred", "unknown")
        )
        reasons = Counter[str]()
        for k in rows:
            if k.origin == "unknown":
                reasons[k.cost_reason.partition(":")[0]] += round(k.time_us)
        lines.append(f"{trace[-52:]:<52}  {shares}  {dict(reasons.most_common(4)) or ''}")
        assert all("allows: " in k.cost_reason for k in rows if k.above_peak)
        unexplained += [(trace, k.name) for k in rows if k.above_peak and UNEXPLAINED in k.cost_reason]
        assert sum(share(rows, o) for o in ("measured", "modelled", "inferred", "unknown")) == pytest.approx(
            100
        )
    print("\n".join(["", *lines]))
    assert not unexplained
