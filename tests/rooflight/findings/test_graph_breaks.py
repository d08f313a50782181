"""Compiled code in pieces, and compiled again.  All times are us."""

from __future__ import annotations

import pytest

from rooflight.protocol import Finding
from tests.recording import Recording

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"


def shown(finding: Finding) -> str:
    return finding.evidence[0].text


def ops_of(scene: Recording, finding: Finding) -> list[str | None]:
    """The ops of the kernels that a finding points at."""
    kernels = scene.rank().kernels
    return [kernels[i].op for e in finding.evidence for i in e.kernels]


REGION = "Torch-Compiled Region: "
GRAPH = "## Call CompiledFxGraph f0123 ##"


def compiled(first: str, second: str, *, eager: float, nested: bool = True, graphs: bool = True) -> Recording:
    """A region of 400 and another: inside it from 200 to 300, or after it from 600 to 700.  Each has its
    graph in its first 50.  A single op begins at ``eager``, its kernel takes 80."""
    scene, at = Recording().step(0, 0, 1000), 200 if nested else 600
    scene.host(REGION + first, 0, 400).host(REGION + second, at, 100)
    for begin in (0, at):
        if graphs:
            scene.host(GRAPH, begin + 1, 49)
        scene.host("triton_poi_fused_add_0", begin + 2, 20).kernel(
            "triton_poi_fused_add_0", begin + 3, begin + 5, 30
        )
    return scene.op("aten::mul", eager, [[64], []]).kernel(ADD, eager + 1, eager + 3, 80)


@pytest.mark.parametrize(
    "scene",
    [compiled("0/0", "1/0", eager=60), compiled("0/0", "1/0", eager=450, nested=False)],
    ids=["inside", "between"],
)
def test_graph_breaks(scene: Recording) -> None:
    """After a break the next piece runs inside the region of the one before; pieces of a program's own stand
    one after the other."""
    found = scene.findings()["graph-breaks"]
    assert found.saving_us is None
    assert shown(found) == (
        "regions of 2 compiled functions: 2 per step; kernels of single ops between or inside them: "
        "1 per step, 0.08 ms per step, 8 %"
    )
    assert ops_of(scene, found) == ["aten::mul"]


@pytest.mark.parametrize(
    "scene",
    [
        compiled("0/0", "1/0", eager=10),  # inside the graph: a kernel that the compiler calls
        compiled("0/0", "1/0", eager=60, graphs=False),  # inside, and no graph is marked
        compiled("0/0", "1/0", eager=800, nested=False),  # after the last region
        compiled("0/0", "0/0", eager=450, nested=False),  # one function, called twice
        compiled("0/1", "0/1", eager=450, nested=False),  # its second compilation, for sizes that change
    ],
    ids=["in graph", "no graphs", "after", "one function", "second compilation"],
)
def test_no_graph_breaks(scene: Recording) -> None:
    assert "graph-breaks" not in scene.findings()


def test_regions_of_two_steps_have_nothing_between_them() -> None:
    scene = compiled("0/0", "1/0", eager=800, nested=False).step(1, 1000, 1000)
    scene.host(f"{REGION}0/0", 1000, 100).kernel("other", 1001, 1002, 500)
    assert "graph-breaks" not in scene.findings()


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ("0/2", "0/2", "one function was compiled 3 times or more; what ran: 0/2"),
        ("7/0", "7/1", "one function was compiled 2 times or more; what ran: 7/0, 7/1"),
    ],
)
def test_compiled_again(first: str, second: str, text: str) -> None:
    assert shown(compiled(first, second, eager=800, nested=False).findings()["graph-breaks"]) == text
