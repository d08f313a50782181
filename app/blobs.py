"""Raw traces on disk, each under the SHA-256 of its content, and the timelines that were read from them.

An upload is written beside the store and only a whole one is moved in; the move and the deletion of a file
happen while the caller holds the lock of its row, so that neither can pass the other.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from app.partial import Partial


class BlobStore:
    """A folder of content-addressed files."""

    def __init__(self, root: Path) -> None:
        self._blobs = root / "blobs"
        self._incoming = root / "incoming"
        self._timelines = root / "timelines"
        for folder in (self._blobs, self._incoming):
            folder.mkdir(parents=True, exist_ok=True)

    def incoming(self) -> Incoming:
        """A place for an upload; it vanishes unless it is kept."""
        return Incoming(self._incoming)

    def partial(self, run_id: str, sha256: str) -> Partial:
        """The place of a trace of a run that comes in parts; what stays unfinished is swept."""
        _place(sha256)
        name = hashlib.sha256(f"{run_id}/{sha256}".encode()).hexdigest()
        return Partial(self._incoming / f"parts-{name}", sha256)

    def keep(self, upload: Incoming) -> None:
        """Move a finished upload into the store, durably."""
        target = self.path(upload.digest)
        target.parent.mkdir(exist_ok=True)
        upload.path.replace(target)
        _sync_folder(target.parent)
        _sync_folder(self._blobs)

    def path(self, digest: str) -> Path:
        """Where the blob lies or would lie."""
        return self._blobs / _place(digest)

    def timeline(self, digest: str) -> Path:
        """Where the stored timeline of a raw trace lies or would lie: it outlives the trace."""
        return self._timelines / _place(digest).with_suffix(".rooflight")

    def delete(self, digest: str) -> None:
        """Remove the blob and its timeline; nothing happens when they are gone already."""
        self.path(digest).unlink(missing_ok=True)
        self.timeline(digest).unlink(missing_ok=True)

    def sweep(self, older_than_s: float = 86_400) -> int:
        """Remove what killed servers left of uploads; returns how many files went."""
        edge = time.time() - older_than_s
        old = [f for f in self._incoming.iterdir() if f.stat().st_mtime < edge]
        for file in old:
            file.unlink(missing_ok=True)
        return len(old)


class Incoming:
    """One upload on its way in: hashed as it is written, on disk for good after :meth:`finish`."""

    def __init__(self, folder: Path) -> None:
        fd, name = tempfile.mkstemp(dir=folder, prefix="upload-")
        self.path = Path(name)
        self._file = os.fdopen(fd, "wb")
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append to the upload."""
        self._file.write(data)
        self._hash.update(data)
        self.size += len(data)

    def finish(self) -> None:
        """Wait until the bytes are on the disk."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    @property
    def digest(self) -> str:
        """SHA-256 of what was written so far, in hex."""
        return self._hash.hexdigest()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self.path.unlink(missing_ok=True)


def _place(digest: str) -> Path:
    if len(digest) != 64 or not set(digest) <= set("0123456789abcdef"):
        raise ValueError("not the name of a blob")
    return Path(digest[:2], digest)


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
