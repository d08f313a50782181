"""Batches that no server will take, kept for a person to look at: bounded, each with its reason beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from agent.store import replace

_REASON = ".reason.json"
_LONGEST_REASON = 2_000


class Reason(msgspec.Struct):
    """Why a batch is here.  ``status`` is the server's, ``None`` for what never came there."""

    reason: str
    status: int | None = None


@dataclass
class Quarantine:
    """The folder; with more than ``limit_bytes`` or ``most`` batches the oldest are removed."""

    folder: Path
    limit_bytes: int
    note: Callable[[str], None]
    most: int = 1_000

    def names(self) -> list[str]:
        """The batches here, oldest first."""
        try:
            found = [path.name for path in self.folder.iterdir()]
        except FileNotFoundError:
            return []
        return sorted(n for n in found if not n.endswith(_REASON) and not n.startswith("."))

    def reason(self, name: str) -> Reason | None:
        """Why the batch is here; ``None`` when that was not written."""
        try:
            return msgspec.json.decode((self.folder / (name + _REASON)).read_bytes(), type=Reason)
        except (OSError, msgspec.DecodeError):
            return None

    def take(self, path: Path, reason: str, status: int | None = None) -> None:
        """Move a batch here; :class:`OSError` when it cannot be moved."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path.rename(self.folder / path.name)
        self.note(f"{path.name} is set apart: {reason}")
        self._explain(path.name, Reason(reason[:_LONGEST_REASON], status))
        self.trim()

    def trim(self) -> None:
        """Remove the oldest until the rest is within the bounds."""
        names = self.names()
        sizes = {name: self._size(name) for name in names}
        total = sum(sizes.values())
        for i, name in enumerate(names):
            if total <= self.limit_bytes and len(names) - i <= self.most:
                return
            total -= sizes[name]
            self._remove(name)

    def _explain(self, name: str, reason: Reason) -> None:
        try:
            replace(self.folder / (name + _REASON), (msgspec.json.encode(reason),))
        except OSError as e:
            self.note(f"the reason of {name} cannot be written: {e.strerror}")

    def _size(self, name: str) -> int:
        try:
            return (self.folder / name).stat().st_size
        except OSError:
            return 0

    def _remove(self, name: str) -> None:
        try:
            (self.folder / name).unlink(missing_ok=True)
            (self.folder / (name + _REASON)).unlink(missing_ok=True)
        except OSError as e:
            self.note(f"{name} cannot be removed: {e.strerror}")
