"""The process that analyses files for another: ``python -m rooflight.worker``, started by the pool.

It reads tasks from standard input and writes a reply to each on standard output, one message at a time:
eight bytes of length, then MessagePack.  It ends when its input does.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from typing import IO

from msgspec import Struct

from rooflight.errors import Refused, RooflightError, TooLarge
from rooflight.results.file import Analyst, FileTask, in_file
from rooflight.results.result import RankResult, decoder, encode

_LENGTH = 8


class Done(Struct, tag=True, frozen=True):
    """The file is analysed."""

    result: RankResult


class NotTaken(Struct, tag=True, frozen=True):
    """An error of the domain: the name of its class and what it says."""

    kind: str
    title: str
    where: str = ""
    hint: str = ""


class Broken(Struct, tag=True, frozen=True):
    """An error that nobody expected."""

    text: str


Reply = Done | NotTaken | Broken
read_task = decoder(FileTask)
read_reply = decoder(Reply)


def send(stream: IO[bytes], message: Struct) -> None:
    data = encode(message)
    stream.write(len(data).to_bytes(_LENGTH, "big"))
    stream.write(data)
    stream.flush()


def receive(stream: IO[bytes]) -> bytes | None:
    """The next message; ``None`` at the end of the stream, also within a message."""
    head = stream.read(_LENGTH)
    size = int.from_bytes(head, "big")
    data = stream.read(size) if len(head) == _LENGTH else b""
    return data if size and len(data) == size else None


def serve(tasks: IO[bytes], replies: IO[bytes]) -> None:
    """Answer task after task."""
    analyst = Analyst()
    while (data := receive(tasks)) is not None:
        send(replies, _reply(read_task(data), analyst))


def _reply(task: FileTask, analyst: Analyst) -> Reply:
    try:
        return Done(analyst.result(task))
    except RooflightError as e:
        return _not_taken(e)
    except MemoryError:
        hint = "record fewer steps, or analyse fewer files at once"
        return _not_taken(in_file(TooLarge("too large for the memory of this machine", hint=hint), task.name))
    except Exception:
        return Broken(traceback.format_exc())


def _not_taken(e: RooflightError) -> NotTaken:
    if isinstance(e, Refused):
        return NotTaken(type(e).__name__, e.title, e.where, e.hint)
    return NotTaken(type(e).__name__, str(e))


def main() -> None:
    # An interrupt of the terminal reaches all its processes: the parent ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    replies = os.fdopen(os.dup(1), "wb")
    # Whatever is printed must not stand among the replies.
    os.dup2(2, 1)
    try:
        serve(sys.stdin.buffer, replies)
    except BrokenPipeError:
        os._exit(1)  # The parent is gone, and so is everyone who would read more of this.


if __name__ == "__main__":
    main()
