"""Where the commands' words go: results to standard output, progress to standard error."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """A result."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def note(text: str) -> None:
    """Progress, or a statement about the run."""
    sys.stderr.write(f"rooflight-agent: {text}\n")
    sys.stderr.flush()
