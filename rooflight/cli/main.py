"""``rooflight``: its commands, each a module of this package."""

from __future__ import annotations

from rooflight.cli.program import Program

COMMANDS = {
    "analyze": "analyse traces: bounds, regimes, where each step's time goes",
    "compare": "two runs: where their difference comes from, and whether it is noise",
    "cost": "FLOPs and bytes of op events read from standard input, one JSON a line",
    "kernels": "family, dtype and unit of kernel names read from standard input, one a line",
    "whatif": "the same work on another GPU, in another dtype, fused, overlapped, without waiting",
    "gpus": "the hardware catalogue, or the entry that a name resolves to",
    "report": "an analysis as one HTML file, to send on or to keep",
    "figures": "roofline, waterfall, regimes or steps of an analysis as an SVG file",
    "prices": "a price list of your own from the files that a cloud provider publishes",
    "upload": "send a trace to a Rooflight server",
}
main = Program("rooflight", "What bounds your GPUs, and what to do first.", "rooflight.cli", COMMANDS).main
