"""What an answer assumes, in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from rooflight.scenarios.model import Scenario


def assumptions(
    scenario: Scenario, *, moved: bool, fallback: Mapping[str, str], several: bool = False
) -> Iterator[str]:
    """One sentence for each thing that is taken for granted; ``several`` ranks set the time of a step."""
    if moved:
        yield (
            "Kernels near a roof reach the same share of the other device's practical roof; of those near"
            " none the time is between unchanged and scaled with the SMs that have work; kernels under 5 µs"
            " keep theirs, but for what starting and ending one takes on either; the libraries there pick"
            " kernels as good as these."
        )
        yield "Waiting that the device does not cause (input, host, launch, dependency) stays as it is."
    if scenario.dtype:
        yield (
            f"All matrix work is in {scenario.dtype}, and with 16 bits or more all other floating work too;"
            " bytes shrink with the type. Whether the results are still good enough is not looked at."
        )
    for lacking, instead in fallback.items():
        yield f"The device has no roof for {lacking}: {instead} is used instead."
    if scenario.roofs_reached:
        yield "Every kernel of known cost runs at its practical roof; the others as before."
    if scenario.fused:
        yield (
            "Each chain of elementwise kernels that follow each other on a stream is one kernel, in which"
            " each takes what the one before made; low: that is neither written nor read, high: it is still"
            " written, because something else reads it."
        )
    if scenario.overlapped:
        yield (
            "Exposed communication runs beside kernels as far as these are long and hide none yet, and slows"
            " neither down; waiting for another rank stays."
        )
    if scenario.input_ready:
        yield "Input is always there in time, and preparing it slows nothing else down."
    if several:
        yield (
            "A step takes as long as the rank with most to do itself; what even that one waits, since ranks"
            " wait for each other in turns, stays as it is."
        )
