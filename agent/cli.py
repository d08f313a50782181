"""``rooflight-agent``: its commands, each a module of :mod:`agent.commands`.

torch is loaded by those alone that run something.
"""

from __future__ import annotations

import sys

from rooflight.cli.program import Program

COMMANDS = {
    "run": "run a built-in workload under the profiler, analyse it and send the analysis",
    "calibrate": "measure this device's ceilings",
    "daemon": "sample devices, record processes on order, deliver; until it is told to stop",
    "capture": "record training processes that already run",
    "doctor": "say what keeps the agent from its work on this host, and what to do",
    "push": "send an analysis that was kept",
}
main = Program(
    "rooflight-agent",
    "Measures what this host's device does and tells a Rooflight server.",
    "agent.commands",
    COMMANDS,
).main


if __name__ == "__main__":
    sys.exit(main())
