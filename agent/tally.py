"""How many batches were given up, kept over restarts and exact over crashes.

A batch is dropped by giving its file another name, one that ends in ``.dropped``, and emptying it: that is
atomic, needs no room on a full disk, and the file is the count.  Now and then these files are folded into a
number; the number is written together with the names that it holds, before they are removed.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from agent.batch import KINDS, Kind
from agent.store import replace

DROPPED = ".dropped"
#: More such files than this are folded.
_MOST_FILES = 256


class _Kept(msgspec.Struct):
    """``folded`` are the files already in ``dropped``; ``last`` is the highest place that a file had;
    ``acknowledged`` is the key of the batch whose answer was counted last."""

    dropped: dict[str, int] = msgspec.field(default_factory=dict)
    folded: list[str] = msgspec.field(default_factory=list)
    acknowledged: str = ""
    last: int = 0


@dataclass
class Tally:
    """The dropped batches of the spool in ``folder`` that no server has acknowledged."""

    folder: Path
    note: Callable[[str], None]
    _kept: _Kept = field(default_factory=_Kept)
    _files: dict[str, Kind] = field(default_factory=dict)
    _unwritten: Counter[str] = field(default_factory=Counter)
    _told: Counter[str] = field(default_factory=Counter)

    @property
    def path(self) -> Path:
        return self.folder / "counters.json"

    @property
    def last(self) -> int:
        """A place in the queue that no later batch may have again."""
        return self._kept.last

    def load(self, files: Mapping[str, Kind]) -> None:
        """Read what was kept; ``files`` are the names that end in ``.dropped``, with their kinds."""
        try:
            self._kept = msgspec.json.decode(self.path.read_bytes(), type=_Kept)
        except FileNotFoundError:
            pass
        except (OSError, msgspec.DecodeError) as e:
            self.note(f"the counters of dropped batches are lost: {e}")
        for name in set(self._kept.folded) & set(files):
            self._remove(name)
        self._files = {n: k for n, k in files.items() if n not in set(self._kept.folded)}

    def totals(self) -> dict[str, int]:
        """Dropped and not yet acknowledged, by kind."""
        counts = Counter(self._files.values()) + self._unwritten
        kept = self._kept.dropped
        return {kind: max(0, counts[kind] + kept.get(kind, 0) - self._told[kind]) for kind in KINDS}

    def drop(self, name: str, kind: Kind) -> None:
        """Give up the batch in the file ``name``."""
        gone = name + DROPPED
        (self.folder / name).rename(self.folder / gone)
        os.truncate(self.folder / gone, 0)
        self._count(gone, kind)

    def refuse(self, name: str, kind: Kind) -> None:
        """Count a batch that never came to have a file."""
        gone = name + DROPPED
        try:
            (self.folder / gone).touch()
        except OSError:
            # Not even a name fits on the disk; the number is kept with the next file that does.
            self._unwritten[kind] += 1
            return
        self._count(gone, kind)

    def acknowledge(self, key: str, counts: Mapping[str, int]) -> None:
        """The server has counted ``counts`` with the batch ``key``: they are not told again.

        The same answer to the same batch, repeated after a crash, counts once.
        """
        if not any(counts.values()) or key == self._kept.acknowledged:
            return
        self._told.update(counts)
        self._save(acknowledged=key)

    def _count(self, name: str, kind: Kind) -> None:
        self._files[name] = kind
        if len(self._files) > _MOST_FILES:
            self._save(acknowledged=self._kept.acknowledged)

    def _save(self, *, acknowledged: str) -> None:
        places = (int(name.partition("-")[0].partition(".")[0]) for name in self._files)
        last = max(places, default=0)
        kept = _Kept(self.totals(), sorted(self._files), acknowledged, max(self._kept.last, last))
        try:
            replace(self.path, (msgspec.json.encode(kept),))
        except OSError as e:
            self.note(f"the counters of dropped batches cannot be written: {e.strerror}")
            return
        self._kept, files = kept, self._files
        self._files, self._unwritten, self._told = {}, Counter(), Counter()
        for name in files:
            self._remove(name)

    def _remove(self, name: str) -> None:
        try:
            (self.folder / name).unlink(missing_ok=True)
        except OSError as e:
            self.note(f"{name} cannot be removed: {e.strerror}")
