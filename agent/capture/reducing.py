"""Starting the child that analyses a capture: one at a time, and out of the way of the training."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.capture.folder import ANALYSIS
from rooflight.errors import Refused

#: A trace of a minute takes seconds; one that takes this long will not end.
LONGEST_S = 900.0


@dataclass(frozen=True, slots=True)
class Reducing:
    """``calibrations`` are files of this host's devices, for their roofs."""

    calibrations: Sequence[Path] = ()

    def analyse(self, folder: Path) -> Path:
        """The analysis of the traces in ``folder``, as a file beside them; :class:`Refused` with the
        reason of the child."""
        try:
            ended = self._child(folder)
        except subprocess.TimeoutExpired as e:
            raise Refused(f"the analysis took longer than {LONGEST_S:.0f} s", where=str(folder)) from e
        if ended.returncode != 0:
            told = ended.stderr.decode(errors="replace").strip().splitlines()
            title = told[-1] if told else f"the analysis ended with {ended.returncode}"
            raise Refused(title, where=str(folder))
        return folder / ANALYSIS

    def _child(self, folder: Path) -> subprocess.CompletedProcess[bytes]:
        # -P: the working directory is somebody else's, and may hold an agent/ of its own.
        module = [sys.executable, "-P", "-m", "agent.capture.reduce"]
        return subprocess.run(
            [*module, str(folder), *map(str, self.calibrations)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=LONGEST_S,
            check=False,
        )
